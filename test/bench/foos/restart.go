package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	// newFoos is how many Foos are created when an operator starts.
	newFoos = 50
	// startTime is how long after it has reconciled all Foos an operator is still measured.
	startTime = 10 * time.Second
)

// restart is what a start with many Foos costs that match their specs.
type restart struct {
	Program string `json:"program"`
	// Ready is how many seconds after its start the caches were filled, Passed when every Foo had been reconciled.
	Ready  float64 `json:"ready"`
	Passed float64 `json:"passed"`
	// Requests are all until startTime after that, with watches, but without those for the lease. Writes are those for
	// objects.
	Requests map[string]int `json:"requests"`
	Writes   int            `json:"writes"`
	// First and Last are how many seconds after another start the first and the last of the new Foos were ready.
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	measure.Cost
}

func (r *restart) programName() string { return r.Program }

// measureRestarts starts operators with many Foos that match their specs, in rounds: once with nothing else to do, and
// once more while new Foos are created.
func measureRestarts(ctx context.Context, p *plane, f *found) error {
	if _, err := p.populate(ctx, f.Scale.Restart); err != nil {
		return err
	}
	for round := range f.Scale.Restarts {
		for _, a := range order(round, p.bench.operators()) {
			measure.Log("%s, round %d: starting with %d Foos", a.name, round+1, f.Scale.Restart)
			r := &restart{Program: a.name}
			if err := p.startAlone(ctx, a, r, f.Scale.Restart); err != nil {
				return fmt.Errorf("restarting %s: %w", a.name, err)
			}
			if err := p.startAmongNew(ctx, a, r); err != nil {
				return fmt.Errorf("restarting %s with new Foos: %w", a.name, err)
			}
			measure.Log("  ready after %.1f s, %d requests, %d of them writes; the first new Foo after %.1f s",
				r.Ready, measure.All(r.Requests), r.Writes, r.First)
			f.Restarts = append(f.Restarts, r)
		}
	}
	return nil
}

// startAlone starts an operator, and records what that costs.
func (p *plane) startAlone(ctx context.Context, a program, result *restart, foos int) error {
	mark, before, begun := p.Audit.Now(), p.cpu(nil), time.Now()
	c, err := p.startReady(ctx, a, nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	result.Ready = time.Since(begun).Seconds()
	if err := p.passed(ctx, c, foos); err != nil {
		return err
	}
	result.Passed = time.Since(begun).Seconds()
	if err := measure.Pause(ctx, startTime); err != nil {
		return err
	}
	result.Requests = measure.Counted(p.Audit.Since(mark, by(a)))
	result.Writes = len(p.Audit.Since(mark, by(a), isWriteForObjects))
	result.Cost, err = before.Until(p.cpu(c))
	return errors.Join(err, c.Alive())
}

// startAmongNew starts an operator while new Foos are created, and records when these are ready.
func (p *plane) startAmongNew(ctx context.Context, a program, result *restart) error {
	namespace, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	o := p.observe(ctx, namespace)
	defer o.stop()
	begun := time.Now()
	c, err := p.start(ctx, a, nil)
	if err != nil {
		return err
	}
	err = errors.Join(p.createFoos(ctx, namespace, "new", o, load{count: newFoos}), c.Alive())
	c.Stop() // before the new Foos are deleted
	if err != nil {
		return err
	}
	done := o.take()
	result.First, result.Last = done[0].to.Sub(begun).Seconds(), done[len(done)-1].to.Sub(begun).Seconds()
	return p.clear(ctx, namespace)
}

// isWriteForObjects returns whether a request writes something for an object, and not the event of the leader election.
func isWriteForObjects(r testenv.Request) bool {
	return r.IsWrite() && r.Namespace != testenv.OperatorNamespace
}
