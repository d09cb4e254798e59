package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"k8s.io/client-go/discovery"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// cpus is how many seconds of CPU time the machine has in a second.
var cpus = float64(runtime.NumCPU())

// settings returns what the numbers depend on.
func (p *plane) settings(ctx context.Context) ([]proof.Setting, error) {
	versions, err := discovery.NewDiscoveryClientForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	version, err := versions.ServerVersion()
	if err != nil {
		return nil, err
	}
	goVersion, err := golang(ctx, testenv.Root(), "version")
	if err != nil {
		return nil, err
	}
	etcdLine, etcdErr := flagsOf(p.pids[etcd])
	apiServerLine, apiServerErr := flagsOf(p.pids[apiServer])
	if err := errors.Join(etcdErr, apiServerErr); err != nil {
		return nil, err
	}
	return []proof.Setting{
		{Name: "machine", Value: fmt.Sprintf("%d CPUs (%s), %s/%s", runtime.NumCPU(), cpuModel(), runtime.GOOS, runtime.GOARCH)},
		{Name: "Go", Value: strings.TrimSpace(goVersion)},
		{Name: "Kubernetes", Value: version.GitVersion},
		{Name: "etcd", Value: etcdLine},
		{Name: "kube-apiserver", Value: apiServerLine},
		{Name: "audit", Value: "the requests of the arms, level Metadata"},
		{Name: "programs", Value: "CGO_ENABLED=0 go build -trimpath -ldflags='-s -w'; each logs to a file of its own, as it does by default"},
		{Name: "Deployment controller", Value: "simulated: one write of the status, at once; no kubelet, no other controllers"},
	}, nil
}

// flagsOf returns the flags that a process was started with, without those that are paths and addresses, which differ each time.
func flagsOf(pid int) (string, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "", err
	}
	flags := map[string]bool{}
	for flag := range strings.SplitSeq(strings.Trim(string(line), "\x00"), "\x00") {
		if strings.HasPrefix(flag, "--") && !strings.ContainsAny(flag, "/:") && !strings.Contains(flag, "-port=") {
			flags[flag] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(flags)), " "), nil
}

func cpuModel() string {
	content, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(content)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
