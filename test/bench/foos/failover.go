package main

import (
	"context"
	"fmt"

	"github.com/example/memcached-operator/test/bench/measure"
)

// measureFailovers ends the leader of two operators: in each round once by SIGTERM, as an upgrade does, and once by
// SIGKILL, as when a node is lost.
func measureFailovers(ctx context.Context, p *plane) (measure.Samples, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	namespace, err := p.namespace(ctx)
	if err != nil {
		return nil, err
	}
	o := p.observe(ctx, namespace)
	leader, err := p.startReady(ctx, operator, namespace)
	if err != nil {
		return nil, err
	}
	defer func() { leader.Stop() }()
	// so that it leads before there is a standby
	if _, err := p.createFoos(ctx, namespace, "warm", o, load{count: warmUp, pending: paced}); err != nil {
		return nil, err
	}
	ended := 0
	return measure.Rounds(p.bench.Failovers, []program{operator}, func(a program) (*measure.Sample, error) {
		s := &measure.Sample{Program: a.name, Count: 1, Numbers: map[string]float64{}}
		for _, by := range []struct {
			number string
			end    func(*measure.Process)
		}{{gapStopped, (*measure.Process).Stop}, {gapKilled, (*measure.Process).Kill}} {
			standby, err := p.startReady(ctx, a, namespace)
			if err != nil {
				return nil, err
			}
			former := leader
			leader = standby // which the end of the section stops
			ended++
			go by.end(former.Process)
			s.Numbers[by.number], err = p.gap(ctx, namespace, fmt.Sprintf("foo%d", ended), o, former)
			if err != nil {
				former.Stop()
				return nil, err
			}
		}
		return s, nil
	})
}

// gap creates one Foo after the other, until one is ready that was created after the end of a leader. It returns the
// longest time that one took, in seconds.
func (p *plane) gap(ctx context.Context, namespace, prefix string, o *observer, leader *controller) (float64, error) {
	longest := 0.0
	for number, wasAlive := 0, true; wasAlive; number++ {
		wasAlive = leader.CheckAlive() == nil
		seconds, err := p.createFoos(ctx, namespace, fmt.Sprintf("%s-%d", prefix, number), o, load{count: 1, pending: 1})
		if err != nil {
			return 0, err
		}
		longest = max(longest, seconds[0])
	}
	return longest, nil
}
