package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// program is one of the controllers that are compared.
type program struct {
	name       string // in tables
	file       string // a path, relative to the directory of what is measured
	isOperator bool
	isRestless bool // it sends requests on and on, also when all Foos match their specs
}

// The programs there are, beside the operator of --baseline.
var (
	operator         = program{name: "this operator", file: "manager", isOperator: true}
	sampleController = program{name: "sample-controller", file: "sample-controller", isRestless: true}
)

const (
	baselineName  = "baseline"
	sampleAccount = "sample-controller"
)

// compared returns the programs that are compared in pairs: this operator with another build of it, if there is one, or
// with the sample-controller.
func (b *bench) compared() []program {
	if b.baseline == "" {
		return []program{operator, sampleController}
	}
	baseline := operator
	baseline.name, baseline.file = baselineName, b.baseline
	return []program{baseline, operator}
}

// operators returns the operators among these.
func (b *bench) operators() []program {
	return slices.DeleteFunc(b.compared(), func(a program) bool { return !a.isOperator })
}

func (a program) user() string {
	if a.isOperator {
		return testenv.OperatorUser
	}
	return sampleUser
}

// controller is a program that runs.
type controller struct {
	*measure.Process
	profiles string           // the URL of its Go profiles; only of an operator
	metrics  *testenv.Manager // how to read its metrics; only of an operator
	isReady  func() bool      // whether its caches are filled
}

// start starts a program: an operator with the flags of config/manager, on free addresses and without its memory limit.
// It serves profiles besides, which costs nothing while nobody reads them.
func (p *plane) start(ctx context.Context, a program, environment []string, flags ...string) (*controller, error) {
	namespace, account := benchNamespace, sampleAccount
	if a.isOperator {
		namespace, account = testenv.OperatorNamespace, testenv.OperatorServiceAccount
	}
	kubeconfig, err := p.Kubeconfig(ctx, namespace, account)
	if err != nil {
		return nil, err
	}
	c := &controller{}
	flags = append([]string{"--kubeconfig=" + kubeconfig}, flags...)
	if a.isOperator {
		addresses := testenv.FreeAddresses(3)
		metrics, probes, profiles := addresses[0], addresses[1], addresses[2]
		flags = append(flags, "--leader-elect", "--leader-election-namespace="+testenv.OperatorNamespace,
			"--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes, "--pprof-bind-address="+profiles)
		c.profiles, c.metrics = "http://"+profiles, &testenv.Manager{MetricsURL: "https://" + metrics + "/metrics"}
		c.isReady = measure.Answers("http://" + probes + "/readyz")
	}
	path := a.file
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.bench.programs, path)
	}
	if c.Process, err = measure.Start(p.bench.work, environment, path, flags...); err != nil {
		return nil, err
	}
	if c.isReady == nil {
		c.isReady = c.Has("Started workers")
	}
	return c, nil
}

// startReady starts a program and waits until its caches are filled.
func (p *plane) startReady(ctx context.Context, a program, environment []string, flags ...string) (*controller, error) {
	c, err := p.start(ctx, a, environment, flags...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", a.name, err)
	}
	if err := c.WaitUntil(ctx, "its caches are filled", c.isReady); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// build builds all programs that are measured, the same way.
func (b *bench) build(ctx context.Context) error {
	measure.Log("building the programs")
	module := filepath.Join(testenv.Root(), "test", "bench", "samplecontroller")
	modfile, err := liftLimit(ctx, module, b.programs)
	if err != nil {
		return fmt.Errorf("lifting the limits of client-go: %w", err)
	}
	build := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o"}
	_, err = measure.Go(ctx, testenv.Root(), append(build, filepath.Join(b.programs, operator.file), "./cmd")...)
	if err != nil {
		return err
	}
	_, err = measure.Go(ctx, module, append(build, filepath.Join(b.programs, sampleController.file), "-modfile="+modfile,
		"k8s.io/sample-controller")...)
	return err
}

// Where client-go sets how many requests a client sends in a second by default, and the value that means no limit.
const (
	limitFile = "rest/config.go"
	limit     = "DefaultQPS   float32 = 5.0"
	noLimit   = "DefaultQPS   float32 = -1"
)

// liftLimit makes a copy of a module's client-go that has no limit, and returns the path of a go.mod that uses it. It
// is a copy, as the go command accepts no build overlay of its module cache.
func liftLimit(ctx context.Context, module, directory string) (string, error) {
	const clientGo = "k8s.io/client-go"
	if _, err := measure.Go(ctx, module, "mod", "download", clientGo); err != nil { // go list does not fetch it
		return "", err
	}
	out, err := measure.Go(ctx, module, "list", "-m", "-f", "{{.Dir}}", clientGo)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(directory, "client-go")
	if err := errors.Join(os.RemoveAll(changed), os.CopyFS(changed, os.DirFS(strings.TrimSpace(out)))); err != nil {
		return "", err
	}
	path := filepath.Join(changed, limitFile)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if found := bytes.Count(source, []byte(limit)); found != 1 {
		return "", fmt.Errorf("%s has %q %d times", path, limit, found)
	}
	goMod, modErr := os.ReadFile(filepath.Join(module, "go.mod"))
	goSum, sumErr := os.ReadFile(filepath.Join(module, "go.sum"))
	goMod = fmt.Appendf(goMod, "\nreplace k8s.io/client-go => %s\n", changed)
	modfile := filepath.Join(directory, "unlimited.mod")
	return modfile, errors.Join(modErr, sumErr,
		os.WriteFile(path, bytes.Replace(source, []byte(limit), []byte(noLimit), 1), 0o600),
		os.WriteFile(modfile, goMod, 0o600),
		os.WriteFile(filepath.Join(directory, "unlimited.sum"), goSum, 0o600))
}
