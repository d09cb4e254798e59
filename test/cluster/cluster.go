//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/memcached-operator/test/cluster/progress"
)

// All addresses are of a private range that home and office networks hardly use, on a bridge without a port to the
// outside.
const (
	nodeName    = "node"
	nodeIP      = "172.30.0.1"
	podCIDR     = "172.30.16.0/20"
	serviceCIDR = "172.30.32.0/20"
	serviceIP   = "172.30.32.1" // of the API server: the first of its range
	registry    = nodeIP + ":5000"
	noProxy     = "172.30.0.0/18" // all of the above

	// digestRegistry is a registry that only mirrors of digests know; test/cluster/publish has a bundle with it.
	digestRegistry = "digests.invalid"

	nodeLink = "mco-node" // has nodeIP
	podLink  = "mco-pods" // the bridge of the pods
	cgroup   = "memcached-operator"
	// runDir has sockets and what must not outlive a boot. It is short, because the path of a socket has at most 107
	// characters.
	runDir = "/run/memcached-operator"
)

// defaultOLM is the set of programs of the newest OLM.
const defaultOLM = "olm"

// cluster is the cluster of one directory. A machine runs one at a time, because the addresses are fixed.
type cluster struct {
	dir, bin string
	olm      string       // the set of programs of build.sh that OLM runs from
	http     *http.Client // trusts the cluster's authority and is its administrator
}

// newCluster returns the cluster that keeps its files in dir and has its programs in bin.
func newCluster(dir, bin string) (*cluster, error) {
	realDir, err := realPath(dir)
	if err != nil {
		return nil, err
	}
	realBin, err := realPath(bin)
	return &cluster{dir: realDir, bin: realBin, olm: defaultOLM}, err
}

// realPath resolves symbolic links, also of a path that does not exist yet, because the kernel reports mounts and
// programs by their real paths.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	existing, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		parent, err := realPath(filepath.Dir(path))
		return filepath.Join(parent, filepath.Base(path)), err
	}
	return existing, err
}

// path returns a path below the directory of the cluster.
func (c *cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

// up brings the cluster up. Every step changes only what is not in its desired state, so up can be repeated at any
// time, also after it, or what it started, was killed.
func (c *cluster) up(ctx context.Context, owned bool) error {
	if err := c.prepareHost(ctx, owned); err != nil {
		return err
	}
	if err := writeFile(ownerFile, []byte(c.dir), 0o644); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{c.writeFiles, c.removeLeftovers, c.keepSettings, c.addLinks,
		c.addRules, c.addCgroup, c.startAll, c.awaitNode, c.pushImages, c.installOLM} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	progress.Printf("The cluster is up. To use it: export KUBECONFIG=%s", c.path("kubeconfig"))
	return nil
}

// removeLeftovers removes containers and mounts whose containerd was killed.
func (c *cluster) removeLeftovers(ctx context.Context) error {
	if c.part("containerd").running() {
		return nil
	}
	if err := c.stopParts(ctx, c.part("kubelet")); err != nil {
		return err
	}
	if err := c.sweep(ctx); err != nil {
		return fmt.Errorf("removing what an earlier run left behind: %w", err)
	}
	return nil
}

func (c *cluster) startAll(ctx context.Context) error { return c.startParts(ctx, c.parts()...) }

// startParts starts parts, one after the other.
func (c *cluster) startParts(ctx context.Context, parts ...*part) error {
	// Parts outlive this process, so they must not inherit its open files, which may be locks of its callers.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	for _, p := range parts {
		if err := c.start(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// down stops the cluster and deletes its files.
func (c *cluster) down(ctx context.Context, owned bool) error {
	// After a reboot there is no owner, but the directory still exists.
	if !owned && !exists(c.dir) {
		progress.Printf("There is no cluster.")
		return nil
	}
	// In reverse order: etcd after the API server, which would hang without it.
	parts := c.parts()
	slices.Reverse(parts)
	if err := c.stopParts(ctx, parts...); err != nil {
		return err
	}
	if err := errors.Join(c.sweep(ctx), c.removeRules(ctx), removeLinks(ctx), removeCgroup(), c.removeTraces(),
		c.restoreSettings()); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(c.dir), os.RemoveAll(ownerFile)); err != nil {
		return err
	}
	progress.Printf("The cluster is deleted.")
	return nil
}

// restartNode kills the node with all its pods, and starts it again when Kubernetes has noticed.
func (c *cluster) restartNode(ctx context.Context, _ bool) error {
	if err := c.connect(); err != nil {
		return err
	}
	kubelet, containerd := c.part("kubelet"), c.part("containerd")
	if err := c.stopParts(ctx, kubelet, containerd); err != nil {
		return err
	}
	if err := c.sweep(ctx); err != nil {
		return err
	}
	progress.Printf("The node is down.")
	err := poll(ctx, func() error {
		ready, err := c.kubectl(ctx, nil, "get", "node", nodeName,
			`--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && ready == "True" {
			err = errors.New("the API server has not noticed yet")
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.startParts(ctx, containerd, kubelet); err != nil {
		return err
	}
	return c.awaitNode(ctx)
}

// status prints the state of each part; it fails if one is not ready.
func (c *cluster) status(ctx context.Context) error {
	if !exists(c.cert("ca")) {
		return errors.New("there is no cluster; 'make cluster' brings one up")
	}
	if err := c.connect(); err != nil {
		return fmt.Errorf("%w (the cluster belongs to root)", err)
	}
	var failed []string
	for _, p := range c.parts() {
		state := "ready"
		pid, _ := p.process()
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		if pid == 0 {
			state = "stopped"
		} else if err := p.ready(limited); err != nil {
			state = "not ready: " + err.Error()
		}
		cancel()
		if state != "ready" {
			failed = append(failed, p.name)
		}
		fmt.Printf("%-24s %-8d %s\n", p.name, pid, state)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s: not ready; 'make cluster' restarts them; their logs are in %s",
			strings.Join(failed, ", "), c.path("logs"))
	}
	fmt.Printf("\nexport KUBECONFIG=%s\n\n", c.path("kubeconfig"))
	out, err := c.kubectl(ctx, nil, "get", "nodes,pods", "--all-namespaces")
	fmt.Print(out)
	return err
}

// What the cluster changes on the machine exists once, for all directories: so do the lock and the name of the owner.
const (
	lockFile  = "/run/memcached-operator.lock"
	ownerFile = "/run/memcached-operator.owner"
)

// exclusively calls work while no other process changes a cluster; owned reports whether this cluster is up. It fails
// if the cluster of another directory is up. Only root may call it.
func (c *cluster) exclusively(ctx context.Context, work func(ctx context.Context, owned bool) error) error {
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	waiting := false
	err = poll(ctx, func() error {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != nil && !waiting {
			waiting = true
			progress.Printf("Waiting for another process that changes the cluster.")
		}
		return err
	})
	if err != nil {
		return err
	}
	owner, err := os.ReadFile(ownerFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if owner := string(owner); owner != "" && owner != c.dir {
		return fmt.Errorf("the cluster of %s is up, and there can be only one: 'make cluster-down CACHE=%s' first", owner,
			filepath.Dir(owner))
	}
	return work(ctx, len(owner) > 0)
}

// kubectl runs kubectl as the cluster's administrator and returns its output.
func (c *cluster) kubectl(ctx context.Context, input []byte, args ...string) (string, error) {
	kubectl := exec.CommandContext(ctx, filepath.Join(c.bin, "kubectl"),
		append([]string{"--kubeconfig", c.path("kubeconfig")}, args...)...)
	kubectl.Env = append(os.Environ(), "NO_PROXY="+noProxy)
	kubectl.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	kubectl.Stderr = &stderr
	out, err := kubectl.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), err
}

// command runs a program of the machine and returns its output, which an error includes.
func command(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
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
