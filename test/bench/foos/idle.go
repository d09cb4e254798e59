package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// idleness is what an arm does while nothing happens.
type idleness struct {
	Arm      string         `json:"arm"`
	Foos     int            `json:"foos"`
	Seconds  float64        `json:"seconds"`
	Requests map[string]int `json:"requests"`
	Writes   int            `json:"writes"`
	// Passes are how many times the operator has looked at a Foo, which shows that it was made to; 0 where that cannot be told.
	Passes int `json:"passes"`
	cost
}

// measureIdle measures what is requested while nothing happens but that everything is looked at again.
func measureIdle(ctx context.Context, p *plane, f *found) error {
	f.Idle = nil
	namespace, err := p.populate(ctx, ours, f.Scale.Idle)
	if err != nil {
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
	before := 0
	if c.metrics != nil {
		if err := p.passed(ctx, c, foos); err != nil {
			return nil, err
		}
		if before, err = c.metrics.Passes(p.token, "foo"); err != nil {
			return nil, err
		}
	}
	if err := p.rest(ctx, a); err != nil {
		return nil, err
	}
	mark, cpu := p.Audit.Now(), p.cpu(c)
	if err := pause(ctx, length); err != nil {
		return nil, err
	}
	requests := p.Audit.Since(mark, by(a))
	result := &idleness{
		Arm:      a.name,
		Foos:     foos,
		Seconds:  length.Seconds(),
		Requests: measure.Counted(requests),
		Writes:   len(slices.DeleteFunc(requests, func(r testenv.Request) bool { return !r.IsWrite() })),
	}
	if result.cost, err = cpu.until(p.cpu(c)); err != nil {
		return nil, err
	}
	if c.metrics != nil {
		after, err := c.metrics.Passes(p.token, "foo")
		if err != nil {
			return nil, err
		}
		if result.Passes = after - before; result.Passes < foos {
			return nil, fmt.Errorf("of %d Foos only %d were looked at again: nothing was forced", foos, result.Passes)
		}
	}
	return result, c.Alive()
}
