package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
)

// loadFaults is what happens to the operator that is kept busy meanwhile: it goes on when the campaign does.
const loadFaults = "all outages"

// outagePatience is how long all may take to become as it should be: Kubernetes' garbage collector, which lists anew
// after an outage and waits between its tries, was seen to take two minutes for what the operator has nothing to do
// with.
const outagePatience = 5 * time.Minute

// outagePlans are each write with one of the outages, in turn.
func (s *suite) outagePlans() []*runner.Plan {
	var plans []*runner.Plan
	for _, scenario := range s.scenarios {
		for _, position := range s.positions(scenario.Name) {
			plan := planOf(scenario, with(position, proxy.Outages[len(plans)%len(proxy.Outages)]))
			plan.Patience = cmp.Or(s.patience, outagePatience)
			plans = append(plans, plan)
		}
	}
	return plans
}

// outages plays plans of one sort of outage at a time, as many as are played in parallel, so that one outage is for all
// of them: it happens when each has come to its write. Meanwhile another operator is kept busy.
func (s *suite) outages(ctx context.Context, r *campaignReport) error {
	plans := s.outagePlans()
	s.say("%s: %d plans", r.Name, len(plans))
	busy, err := startLoad(ctx, s.env)
	if err != nil {
		return err
	}
	defer busy.stop()
	slices.SortStableFunc(plans, func(a, b *runner.Plan) int {
		return cmp.Or(cmp.Compare(a.Scenario.Age, b.Scenario.Age), cmp.Compare(a.Rules[0].Fault.Kind, b.Rules[0].Fault.Kind))
	})
	happened := 0
	for batch := range slices.Chunk(plans, s.parallel) {
		for _, some := range bySort(batch) {
			hasHappened, err := s.playThrough(ctx, r, some)
			if err != nil {
				return err
			}
			if hasHappened {
				happened++
			}
		}
	}
	r.add(&planReport{Scenario: "load", Faults: loadFaults, Fired: happened, Findings: busy.settle()})
	return nil
}

// bySort parts plans by the sort of their outage, and by how old what they need has to be.
func bySort(plans []*runner.Plan) [][]*runner.Plan {
	var parts [][]*runner.Plan
	for i, plan := range plans {
		if i == 0 || plan.Rules[0].Fault.Kind != plans[i-1].Rules[0].Fault.Kind ||
			plan.Scenario.Age != plans[i-1].Scenario.Age {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], plan)
	}
	return parts
}

// playThrough plays plans through one outage, and tells whether it has happened: it does when one of them comes to its
// write.
func (s *suite) playThrough(ctx context.Context, r *campaignReport, plans []*runner.Plan) (hasHappened bool,
	err error) {
	outage := s.env.NewOutage(ctx, plans[0].Rules[0].Fault.Kind, len(plans))
	var playing errgroup.Group
	for _, plan := range plans {
		plan.Outage = outage
		playing.Go(func() error { return s.play(ctx, r, plan, false) })
	}
	err = playing.Wait()
	return outage.HasHappened(), errors.Join(err, outage.Err)
}
