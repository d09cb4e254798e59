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
	// newFoos is how many Foos are created while a controller starts.
	newFoos = 200
	// startTime is how long after its caches are filled a controller is still measured.
	startTime = 10 * time.Second
)

// restart is what a start with many Foos costs that match their specs.
type restart struct {
	Program string `json:"program"`
	Round   int    `json:"round"`
	// Ready is how many seconds after its start the caches were filled, Passed when every Foo had been reconciled; 0 if
	// that is unknown.
	Ready  float64 `json:"ready"`
	Passed float64 `json:"passed,omitempty"`
	// Requests are all until startTime after that, with watches, but without renewals of the lease. Writes are those for
	// objects.
	Requests map[string]int `json:"requests"`
	Writes   int            `json:"writes"`
	// First is how many seconds after another start the first new Foo was ready; 0 if none was. NewFoos is how long new
	// Foos took, and Missing are those that were not ready after two minutes.
	First   float64 `json:"first,omitempty"`
	NewFoos latency `json:"newFoos"`
	Missing int     `json:"missing,omitempty"`
	measure.Cost
}

func (r *restart) programName() string { return r.Program }

// measureRestarts starts controllers with many Foos that match their specs, in rounds.
func measureRestarts(ctx context.Context, p *plane, f *found) error {
	f.Restarts = nil
	if _, err := p.populate(ctx, f.Scale.Restart); err != nil {
		return err
	}
	last := operator
	for round := range f.Scale.Restarts {
		for _, a := range order(round, p.bench.controllers()) {
			if a.name != last.name {
				if err := p.settle(ctx, a, f.Scale.Restart); err != nil {
					return fmt.Errorf("%s after %s: %w", a.name, last.name, err)
				}
			}
			last = a
			p.bench.log("%s, round %d: starting with %d Foos", a.name, round+1, f.Scale.Restart)
			r := &restart{Program: a.name, Round: round}
			if err := p.startAlone(ctx, a, r, f.Scale.Restart); err != nil {
				return fmt.Errorf("restarting %s: %w", a.name, err)
			}
			if err := p.startAmongNew(ctx, a, r); err != nil {
				return fmt.Errorf("restarting %s with new Foos: %w", a.name, err)
			}
			p.bench.log("  ready after %.1f s, %d requests, %d of them writes; the first new Foo after %.1f s",
				r.Ready, measure.All(r.Requests), r.Writes, r.First)
			f.Restarts = append(f.Restarts, r)
		}
	}
	return nil
}

// settle runs a program until it has reconciled the Foos of another one. The sample-controller removes the status
// fields that it does not know, and the operator restores them.
func (p *plane) settle(ctx context.Context, a program, foos int) (err error) {
	p.bench.log("%s takes over %d Foos", a.name, foos)
	c, err := p.startReady(ctx, a, nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	if c.metrics != nil {
		err = p.passed(ctx, c, foos)
	} else { // a new Foo is reconciled after all others
		err = p.amongNew(ctx, load{count: 1, limit: 5 * time.Minute}, func([]convergence) {})
	}
	return errors.Join(err, p.rest(ctx, a))
}

// amongNew creates Foos in a new namespace, has what became of them noted, and deletes them.
func (p *plane) amongNew(ctx context.Context, l load, note func([]convergence)) error {
	fresh, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	o := p.observe(ctx, fresh)
	defer o.stop()
	err = p.createFoos(ctx, fresh, "new", o, l)
	note(o.take())
	return errors.Join(err, p.clear(ctx, fresh))
}

// startAlone starts a controller, and records what that costs.
func (p *plane) startAlone(ctx context.Context, a program, result *restart, foos int) error {
	mark, before, begun := p.Audit.Now(), p.cpu(nil), time.Now()
	c, err := p.startReady(ctx, a, nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	result.Ready = time.Since(begun).Seconds()
	if c.metrics != nil {
		if err := p.passed(ctx, c, foos); err != nil {
			return err
		}
		result.Passed = time.Since(begun).Seconds()
	}
	if err := measure.Pause(ctx, startTime); err != nil {
		return err
	}
	result.Requests, result.Writes = startRequests(p.Audit.Since(mark,
		func(r testenv.Request) bool { return r.User == a.user() }))
	result.Cost, err = before.Until(p.cpu(c))
	return errors.Join(err, c.Alive())
}

// startAmongNew starts a controller while new Foos are created, and records how long these take.
func (p *plane) startAmongNew(ctx context.Context, a program, result *restart) error {
	begun := time.Now()
	c, err := p.start(ctx, a, nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	l := load{count: newFoos, rate: failoverRate, limit: newFoos/failoverRate*time.Second + 2*time.Minute, isPartial: true}
	var aliveErr error
	err = p.amongNew(ctx, l, func(done []convergence) {
		result.First, result.NewFoos, result.Missing = firstOf(done, begun), latencyOf(done), newFoos-len(done)
		aliveErr = c.Alive()
		c.Stop() // before the new Foos are deleted
	})
	return errors.Join(err, aliveErr)
}

// firstOf returns how many seconds after a time the first Foo was ready; 0 if none was.
func firstOf(done []convergence, begun time.Time) float64 {
	if len(done) == 0 {
		return 0
	}
	return done[0].to.Sub(begun).Seconds()
}

// startRequests counts requests and writes. The first two requests for the lease belong to the start, all others renew
// it. The benchmark itself causes the reviews of who reads metrics. The event of the leader election is no write for a
// Foo.
func startRequests(all []testenv.Request) (requests map[string]int, writes int) {
	counted := make([]testenv.Request, 0, len(all))
	leases := 0
	for _, request := range all {
		switch request.Resource {
		case "tokenreviews", "subjectaccessreviews":
			continue
		case "leases":
			if leases++; leases > 2 {
				continue
			}
		default:
			isOfElection := request.Resource == "events" && request.Namespace == testenv.OperatorNamespace
			if request.IsWrite() && !isOfElection {
				writes++
			}
		}
		counted = append(counted, request)
	}
	return measure.Counted(counted), writes
}
