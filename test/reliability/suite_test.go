package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

var deployments = proxy.Match{Verb: "patch", Resource: "apps/deployments"}

// testSuite returns a suite whose scenarios have so many writes each.
func testSuite(writes int, scenarios ...scenario.Scenario) *suite {
	s := &suite{options: &options{seed: 1}, scenarios: scenarios, report: newReport(&options{}, &proof.Run{}),
		references: map[string]*oracle.Reference{}, used: map[string][]string{}}
	for _, scenario := range scenarios {
		s.references[scenario.Name] = &oracle.Reference{Writes: map[proxy.Match]int{deployments: writes}}
	}
	return s
}

func TestOnceFoundPlansExist(t *testing.T) {
	g := NewWithT(t)
	for _, text := range onceFound {
		name, fault, _ := strings.Cut(text, " / ")
		g.Expect(scenario.All()).To(ContainElement(HaveField("Name", name)))
		_, err := proxy.ParseRule(fault)
		g.Expect(err).NotTo(HaveOccurred())
	}
}

func TestSampleHasEveryFaultOfEachKind(t *testing.T) {
	g := NewWithT(t)
	s := testSuite(2, scenario.All()...)
	s.references["cronjob-replace"].Writes[proxy.Match{Verb: "delete", Resource: "batch/jobs"}] = 1
	known, names := map[string]bool{}, []string{}
	for _, plan := range s.samples() {
		kind, _, _ := strings.Cut(plan.Scenario.Name, "-")
		known[kind+plan.Rules[0].Fault.String()] = true
		names = append(names, plan.String())
	}
	g.Expect(known).To(HaveLen(len(kindNames()) * len(proxy.Faults)))
	g.Expect(names).To(HaveLen(len(known)))
	g.Expect(names).To(ContainElement(onceFound[3]))
	g.Expect(names[0]).To(HaveSuffix("hang"))
}

// Each write meets each class. The faults are those of a part of the suite, too; another seed chooses others.
func TestSinglesCoverClasses(t *testing.T) {
	g := NewWithT(t)
	singlesOf := func(seed uint64, names ...string) (plans []string) {
		var scenarios []scenario.Scenario
		for _, name := range names {
			scenarios = append(scenarios, scenario.Scenario{Name: name})
		}
		s := testSuite(10, scenarios...)
		s.seed = seed
		for _, plan := range s.singles() {
			plans = append(plans, plan.String())
		}
		g.Expect(s.report.positions).To(Equal(10 * len(names)))
		return plans
	}
	all := singlesOf(1, "foo-create", "foo-scale", "cronjob-fire")
	met := map[string]bool{} // by write and class
	for _, text := range all {
		write, fault, _ := strings.Cut(text, ": ")
		class := slices.IndexFunc(proxy.Classes, func(class []proxy.Fault) bool {
			return slices.ContainsFunc(class, func(f proxy.Fault) bool { return f.String() == fault })
		})
		met[fmt.Sprint(write, class)] = true
	}
	g.Expect(met).To(HaveLen(3 * 10 * len(proxy.Classes)))
	g.Expect(all).To(HaveLen(len(met)))
	g.Expect(all).To(ContainElements(singlesOf(1, "foo-scale")))
	g.Expect(all).NotTo(ConsistOf(singlesOf(2, "foo-create", "foo-scale", "cronjob-fire")))
	faults := map[string]bool{}
	for _, text := range all {
		_, fault, _ := strings.Cut(text, ": ")
		faults[fault] = true
	}
	g.Expect(faults).To(HaveLen(len(proxy.Faults)))
}

// Whatever the seed, the singles include each plan that once found a bug.
func TestSinglesHaveOnceFound(t *testing.T) {
	g, s := NewWithT(t), testSuite(1)
	for _, text := range onceFound {
		name, fault, _ := strings.Cut(text, " / ")
		rule, err := proxy.ParseRule(fault)
		g.Expect(err).NotTo(HaveOccurred())
		if s.references[name] == nil {
			s.scenarios = append(s.scenarios, scenario.Scenario{Name: name})
			s.references[name] = &oracle.Reference{Writes: map[proxy.Match]int{}}
		}
		s.references[name].Writes[rule.Match] = 1
	}
	for s.seed = range 10 {
		var plans []string
		for _, plan := range s.singles() {
			plans = append(plans, plan.String())
		}
		g.Expect(plans).To(ContainElements(onceFound))
	}
}

// Each sort of a kind is met, and each scenario that must be.
func TestFewWrites(t *testing.T) {
	is := func(names ...string) func(scenario.Scenario) bool {
		return func(played scenario.Scenario) bool { return slices.Contains(names, played.Name) }
	}
	for _, c := range []struct {
		isExhaustive      bool
		leftOut, mustHave []string
		want              int
	}{
		{want: 2},
		{mustHave: []string{"foo-scale"}, want: 3},
		{leftOut: []string{"cronjob-fire"}, mustHave: []string{"cronjob-fire"}, want: 1},
		{isExhaustive: true, leftOut: []string{"cronjob-fire"}, want: 4},
	} {
		s := testSuite(2, scenario.Scenario{Name: "foo-create"}, scenario.Scenario{Name: "foo-scale"},
			scenario.Scenario{Name: "cronjob-fire"})
		s.isExhaustive = c.isExhaustive
		if chosen := s.fewWrites(is(c.leftOut...), is(c.mustHave...)); len(chosen) != c.want {
			t.Errorf("%+v: %v", c, chosen)
		}
	}
}

func TestPairsAreDistinctAndReproducible(t *testing.T) {
	g := NewWithT(t)
	s := testSuite(1, scenario.Scenario{Name: "foo-create"})
	pairs, again := s.pairs(), s.pairs()
	known := map[string]bool{}
	for i, plan := range pairs {
		g.Expect(known).NotTo(HaveKey(plan.String()))
		g.Expect(plan.String()).To(Equal(again[i].String()))
		known[plan.String()] = true
	}
	g.Expect(pairs).To(HaveLen(pairsCount))
}

func TestStormsDifferAndAreReproducible(t *testing.T) {
	g := NewWithT(t)
	s := testSuite(1, scenario.All()[0])
	plans := s.storms()
	g.Expect(plans).To(HaveLen(stormsEach))
	g.Expect(plans[0].Faults()).NotTo(Equal(plans[1].Faults()))
	s.fault = plans[1].Faults()
	g.Expect(s.replayed()).To(ConsistOf(plans[1]))
}

// Of the writes of events, a reference keeps the smallest number that any run without faults had.
func TestReferencesDiffer(t *testing.T) {
	g := NewWithT(t)
	s := testSuite(0)
	run := func(events int) *oracle.Run {
		run := &oracle.Run{Anew: events}
		for i := range events {
			run.Requests = append(run.Requests, proxy.Request{Verb: "create", Resource: "events.k8s.io/events",
				Name: fmt.Sprint(i), Reason: "Synced", Status: http.StatusCreated})
		}
		return run
	}
	played := &scenario.Scenario{Name: "foo-create",
		Expected: scenario.Expected{Events: map[string][2]int{"Synced": {1, 3}}}}
	for _, events := range []int{2, 3, 1} {
		g.Expect(s.refer(played, run(events))).To(BeEmpty())
	}
	reference := s.references["foo-create"]
	match := proxy.Match{Verb: "create", Resource: "events.k8s.io/events"}
	g.Expect(reference.Writes).To(HaveKeyWithValue(match, 1))
	g.Expect(s.refer(played, run(4))).To(ConsistOf(HaveField("Oracle", "expected")))

	passing := *played
	passing.Name, passing.IsPassing = "foo-handover", true
	g.Expect(s.refer(&passing, run(2))).To(BeEmpty())
	g.Expect(s.references["foo-handover"].Writes).To(HaveKeyWithValue(match, 1), "as expected.yaml allows")
}

// A run without faults, even without a permission, is as expected. Faults may cause fewer events, as may a failure.
func TestUnexpected(t *testing.T) {
	g := NewWithT(t)
	plan := &runner.Plan{Scenario: scenario.Scenario{Name: "foo-create",
		Expected: scenario.Expected{Events: map[string][2]int{"Synced": {1, 1}}}}}
	g.Expect(unexpected(plan, &oracle.Run{IsDeprived: true})).To(
		ConsistOf(HaveField("Text", "0 events Synced, not 1")))
	g.Expect(unexpected(plan, &oracle.Run{Lacking: "it does not settle"})).To(BeEmpty())
	faulty := planOf(plan.Scenario, with(proxy.Rule{Match: deployments, Nth: 1}, proxy.Faults[0]))
	g.Expect(unexpected(faulty, &oracle.Run{})).To(BeEmpty())
}

func TestJudgeLoad(t *testing.T) {
	for _, c := range []struct {
		name                          string
		changes, written, deployments int
		lacking, found                string
	}{
		{"settled", 9, 0, loadFoos, "", ""},
		{"late", 9, 7, loadFoos, "foo-1 has 1 pods", "end state: after 9 changes: foo-1 has 1 pods"},
		{"restless", 9, 1, loadFoos, "", "rest: after 9 changes: 1 objects"},
		{"no load", 0, 0, loadFoos, "", "end state: after 0 changes: there was no load"},
		{"created twice", 9, 0, loadFoos + 1, "", fmt.Sprintf("counts: after 9 changes: %d Deployments", loadFoos+1)},
	} {
		findings := judgeLoad(c.changes, c.lacking, c.written, c.deployments)
		if len(findings) != min(1, len(c.found)) || c.found != "" && !strings.HasPrefix(findings[0].String(), c.found) {
			t.Errorf("%s: %v, not %q", c.name, findings, c.found)
		}
	}
}

// An interrupted campaign ends with an error, even if no plan is running.
func TestInterruptedCampaignFails(t *testing.T) {
	s := testSuite(1, scenario.All()[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.playAll(ctx, s.report.begin("storms", ""), s.storms(), false)
	NewWithT(t).Expect(err).To(MatchError(context.Canceled))
}

func TestPageOfFaults(t *testing.T) {
	r := newReport(&options{seed: 1}, &proof.Run{})
	r.positions, r.notJudged = 2, []string{"upgrades: there is no release"}
	singles := r.begin(singlesCampaign, "every write")
	singles.plans = []*planReport{
		{scenario: "foo-create", faults: "patch apps/deployments #1: 409", fired: 1},
		{scenario: "foo-create", faults: "patch apps/deployments #1: hang", fired: 1,
			findings: []oracle.Finding{{Oracle: "rest", Text: "it writes\nmuch"}}},
	}
	g, dir := NewWithT(t), t.TempDir()
	g.Expect(r.page(proof.Table{}).Write(dir)).To(Succeed())
	page, err := os.ReadFile(filepath.Join(dir, "reliability.md"))
	g.Expect(string(page), err).To(And(ContainSubstring("plans with a violation"), ContainSubstring("1 of 2"),
		ContainSubstring("| hang | 1 of 1 | 0 of 0 | 0 of 0 | 1 |"), ContainSubstring("## Campaigns"),
		ContainSubstring("upgrades: there is no release |  |  | not judged |"),
		ContainSubstring("| singles | foo-create / patch apps/deployments #1: hang | rest | it writes |")))
	g.Expect(r.violations()).To(Equal(1))
	claims := r.claims()
	g.Expect(claims[0].Verdict).To(Equal(proof.Missed))
	g.Expect(claims[2]).To(And(HaveField("Found", "1 of 2"), HaveField("Verdict", proof.Missed)))
	var printed strings.Builder
	g.Expect(r.print(&printed)).To(Succeed())
	g.Expect(printed.String()).To(
		MatchRegexp("singles +foo-create / patch apps/deployments #1: hang +rest +it writes\n"))
}

func TestCoverageNeedsFaultsThatOccurred(t *testing.T) {
	g, r := NewWithT(t), newReport(&options{}, &proof.Run{})
	r.positions = 1
	singles := r.begin(singlesCampaign, "every write")
	for _, class := range proxy.Classes {
		singles.plans = append(singles.plans, &planReport{scenario: "foo-create",
			faults: "patch apps/deployments #1: " + class[0].String(), fired: 1})
	}
	g.Expect(r.coverage()).To(And(HaveField("Verdict", proof.Met), HaveField("Note", "")))
	singles.plans[0].fired = 0
	g.Expect(r.coverage()).To(And(HaveField("Verdict", proof.Missed),
		HaveField("Note", ContainSubstring(singles.plans[0].faults))))
	singles.plans = singles.plans[1:]
	g.Expect(r.coverage().Verdict).To(Equal(proof.Missed), "one plan did not run")
	for _, c := range []struct {
		faults string
		fired  int
		is     bool
	}{
		{"", 0, false},
		{"patch apps/deployments #1: 500; #2: 409", 1, false},
		{"patch apps/deployments #1: 500; #2: 409", 2, true},
		{"storm 1", 3, true},
	} {
		g.Expect((&planReport{faults: c.faults, fired: c.fired}).hasOccurred()).To(Equal(c.is), "%+v", c)
	}
}

// Only an API server that has just started may refuse requests.
func TestRefusedRequests(t *testing.T) {
	g, s := NewWithT(t), testSuite(0)
	s.report.rbac = &rbacReport{}
	at := time.Now()
	run := &oracle.Run{Requests: []proxy.Request{{At: at, Verb: "patch", Resource: "apps/deployments", Name: "web",
		Status: http.StatusForbidden}}, AwayFrom: at.Add(-time.Second), AwayTo: at.Add(time.Second)}
	s.use("foo-create", run, run.Requests)
	g.Expect(s.report.claimRBAC()).To(HaveEach(HaveField("Verdict", proof.Met)))
	for i, away := range [][2]time.Time{{at.Add(time.Second), at.Add(2 * time.Second)},
		{at.Add(-2 * time.Second), at.Add(-time.Second)}, {}} {
		run.AwayFrom, run.AwayTo = away[0], away[1]
		s.use("foo-create", run, run.Requests)
		g.Expect(s.report.claimRBAC()[1]).To(And(HaveField("Verdict", proof.Missed),
			HaveField("Found", fmt.Sprint(i+1))))
	}
	s.report.rbac.control = []string{"foo-create: it does not settle"}
	g.Expect(s.report.claimRBAC()[0].Verdict).To(Equal(proof.NotJudged))
}
