package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	// countedAfter is how long after the last Foo the CPU time is read, for all programs. Until then the requests of a
	// restless program count, too: its events are late.
	countedAfter = 3 * time.Second
	// quiet is how long a program sends no requests when it is at rest.
	quiet = 2 * time.Second
	// restlessLimit is how long to wait for that if a program is restless; restLimit for all others.
	restlessLimit, restLimit = 15 * time.Second, 5 * time.Minute
	// warmUp is how many Foos a program reconciles before it is measured.
	warmUp = 50
	// paced is how many Foos are pending at most where requests are counted, so few that none has to wait.
	paced = 8
)

// batch is what a program has done with Foos.
type batch struct {
	Program string `json:"program"`
	Foos    int    `json:"foos"`
	// Seconds is the time until the last of them was ready.
	Seconds float64 `json:"seconds"`
	Latency latency `json:"latency"`
	// Requests are those of the program until it was at rest, or until countedAfter the last Foo if it is restless. The
	// leader election and watches are left out.
	Requests map[string]int `json:"requests"`
	measure.Cost
}

// controllerProcess is the process that is measured, among the others.
const controllerProcess = "controller"

func (b *batch) programName() string { return b.Program }
func (b *batch) rate() float64       { return float64(b.Foos) / b.Seconds }
func (b *batch) perFoo() float64     { return float64(measure.All(b.Requests)) / float64(b.Foos) }

// cpu returns the CPU seconds of some processes for 1,000 Foos.
func (b *batch) cpu(processes ...string) float64 {
	sum := 0.0
	for _, process := range processes {
		sum += b.CPU[process]
	}
	return sum * 1000 / float64(b.Foos)
}

func (b *batch) controller() float64 { return b.cpu(controllerProcess) }

// system returns the CPU seconds for 1,000 Foos of all that a cluster has to run.
func (b *batch) system() float64 { return b.cpu(controllerProcess, apiServer, etcd) }

// measurePaced counts the requests of Foos that are created no faster than they become ready.
func measurePaced(ctx context.Context, p *plane, f *found) error {
	for _, a := range p.bench.compared() {
		b, err := p.createBatch(ctx, a, 0, load{count: f.Scale.Paced, pending: paced})
		if err != nil {
			return err
		}
		f.Paced = append(f.Paced, b)
	}
	return nil
}

// measureBursts measures how fast many Foos that are created at once become ready, in rounds of all programs.
func measureBursts(ctx context.Context, p *plane, f *found) error {
	for round := range f.Scale.Rounds {
		for _, a := range order(round, p.bench.compared()) {
			b, err := p.createBatch(ctx, a, round, load{count: f.Scale.Burst})
			if err != nil {
				return err
			}
			f.Bursts = append(f.Bursts, b)
		}
	}
	return nil
}

// order returns what a round measures, in every other round from the last to the first.
func order[T any](round int, all []T) []T {
	all = slices.Clone(all)
	if round%2 == 1 {
		slices.Reverse(all)
	}
	return all
}

// createBatch has a program that has just started reconcile Foos in a new namespace, and deletes all of it again.
func (p *plane) createBatch(ctx context.Context, a program, round int, l load) (_ *batch, err error) {
	measure.Log("%s, round %d: %d Foos", a.name, round+1, l.count)
	namespace, err := p.namespace(ctx)
	if err != nil {
		return nil, err
	}
	o := p.observe(ctx, namespace)
	defer o.stop()
	c, err := p.startReady(ctx, a, nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		c.Stop()
		err = errors.Join(err, p.clear(ctx, namespace))
	}()
	if err := p.createFoos(ctx, namespace, "warm", o, load{count: warmUp, pending: makers}); err != nil {
		return nil, fmt.Errorf("warming up %s: %w", a.name, err)
	}
	if err := p.rest(ctx, a); err != nil {
		return nil, err
	}
	o.take()

	result, err := p.measure(ctx, a, c, o, func() error { return p.createFoos(ctx, namespace, "foo", o, l) })
	if err != nil {
		return nil, fmt.Errorf("measuring %s: %w", a.name, err)
	}
	measure.Log("  %d in %.1f s: %.0f a second, %.2f requests each", result.Foos, result.Seconds, result.rate(),
		result.perFoo())
	return result, c.Alive()
}

// measure measures a program while something is done whose effects the observer records.
func (p *plane) measure(ctx context.Context, a program, c *controller, o *observer, do func() error) (*batch, error) {
	mark, before, begun := p.Audit.Now(), p.cpu(c), time.Now()
	if err := do(); err != nil {
		return nil, err
	}
	done := o.take()
	if len(done) == 0 {
		return nil, errors.New("no Foo became ready")
	}
	if err := measure.Pause(ctx, countedAfter); err != nil {
		return nil, err
	}
	cost, err := before.Until(p.cpu(c))
	if err != nil {
		return nil, err
	}
	if !a.isRestless {
		if err := p.rest(ctx, a); err != nil {
			return nil, err
		}
	}
	return &batch{
		Program:  a.name,
		Foos:     len(done),
		Seconds:  done[len(done)-1].to.Sub(begun).Seconds(),
		Latency:  latencyOf(done),
		Requests: measure.Counted(p.Audit.Since(mark, by(a), isNoWatch)),
		Cost:     cost,
	}, nil
}

// cpu reads the CPU times of a controller, if there is one yet, and of the processes beside it.
func (p *plane) cpu(c *controller) measure.Reading {
	pids := maps.Clone(p.pids)
	if c != nil {
		pids[controllerProcess] = c.PID
	}
	return measure.ReadCPU(pids)
}

// by filters what a program requests: not its leader election, and not the authentication of who reads its metrics.
func by(a program) func(testenv.Request) bool {
	return func(r testenv.Request) bool {
		switch r.Resource {
		case "leases", "tokenreviews", "subjectaccessreviews":
			return false
		}
		return r.User == a.user()
	}
}

func isNoWatch(r testenv.Request) bool { return r.Verb != "watch" }

// rest waits until a program sends no more requests. If it is restless, the wait is short; for any other program, it is
// an error if that does not happen.
func (p *plane) rest(ctx context.Context, a program) error {
	limit := restLimit
	if a.isRestless {
		limit = restlessLimit
	}
	mark, begun := p.Audit.Now(), time.Now()
	for last := begun; time.Since(last) < quiet; {
		if time.Since(begun) >= limit {
			if a.isRestless {
				return nil
			}
			return fmt.Errorf("%s still sends requests after %s", a.name, limit)
		}
		if err := measure.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		if requests := p.Audit.Since(mark, by(a), isNoWatch); len(requests) > 0 {
			last = requests[len(requests)-1].At
		}
	}
	return nil
}
