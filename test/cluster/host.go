package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var errNotRoot = errors.New("a cluster with real pods needs root: run it as root, for instance by 'sudo make cluster'. " +
	"Without root, 'make test' checks everything that needs no pods, and KUBECONFIG may name a cluster of yours")

// packages are Debian's packages that have what cannot be built from Go modules, by a file of each.
var packages = map[string]string{
	"/usr/sbin/runc":                     "runc",
	"/usr/lib/cni/bridge":                "containernetworking-plugins",
	"/usr/sbin/iptables":                 "iptables",
	"/usr/sbin/conntrack":                "conntrack",
	"/bin/ip":                            "iproute2",
	"/bin/busybox":                       "busybox-static",
	"/usr/bin/memcached":                 "memcached",
	"/usr/sbin/nginx":                    "nginx-light",
	"/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}

// prepareHost checks that this machine can carry the cluster, and installs what is missing.
func (c *cluster) prepareHost(ctx context.Context) error {
	if runtime.GOOS != "linux" {
		return errors.New("a cluster with real pods needs Linux; let KUBECONFIG name a cluster of yours instead (kind, minikube, ...)")
	}
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	var missing []string
	for file, name := range packages {
		if !exists(file) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		if err := c.installPackages(ctx, missing); err != nil {
			return err
		}
	}
	return c.foreignRules(ctx)
}

func (c *cluster) installPackages(ctx context.Context, names []string) error {
	remedy := "install them (Debian's names: " + strings.Join(names, " ") + ") and try again"
	if !exists("/usr/bin/apt-get") {
		return errors.New("this machine lacks programs, and there is no apt-get to install them with: " + remedy)
	}
	c.say("Installing %s.", strings.Join(names, " "))
	// Packages of servers start them; a policy says no, unless the machine has one.
	const policy = "/usr/sbin/policy-rc.d"
	if _, err := os.Stat(policy); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(policy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
			return err
		}
		defer func() { _ = os.Remove(policy) }()
	}
	install := append([]string{"install", "--yes", "--quiet", "--no-install-recommends"}, names...)
	for _, args := range [][]string{{"update", "--quiet"}, install} {
		command := exec.CommandContext(ctx, "apt-get", args...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s\n%s", args[0], err, out, remedy)
		}
	}
	return nil
}

// foreignRules refuses a machine that another Kubernetes has its rules on: two kube-proxies would delete each other's.
func (c *cluster) foreignRules(ctx context.Context) error {
	if exists(c.path("proxy.yaml")) {
		return nil // they are ours
	}
	if out, err := command(ctx, "iptables", "--wait", "--table=nat", "--list-rules"); err == nil && strings.Contains(out, "-N KUBE-SERVICES") {
		return errors.New("another Kubernetes has its network rules on this machine (the chain KUBE-SERVICES); use it through KUBECONFIG, or stop it and delete its rules")
	}
	return nil
}

// addLinks adds the node's address. The bridge of the pods is added by the first of them.
func (c *cluster) addLinks(ctx context.Context) error {
	if _, err := net.InterfaceByName(nodeLink); err == nil {
		return nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.Contains(net.ParseIP(nodeIP)) {
			return fmt.Errorf("this machine has the network %s already, and the cluster needs its addresses", network)
		}
	}
	if err := c.keepSettings(); err != nil {
		return err
	}
	for _, args := range [][]string{
		// No dummy link: not every kernel has them.
		{"link", "add", nodeLink, "type", "bridge"},
		{"address", "add", nodeIP + "/32", "dev", nodeLink},
		{"link", "set", nodeLink, "up"},
	} {
		if _, err := command(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return os.WriteFile(forwarding, []byte("1"), 0o644)
}

func (c *cluster) removeLinks(ctx context.Context) error {
	var errs []error
	for _, link := range []string{podLink, nodeLink} {
		if _, err := net.InterfaceByName(link); err == nil {
			_, err := command(ctx, "ip", "link", "delete", link)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeRules removes the rules of kube-proxy.
func (c *cluster) removeRules(ctx context.Context) error {
	if !exists(c.path("proxy.yaml")) {
		return nil
	}
	if _, err := command(ctx, filepath.Join(c.bin, "kube-proxy"), "--cleanup", "--config="+c.path("proxy.yaml")); err != nil {
		return err
	}
	// It leaves one chain to the kubelet, which no longer makes it.
	for _, program := range []string{"iptables", "ip6tables"} {
		if _, err := command(ctx, program, "--wait", "--list-rules", "KUBE-FIREWALL"); err != nil {
			continue // it is not there
		}
		for _, args := range [][]string{
			{"--delete", "INPUT", "--jump", "KUBE-FIREWALL"},
			{"--delete", "OUTPUT", "--jump", "KUBE-FIREWALL"},
			{"--flush", "KUBE-FIREWALL"},
			{"--delete-chain", "KUBE-FIREWALL"},
		} {
			if _, err := command(ctx, program, append([]string{"--wait"}, args...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeTraces removes what the kubelet and the network plugins write to directories that they have fixed, if nobody else
// uses these.
func removeTraces() error {
	const results = "/var/lib/cni/results"
	ours, err := filepath.Glob(results + "/" + podLink + "-*-eth0")
	if err != nil {
		return err
	}
	for _, file := range ours {
		pod := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), podLink+"-"), "-eth0")
		if err := errors.Join(os.Remove(file), os.RemoveAll(results+"/cni-loopback-"+pod+"-lo")); err != nil {
			return err
		}
	}
	const plugins = "/var/lib/kubelet/device-plugins"
	_ = os.Remove(plugins + "/kubelet.sock")
	for _, dir := range []string{results, filepath.Dir(results), plugins, filepath.Dir(plugins)} {
		_ = os.Remove(dir) // fails unless it is empty
	}
	return nil
}

// forwarding is the one setting of the machine that the cluster changes.
const forwarding = "/proc/sys/net/ipv4/ip_forward"

func (c *cluster) keepSettings() error {
	if exists(c.path("ip_forward")) {
		return nil
	}
	before, err := os.ReadFile(forwarding)
	if err != nil {
		return err
	}
	return writeFile(c.path("ip_forward"), before, 0o600)
}

func (c *cluster) restoreSettings() error {
	if !exists(c.path("ip_forward")) {
		return nil
	}
	before, err := os.ReadFile(c.path("ip_forward"))
	if err != nil {
		return err
	}
	return os.WriteFile(forwarding, before, 0o644)
}

// cgroupHierarchies are the mounted hierarchies: one with version 2, one for each controller with version 1.
func cgroupHierarchies() (hierarchies []string, version2 bool) {
	const root = "/sys/fs/cgroup"
	if exists(root + "/cgroup.controllers") {
		return []string{root}, true
	}
	entries, _ := os.ReadDir(root)
	for _, entry := range entries {
		// Links are other names of a hierarchy that has several controllers.
		if entry.IsDir() {
			hierarchies = append(hierarchies, filepath.Join(root, entry.Name()))
		}
	}
	return hierarchies, false
}

// addCgroup adds the cgroup that all pods are in.
func addCgroup() error {
	hierarchies, version2 := cgroupHierarchies()
	for _, hierarchy := range hierarchies {
		if err := os.Mkdir(filepath.Join(hierarchy, cgroup), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: the kubelet needs a cgroup of its own; is /sys/fs/cgroup writable?", err)
		}
		if version2 {
			// Children have those controllers that their parent hands on.
			for _, dir := range []string{hierarchy, filepath.Join(hierarchy, cgroup)} {
				for _, controller := range []string{"cpu", "cpuset", "memory", "pids", "io", "hugetlb"} {
					_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
				}
			}
		} else if filepath.Base(hierarchy) == "cpuset" {
			// A new cpuset has no processors and no memory, and takes no process then.
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				content, err := os.ReadFile(filepath.Join(hierarchy, file))
				if err == nil {
					err = os.WriteFile(filepath.Join(hierarchy, cgroup, file), content, 0o644)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeCgroup removes the cgroup and all below it; sweep has ended what was in it.
func removeCgroup() error {
	hierarchies, _ := cgroupHierarchies()
	var errs []error
	for _, hierarchy := range hierarchies {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(hierarchy, cgroup), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs)
		for _, dir := range dirs {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// sweep ends containers and takes away their mounts, as a boot would. It touches nothing but what is in the cluster's
// cgroup, is one of its shims, or is mounted within its directories.
func (c *cluster) sweep() error {
	deadline := time.Now().Add(15 * time.Second)
	for {
		left := append(c.shims(), contained()...)
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end", left)
		}
		time.Sleep(100 * time.Millisecond)
	}
	mounts, err := mountsWithin(c.dir, runDir)
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", mount, err)
		}
	}
	return os.RemoveAll(runDir)
}

// shims are the processes that stand between containerd and a container.
func (c *cluster) shims() []int {
	var pids []int
	for _, pid := range processes() {
		executable, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || strings.TrimSuffix(executable, " (deleted)") != filepath.Join(c.bin, "containerd-shim-runc-v2") {
			continue
		}
		arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(arguments), containerdSocket) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// contained are the processes in the cluster's cgroup.
func contained() []int {
	var pids []int
	for _, pid := range processes() {
		file, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(file)) {
			// hierarchy:controllers:path
			fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(fields) == 3 && strings.HasPrefix(fields[2]+"/", "/"+cgroup+"/") {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func processes() []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscanf(entry.Name(), "%d", &pid); err == nil && pid != os.Getpid() {
			// One that has ended is of no interest.
			if _, err := startTime(pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// mountsWithin are the mount points at or below directories, the innermost first.
func mountsWithin(dirs ...string) ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var mounts []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		mount := unescape.Replace(fields[4])
		for _, dir := range dirs {
			if strings.HasPrefix(mount+"/", dir+"/") {
				mounts = append(mounts, mount)
			}
		}
	}
	slices.Reverse(mounts)
	return mounts, lines.Err()
}
