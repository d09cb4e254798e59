//go:build linux

// Command cluster runs a Kubernetes with Operator Lifecycle Manager on this machine: one node with real pods, made of
// programs that were built from Go modules and of Debian's packages. It needs no container engine and reaches no image
// registry; it brings one of its own.
//
//	cluster up       bring it up, or back up
//	cluster status   tell how it is
//	cluster down     stop it and delete what it kept
//
// It is for tests and demonstrations, on Linux. All it keeps is in one directory; on the machine it adds two network
// links, rules of iptables, a cgroup and a directory under /run, changes some settings of the kernel, and takes all of
// it back again. Debian's packages stay.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	if ctx.Err() != nil && err != nil {
		err = errors.New("interrupted; what runs goes on running: 'make cluster' continues, 'make cluster-down' stops it")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("cluster", flag.ExitOnError)
	dir := flags.String("dir", filepath.Join(cache, "memcached-operator", "cluster"),
		"the directory for all that the cluster keeps")
	bin := flags.String("bin", filepath.Join(cache, "memcached-operator", "bin"),
		"the directory of the programs, as test/cluster/build.sh fills it")
	_ = flags.Parse(args) // it ends the process on errors
	c, err := newCluster(*dir, *bin)
	if err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "up":
		return c.up(ctx)
	case "down":
		return c.down(ctx)
	case "status":
		return c.status(ctx)
	case "check": // not for users: whether "up" can be, before everything is built
		return c.check(ctx)
	case "registry": // not for users: what "up" starts
		return serveRegistry(ctx, c)
	default:
		return fmt.Errorf("%q is none of up, status and down", flags.Arg(0))
	}
}
