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
	// newFoosApart is how often a new Foo is made while a controller starts.
	newFoosApart = 50 * time.Millisecond
	// startTime is how long after its caches are filled a controller is still watched.
	startTime = 10 * time.Second
)

// restart is what it takes to start with Foos that are as they should be.
type restart struct {
	Arm   string `json:"arm"`
	Round int    `json:"round"`
	Foos  int    `json:"foos"`
	// Ready is how many seconds after its start its caches were filled, Passed when every Foo had been looked at; 0 where that cannot
	// be told.
	Ready  float64 `json:"ready"`
	Passed float64 `json:"passed,omitempty"`
	// Requests are all until then and for some seconds more, watches too; not those for the leader election's renewals.
	Requests map[string]int `json:"requests"`
	Writes   int            `json:"writes"`
	// First is how many seconds after another start the first new Foo was as it should be; 0 if none was. NewFoos is how long those took that
	// were made while the controller looked at all others: after its caches were filled, and for as long as Passed says, or until it was no
	// longer watched where that cannot be told. NewFoosCount is how many these are. Missing are new Foos that were not as they should be two
	// minutes after the last was made.
	First        float64 `json:"first,omitempty"`
	NewFoos      spread  `json:"newFoos"`
	NewFoosCount int     `json:"newFoosCount"`
	Missing      int     `json:"missing,omitempty"`
	// CPU are the controller's seconds of CPU time from its start on, as long as Requests are counted. Others is the share of the machine's CPU
	// time that went to other processes meanwhile.
	CPU    float64 `json:"cpuSeconds"`
	Others float64 `json:"others"`
}

func (r *restart) armName() string { return r.Arm }

// measureRestarts starts controllers with many Foos that are as they should be, in rounds of all arms, every other one the other way round.
func measureRestarts(ctx context.Context, p *plane, f *found) error {
	f.Restarts = nil
	namespace, err := p.populate(ctx, ours, f.Scale.Restart)
	if err != nil {
		return err
	}
	last := ours
	for round := range f.Scale.Restarts {
		for _, a := range order(round, ours, lifted) {
			if a.name != last.name {
				if err := p.settle(ctx, a, f.Scale.Restart); err != nil {
					return fmt.Errorf("%s after %s: %w", a.name, last.name, err)
				}
			}
			last = a
			r, err := p.measureRestart(ctx, a, round, f.Scale.Restart)
			if err != nil {
				return fmt.Errorf("restarting %s: %w", a.name, err)
			}
			f.Restarts = append(f.Restarts, r)
		}
	}
	return p.clear(ctx, namespace)
}

// settle has an arm make Foos of another one its own: the sample-controller takes away from each status what it does not know, and the
// operator puts it back.
func (p *plane) settle(ctx context.Context, a arm, foos int) (err error) {
	p.bench.say("%s makes %d Foos its own", a.name, foos)
	fresh, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	o := p.observe(ctx, fresh)
	defer o.stop()
	c, err := p.startReady(ctx, a, nil)
	if err != nil {
		return err
	}
	defer func() {
		c.Stop()
		err = errors.Join(err, p.clear(ctx, fresh))
	}()
	// The sample-controller comes to what is new when it has come to all that was there before.
	if err := p.makeFoos(ctx, fresh, "new", o, load{count: 1, limit: 5 * time.Minute}); err != nil {
		return err
	}
	if c.metrics != nil {
		if err := p.passed(ctx, c, foos); err != nil {
			return err
		}
	}
	return p.rest(ctx, a)
}

// measureRestart starts a controller with nothing else to do, and once more while new Foos are made.
func (p *plane) measureRestart(ctx context.Context, a arm, round, foos int) (*restart, error) {
	p.bench.say("%s, round %d: starting with %d Foos", a.name, round+1, foos)
	result := &restart{Arm: a.name, Round: round, Foos: foos}
	if err := p.startAlone(ctx, a, result); err != nil {
		return nil, err
	}
	if err := p.startAmongNew(ctx, a, result); err != nil {
		return nil, err
	}
	p.bench.say("  ready after %.1f s, %d requests, %d of them writes; %d new Foos in %.2f s (p50), %.2f s (max)",
		result.Ready, measure.All(result.Requests), result.Writes, result.NewFoosCount, result.NewFoos.P50, result.NewFoos.Max)
	return result, nil
}

// startAlone starts a controller, and notes what that takes.
func (p *plane) startAlone(ctx context.Context, a arm, result *restart) error {
	mark, before, begun := p.Audit.Now(), p.cpu(nil), time.Now()
	c, err := p.startReady(ctx, a, nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	ready := time.Now()
	result.Ready = ready.Sub(begun).Seconds()
	if c.metrics != nil {
		if err := p.passed(ctx, c, result.Foos); err != nil {
			return err
		}
		result.Passed = time.Since(begun).Seconds()
	}
	if err := pause(ctx, time.Until(ready.Add(startTime))); err != nil {
		return err
	}
	result.Requests, result.Writes = startRequests(p.Audit.Since(mark, func(r testenv.Request) bool { return r.User == a.user }))
	spent, err := before.until(p.cpu(c))
	result.CPU, result.Others = spent.CPU[controllerProcess], spent.Others
	return errors.Join(err, c.Alive())
}

// startAmongNew starts a controller while new Foos are made, and notes what becomes of these.
func (p *plane) startAmongNew(ctx context.Context, a arm, result *restart) (err error) {
	fresh, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	o := p.observe(ctx, fresh)
	defer o.stop()
	begun := time.Now()
	c, err := a.start(ctx, p, nil)
	if err != nil {
		return err
	}
	defer func() {
		c.Stop()
		err = errors.Join(err, p.clear(ctx, fresh))
	}()
	making, stopMaking := context.WithCancel(ctx)
	defer stopMaking()
	made := make(chan error, 1)
	go func() { made <- p.makeSome(making, fresh, o) }()
	if err := c.WaitUntil(ctx, "its caches are filled", c.isReady); err != nil {
		return err
	}
	ready := time.Now()
	if err := pause(ctx, startTime); err != nil {
		return err
	}
	stopMaking()
	if err := <-made; err != nil {
		return err
	}
	if result.Missing, err = o.wait(ctx, 2*time.Minute); err != nil {
		return err
	}
	end := ready.Add(startTime)
	if result.Passed > 0 {
		end = begun.Add(time.Duration(result.Passed * float64(time.Second)))
	}
	done := o.take()
	during := madeBetween(done, ready, end)
	result.First, result.NewFoos, result.NewFoosCount = firstOf(done, begun), latencies(during), len(during)
	return nil
}

// makeSome makes a Foo every now and then until the context ends.
func (p *plane) makeSome(ctx context.Context, namespace string, o *observer) error {
	ticker := time.NewTicker(newFoosApart)
	defer ticker.Stop()
	for number := 0; ; number++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := p.makeFoo(context.WithoutCancel(ctx), namespace, fmt.Sprintf("new-%05d", number), time.Now(), func() {}, o); err != nil {
			return fmt.Errorf("making a new Foo: %w", err)
		}
	}
}

// firstOf returns how many seconds after a time the first Foo was as it should be; 0 if none was.
func firstOf(done []convergence, begun time.Time) float64 {
	if len(done) == 0 {
		return 0
	}
	return done[0].to.Sub(begun).Seconds()
}

// madeBetween returns the Foos that were made after one time and before another.
func madeBetween(done []convergence, begin, end time.Time) []convergence {
	var between []convergence
	for _, convergence := range done {
		if convergence.from.After(begin) && convergence.from.Before(end) {
			between = append(between, convergence)
		}
	}
	return between
}

// startRequests counts requests and writes. Of those for the lease two are a part of the start, and all others renew it; who asks for
// metrics is the harness; that somebody leads is an event, and no write for a Foo.
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

// pause waits.
func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(length):
		return nil
	}
}
