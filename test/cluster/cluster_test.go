//go:build linux

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestLifeOfACluster brings a cluster up, kills all of it without warning, brings it up again by two processes at once,
// and takes it down. "make cluster-test" runs it: it needs root, the programs in CLUSTER_BIN, and a machine that runs
// no cluster.
func TestLifeOfACluster(t *testing.T) {
	bin := os.Getenv("CLUSTER_BIN")
	if bin == "" {
		t.Skip("CLUSTER_BIN is not set; 'make cluster-test' sets it")
	}
	if _, err := net.InterfaceByName(nodeLink); err == nil {
		t.Fatal("a cluster is up; 'make cluster-down' first")
	}
	before := map[string]string{}
	for _, setting := range settings {
		value, _ := os.ReadFile("/proc/sys/" + setting)
		before[setting] = string(value)
	}
	dir := filepath.Join(t.TempDir(), "cluster")
	cluster := func(command string) error {
		out, err := exec.Command(filepath.Join(bin, "cluster"), "--bin="+bin, "--dir="+dir, command).CombinedOutput()
		t.Logf("cluster %s:\n%s", command, out)
		return err
	}
	c, err := newCluster(dir, bin)
	if err != nil {
		t.Fatal(err)
	}
	pods := func(what string) string {
		out, err := c.kubectl(t.Context(), nil, "get", "pods", "--namespace=olm", "--sort-by=.metadata.name",
			"--output=jsonpath="+what)
		if err != nil {
			t.Error(err)
		}
		return out
	}
	other := filepath.Join(t.TempDir(), "other")
	t.Cleanup(func() {
		if t.Failed() {
			_ = cluster("down")
		}
	})

	if err := cluster("up"); err != nil {
		t.Fatal(err)
	}
	ran := pods("{.items[*].metadata.uid}")
	for _, p := range c.parts() {
		if err := syscall.Kill(p.record().pid, syscall.SIGKILL); err != nil {
			t.Errorf("killing %s: %v", p.name, err)
		}
	}
	if err := cluster("status"); err == nil {
		t.Error("a dead cluster is said to be well")
	}

	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := cluster("up"); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if err := cluster("status"); err != nil {
		t.Error(err)
	}
	if after := pods("{.items[*].metadata.uid}"); after != ran {
		t.Errorf("the pods were %s, and are %s after all processes were killed", ran, after)
	}
	if out, err := exec.Command(filepath.Join(bin, "cluster"), "--bin="+bin, "--dir="+other,
		"up").CombinedOutput(); err == nil || !strings.Contains(string(out), dir) {
		t.Errorf("a second cluster on the machine: %v, %s", err, out)
	}
	pids := map[string]string{}
	for _, p := range c.parts() {
		pids[p.name] = p.pid()
	}
	if err := cluster("up"); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.parts() {
		if p.pid() != pids[p.name] {
			t.Errorf("%s was started again although it was well", p.name)
		}
	}

	if err := cluster("down"); err != nil {
		t.Fatal(err)
	}
	nothingIsLeft(t, c, before)
	if err := cluster("down"); err != nil {
		t.Errorf("without a cluster: %v", err)
	}
}

// nothingIsLeft checks that the machine is as it was.
func nothingIsLeft(t *testing.T, c *cluster, before map[string]string) {
	t.Helper()
	if mounts, err := mountsWithin(c.dir, runDir); err != nil || len(mounts) > 0 {
		t.Errorf("mounted: %v (%v)", mounts, err)
	}
	if left := append(shims(), contained()...); len(left) > 0 {
		t.Errorf("processes: %v", left)
	}
	for _, p := range c.parts() {
		if p.running() {
			t.Errorf("%s runs", p.name)
		}
	}
	for _, link := range []string{nodeLink, podLink} {
		if _, err := net.InterfaceByName(link); err == nil {
			t.Errorf("the link %s is there", link)
		}
	}
	hierarchies, _ := cgroupHierarchies()
	for _, hierarchy := range hierarchies {
		if exists(filepath.Join(hierarchy, cgroup)) {
			t.Errorf("the cgroup in %s is there", hierarchy)
		}
	}
	for _, path := range []string{c.dir, runDir, ownerFile, devicePlugins + "/kubelet.sock"} {
		if exists(path) {
			t.Errorf("%s is there", path)
		}
	}
	for _, program := range []string{"iptables-save", "ip6tables-save"} {
		rules, err := command(t.Context(), program)
		if err != nil || strings.Contains(rules, "KUBE-") || strings.Contains(rules, podLink) {
			t.Errorf("rules are left: %v\n%s", err, rules)
		}
	}
	if links, _ := filepath.Glob("/var/log/containers/*_olm_*.log"); len(links) > 0 {
		t.Errorf("links to logs: %v", links)
	}
	for setting, value := range before {
		if now, _ := os.ReadFile("/proc/sys/" + setting); string(now) != value {
			t.Errorf("%s was %q, and is %q", setting, value, now)
		}
	}
}
