package main

import (
	"context"
	"errors"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// idleness is what a program does while nothing happens.
type idleness struct {
	Program  string         `json:"program"`
	Foos     int            `json:"foos"`
	Seconds  float64        `json:"seconds"`
	Requests map[string]int `json:"requests"`
	Writes   int            `json:"writes"`
	// Resyncs is how many times all Foos were reconciled; 0 if that is unknown.
	Resyncs int `json:"resyncs"`
	measure.Cost
}

// measureIdle measures what is requested while nothing happens but resyncs.
func measureIdle(ctx context.Context, p *plane, f *found) error {
	if _, err := p.populate(ctx, f.Scale.Idle); err != nil {
		return err
	}
	for _, a := range p.bench.compared() {
		length, flags := f.Scale.IdleOthers, []string{}
		if a.isOperator { // three resyncs, none of them at the end
			length = f.Scale.IdleTime
			flags = append(flags, "--sync-period="+(length*3/10).String())
		}
		measure.Log("%s: idle with %d Foos for %s", a.name, f.Scale.Idle, length)
		i, err := p.measureIdleness(ctx, a, flags, length, f.Scale.Idle)
		if err != nil {
			return err
		}
		f.Idle = append(f.Idle, i)
	}
	return nil
}

func (p *plane) measureIdleness(ctx context.Context, a program, flags []string, length time.Duration,
	foos int) (*idleness, error) {
	c, err := p.startReady(ctx, a, nil, flags...)
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	if err := p.passed(ctx, c, foos); err != nil {
		return nil, err
	}
	if err := p.rest(ctx, a); err != nil {
		return nil, err
	}
	before, beforeErr := p.passes(c)
	mark, cpu := p.Audit.Now(), p.cpu(c)
	if err := measure.Pause(ctx, length); err != nil {
		return nil, err
	}
	requests := p.Audit.Since(mark, by(a), isNoWatch)
	result := &idleness{Program: a.name, Foos: foos, Seconds: length.Seconds(), Requests: measure.Counted(requests),
		Writes: len(p.Audit.Since(mark, by(a), testenv.Request.IsWrite))}
	if result.Cost, err = cpu.Until(p.cpu(c)); err != nil {
		return nil, err
	}
	after, err := p.passes(c)
	result.Resyncs = (after - before) / foos
	if a.isOperator && result.Resyncs == 0 {
		err = errors.Join(err, errors.New("not all Foos were reconciled again: there was no resync"))
	}
	return result, errors.Join(beforeErr, err, c.Alive())
}
