//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/memcached-operator/test/cluster/progress"
)

var errNotRoot = errors.New("a cluster with real pods needs root: run it as root, for instance by 'sudo env " +
	"\"PATH=$PATH\" make cluster'. Without root, 'make test' checks everything that needs no pods, and KUBECONFIG and " +
	"TEST_REGISTRY may name your own cluster")

// systemPath is the PATH of programs of the machine.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// needed maps programs and files that cannot be built from Go modules to the Debian packages that contain them.
var needed = map[string]string{
	"runc": "runc", "iptables": "iptables", "conntrack": "conntrack", "ip": "iproute2",
	"busybox": "busybox-static", "memcached": "memcached", "nginx": "nginx-light",
	"/usr/lib/cni/bridge":                "containernetworking-plugins",
	"/usr/lib/cni/host-local":            "containernetworking-plugins",
	"/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}

// lookup returns the path of a program or file of the machine.
func lookup(name string) (string, error) {
	for _, dir := range strings.Split(systemPath, ":") {
		path := filepath.Join(dir, name)
		if filepath.IsAbs(name) {
			path = name
		}
		if exists(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("this machine has no program %s in %s", name, systemPath)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// prepareHost checks that this machine can run the cluster, and installs what is missing. Owned reports whether the
// cluster is up already.
func (c *cluster) prepareHost(ctx context.Context, owned bool) error {
	// A process that was killed while it installed packages leaves its policy behind.
	if content, err := os.ReadFile(servicePolicy); err == nil && string(content) == noServices {
		if err := os.Remove(servicePolicy); err != nil {
			return err
		}
	}
	if names, packages := missing(); len(names) > 0 {
		if err := c.installPackages(ctx, packages); err != nil {
			return fmt.Errorf("this machine lacks %s: install them (Debian packages: %s) and try again: %w",
				strings.Join(names, ", "), strings.Join(packages, " "), err)
		}
	}
	if owned {
		return nil
	}
	return noOtherKubernetes(ctx)
}

// missing returns what the machine lacks, and the packages that contain it.
func missing() (names, packages []string) {
	for name, inPackage := range needed {
		if _, err := lookup(name); err != nil {
			names, packages = append(names, name), append(packages, inPackage)
		}
	}
	slices.Sort(names)
	slices.Sort(packages)
	return names, slices.Compact(packages)
}

// Packages of servers start them, unless this file forbids it.
const (
	servicePolicy = "/usr/sbin/policy-rc.d"
	noServices    = "#!/bin/sh\n# of memcached-operator's cluster, while it installs packages\nexit 101\n"
)

func (c *cluster) installPackages(ctx context.Context, packages []string) error {
	progress.Printf("Installing %s.", strings.Join(packages, " "))
	if !exists(servicePolicy) {
		if err := os.WriteFile(servicePolicy, []byte(noServices), 0o755); err != nil {
			return err
		}
		defer func() { _ = os.Remove(servicePolicy) }()
	}
	// No package is removed: on a machine with Docker, runc may be part of another package.
	install := append([]string{"install", "--yes", "--quiet", "--no-install-recommends", "--no-remove", "-o",
		"DPkg::Lock::Timeout=300"}, packages...)
	for _, args := range [][]string{{"update", "--quiet"}, install} {
		apt := exec.CommandContext(ctx, "apt-get", args...)
		apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1")
		// Killing it would leave packages half installed.
		apt.Cancel = func() error { return apt.Process.Signal(os.Interrupt) }
		if out, err := apt.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s", args[0], err, out)
		}
	}
	// Only the programs are needed, so the services should not start at boot either.
	for _, service := range []string{"memcached", "nginx"} {
		if _, err := lookup("systemctl"); err == nil && slices.Contains(packages, needed[service]) {
			if _, err := command(ctx, "systemctl", "disable", service); err != nil {
				progress.Printf("The service %s may start at boot: %v", service, err)
			}
		}
	}
	if names, _ := missing(); len(names) > 0 {
		return fmt.Errorf("the packages do not contain %s", strings.Join(names, ", "))
	}
	return nil
}

const devicePlugins = "/var/lib/kubelet/device-plugins"

// noOtherKubernetes fails on a machine with another Kubernetes: two would delete each other's rules and sockets.
func noOtherKubernetes(ctx context.Context) error {
	found := ""
	out, err := command(ctx, "iptables", "--wait", "--table=nat", "--list-rules")
	switch {
	case err == nil && strings.Contains(out, "-N KUBE-SERVICES"):
		found = "the iptables chain KUBE-SERVICES"
	case exists(devicePlugins + "/kubelet.sock"):
		found = devicePlugins + "/kubelet.sock"
	default:
		return nil
	}
	return fmt.Errorf("this machine runs another Kubernetes (it has %s): use it through KUBECONFIG and TEST_REGISTRY, or "+
		"stop it first", found)
}

// addLinks adds the address of the node. The network plugin adds the bridge of the pods.
func (c *cluster) addLinks(ctx context.Context) error {
	if _, err := net.InterfaceByName(nodeLink); err != nil {
		if err := addressesAreFree(); err != nil {
			return err
		}
		// A bridge, because not every kernel has dummy links.
		if _, err := command(ctx, "ip", "link", "add", nodeLink, "type", "bridge"); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"address", "replace", nodeIP + "/32", "dev", nodeLink},
		{"link", "set", nodeLink, "up"}} {
		if _, err := command(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// addressesAreFree fails if a network of this machine overlaps with the cluster's.
func addressesAreFree() error {
	_, own, err := net.ParseCIDR(noProxy)
	if err != nil {
		return err
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && (network.Contains(own.IP) || own.Contains(network.IP)) {
			return fmt.Errorf("this machine has the network %s already, and the cluster needs %s", network, own)
		}
	}
	return nil
}

func removeLinks(ctx context.Context) error {
	var errs []error
	for _, link := range []string{podLink, nodeLink} {
		if _, err := net.InterfaceByName(link); err == nil {
			_, err := command(ctx, "ip", "link", "delete", link)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// acceptedPackets are those of rules that let pods reach the node and each other in spite of a firewall.
var acceptedPackets = [][]string{
	{"INPUT", "--in-interface", podLink}, {"FORWARD", "--in-interface", podLink}, {"FORWARD", "--out-interface", podLink},
}

// rule checks, inserts or deletes a rule; deleting fails if there is none.
func rule(ctx context.Context, action string, packets []string) error {
	_, err := command(ctx, "iptables", slices.Concat([]string{"--wait", action}, packets,
		[]string{"--match", "comment", "--comment", "memcached-operator", "--jump", "ACCEPT"})...)
	return err
}

func (c *cluster) addRules(ctx context.Context) error {
	for _, packets := range acceptedPackets {
		if rule(ctx, "--check", packets) == nil {
			continue
		}
		if err := rule(ctx, "--insert", packets); err != nil {
			return err
		}
	}
	return nil
}

// removeRules removes the rules of addRules and of kube-proxy.
func (c *cluster) removeRules(ctx context.Context) error {
	for _, packets := range acceptedPackets {
		for rule(ctx, "--delete", packets) == nil {
			continue
		}
	}
	if exists(c.path("proxy.yaml")) {
		proxy := c.part("kube-proxy")
		cleanup := exec.CommandContext(ctx, proxy.command[0], "--cleanup", proxy.command[1])
		cleanup.Env = []string{"PATH=" + proxy.path}
		if out, err := cleanup.CombinedOutput(); err != nil {
			return fmt.Errorf("kube-proxy --cleanup: %w: %s", err, out)
		}
	}
	// kube-proxy leaves one chain to the kubelet, which does not create it here.
	for _, program := range []string{"iptables", "ip6tables"} {
		for _, chain := range []string{"INPUT", "OUTPUT"} {
			_, _ = command(ctx, program, "--wait", "--delete", chain, "--jump", "KUBE-FIREWALL")
		}
		if _, err := command(ctx, program, "--wait", "--flush", "KUBE-FIREWALL"); err != nil {
			continue // no such chain
		}
		if _, err := command(ctx, program, "--wait", "--delete-chain", "KUBE-FIREWALL"); err != nil {
			return err
		}
	}
	return nil
}

// removeTraces removes what the kubelet and the network plugins write to directories that cannot be configured, and
// the directories if they are empty then.
func (c *cluster) removeTraces() error {
	const results, logs, socket = "/var/lib/cni/results", "/var/log/containers", devicePlugins + "/kubelet.sock"
	traces := []string{socket}
	attachments, _ := filepath.Glob(results + "/" + podLink + "-*-eth0")
	for _, file := range attachments {
		container := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), podLink+"-"), "-eth0")
		traces = append(traces, file, results+"/cni-loopback-"+container+"-lo")
	}
	links, _ := filepath.Glob(logs + "/*.log")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, c.dir+"/") {
			traces = append(traces, link)
		}
	}
	var err error
	for _, trace := range traces {
		err = errors.Join(err, os.RemoveAll(trace))
	}
	for _, dir := range []string{logs, results, filepath.Dir(results), devicePlugins, filepath.Dir(devicePlugins)} {
		_ = os.Remove(dir)
	}
	return err
}

// kernelSettings returns the settings of the kernel that addLinks and the kubelet change. Not every kernel has all.
func kernelSettings() map[string]string {
	settings := map[string]string{}
	for _, name := range []string{
		"net/ipv4/ip_forward", "vm/overcommit_memory", "vm/panic_on_oom",
		"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	} {
		if value, err := os.ReadFile("/proc/sys/" + name); err == nil {
			settings[name] = string(value)
		}
	}
	return settings
}

// keepSettings stores the settings of the machine without a cluster.
func (c *cluster) keepSettings(context.Context) error {
	if exists(c.path("settings.json")) {
		return nil
	}
	content, err := json.Marshal(kernelSettings())
	return errors.Join(err, writeFile(c.path("settings.json"), content, 0o600))
}

func (c *cluster) restoreSettings() error {
	content, err := os.ReadFile(c.path("settings.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var settings map[string]string
	errs := []error{err, json.Unmarshal(content, &settings)}
	for name, value := range settings {
		errs = append(errs, os.WriteFile("/proc/sys/"+name, []byte(value), 0o644))
	}
	return errors.Join(errs...)
}

// cgroups returns the cluster's cgroup in each mounted hierarchy: one with cgroup version 2, one for each controller
// with version 1.
func cgroups() (dirs []string, version2 bool) {
	const root = "/sys/fs/cgroup"
	if exists(root + "/cgroup.controllers") {
		return []string{filepath.Join(root, cgroup)}, true
	}
	entries, _ := os.ReadDir(root)
	for _, entry := range entries {
		if entry.IsDir() { // links are other names of a hierarchy
			dirs = append(dirs, filepath.Join(root, entry.Name(), cgroup))
		}
	}
	return dirs, false
}

// addCgroup adds the cgroup of all pods.
func (c *cluster) addCgroup(context.Context) error {
	dirs, version2 := cgroups()
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("%w: the kubelet needs its own cgroup; is /sys/fs/cgroup writable?", err)
		}
		hierarchy := filepath.Dir(dir)
		switch {
		case version2:
			if err := delegateControllers(hierarchy, dir); err != nil {
				return err
			}
		case filepath.Base(hierarchy) == "cpuset":
			// A new cpuset has no processors and no memory, and accepts no process without them.
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				content, err := os.ReadFile(filepath.Join(hierarchy, file))
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, file), content, 0o644)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// delegateControllers enables the controllers that the kubelet needs, and that the kernel has, for the children of
// cgroups of version 2.
func delegateControllers(dirs ...string) error {
	available, err := os.ReadFile(filepath.Join(dirs[0], "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids", "io", "hugetlb"} {
		if !slices.Contains(strings.Fields(string(available)), controller) {
			continue
		}
		for _, dir := range dirs {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
				return fmt.Errorf("%w: a cgroup with processes cannot have children with controllers, as is the case in "+
					"containers; use a machine or a virtual machine", err)
			}
		}
	}
	return nil
}

// removeCgroup removes the cgroup with its children; sweep has killed the processes in it.
func removeCgroup() error {
	dirs, _ := cgroups()
	var errs []error
	for _, dir := range dirs {
		var nested []string
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				nested = append(nested, path)
			}
			return nil
		})
		for _, path := range slices.Backward(nested) {
			if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// sweep kills containers and unmounts their file systems. It affects only processes in the cluster's cgroup, its
// containerd shims, and mounts below its directories.
func (c *cluster) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	err := poll(ctx, func() error {
		left := contained()
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if len(left) > 0 {
			return fmt.Errorf("processes %v have not terminated", left)
		}
		return nil
	})
	if err != nil {
		return err
	}
	mounts, err := c.mounts(ctx)
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

var inCgroup = regexp.MustCompile(`(?m):/` + cgroup + `(/|$)`)

// contained returns the processes in the cluster's cgroup and the shims between its containerd and their containers.
func contained() []int {
	var pids []int
	for pid, line := range processes() {
		groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)) // hierarchy:controllers:path, for each hierarchy
		isShim := strings.Contains(line, "containerd-shim-runc-v2\x00") && strings.Contains(line, containerdSocket)
		if isShim || inCgroup.Match(groups) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// mounts returns the mount points below the directories of the cluster, the innermost first.
func (c *cluster) mounts(ctx context.Context) ([]string, error) {
	out, err := command(ctx, "findmnt", "--list", "--noheadings", "--notruncate", "--output=TARGET")
	mounts := slices.DeleteFunc(strings.Split(out, "\n"), func(mount string) bool {
		return !strings.HasPrefix(mount, c.dir+"/") && !strings.HasPrefix(mount, runDir+"/")
	})
	slices.Reverse(mounts)
	return mounts, err
}
