package main

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

// loadFaults names, in reports, the faults of the operator under load: it runs during the whole campaign.
const loadFaults = "all outages"

// outagePlans returns a plan for a random write of each sort of a kind, and for one of each scenario, with one of the
// outages in turn.
func (s *suite) outagePlans() []*runner.Plan {
	chosen := s.fewWrites(func(played scenario.Scenario) bool {
		return played.Hides() // its user waits for a write that waits for the outage, which waits for users
	}, func(scenario.Scenario) bool { return true })
	plans := make([]*runner.Plan, 0, len(chosen))
	for i, write := range chosen {
		plans = append(plans, planOf(write.scenario, with(write.position, proxy.Outages[i%len(proxy.Outages)])))
	}
	return plans
}

// outages plays plans with the same fault at the same time, so that they share one outage, which happens when each has
// reached its write. Another operator is under load in the meantime.
func (s *suite) outages(ctx context.Context, r *campaignReport) error {
	plans := s.outagePlans()
	s.logf("%s: %d plans", r.name, len(plans))
	busy, err := startLoad(ctx, s.env)
	if err != nil {
		return err
	}
	defer busy.stop()
	happened := 0
	for _, fault := range proxy.Outages {
		for _, waits := range []bool{false, true} {
			some := slices.DeleteFunc(slices.Clone(plans), func(plan *runner.Plan) bool {
				return plan.Rules[0].Fault != fault || plan.Scenario.Waits() != waits
			})
			for batch := range slices.Chunk(some, parallelPlans) {
				hasHappened, err := s.playThrough(ctx, r, batch)
				if err != nil {
					return err
				}
				if hasHappened {
					happened++
				}
			}
		}
	}
	r.plans = append(r.plans, &planReport{scenario: "load", faults: loadFaults, runs: 1, fired: happened,
		findings: busy.settle()})
	return nil
}

// playThrough plays plans through one outage, and reports whether it happened, that is, whether a plan has reached its
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
