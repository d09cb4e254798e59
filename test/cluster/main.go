//go:build linux

// Command cluster runs a Kubernetes cluster with Operator Lifecycle Manager on this machine: one node with real pods,
// from programs that were built from Go modules and from Debian packages. It needs no container engine and no image
// registry; it runs a registry.
//
//	cluster up             bring the cluster up, or repair it
//	cluster olmv1          install OLM v1, too
//	cluster restart-node   kill the node and its pods; start it again when Kubernetes has noticed
//	cluster status         print the state of each part
//	cluster down           stop the cluster and delete its files
//
// It is for tests and demonstrations, on Linux. All its files are in one directory. It adds two network links, iptables
// rules, a cgroup and a directory under /run to the machine, and changes some kernel settings; "cluster down" reverts
// all of that. Debian packages stay installed.
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
		err = errors.New("interrupted; parts keep running: 'make cluster' continues, 'make cluster-down' stops them")
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
		"the directory of the cluster's files")
	bin := flags.String("bin", filepath.Join(cache, "memcached-operator", "bin"),
		"the directory of the programs, as test/cluster/build.sh fills it")
	olm := flags.String("olm", "", "the version of OLM, of those in olm/*.mod; by default, that in olm/go.mod")
	_ = flags.Parse(args) // exits on errors
	c, err := newCluster(*dir, *bin)
	if err != nil {
		return err
	}
	if *olm != "" {
		c.olm = defaultOLM + "-" + *olm
	}
	switch flags.Arg(0) {
	case "up":
		return c.exclusively(ctx, c.up)
	case "olmv1":
		return c.exclusively(ctx, c.installOLMv1)
	case "restart-node":
		return c.exclusively(ctx, c.restartNode)
	case "down":
		return c.exclusively(ctx, c.down)
	case "status":
		return c.status(ctx)
	case "check": // "make" prepares the machine before it builds everything
		return c.exclusively(ctx, c.prepareHost)
	case "registry": // "up" starts it
		return c.serveRegistry(ctx)
	default:
		return fmt.Errorf("unknown command %q: use up, olmv1, restart-node, status or down", flags.Arg(0))
	}
}
