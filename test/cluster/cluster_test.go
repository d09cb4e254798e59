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

// TestClusterLifecycle brings a cluster up, kills all its processes, brings it up again by two processes at once, and
// takes it down. "make cluster-test" runs it: it needs root, the programs in CLUSTER_BIN, and a machine without a
// cluster.
func TestClusterLifecycle(t *testing.T) {
	bin := os.Getenv("CLUSTER_BIN")
	if bin == "" {
		t.Skip("CLUSTER_BIN is not set; 'make cluster-test' sets it")
	}
	if _, err := net.InterfaceByName(nodeLink); err == nil {
		t.Fatal("a cluster is up; 'make cluster-down' first")
	}
	settings := kernelSettings()
	dir := filepath.Join(t.TempDir(), "cluster")
	run := func(dir, command string) (string, error) {
		out, err := exec.Command(filepath.Join(bin, "cluster"), "--bin="+bin, "--dir="+dir, command).CombinedOutput()
		t.Logf("cluster %s:\n%s", command, out)
		return string(out), err
	}
	mustRun := func(command string) {
		t.Helper()
		if _, err := run(dir, command); err != nil {
			t.Fatal(err)
		}
	}
	c, err := newCluster(dir, bin)
	if err != nil {
		t.Fatal(err)
	}
	pods := func() string {
		out, err := c.kubectl(t.Context(), nil, "get", "pods", "--namespace=olm", "--sort-by=.metadata.name",
			"--output=jsonpath={.items[*].metadata.uid}")
		if err != nil {
			t.Error(err)
		}
		return out
	}
	pids := func() map[string]int {
		pids := map[string]int{}
		for _, p := range c.parts() {
			pids[p.name], _ = p.process()
		}
		return pids
	}
	t.Cleanup(func() {
		if t.Failed() {
			_, _ = run(dir, "down")
		}
	})

	mustRun("up")
	before := pods()
	for name, pid := range pids() {
		if err := syscall.Kill(pid, syscall.SIGKILL); pid == 0 || err != nil {
			t.Errorf("killing %s (process %d): %v", name, pid, err)
		}
	}
	if _, err := run(dir, "status"); err == nil {
		t.Error("status succeeds although all processes were killed")
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, err := run(dir, "up"); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	mustRun("status")
	if after := pods(); after != before {
		t.Errorf("the pods were %s, and are %s after all processes were killed", before, after)
	}
	if out, err := run(filepath.Join(t.TempDir(), "other"), "up"); err == nil || !strings.Contains(out, dir) {
		t.Errorf("a second cluster on the machine: %v, %s", err, out)
	}
	running := pids()
	mustRun("up")
	for name, pid := range pids() {
		if pid != running[name] {
			t.Errorf("%s was restarted although it was ready", name)
		}
	}
	mustRun("down")
	expectNoTraces(t, c, settings)
	mustRun("down")
}

// expectNoTraces checks that the machine is as it was before the cluster was brought up.
func expectNoTraces(t *testing.T, c *cluster, settings map[string]string) {
	t.Helper()
	if mounts, err := c.mounts(t.Context()); err != nil || len(mounts) > 0 {
		t.Errorf("mounted: %v (%v)", mounts, err)
	}
	if left := contained(); len(left) > 0 {
		t.Errorf("processes: %v", left)
	}
	for _, p := range c.parts() {
		if p.running() {
			t.Errorf("%s runs", p.name)
		}
	}
	for _, link := range []string{nodeLink, podLink} {
		if _, err := net.InterfaceByName(link); err == nil {
			t.Errorf("the link %s exists", link)
		}
	}
	paths, _ := cgroups()
	logs, _ := filepath.Glob("/var/log/containers/*_olm_*.log")
	for _, path := range append(append(paths, logs...), c.dir, runDir, ownerFile, devicePlugins+"/kubelet.sock") {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s exists", path)
		}
	}
	for _, program := range []string{"iptables-save", "ip6tables-save"} {
		rules, err := command(t.Context(), program)
		if err != nil || strings.Contains(rules, "KUBE-") || strings.Contains(rules, podLink) {
			t.Errorf("rules are left: %v\n%s", err, rules)
		}
	}
	for name, value := range kernelSettings() {
		if value != settings[name] {
			t.Errorf("%s was %q, and is %q", name, settings[name], value)
		}
	}
}
