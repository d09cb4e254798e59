package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// program is one of the controllers that are compared.
type program struct {
	name       string // in tables
	file       string // a path, relative to the directory of the programs
	isOperator bool   // other programs keep sending requests, also when all Foos match their specs
}

const (
	ownName       = "this operator"
	baselineName  = "baseline"
	sampleName    = "sample-controller"
	floorName     = "floor"
	sampleAccount = "sample-controller" // of the floor, too
)

var (
	operator         = program{name: ownName, file: "manager", isOperator: true}
	sampleController = program{name: sampleName, file: "sample-controller"}
	floor            = program{name: floorName, file: "floor"}
)

// compared returns the programs that are compared in pairs: this operator with another build of it, if there is one, or
// with the sample-controller.
func (b *bench) compared() []program {
	if b.baseline == "" {
		return []program{operator, sampleController}
	}
	return []program{{name: baselineName, file: b.baseline, isOperator: true}, operator}
}

func (a program) account() (namespace, name string) {
	if a.isOperator {
		return testenv.OperatorNamespace, testenv.OperatorServiceAccount
	}
	return benchNamespace, sampleAccount
}

func (a program) user() string {
	namespace, name := a.account()
	return "system:serviceaccount:" + namespace + ":" + name
}

// controller is a running program.
type controller struct {
	*measure.Process
	profiles string           // the URL of its Go profiles; only for an operator
	metrics  *testenv.Manager // reads its metrics; only for an operator
	isReady  func() bool      // reports whether its caches are filled
}

// start starts a program: an operator with the flags of config/manager, on free addresses and without its memory limit.
// It also serves profiles, which costs nothing unless they are read.
func (p *plane) start(ctx context.Context, a program, watched string, flags ...string) (*controller, error) {
	namespace, account := a.account()
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
	c.Process, err = measure.Start(p.bench.work, []string{"WATCH_NAMESPACE=" + watched}, path, flags...)
	if err != nil {
		return nil, err
	}
	if c.isReady == nil {
		c.isReady = c.Has("Started workers")
	}
	return c, nil
}

// startReady starts a program, and waits until its caches are filled.
func (p *plane) startReady(ctx context.Context, a program, watched string, flags ...string) (*controller, error) {
	c, err := p.start(ctx, a, watched, flags...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", a.name, err)
	}
	if err := c.ready(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *controller) ready(ctx context.Context) error {
	return c.WaitUntil(ctx, "its caches are filled", c.isReady)
}

// build builds the programs that are compared.
func (b *bench) build(ctx context.Context) (err error) {
	measure.Log("building the programs")
	for _, path := range []*string{&b.programs, &b.baseline} {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	root := testenv.Root()
	errs := []error{err, os.MkdirAll(b.programs, 0o755),
		measure.BuildManager(ctx, root, filepath.Join(b.programs, operator.file))}
	if b.baseline == "" {
		errs = append(errs, measure.Run(ctx, root, "test/bench/samplecontroller/build.sh", b.programs),
			measure.Run(ctx, root, "go", "build", "-o", filepath.Join(b.programs, floor.file), "./test/bench/foos/floor"))
	}
	return errors.Join(errs...)
}
