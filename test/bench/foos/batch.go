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
	// countedAfter is how long after the last Foo CPU time is read, the same for all arms, and requests are still counted of an arm that never
	// rests: events follow then.
	countedAfter = 3 * time.Second
	// quiet is how long nothing must have been requested to say that an arm is at rest.
	quiet = 2 * time.Second
	// restless is how long that is waited for of an arm that never rests, and patience of all others.
	restless, patience = 15 * time.Second, 5 * time.Minute
)

// batch is what an arm has done with Foos.
type batch struct {
	Arm   string `json:"arm"`
	Round int    `json:"round"`
	// Foos are how many there were to be, Converged how many of them came to be as they should; fewer only where the load may lack some.
	Foos      int `json:"foos"`
	Converged int `json:"converged"`
	// Seconds are from the first to the last of them.
	Seconds float64 `json:"seconds"`
	// Latency is how many seconds each that converged took.
	Latency spread `json:"latency"`
	// Requests are those of the arm until it was at rest, or until countedAfter the last of one that never is; not those of the leader
	// election, and not watches.
	Requests map[string]int `json:"requests"`
	cost
}

// spread is what many numbers come to.
type spread struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// cost is CPU time between two readings; of Foos, from before the first until countedAfter the last.
type cost struct {
	// CPU are seconds of CPU time by process.
	CPU map[string]float64 `json:"cpuSeconds"`
	// Machine are the seconds of CPU time that the machine had.
	Machine float64 `json:"machineSeconds"`
	// Others is the share of them that went to other processes, or was kept by the machine's host.
	Others float64 `json:"others"`
}

// controllerProcess is what the process that is measured is called among the others.
const controllerProcess = "controller"

func (b *batch) armName() string     { return b.Arm }
func (b *batch) rate() float64       { return float64(b.Converged) / b.Seconds }
func (b *batch) perFoo() float64     { return float64(measure.All(b.Requests)) / float64(b.Converged) }
func (b *batch) controller() float64 { return b.CPU[controllerProcess] * 1000 / float64(b.Converged) }

// system returns the CPU seconds for 1,000 Foos of all that a cluster has to run: the controller, the API server and etcd.
func (b *batch) system() float64 {
	return b.controller() + (b.CPU[apiServer]+b.CPU[etcd])*1000/float64(b.Converged)
}

// busy returns which share of the machine's CPU time was taken by the processes that are read.
func (b *batch) busy() float64 {
	return b.everyone() * float64(b.Converged) / 1000 / b.Machine
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
	if err := do(); err != nil {
		return nil, err
	}
	done := o.take()
	if len(done) == 0 {
		return nil, errors.New("nothing has converged")
	}
	if err := pause(ctx, countedAfter); err != nil {
		return nil, err
	}
	spent, err := before.until(p.cpu(c))
	if err != nil {
		return nil, err
	}
	if !a.isRestless {
		if err := p.rest(ctx, a); err != nil {
			return nil, err
		}
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

// rest waits until an arm requests nothing more. It gives up on one that is restless; that another one does not come to rest is an error.
func (p *plane) rest(ctx context.Context, a arm) error {
	limit := patience
	if a.isRestless {
		limit = restless
	}
	mark, begun := p.Audit.Now(), time.Now()
	for last := begun; time.Since(last) < quiet; {
		if time.Since(begun) >= limit {
			if a.isRestless {
				return nil
			}
			return fmt.Errorf("%s does not come to rest in %s", a.name, limit)
		}
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

// cpu reads how much CPU time has been taken so far, by a controller and by what is beside it. Without a controller, or before it has
// begun, c is nil.
func (p *plane) cpu(c *controller) reading {
	r := reading{at: time.Now(), of: map[string]float64{}}
	pids := maps.Clone(p.pids)
	if c != nil {
		pids[controllerProcess] = c.PID
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

// until returns what has been taken between two readings; of a process that has begun in between, all.
func (r reading) until(later reading) (cost, error) {
	spent, ofOurs := cost{CPU: map[string]float64{}, Machine: later.at.Sub(r.at).Seconds() * cpus}, 0.0
	for name := range later.of {
		spent.CPU[name] = later.of[name] - r.of[name]
		ofOurs += spent.CPU[name]
	}
	spent.Others = max(0, (later.busy-r.busy-ofOurs)/spent.Machine)
	return spent, errors.Join(r.err, later.err)
}
