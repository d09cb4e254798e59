package main

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

// How many plans there are of what is chosen by chance.
const (
	shortSingles = 60
	pairsCount   = 300
	stormsEach   = 5 // scenario
)

// onceFound are plans that have found a bug of the operator once: the short form always plays them, too.
var onceFound = []string{
	"memcached-unseen / create events.k8s.io/events #1: age-more", // a child was made for an owner that was gone
	// a child was taken from its owner for one that was gone
	"memcached-unseen / patch policy/poddisruptionbudgets #1: age-more",
	"cronjob-missed / create batch/jobs #1: expire-watches", // a Job that was known in two ways was two
	"cronjob-replace / delete batch/jobs #1: 409",           // a conflict was taken for a Job that was gone
}

// stormTime is how long a storm lasts at most, which is over when all is as it should be, and refusedTime how long a
// sort of writes is refused: longer than anything but the operator itself keeps it going. restTime is how long nothing
// must come of nothing.
const (
	stormTime   = 10 * time.Second
	refusedTime = 5 * time.Second
	restTime    = 30 * time.Second
)

// referenceCampaign is the one that all others need, rbacCampaign the one that takes permissions away. Of restCampaign
// it is not the faults that tell what is played.
const (
	referenceCampaign = "references"
	rbacCampaign      = "rbac"
	restCampaign      = "rest"
	cutOffCampaign    = "cut off"
	outagesCampaign   = "outages"
)

// campaigns are those that have been asked for. The references come first, always.
func (s *suite) campaigns() []campaign {
	references := campaign{name: referenceCampaign, what: "what comes of each scenario when nothing goes wrong",
		isReference: true,
		plans:       s.referencePlans, other: s.leaveOut}
	if s.fault != "" {
		return []campaign{references, {name: "replay", what: "one plan", plans: s.replayed}}
	}
	all := []campaign{
		{name: "singles", what: "every write of every scenario, with every fault", plans: s.singles},
		{name: "pairs", what: "two faults in one scenario, chosen by chance", plans: s.pairs},
		{name: "refusals", what: "every sort of write refused for 5 s: nothing but the operator itself has it try again",
			plans: s.refusals},
		{name: "storms", what: "a quarter of all requests go wrong, until all is as it should be, or for 10 s",
			plans: s.storms},
		{name: "leaders", what: "the leader stands still at a write until another one has led, and goes on",
			plans: s.leaders},
		{name: cutOffCampaign,
			what:  "the leader is cut off from the API server at a write until another one has led, and has to end",
			plans: s.cutOff},
		{name: restCampaign,
			what:  "half a minute in which nothing happens, and another one in which everything is looked at every second",
			plans: s.rest},
		{name: outagesCampaign, what: "the API server, or etcd, is killed at a write, and started again, under load",
			other: s.outages},
		// the last, as it judges what all have used
		{name: rbacCampaign, what: "each permission taken away: something must go wrong", other: s.rbac},
	}
	if s.short {
		all = all[:1]
	}
	if s.campaign != "" {
		pattern := regexp.MustCompile("^(" + s.campaign + ")$")
		all = slices.DeleteFunc(all, func(c campaign) bool { return !pattern.MatchString(c.name) })
	}
	return append([]campaign{references}, all...)
}

// hasOutages tells whether parts of the control plane are killed.
func (s *suite) hasOutages() bool {
	return strings.Contains(s.fault, "-away") || s.fault == "" &&
		slices.ContainsFunc(s.campaigns(), func(c campaign) bool { return c.name == outagesCampaign })
}

func (s *suite) chance() *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, 1))
}

// referencePlans are each scenario more than once, to see what differs by itself.
func (s *suite) referencePlans() []*runner.Plan {
	times := 3
	if s.short || s.fault != "" {
		times = 1
	}
	plans := make([]*runner.Plan, 0, times*len(s.scenarios))
	for range times {
		for _, scenario := range s.scenarios {
			plans = append(plans, &runner.Plan{Scenario: scenario})
		}
	}
	return plans
}

// leaveOut leaves out the scenarios that fail when nothing goes wrong: there is nothing to compare with.
func (s *suite) leaveOut(context.Context, *campaignReport) error {
	s.scenarios = slices.DeleteFunc(s.scenarios,
		func(played scenario.Scenario) bool { return s.references[played.Name] == nil })
	if len(s.scenarios) == 0 {
		return errors.New("no scenario comes to its end without faults")
	}
	return nil
}

// replayed is the one plan that has been asked for.
func (s *suite) replayed() []*runner.Plan {
	plans := make([]*runner.Plan, 0, len(s.scenarios))
	for _, scenario := range s.scenarios {
		plan := planOf(scenario, s.rules...)
		if s.storm != nil {
			plan.Storm, plan.Seed = stormTime, *s.storm
		}
		for _, rule := range plan.Rules {
			plan.Pair = plan.Pair || slices.Contains(proxy.ForPairs, rule.Fault)
			if slices.Contains(proxy.Outages, rule.Fault) {
				plan.Outage = s.env.NewOutage(context.Background(), rule.Fault.Kind, 1)
			}
		}
		plans = append(plans, plan)
	}
	return plans
}

// singles are every write with every fault; of those, in the short form, some.
func (s *suite) singles() []*runner.Plan {
	var plans []*runner.Plan
	for _, scenario := range s.scenarios {
		positions := s.positions(scenario.Name)
		s.report.Positions += len(positions)
		for _, position := range positions {
			for _, fault := range proxy.Faults {
				plans = append(plans, planOf(scenario, with(position, fault)))
			}
		}
	}
	if s.short {
		return s.few(plans)
	}
	// In no order, so that what has come of it says something of everything before it is over.
	s.chance().Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	return plans
}

// few returns some plans, chosen by chance, and those that have found something once. It reports which of these there
// are no more.
func (s *suite) few(plans []*runner.Plan) []*runner.Plan {
	var again, quick []*runner.Plan
	gone := map[string]bool{}
	for _, text := range onceFound {
		name, _, _ := strings.Cut(text, " / ")
		gone[text] = slices.ContainsFunc(s.scenarios, func(s scenario.Scenario) bool { return s.Name == name })
	}
	for _, plan := range plans {
		switch {
		case slices.Contains(onceFound, plan.String()):
			again = append(again, plan)
			gone[plan.String()] = false
		case plan.Rules[0].Fault.Kind != proxy.Hang:
			quick = append(quick, plan)
		}
	}
	for _, text := range onceFound {
		if gone[text] {
			s.report.NotJudged = append(s.report.NotJudged, text+": the write was not made without faults either")
		}
	}
	return append(again, sample(quick, shortSingles-len(again), s.chance())...)
}

// pairs are two writes, or the same twice, with a fault each.
func (s *suite) pairs() []*runner.Plan {
	chance := s.chance()
	quick := slices.DeleteFunc(slices.Clone(proxy.Faults), func(f proxy.Fault) bool { return f.Kind == proxy.Hang })
	var plans []*runner.Plan
	known := map[string]bool{}
	for range 10 * pairsCount { // of a few writes there are not so many pairs
		if len(plans) >= pairsCount {
			break
		}
		scenario := s.scenarios[chance.IntN(len(s.scenarios))]
		positions := s.positions(scenario.Name)
		if len(positions) == 0 {
			continue
		}
		one := with(positions[chance.IntN(len(positions))], quick[chance.IntN(len(quick))])
		other := with(positions[chance.IntN(len(positions))], quick[chance.IntN(len(quick))])
		if one.Match == other.Match && one.Nth == other.Nth {
			other.Nth++ // what it is tried again with goes wrong too
		}
		if plan := planOf(scenario, one, other); !known[plan.String()] {
			known[plan.String()] = true
			plans = append(plans, plan)
		}
	}
	return plans
}

// refusals have all writes of a sort be refused for a while, as by a quota that is used up or a webhook that is down.
// Nothing tells the operator when that is over.
func (s *suite) refusals() []*runner.Plan {
	var plans []*runner.Plan
	for _, scenario := range s.scenarios {
		for _, match := range s.sorts(scenario.Name) {
			for _, code := range []int{http.StatusForbidden, http.StatusConflict, http.StatusInternalServerError} {
				plans = append(plans, planOf(scenario, proxy.Rule{Match: match, For: refusedTime,
					Fault: proxy.Fault{Kind: proxy.Refuse, Code: code}}))
			}
		}
	}
	return plans
}

// storms are some over each scenario.
func (s *suite) storms() []*runner.Plan {
	plans := make([]*runner.Plan, 0, stormsEach*len(s.scenarios))
	for seed := range uint64(stormsEach) {
		for _, scenario := range s.scenarios {
			plans = append(plans, &runner.Plan{Scenario: scenario, Storm: stormTime, Seed: s.seed + seed})
		}
	}
	return plans
}

// leaders are a freeze at each write.
func (s *suite) leaders() []*runner.Plan {
	return s.withStandby(proxy.Freezing, func(positions []proxy.Rule) []proxy.Rule { return positions })
}

// cutOff are a leader that is cut off, once in each scenario, at a write that is chosen by chance.
func (s *suite) cutOff() []*runner.Plan {
	chance := s.chance()
	return s.withStandby(proxy.Cutting, func(positions []proxy.Rule) []proxy.Rule { return sample(positions, 1, chance) })
}

// withStandby are plans in which a fault keeps the leader from its work at some writes, and another operator stands by.
func (s *suite) withStandby(fault proxy.Fault, some func([]proxy.Rule) []proxy.Rule) []*runner.Plan {
	var plans []*runner.Plan
	for _, scenario := range s.scenarios {
		if scenario.HasAbsence() {
			continue
		}
		for _, position := range some(s.positions(scenario.Name)) {
			plan := planOf(scenario, with(position, fault))
			plan.Pair = true
			plans = append(plans, plan)
		}
	}
	return plans
}

// rest are all scenarios, with a long rest in the end.
func (s *suite) rest() []*runner.Plan {
	plans := make([]*runner.Plan, 0, len(s.scenarios))
	for _, scenario := range s.scenarios {
		plan := planOf(scenario)
		plan.Rest = restTime
		plans = append(plans, plan)
	}
	return plans
}

func planOf(scenario scenario.Scenario, rules ...proxy.Rule) *runner.Plan {
	return &runner.Plan{Scenario: scenario, Rules: rules}
}

func with(position proxy.Rule, fault proxy.Fault) proxy.Rule {
	position.Fault = fault
	return position
}

// positions returns the writes of a scenario that something can go wrong with.
func (s *suite) positions(name string) []proxy.Rule {
	var rules []proxy.Rule
	for _, match := range s.sorts(name) {
		for nth := range s.references[name].Writes[match] {
			rules = append(rules, proxy.Rule{Match: match, Nth: nth + 1})
		}
	}
	return rules
}

// sorts returns the sorts of writes of a scenario.
func (s *suite) sorts(name string) []proxy.Match {
	return slices.SortedFunc(maps.Keys(s.references[name].Writes),
		func(a, b proxy.Match) int { return strings.Compare(a.String(), b.String()) })
}

// sample returns some of a list, by chance, in the order of the list.
func sample[T any](list []T, n int, chance *rand.Rand) []T {
	if n >= len(list) {
		return list
	}
	chosen := chance.Perm(len(list))[:n]
	slices.Sort(chosen)
	some := make([]T, n)
	for i, index := range chosen {
		some[i] = list[index]
	}
	return some
}
