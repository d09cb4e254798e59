//go:build linux

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
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var errNotRoot = errors.New("a cluster with real pods needs root: run it as root, for instance by 'sudo env " +
	"\"PATH=$PATH\" make cluster'. " +
	"Without root, 'make test' checks everything that needs no pods, and KUBECONFIG and TEST_REGISTRY may name a " +
	"cluster of yours")

// systemPath is where programs are looked for besides those of the cluster.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// What cannot be built from Go modules: programs and files, and the Debian packages that have them.
var (
	neededPrograms = map[string]string{
		"runc": "runc", "iptables": "iptables", "conntrack": "conntrack", "ip": "iproute2",
		"busybox": "busybox-static", "memcached": "memcached", "nginx": "nginx-light",
	}
	neededFiles = map[string]string{
		"/usr/lib/cni/bridge":                "containernetworking-plugins",
		"/usr/lib/cni/host-local":            "containernetworking-plugins",
		"/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
	}
)

// lookup is the path of a program of the machine.
func lookup(name string) (string, error) {
	for _, dir := range strings.Split(systemPath, ":") {
		if path := filepath.Join(dir, name); exists(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("this machine has no program %s in %s", name, systemPath)
}

// prepareHost checks that this machine can carry the cluster, and installs what is missing. Ours says whether a cluster
// of ours is there already.
func (c *cluster) prepareHost(ctx context.Context, ours bool) error {
	// Of one of us who was killed while packages were installed.
	if content, err := os.ReadFile(servicePolicy); err == nil && string(content) == noServices {
		if err := os.Remove(servicePolicy); err != nil {
			return err
		}
	}
	if what, names := missing(); len(names) > 0 {
		if err := c.installPackages(ctx, what, names); err != nil {
			return err
		}
		if what, _ := missing(); len(what) > 0 {
			return fmt.Errorf("this machine still lacks %s", strings.Join(what, ", "))
		}
	}
	if ours {
		return nil
	}
	return noOtherKubernetes(ctx)
}

// missing is what the machine lacks, and which packages have it.
func missing() (what, packages []string) {
	for program, name := range neededPrograms {
		if _, err := lookup(program); err != nil {
			what, packages = append(what, program), append(packages, name)
		}
	}
	for file, name := range neededFiles {
		if !exists(file) {
			what, packages = append(what, file), append(packages, name)
		}
	}
	slices.Sort(what)
	slices.Sort(packages)
	return what, slices.Compact(packages)
}

// Packages of servers start them; Debian asks this file whether they may.
const (
	servicePolicy = "/usr/sbin/policy-rc.d"
	noServices    = "#!/bin/sh\n# of memcached-operator's cluster, while it installs packages\nexit 101\n"
)

func (c *cluster) installPackages(ctx context.Context, what, names []string) error {
	remedy := fmt.Sprintf("this machine lacks %s: install them (Debian's packages: %s) and try again",
		strings.Join(what, ", "), strings.Join(names, " "))
	if _, err := lookup("apt-get"); err != nil {
		return errors.New(remedy)
	}
	c.clock.Say("Installing %s.", strings.Join(names, " "))
	if !exists(servicePolicy) {
		if err := os.WriteFile(servicePolicy, []byte(noServices), 0o755); err != nil {
			return err
		}
		defer func() { _ = os.Remove(servicePolicy) }()
	}
	// Nothing that is there goes for it: on a machine with Docker, runc may be part of another package.
	install := append([]string{"install", "--yes", "--quiet", "--no-install-recommends", "--no-remove", "-o",
		"DPkg::Lock::Timeout=300"}, names...)
	for _, args := range [][]string{{"update", "--quiet"}, install} {
		apt := exec.CommandContext(ctx, "apt-get", args...)
		apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1")
		// Killed, it would leave packages half installed.
		apt.Cancel = func() error { return apt.Process.Signal(os.Interrupt) }
		if out, err := apt.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %s\n%s", args[0], err, out, remedy)
		}
	}
	// Nor do they start with the machine: only their programs are wanted.
	if _, err := lookup("systemctl"); err == nil {
		for service, name := range map[string]string{"memcached": "memcached", "nginx": "nginx-light"} {
			if slices.Contains(names, name) {
				if _, err := command(ctx, "systemctl", "disable", service); err != nil {
					c.clock.Say("The service %s may start with the machine: %v", service, err)
				}
			}
		}
	}
	return nil
}

// noOtherKubernetes refuses a machine that another Kubernetes is on: two would delete each other's rules and sockets.
func noOtherKubernetes(ctx context.Context) error {
	const remedy = "use it through KUBECONFIG and TEST_REGISTRY, or stop it first"
	if out, err := command(ctx, "iptables", "--wait", "--table=nat", "--list-rules"); err == nil &&
		strings.Contains(out, "-N KUBE-SERVICES") {
		return errors.New("another Kubernetes has its rules on this machine (iptables' chain KUBE-SERVICES): " + remedy)
	}
	if exists(devicePlugins + "/kubelet.sock") {
		return errors.New("another Kubernetes has a kubelet on this machine (" + devicePlugins + "/kubelet.sock): " + remedy)
	}
	return nil
}

// addLinks adds the node's address. The bridge of the pods is added by the first of them.
func (c *cluster) addLinks(ctx context.Context) error {
	if _, err := net.InterfaceByName(nodeLink); err != nil {
		if err := addressesAreFree(); err != nil {
			return err
		}
		// No dummy link: not every kernel has them.
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

// addressesAreFree says whether this machine has a network that overlaps with the cluster's.
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

// rules let pods reach the node and each other where a firewall would not.
var rules = [][]string{
	{"INPUT", "--in-interface", podLink},
	{"FORWARD", "--in-interface", podLink},
	{"FORWARD", "--out-interface", podLink},
}

func rule(action string, r []string) []string {
	return slices.Concat([]string{"--wait", action}, r,
		[]string{"--match", "comment", "--comment", "memcached-operator", "--jump", "ACCEPT"})
}

func (c *cluster) addRules(ctx context.Context) error {
	for _, r := range rules {
		if _, err := command(ctx, "iptables", rule("--check", r)...); err == nil {
			continue
		}
		if _, err := command(ctx, "iptables", rule("--insert", r)...); err != nil {
			return err
		}
	}
	return nil
}

// removeRules removes the rules of addRules and of kube-proxy.
func (c *cluster) removeRules(ctx context.Context) error {
	for _, r := range rules {
		for {
			if _, err := command(ctx, "iptables", rule("--delete", r)...); err != nil {
				break // there is none any more
			}
		}
	}
	if exists(c.path("proxy.yaml")) {
		cleanup := exec.CommandContext(ctx, filepath.Join(c.bin, "kube-proxy"), "--cleanup", "--config="+c.path("proxy.yaml"))
		cleanup.Env = []string{"PATH=" + c.path("proxy-programs")}
		if out, err := cleanup.CombinedOutput(); err != nil {
			return fmt.Errorf("kube-proxy --cleanup: %w: %s", err, out)
		}
	}
	// It leaves one chain to the kubelet, which no longer makes it.
	for _, program := range []string{"iptables", "ip6tables"} {
		for _, chain := range []string{"INPUT", "OUTPUT"} {
			// gone already, or --delete-chain fails
			_, _ = command(ctx, program, "--wait", "--delete", chain, "--jump", "KUBE-FIREWALL")
		}
		if _, err := command(ctx, program, "--wait", "--flush", "KUBE-FIREWALL"); err != nil {
			continue // it is not there
		}
		if _, err := command(ctx, program, "--wait", "--delete-chain", "KUBE-FIREWALL"); err != nil {
			return err
		}
	}
	return nil
}

const devicePlugins = "/var/lib/kubelet/device-plugins"

// removeTraces removes what the kubelet and the network plugins write to directories that they have fixed, if nobody
// else uses these.
func (c *cluster) removeTraces() error {
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
	const logs = "/var/log/containers"
	links, err := filepath.Glob(logs + "/*.log")
	if err != nil {
		return err
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, c.dir+"/") {
			if err := os.Remove(link); err != nil {
				return err
			}
		}
	}
	_ = os.Remove(devicePlugins + "/kubelet.sock")
	for _, dir := range []string{logs, results, filepath.Dir(results), devicePlugins, filepath.Dir(devicePlugins)} {
		_ = os.Remove(dir) // fails unless it is empty
	}
	return nil
}

// settings are those of the kernel that addLinks and the kubelet change.
var settings = []string{
	"net/ipv4/ip_forward", "vm/overcommit_memory", "vm/panic_on_oom",
	"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// keepSettings writes down how the settings are without a cluster.
func (c *cluster) keepSettings(context.Context) error {
	if exists(c.path("settings")) {
		return nil
	}
	var before strings.Builder
	for _, setting := range settings {
		value, err := os.ReadFile("/proc/sys/" + setting)
		if err != nil {
			continue // not every kernel has all
		}
		fmt.Fprintln(&before, setting, strings.TrimSpace(string(value)))
	}
	return writeFile(c.path("settings"), []byte(before.String()), 0o600)
}

func (c *cluster) restoreSettings() error {
	if !exists(c.path("settings")) {
		return nil
	}
	before, err := os.ReadFile(c.path("settings"))
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(string(before)) {
		setting, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		errs = append(errs, os.WriteFile("/proc/sys/"+setting, []byte(value), 0o644))
	}
	return errors.Join(errs...)
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
func (c *cluster) addCgroup(context.Context) error {
	hierarchies, version2 := cgroupHierarchies()
	for _, hierarchy := range hierarchies {
		own := filepath.Join(hierarchy, cgroup)
		if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: the kubelet needs a cgroup of its own; is /sys/fs/cgroup writable?", err)
		}
		switch {
		case version2:
			if err := handOn(hierarchy, own); err != nil {
				return err
			}
		case filepath.Base(hierarchy) == "cpuset":
			// A new cpuset has no processors and no memory, and takes no process then.
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				content, err := os.ReadFile(filepath.Join(hierarchy, file))
				if err == nil {
					err = os.WriteFile(filepath.Join(own, file), content, 0o644)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// handOn has a cgroup of version 2 hand the controllers that the kubelet needs on to its children: they have no others.
func handOn(parent, own string) error {
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids", "io", "hugetlb"} {
		has, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(string(has)), controller) {
			continue // not every kernel has all
		}
		for _, dir := range []string{parent, own} {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
				return fmt.Errorf("%w: a cgroup that has processes of its own has no children with controllers, which is so in "+
					"containers; use a machine or a virtual machine", err)
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
		left := append(shims(), contained()...)
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
func shims() []int {
	var pids []int
	for _, pid := range processes() {
		executable, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil || strings.TrimSuffix(filepath.Base(executable), " (deleted)") != "containerd-shim-runc-v2" {
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

// mountsWithin are the mount points below directories, the innermost first.
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
			if strings.HasPrefix(mount, dir+"/") {
				mounts = append(mounts, mount)
			}
		}
	}
	slices.Reverse(mounts)
	return mounts, lines.Err()
}
