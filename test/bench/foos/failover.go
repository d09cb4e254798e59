package main

import (
	"context"
	"fmt"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
)

const (
	// failoverRate is how many Foos are created in a second while the leader changes, or a controller starts.
	failoverRate = 20
	// lead is how long Foos are created before the leader ends.
	lead = 3 * time.Second
)

// failover is how long no controller worked after the leader ended.
type failover struct {
	Signal string `json:"signal"`
	Round  int    `json:"round"`
	// Gap is the longest time, in seconds, in which no Foo became ready.
	Gap float64 `json:"gap"`
	// Others is the share of the machine's CPU time that other processes used; the leader that ended is among them.
	Others float64 `json:"others"`
}

// measureFailovers ends the leader of two operators, by either signal in turn.
func measureFailovers(ctx context.Context, p *plane, f *found) error {
	f.Failovers = nil
	namespace, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	o := p.observe(ctx, namespace)
	defer o.stop()
	leader, err := p.startReady(ctx, operator, nil)
	if err != nil {
		return err
	}
	defer func() { leader.Stop() }()
	if err := p.createFoos(ctx, namespace, "warm", o, load{count: operator.warmUp, pending: paced}); err != nil {
		return err
	}
	for round := range 2 * f.Scale.Failovers {
		end, signal := (*measure.Process).Stop, "SIGTERM"
		if round%4 == 1 || round%4 == 2 {
			end, signal = (*measure.Process).Kill, "SIGKILL"
		}
		p.bench.log("%s for the leader, round %d", signal, round/2+1)
		standby, err := p.startReady(ctx, operator, nil)
		if err != nil {
			return err
		}
		o.take()
		before := p.cpu(standby)
		ending := time.AfterFunc(lead, func() { end(leader.Process) })
		err = p.createFoos(ctx, namespace, fmt.Sprintf("foo%d", round), o,
			load{count: failoverRate * 25, rate: failoverRate, limit: 2 * time.Minute})
		if err != nil {
			ending.Stop()
			standby.Stop()
			return fmt.Errorf("after %s: %w", signal, err)
		}
		<-leader.Ended()
		leader = standby
		cost, err := before.Until(p.cpu(leader))
		if err != nil {
			return err
		}
		result := &failover{Signal: signal, Round: round / 2, Gap: gap(o.take()), Others: cost.Others}
		p.bench.log("  nothing for %.2f s", result.Gap)
		f.Failovers = append(f.Failovers, result)
	}
	return nil
}

// gap returns the longest time between convergences, which are in their order, in seconds.
func gap(done []convergence) float64 {
	longest := 0.0
	for i := 1; i < len(done); i++ {
		longest = max(longest, done[i].to.Sub(done[i-1].to).Seconds())
	}
	return longest
}
