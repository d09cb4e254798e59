//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/example/memcached-operator/test/cluster/progress"
)

// Where things are. All addresses are of a private range that home and office networks hardly use, and live on a bridge
// that has no port to the outside.
const (
	nodeName    = "node"
	nodeIP      = "172.30.0.1"
	podCIDR     = "172.30.16.0/20"
	serviceCIDR = "172.30.32.0/20"
	serviceIP   = "172.30.32.1" // of the API server: the first of its range
	registry    = nodeIP + ":5000"

	// All of the above: no proxy knows them.
	noProxy = "172.30.0.0/18"

	nodeLink = "mco-node" // carries nodeIP
	podLink  = "mco-pods" // the bridge that pods hang on
	cgroup   = "memcached-operator"
	// Sockets and what must not outlive a boot. Short, for a socket's path may have 107 characters.
	runDir = "/run/memcached-operator"
)

// cluster is the cluster of one directory. A machine can run one at a time: the addresses are fixed.
type cluster struct {
	dir, bin string
	clock    progress.Clock
	http     *http.Client // trusts the cluster's authority, and is its administrator
}

// newCluster is the cluster that keeps its things in dir and has its programs in bin. Both are made real paths, for
// that is how the kernel names mounts and programs.
func newCluster(dir, bin string) (*cluster, error) {
	c := &cluster{clock: progress.Start()}
	var err error
	if c.bin, err = realPath(bin); err != nil {
		return nil, err
	}
	c.dir, err = realPath(dir)
	return c, err
}

// realPath is the path without links, also of what is not there yet.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	existing, rest := path, ""
	for {
		real, err := filepath.EvalSymlinks(existing)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) || existing == "/" {
			return "", err
		}
		existing, rest = filepath.Dir(existing), filepath.Join(filepath.Base(existing), rest)
	}
}

// path is a path within what the cluster keeps.
func (c *cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

// up brings up what is not up. Every step leaves alone what is as it should be, so it can be repeated at any time, also
// after it, or what it started, was killed.
func (c *cluster) up(ctx context.Context) error {
	owner, unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.prepareHost(ctx, owner != ""); err != nil {
		return err
	}
	if err := writeFile(ownerFile, []byte(c.dir), 0o644); err != nil {
		return err
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	// Without their containerd, containers and mounts are remains, as of a machine that lost its power.
	if !c.part("containerd").running() {
		if err := c.stopParts(ctx, c.part("kubelet")); err != nil {
			return err
		}
		if err := c.sweep(); err != nil {
			return fmt.Errorf("clearing away what an earlier run left behind: %w", err)
		}
	}
	for _, prepare := range []func(context.Context) error{c.keepSettings, c.addLinks, c.addRules, c.addCgroup} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	for _, p := range c.parts() {
		if err := c.start(ctx, p); err != nil {
			return err
		}
	}
	for _, complete := range []func(context.Context) error{c.awaitNode, c.pushImages, c.installOLM} {
		if err := complete(ctx); err != nil {
			return err
		}
	}
	c.clock.Say("The cluster is up. To use it: export KUBECONFIG=%s", c.path("kubeconfig"))
	return nil
}

// check prepares the machine, and fails if it cannot carry a cluster.
func (c *cluster) check(ctx context.Context) error {
	owner, unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return c.prepareHost(ctx, owner != "")
}

// down stops the cluster and deletes all it kept.
func (c *cluster) down(ctx context.Context) error {
	owner, unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// After the machine was started anew there is no owner, and what the cluster kept is still there.
	if owner == "" && !exists(c.dir) {
		c.clock.Say("There is no cluster.")
		return nil
	}
	// What watches first, the API server before etcd, on which it would hang: the order of starting, reversed.
	parts := c.parts()
	slices.Reverse(parts)
	if err := c.stopParts(ctx, parts...); err != nil {
		return err
	}
	if err := errors.Join(c.sweep(), c.removeRules(ctx), c.removeLinks(ctx), removeCgroup(), c.removeTraces(),
		c.restoreSettings()); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(c.dir), os.RemoveAll(ownerFile)); err != nil {
		return err
	}
	c.clock.Say("The cluster is gone.")
	return nil
}

// status tells how each part is; it fails if one is not well.
func (c *cluster) status(ctx context.Context) error {
	if _, err := os.Stat(c.path("pki", "ca.crt")); err != nil {
		return errors.New("there is no cluster; 'make cluster' brings one up")
	}
	if err := c.connect(); err != nil {
		return fmt.Errorf("%w (the cluster belongs to root)", err)
	}
	unwell := 0
	for _, p := range c.parts() {
		state := "stopped"
		if p.running() {
			state = "well"
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			if err := p.ready(ctx); err != nil {
				state = "not ready: " + err.Error()
			}
			cancel()
		}
		if state != "well" {
			unwell++
		}
		fmt.Printf("%-24s %-8s %s\n", p.name, p.pid(), state)
	}
	if unwell > 0 {
		return fmt.Errorf("%d parts are not well; 'make cluster' starts them again, their logs are in %s", unwell,
			c.path("logs"))
	}
	fmt.Printf("\nexport KUBECONFIG=%s\n\n", c.path("kubeconfig"))
	out, err := c.kubectl(ctx, nil, "get", "nodes,pods", "--all-namespaces")
	fmt.Print(out)
	return err
}

// What the cluster has of the machine there is once, whatever directory it is of: so is the lock, and who has it.
const (
	lockFile  = "/run/memcached-operator.lock"
	ownerFile = "/run/memcached-operator.owner"
)

// lock waits until no other process works on a cluster. The owner is the directory of the cluster that is there, empty
// if none is; it must be this one. Only root may work on one.
func (c *cluster) lock(ctx context.Context) (owner string, unlock func(), err error) {
	if os.Geteuid() != 0 {
		return "", nil, errNotRoot
	}
	file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	told := false
	err = poll(ctx, func() error {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil && !told {
			told = true
			c.clock.Say("Another process works on the cluster; waiting for it.")
		}
		return err
	})
	if err == nil {
		var content []byte
		content, err = os.ReadFile(ownerFile)
		owner = string(content)
		switch {
		case errors.Is(err, os.ErrNotExist):
			err = nil
		case err == nil && owner != c.dir:
			err = fmt.Errorf("the cluster of %s is up, and there can be one: 'make cluster-down CACHE=%s' first", owner,
				filepath.Dir(owner))
		}
	}
	if err != nil {
		_ = file.Close()
		return "", nil, err
	}
	return owner, func() { _ = file.Close() }, nil
}

// kubectl runs kubectl as the cluster's administrator and returns what it printed.
func (c *cluster) kubectl(ctx context.Context, input []byte, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(c.bin, "kubectl"),
		append([]string{"--kubeconfig", c.path("kubeconfig")}, args...)...)
	command.Env = append(os.Environ(), "NO_PROXY="+noProxy)
	command.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// command runs a program of the machine and returns what it printed; an error has its last words.
func command(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// poll calls try until it succeeds or ctx ends, and returns the last error then.
func poll(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
