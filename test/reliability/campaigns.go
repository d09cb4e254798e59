package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

const (
	pairsCount  = 100 // plans
	stormsEach  = 3   // of each scenario
	stormTime   = 10 * time.Second
	refusedTime = 5 * time.Second
	restTime    = 30 * time.Second
)

// Campaigns that other code refers to by name.
const (
	referenceCampaign = "references"
	singlesCampaign   = "singles"
	sampleCampaign    = "sample"
	pairsCampaign     = "pairs"
	rbacCampaign      = "rbac"
	restCampaign      = "rest"
	refusalsCampaign  = "refusals"
	readsCampaign     = "reads"
	stormsCampaign    = "storms"
	leadersCampaign   = "leaders"
	outagesCampaign   = "outages"
)

// campaign is a set of plans of the same sort.
type campaign struct {
	name string
	what string // a description for reports
	// plans returns the plans; it may need the references. It is nil for none.
	plans func() []*runner.Plan
	// isReference is set if these plans have no faults and others are compared with them.
	isReference bool
	// hasRaceDetector is set if the operator is built with the race detector, with which a plan takes twice as long.
	hasRaceDetector bool
	// other runs what is not a plan; nil for nothing.
	other func(context.Context, *campaignReport) error
}

// campaigns returns the campaigns that the options select. The references always come first.
func (s *suite) campaigns() []campaign {
	references := campaign{name: referenceCampaign, what: "what each scenario does without faults", isReference: true,
		plans: s.referencePlans, other: s.leaveOut}
	if s.fault != "" {
		faults, _ := parseFaults(s.fault) // the options are already validated
		replay := campaign{name: "replay", what: "one plan", plans: s.replayed,
			hasRaceDetector: faults.storm != nil || len(faults.rules) > 1} // as in storms and pairs
		return append([]campaign{references}, slices.Repeat([]campaign{replay}, s.times)...)
	}
	if s.short {
		return []campaign{references,
			{name: sampleCampaign, what: "every fault once with each kind", plans: s.samples}}
	}
	singles := campaign{name: singlesCampaign, what: "every write of every scenario, with a fault of every class",
		plans: s.singles}
	if s.isExhaustive {
		singles.plans = s.everySingle
	}
	all := []campaign{
		singles,
		{name: pairsCampaign, what: "two random faults in one scenario", plans: s.pairs, hasRaceDetector: true},
		{name: refusalsCampaign, what: "every sort of write refused for 5 s: only the operator itself tries again",
			plans: s.refusals},
		{name: readsCampaign, what: "one live read, not from a cache, of each sort of each scenario meets a fault",
			plans: s.reads},
		{name: stormsCampaign, what: "a quarter of all requests fail for 10 s", plans: s.storms, hasRaceDetector: true},
		{name: leadersCampaign, what: "the leader is frozen at a write until another one has led, and goes on",
			plans: func() []*runner.Plan { return s.withStandby(proxy.Freezing) }},
		{name: "cut off",
			what:  "the leader is cut off from the API server at a write until another one has led, and has to end",
			plans: func() []*runner.Plan { return s.withStandby(proxy.Cutting) }},
		{name: "everywhere", what: "operators of all namespaces: a fault of every class with each kind",
			other: s.everywhere},
		{name: restCampaign, what: "half a minute of rest, and another one in which every object is reconciled every second",
			plans: s.rest},
		{name: outagesCampaign, what: "the API server, or etcd, is killed at a write, and started again, under load",
			other: s.outages},
		{name: "restored", what: "etcd is restored to an older state under a running operator", other: s.restored},
		{name: "extremes", what: "10,000 Jobs of one CronJob, and resources of almost the size that etcd accepts",
			other: s.extremes},
		// the last one, as it judges the permissions that all others have used
		{name: rbacCampaign, what: "each permission taken away: something must fail", other: s.rbac},
	}
	all = slices.DeleteFunc(all, func(c campaign) bool { return !matches(s.campaign, c.name) })
	return append([]campaign{references}, slices.Repeat(all, s.times)...)
}

// hasOutages reports whether parts of the control plane are killed.
func (s *suite) hasOutages() bool {
	return strings.Contains(s.fault, awayFault) ||
		slices.ContainsFunc(s.campaigns(), func(c campaign) bool { return c.name == outagesCampaign })
}

// awayFault occurs in the names of all faults that kill a part of the control plane.
const awayFault = "-away"

func (s *suite) chance() *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, 1))
}

// referencePlans returns each scenario more than once, to find differences between runs without faults. A sample leaves
// out scenarios that begin with a wait of a minute, and those that build the last release.
func (s *suite) referencePlans() []*runner.Plan {
	times := 3
	switch {
	case s.short:
		s.scenarios = slices.DeleteFunc(s.scenarios,
			func(played scenario.Scenario) bool { return played.Waits() || played.Before != nil })
		s.report.notJudged = append(s.report.notJudged,
			"upgrades, and scenarios that wait for half a minute or more: in the full form only")
		times = 1
	case s.stopsEarly:
		times = 2
	case s.fault != "":
		times = 1
	}
	plans := make([]*runner.Plan, 0, times*len(s.scenarios))
	for range times {
		for _, scenario := range s.scenarios {
			plans = append(plans, planOf(scenario))
		}
	}
	return plans
}

// leaveOut removes scenarios that fail without faults, as there is no reference for them.
func (s *suite) leaveOut(context.Context, *campaignReport) error {
	s.scenarios = slices.DeleteFunc(s.scenarios,
		func(played scenario.Scenario) bool { return s.references[played.Name] == nil })
	if len(s.scenarios) == 0 {
		return errors.New("every scenario fails without faults")
	}
	return nil
}

// faults are the faults of one plan.
type faults struct {
	rules []proxy.Rule
	storm *uint64 // a seed
}

// parseFaults parses faults in the format of Plan.Faults.
func parseFaults(text string) (faults, error) {
	if text == "" {
		return faults{}, nil
	}
	if seed, isStorm := strings.CutPrefix(text, runner.StormFault); isStorm {
		number, err := strconv.ParseUint(seed, 10, 64)
		return faults{storm: &number}, err
	}
	rules, err := proxy.ParseRules(text)
	return faults{rules: rules}, err
}

// replayed returns the plan that the options select, for each scenario.
func (s *suite) replayed() []*runner.Plan {
	faults, _ := parseFaults(s.fault) // the options are already validated
	plans := make([]*runner.Plan, 0, len(s.scenarios))
	for _, scenario := range s.scenarios {
		plan := planOf(scenario, faults.rules...)
		if faults.storm != nil {
			plan.Storm, plan.Seed = stormTime, *faults.storm
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

// singles returns a plan for every write with a fault of every class. It takes the fault that onceFound has for that
// write, if any. Otherwise the choice depends only on the seed, the scenario and the write, so a part of the suite
// plays the same plans as the whole. The plans are shuffled, so that the first are a random sample.
func (s *suite) singles() []*runner.Plan {
	return s.atEveryWrite(func(played scenario.Scenario, write proxy.Rule) []proxy.Fault {
		faults := make([]proxy.Fault, 0, len(proxy.Classes))
		for i, class := range proxy.Classes {
			which := slices.IndexFunc(class, func(fault proxy.Fault) bool {
				return slices.Contains(onceFound, planOf(played, with(write, fault)).String())
			})
			if which < 0 {
				which = s.choice(len(class), played.Name, write.Match.String(), fmt.Sprint(write.Nth), fmt.Sprint(i))
			}
			faults = append(faults, class[which])
		}
		return faults
	})
}

// choice returns a number below n that depends on the seed and some names only.
func (s *suite) choice(n int, names ...string) int {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%q", names) // a hash never fails
	return rand.New(rand.NewPCG(s.seed, hash.Sum64())).IntN(n)
}

// everySingle returns a plan for every write with every fault.
func (s *suite) everySingle() []*runner.Plan {
	return s.atEveryWrite(func(scenario.Scenario, proxy.Rule) []proxy.Fault { return proxy.Faults })
}

// atEveryWrite returns a plan for every write with each of the faults that are chosen for it, shuffled.
func (s *suite) atEveryWrite(choose func(played scenario.Scenario, write proxy.Rule) []proxy.Fault) []*runner.Plan {
	var plans []*runner.Plan
	s.report.positions = 0
	for _, scenario := range s.scenarios {
		positions := s.positions(scenario.Name)
		s.report.positions += len(positions)
		for _, position := range positions {
			for _, fault := range choose(scenario, position) {
				plans = append(plans, planOf(scenario, with(position, fault)))
			}
		}
	}
	s.chance().Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	return plans
}

// onceFound are plans that once found a bug of the operator; samples and whole runs include them.
var onceFound = []string{
	"memcached-unseen / create events.k8s.io/events #1: age-more",       // a child created for a deleted owner
	"memcached-unseen / patch policy/poddisruptionbudgets #1: age-more", // a child taken over for a deleted owner
	"cronjob-missed / create batch/jobs #1: expire-watches",             // one Job counted twice
	"cronjob-replace / delete batch/jobs #1: 409",                       // a conflict mistaken for a deleted Job
}

// samples returns every fault once for each kind, at random writes. The slowest fault comes first.
func (s *suite) samples() []*runner.Plan {
	wasFound := func(plan *runner.Plan) int { return -slices.Index(onceFound, plan.String()) }
	plans := s.everySingle()
	slices.SortStableFunc(plans, func(a, b *runner.Plan) int { return cmp.Compare(wasFound(a), wasFound(b)) })
	known := map[string]bool{}
	plans = slices.DeleteFunc(plans, func(plan *runner.Plan) bool {
		kind := kindOf(plan.Scenario)
		id := kind + " " + plan.Rules[0].Fault.String()
		wasKnown := known[id]
		known[id] = true
		return wasKnown && wasFound(plan) > 0
	})
	slices.SortStableFunc(plans, func(a, b *runner.Plan) int {
		return cmp.Compare(b.Rules[0].Fault.For, a.Rules[0].Fault.For)
	})
	return plans
}

// pairs returns plans with two faults, at two writes or at a write and its retry.
func (s *suite) pairs() []*runner.Plan {
	chance := s.chance()
	quick := slices.DeleteFunc(slices.Clone(proxy.Faults), func(f proxy.Fault) bool { return f.Kind == proxy.Hang })
	var plans []*runner.Plan
	known := map[string]bool{}
	for range 10 * pairsCount { // a bound, in case there are too few writes for so many pairs
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
			other.Nth++ // the retry fails too
		}
		if plan := planOf(scenario, one, other); !known[plan.String()] {
			known[plan.String()] = true
			plans = append(plans, plan)
		}
	}
	return plans
}

// refusals returns plans in which all writes of a sort fail for some time, as with an exhausted quota or a webhook that
// is down. Each sort of a scenario meets one of the codes; in an exhaustive run, all.
func (s *suite) refusals() []*runner.Plan {
	codes := []int{http.StatusForbidden, http.StatusConflict, http.StatusInternalServerError}
	var plans []*runner.Plan
	for _, scenario := range s.scenarios {
		for _, match := range s.sorts(scenario.Name) {
			chosen := codes
			if !s.isExhaustive {
				chosen = codes[s.choice(len(codes), scenario.Name, match.String()):][:1]
			}
			for _, code := range chosen {
				plans = append(plans, planOf(scenario, proxy.Rule{Match: match, For: refusedTime,
					Fault: proxy.Fault{Kind: proxy.Refuse, Code: code}}))
			}
		}
	}
	return plans
}

// readFaults are those that a read can meet.
var readFaults = slices.DeleteFunc(slices.Clone(proxy.Faults), func(f proxy.Fault) bool {
	kinds := []proxy.Kind{proxy.KillBefore, proxy.DropAnswer, proxy.Refuse, proxy.Delay, proxy.Hang}
	return !slices.Contains(kinds, f.Kind)
})

// reads returns plans in which a read of each sort of each scenario meets a fault; in an exhaustive run, every fault.
func (s *suite) reads() []*runner.Plan {
	var plans []*runner.Plan
	for _, scenario := range s.scenarios {
		reads := s.references[scenario.Name].Reads
		for _, match := range sortsOf(reads) {
			if reads[match] == 0 { // not in every run
				continue
			}
			chosen := readFaults
			if scenario.Hides() { // what is hidden is not shown to an operator that starts anew, either
				chosen = slices.DeleteFunc(slices.Clone(chosen), func(f proxy.Fault) bool { return f.Kind == proxy.KillBefore })
			}
			if !s.isExhaustive {
				chosen = chosen[s.choice(len(chosen), scenario.Name, match.String()):][:1]
			}
			for _, fault := range chosen {
				nth := 1 + s.choice(reads[match], scenario.Name, match.String(), "nth")
				plans = append(plans, planOf(scenario, proxy.Rule{Match: match, Nth: nth, Fault: fault}))
			}
		}
	}
	return plans
}

// storms returns some storms of each scenario.
func (s *suite) storms() []*runner.Plan {
	plans := make([]*runner.Plan, 0, stormsEach*len(s.scenarios))
	for seed := range uint64(stormsEach) {
		for _, scenario := range s.scenarios {
			plans = append(plans, &runner.Plan{Scenario: scenario, Storm: stormTime, Seed: s.seed + seed})
		}
	}
	return plans
}

// withStandby returns plans in which a fault stops the leader and a standby takes over, at one random write of each
// sort of a kind, and at one of half of the scenarios: each of both faults has its half. Scenarios that freeze at an
// event have one plan more.
func (s *suite) withStandby(fault proxy.Fault) []*runner.Plan {
	half := slices.Index(proxy.ForPairs, fault)
	chosen := s.fewWrites(func(played scenario.Scenario) bool {
		return played.HasAbsence() || played.Hides() // a stopped leader does not open its watches again
	}, func(played scenario.Scenario) bool { return s.choice(len(proxy.ForPairs), played.Name) == half })
	for _, scenario := range s.scenarios {
		if scenario.FreezesAtEvent && fault == proxy.Freezing {
			chosen = append(chosen, write{scenario, proxy.Rule{Match: oracle.EventCreation, Nth: 1}})
		}
	}
	plans := make([]*runner.Plan, 0, len(chosen))
	for _, write := range chosen {
		plan := planOf(write.scenario, with(write.position, fault))
		plan.Pair = true
		plans = append(plans, plan)
	}
	return plans
}

// write is a write of a scenario that a fault can hit.
type write struct {
	scenario scenario.Scenario
	position proxy.Rule
}

// fewWrites returns a random write of each sort of a kind, and one of each scenario that must have one, without the
// scenarios that are left out. In an exhaustive run, it returns every write.
func (s *suite) fewWrites(isLeftOut, mustHave func(scenario.Scenario) bool) []write {
	var chosen []write
	chance := s.chance()
	met := map[string]bool{} // by kind and sort, and by scenario
	for _, scenario := range s.scenarios {
		if isLeftOut(scenario) {
			continue
		}
		met[scenario.Name] = !mustHave(scenario)
		kind := kindOf(scenario)
		positions := s.positions(scenario.Name)
		chance.Shuffle(len(positions), func(i, j int) { positions[i], positions[j] = positions[j], positions[i] })
		for _, position := range positions {
			sort := kind + " " + position.Match.String()
			if met[sort] && met[scenario.Name] && !s.isExhaustive {
				continue
			}
			met[sort], met[scenario.Name] = true, true
			chosen = append(chosen, write{scenario, position})
		}
	}
	return chosen
}

// everywhere plays plans of singles, one for each kind and class of faults, with operators of all namespaces: one at a
// time, on a control plane of their own, as such an operator would act on what other plans have left.
func (s *suite) everywhere(ctx context.Context, r *campaignReport) (err error) {
	own, err := runner.Start(ctx, s.env.Program(), 1, false)
	if err != nil {
		return err
	}
	shared := s.env
	s.env = own
	defer func() {
		s.env = shared
		err = errors.Join(err, own.Stop())
	}()
	met := map[string]bool{} // by kind and class
	for _, plan := range s.singles() {
		class := slices.IndexFunc(proxy.Classes, func(class []proxy.Fault) bool {
			return slices.Contains(class, plan.Rules[0].Fault)
		})
		id := fmt.Sprintf("%s %d", kindOf(plan.Scenario), class)
		if met[id] || plan.Scenario.Waits() || plan.Scenario.Before != nil {
			continue
		}
		met[id], plan.IsEverywhere = true, true
		if err := s.play(ctx, r, plan, false); err != nil {
			return err
		}
	}
	return nil
}

// rest returns all scenarios, with a long quiet period at the end.
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

// positions returns the writes of a scenario that a fault can hit.
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
func (s *suite) sorts(name string) []proxy.Match { return sortsOf(s.references[name].Writes) }

// sortsOf returns the sorts of requests that are counted, in their order.
func sortsOf(counts map[proxy.Match]int) []proxy.Match {
	return slices.SortedFunc(maps.Keys(counts),
		func(a, b proxy.Match) int { return strings.Compare(a.String(), b.String()) })
}

// kindOf returns the prefix of the name of a scenario.
func kindOf(scenario scenario.Scenario) string {
	kind, _, _ := strings.Cut(scenario.Name, "-")
	return kind
}

// kindNames returns the prefixes of the names of scenarios, one for each kind.
func kindNames() []string {
	names := make([]string, 0, len(kinds.All))
	for _, k := range kinds.All {
		names = append(names, k.Controller())
	}
	return names
}
