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
	"time"

	"k8s.io/client-go/discovery"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// cpus is how many seconds of CPU time the machine has in a second.
var cpus = float64(runtime.NumCPU())

// settings are what the numbers depend on: what was the same for all sections, and of each section when it was measured, with which
// operator, and what was different from other sections.
func (f *found) settings() []proof.Setting {
	var all []proof.Setting
	values := map[string][]string{} // by name, those that differ
	for _, section := range names(sections) {
		for _, setting := range f.Measured[section].Settings {
			if values[setting.Name] == nil {
				all = append(all, setting)
			}
			if !slices.Contains(values[setting.Name], setting.Value) {
				values[setting.Name] = append(values[setting.Name], setting.Value)
			}
		}
	}
	isOfSections := func(setting proof.Setting) bool { return len(values[setting.Name]) > 1 }
	all = append(slices.DeleteFunc(all, isOfSections), proof.OperatorSetting(f.operator))
	for _, section := range names(sections) {
		m, isMeasured := f.Measured[section]
		if !isMeasured {
			continue
		}
		value := m.At.UTC().Format(time.DateTime) + " UTC, operator " + m.Operator
		if !f.has(section) {
			value = m.At.UTC().Format(time.DateTime) + " UTC, " + f.differs(section) + ": measure it again"
		}
		for _, setting := range m.Settings {
			if isOfSections(setting) {
				value += "; " + setting.Name + ": " + setting.Value
			}
		}
		all = append(all, proof.Setting{Name: "section " + section, Value: value})
	}
	return all
}

// settings returns what numbers depend on that are measured now.
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
