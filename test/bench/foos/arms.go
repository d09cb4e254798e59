package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// arm is one of those that are compared.
type arm struct {
	name       string // in tables
	user       string // that it makes its requests as
	warmUp     int    // how many Foos it makes before it is measured
	isRestless bool   // it makes requests on and on, also when all Foos are as they should be
	start      func(ctx context.Context, p *plane, environment []string, flags ...string) (*controller, error)
}

// The arms there are.
var (
	ours = arm{name: "this operator", user: testenv.OperatorUser, warmUp: 50, start: startOurs}
	// lowest is the least that could be done, by a program that does nothing else.
	lowest = arm{name: "floor", user: userPrefix + floorProgram, warmUp: 50, start: startOther(floorProgram, floorProgram, "begun")}
	stock  = arm{name: "sample-controller", user: userPrefix + stockProgram, warmUp: 3, isRestless: true,
		start: startOther(stockProgram, stockProgram, "Started workers")}
	// lifted is the sample-controller without the limits of its clients.
	lifted = arm{name: "sample-controller, unlimited", user: userPrefix + stockProgram, warmUp: 50, isRestless: true,
		start: startOther(unlimitedProgram, stockProgram, "Started workers")}
)

// controller is an arm that runs.
type controller struct {
	*measure.Process
	profiles string           // the URL that it serves Go profiles at; empty if it does not
	metrics  *testenv.Manager // that its metrics are read by; nil if it has none
	isReady  func() bool      // whether its caches are filled
}

// startOurs starts the operator with the flags that config/manager gives it, at addresses that are free and without its memory limit, and has
// it serve profiles besides, which costs nothing while nobody asks.
func startOurs(ctx context.Context, p *plane, environment []string, flags ...string) (*controller, error) {
	kubeconfig, err := p.Kubeconfig(ctx, testenv.OperatorNamespace, testenv.OperatorServiceAccount)
	if err != nil {
		return nil, err
	}
	addresses := testenv.FreeAddresses(3)
	metrics, probes, profiles := addresses[0], addresses[1], addresses[2]
	process, err := p.bench.startProcess(managerProgram, environment, append([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect", "--leader-election-namespace=" + testenv.OperatorNamespace,
		"--metrics-bind-address=" + metrics, "--health-probe-bind-address=" + probes, "--pprof-bind-address=" + profiles,
	}, flags...)...)
	return &controller{
		Process:  process,
		profiles: "http://" + profiles,
		metrics:  &testenv.Manager{MetricsURL: "https://" + metrics + "/metrics"},
		isReady:  measure.Answers("http://" + probes + "/readyz"),
	}, err
}

// startOther returns how to start one of the other programs, as a service account, that prints a text when its caches are filled.
func startOther(program, account, ready string) func(context.Context, *plane, []string, ...string) (*controller, error) {
	return func(ctx context.Context, p *plane, environment []string, flags ...string) (*controller, error) {
		kubeconfig, err := p.Kubeconfig(ctx, rightsNamespace, account)
		if err != nil {
			return nil, err
		}
		process, err := p.bench.startProcess(program, environment, append([]string{"--kubeconfig=" + kubeconfig}, flags...)...)
		if err != nil {
			return nil, err
		}
		return &controller{Process: process, isReady: process.Has(ready)}, nil
	}
}

// startProcess starts a program that is measured, with nothing of the developer's environment.
func (b *bench) startProcess(program string, environment []string, args ...string) (*measure.Process, error) {
	environment = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.work, "TMPDIR=" + b.work}, environment...)
	b.started++
	log := filepath.Join(b.work, fmt.Sprintf("%s-%d.log", program, b.started))
	return measure.Start(log, environment, filepath.Join(b.programs, program), args...)
}

// startReady starts an arm and waits until its caches are filled.
func (p *plane) startReady(ctx context.Context, a arm, environment []string, flags ...string) (*controller, error) {
	c, err := a.start(ctx, p, environment, flags...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", a.name, err)
	}
	if err := c.WaitUntil(ctx, "its caches are filled", c.isReady); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}
