package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	// quiet is how long nothing must have been requested to say that an arm is at rest.
	quiet = 2 * time.Second
	// restless is how long after the last Foo it is waited for that.
	restless = 15 * time.Second
)

// batch is what an arm has done with Foos.
type batch struct {
	Arm   string `json:"arm"`
	Round int    `json:"round"`
	// Foos are how many there were to be, Converged how many were as they should be when the time was up.
	Foos      int `json:"foos"`
	Converged int `json:"converged"`
	// Seconds are from the first to the last of them.
	Seconds float64 `json:"seconds"`
	// Latency is how many seconds each of them took.
	Latency spread `json:"latency"`
	// Requests are those of the arm until it was at rest; not those of the leader election, and not watches.
	Requests map[string]int `json:"requests"`
	cost
}

// spread is what many numbers come to.
type spread struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// cost is CPU time.
type cost struct {
	// CPU are seconds of CPU time by process, until the arm was at rest.
	CPU map[string]float64 `json:"cpuSeconds"`
	// Read are the seconds between the two readings that this is the difference of.
	Read float64 `json:"readSeconds"`
	// Others is the share of the machine's CPU time that went to other processes, or was kept by its host.
	Others float64 `json:"others"`
}

// controllerProcess is what the process that is measured is called among the others.
const controllerProcess = "controller"

func (b *batch) rate() float64       { return float64(b.Converged) / b.Seconds }
func (b *batch) perFoo() float64     { return float64(measure.All(b.Requests)) / float64(b.Converged) }
func (b *batch) controller() float64 { return b.CPU[controllerProcess] * 1000 / float64(b.Converged) }

// system returns the CPU seconds for 1,000 Foos of all that a cluster has to run: the controller, the API server and etcd.
func (b *batch) system() float64 {
	return b.controller() + (b.CPU[apiServer]+b.CPU[etcd])*1000/float64(b.Converged)
}

// busy returns which share of the machine's CPU time was taken, from its beginning until the arm was at rest.
func (b *batch) busy() float64 {
	return b.everyone() * float64(b.Converged) / 1000 / (b.Read * cpus)
}

// everyone returns the CPU seconds for 1,000 Foos of all processes that are read: what system has, and the harness, which every arm needs.
func (b *batch) everyone() float64 { return b.system() + b.CPU[harness]*1000/float64(b.Converged) }

// makeBatch has an arm that has just begun make Foos in a namespace that it has not seen, and takes everything away again.
func (p *plane) makeBatch(ctx context.Context, a arm, round int, l load) (_ *batch, err error) {
	p.bench.say("%s, round %d: %d Foos", a.name, round+1, l.count)
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
	if err := p.makeFoos(ctx, namespace, "warm", o, load{count: a.warmUp, underWay: makers}); err != nil {
		return nil, fmt.Errorf("warming up %s: %w", a.name, err)
	}
	if err := p.rest(ctx, a); err != nil {
		return nil, err
	}
	o.take()

	result, err := p.measure(ctx, a, c, o, func() error { return p.makeFoos(ctx, namespace, "foo", o, l) })
	if err != nil {
		return nil, fmt.Errorf("measuring %s: %w", a.name, err)
	}
	result.Round, result.Foos = round, l.count
	p.bench.say("  %d in %.1f s: %.0f a second, %.2f requests each", result.Converged, result.Seconds, result.rate(), result.perFoo())
	return result, c.Alive()
}

// measure measures an arm while something is done that the observer sees the effects of.
func (p *plane) measure(ctx context.Context, a arm, c *controller, o *observer, do func() error) (*batch, error) {
	defer p.profile(a, c)()
	mark, before, begun := p.Audit.Now(), p.cpu(c), time.Now()
	if err := do(); err != nil && !errors.Is(err, errTimeUp) {
		return nil, err
	}
	done := o.take()
	if len(done) == 0 {
		return nil, errors.New("nothing has converged")
	}
	if err := p.rest(ctx, a); err != nil {
		return nil, err
	}
	spent, err := before.until(p.cpu(c))
	if err != nil {
		return nil, err
	}
	return &batch{
		Arm:       a.name,
		Converged: len(done),
		Seconds:   done[len(done)-1].to.Sub(begun).Seconds(),
		Latency:   latencies(done),
		Requests:  measure.Counted(p.Audit.Since(mark, by(a))),
		cost:      spent,
	}, nil
}

func latencies(done []convergence) spread {
	if len(done) == 0 {
		return spread{}
	}
	seconds := make([]float64, len(done))
	for i, convergence := range done {
		seconds[i] = convergence.seconds()
	}
	slices.Sort(seconds)
	return spread{measure.Percentile(seconds, 50), measure.Percentile(seconds, 99), seconds[len(seconds)-1]}
}

// by is a filter for what an arm requests for its objects: not for the leader election, not to find out who reads its metrics, and not
// watches, which go on.
func by(a arm) func(testenv.Request) bool {
	return func(r testenv.Request) bool {
		switch r.Resource {
		case "leases", "tokenreviews", "subjectaccessreviews":
			return false
		}
		return r.User == a.user && r.Verb != "watch"
	}
}

// rest waits until an arm requests nothing more, or has not stopped to for long.
func (p *plane) rest(ctx context.Context, a arm) error {
	mark, begun := p.Audit.Now(), time.Now()
	for last := begun; time.Since(last) < quiet && time.Since(begun) < restless; {
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		if found := p.Audit.Since(mark, by(a)); len(found) > 0 {
			last = found[len(found)-1].At
		}
	}
	return nil
}

// reading is how much CPU time has been taken at a time.
type reading struct {
	at   time.Time
	of   map[string]float64 // by process
	busy float64            // by all
	err  error
}

// cpu reads how much CPU time has been taken so far, by a controller and by what is beside it.
func (p *plane) cpu(c *controller) reading {
	r := reading{at: time.Now(), of: map[string]float64{}}
	pids := map[string]int{controllerProcess: c.PID}
	for name, pid := range p.pids {
		pids[name] = pid
	}
	errs := make([]error, 0, len(pids)+1)
	for name, pid := range pids {
		seconds, err := measure.CPUSeconds(pid)
		r.of[name], errs = seconds, append(errs, err)
	}
	busy, err := measure.Busy()
	r.busy, r.err = busy, errors.Join(append(errs, err)...)
	return r
}

// until returns what has been taken between two readings.
func (r reading) until(later reading) (cost, error) {
	spent, ofOurs := cost{CPU: map[string]float64{}, Read: later.at.Sub(r.at).Seconds()}, 0.0
	for name := range r.of {
		spent.CPU[name] = later.of[name] - r.of[name]
		ofOurs += spent.CPU[name]
	}
	spent.Others = max(0, (later.busy-r.busy-ofOurs)/(spent.Read*cpus))
	return spent, errors.Join(r.err, later.err)
}
