package main

import (
	"context"
	"fmt"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// idleness is what an arm does while nothing happens.
type idleness struct {
	Arm  string `json:"arm"`
	Foos int    `json:"foos"`
	// OtherKinds are how many there are of each of the other kinds.
	OtherKinds int            `json:"otherKinds"`
	Seconds    float64        `json:"seconds"`
	Requests   map[string]int `json:"requests"`
	Writes     int            `json:"writes"`
	// Looks are how many times the operator has looked at all objects of each kind, on the average of the kind with the fewest, which shows
	// that it was made to; 0 where that cannot be told.
	Looks int `json:"looks"`
	cost
}

// measureIdle measures what is requested while nothing happens but that everything is looked at again.
func measureIdle(ctx context.Context, p *plane, f *found) error {
	f.Idle = nil
	namespace, err := p.populate(ctx, ours, f.Scale.Idle)
	if err != nil {
		return err
	}
	if err := p.populateOthers(ctx); err != nil {
		return err
	}
	// Three times in the time, and none of them just then.
	resync := "--sync-period=" + (f.Scale.IdleTime * 3 / 10).String()
	for _, of := range []struct {
		arm
		flags []string
		time  time.Duration
	}{{ours, []string{resync}, f.Scale.IdleTime}, {lifted, nil, f.Scale.IdleOthers}} {
		p.bench.say("%s: idle with %d Foos for %s", of.name, f.Scale.Idle, of.time)
		i, err := p.measureIdleness(ctx, of.arm, of.flags, of.time, f.Scale.Idle)
		if err != nil {
			return err
		}
		f.Idle = append(f.Idle, i)
	}
	return p.clear(ctx, namespace)
}

func (p *plane) measureIdleness(ctx context.Context, a arm, flags []string, length time.Duration, foos int) (_ *idleness, err error) {
	c, err := p.startReady(ctx, a, nil, flags...)
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	there := map[string]int{"foo": foos, "memcached": otherKinds, "cronjob": otherKinds}
	if c.metrics != nil {
		if err := p.passed(ctx, c, foos); err != nil {
			return nil, err
		}
	}
	if err := p.rest(ctx, a); err != nil {
		return nil, err
	}
	before, err := p.passesOf(c, there)
	if err != nil {
		return nil, err
	}
	mark, cpu := p.Audit.Now(), p.cpu(c)
	if err := pause(ctx, length); err != nil {
		return nil, err
	}
	requests := p.Audit.Since(mark, by(a))
	result := &idleness{
		Arm:        a.name,
		Foos:       foos,
		OtherKinds: otherKinds,
		Seconds:    length.Seconds(),
		Requests:   measure.Counted(requests),
		Writes:     writesAmong(requests),
	}
	if result.cost, err = cpu.until(p.cpu(c)); err != nil {
		return nil, err
	}
	after, err := p.passesOf(c, there)
	if err != nil {
		return nil, err
	}
	for kind, passes := range after {
		again := passes - before[kind]
		if again < there[kind] {
			return nil, fmt.Errorf("of %d objects of the kind %s only %d were looked at again: nothing was forced", there[kind], kind, again)
		}
		if looks := again / there[kind]; result.Looks == 0 || looks < result.Looks {
			result.Looks = looks
		}
	}
	return result, c.Alive()
}

// writesAmong returns how many requests were to change something.
func writesAmong(requests []testenv.Request) int {
	writes := 0
	for _, request := range requests {
		if request.IsWrite() {
			writes++
		}
	}
	return writes
}

// passesOf returns how many passes a controller has made for each kind; nothing for one that does not tell.
func (p *plane) passesOf(c *controller, kinds map[string]int) (map[string]int, error) {
	passes := map[string]int{}
	if c.metrics == nil {
		return passes, nil
	}
	for kind := range kinds {
		var err error
		if passes[kind], err = c.metrics.Passes(p.token, kind); err != nil {
			return nil, err
		}
	}
	return passes, nil
}
