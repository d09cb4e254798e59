package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

var deployments = proxy.Match{Verb: "patch", Resource: "apps/deployments"}

// testSuite returns a suite whose scenarios have so many writes each.
func testSuite(writes int, scenarios ...scenario.Scenario) *suite {
	s := &suite{options: &options{seed: 1}, scenarios: scenarios, report: newReport(&options{}, "0123"),
		references: map[string]*oracle.Reference{}, used: map[string][]string{}}
	for _, scenario := range scenarios {
		s.references[scenario.Name] = &oracle.Reference{Writes: map[proxy.Match]int{deployments: writes}}
	}
	return s
}

func TestOnceFoundPlansExist(t *testing.T) {
	for _, text := range onceFound {
		name, fault, _ := strings.Cut(text, " / ")
		if !slices.ContainsFunc(scenario.All(), func(s scenario.Scenario) bool { return s.Name == name }) {
			t.Errorf("%s: there is no such scenario", text)
		}
		if _, err := proxy.ParseRule(fault); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSampleHasEveryFaultOfEachKind(t *testing.T) {
	s := testSuite(2, scenario.All()...)
	s.references["cronjob-replace"].Writes[proxy.Match{Verb: "delete", Resource: "batch/jobs"}] = 1
	plans := s.samples()
	if count := len(kindNames()) * len(proxy.Faults); len(plans) != count || plans[0].Rules[0].Fault.Kind != proxy.Hang ||
		!slices.ContainsFunc(plans, func(plan *runner.Plan) bool { return plan.String() == onceFound[3] }) {
		t.Errorf("%d plans, not %d: %v", len(plans), count, plans)
	}
	known := map[string]bool{}
	for _, plan := range plans {
		kind, _, _ := strings.Cut(plan.Scenario.Name, "-")
		known[kind+plan.Rules[0].Fault.String()] = true
	}
	if len(known) != len(plans) {
		t.Errorf("%d plans have %d kinds and faults", len(plans), len(known))
	}
}

func TestPairsAreDistinctAndReproducible(t *testing.T) {
	for _, writes := range []int{3, 1} {
		s := testSuite(writes, scenario.Scenario{Name: "foo-create"})
		pairs, again := s.pairs(), s.pairs()
		known := map[string]bool{}
		for i, plan := range pairs {
			if known[plan.String()] || plan.String() != again[i].String() {
				t.Errorf("%s is not distinct, or differs with the same seed", plan)
			}
			known[plan.String()] = true
		}
		if len(pairs) == 0 || (len(pairs) == pairsCount) != (writes == 3) {
			t.Errorf("%d writes have %d pairs", writes, len(pairs))
		}
	}
}

func TestStormsDifferAndAreReproducible(t *testing.T) {
	s := testSuite(1, scenario.All()[0])
	plans := s.storms()
	if len(plans) != stormsEach || plans[0].Faults() == plans[1].Faults() {
		t.Fatal(plans)
	}
	s.fault = plans[1].Faults()
	if again := s.replayed(); len(again) != 1 || again[0].String() != plans[1].String() || again[0].Storm == 0 {
		t.Errorf("%+v", again)
	}
}

// A reference keeps the most and the fewest of what differs between runs without faults.
func TestReferencesDiffer(t *testing.T) {
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
		if findings := s.refer(played, run(events)); len(findings) > 0 {
			t.Error(findings)
		}
	}
	reference := s.references["foo-create"]
	if reference.Events["Synced"] != 3 || reference.FewestEvents["Synced"] != 1 ||
		reference.Writes[proxy.Match{Verb: "create", Resource: "events.k8s.io/events"}] != 1 {
		t.Errorf("%+v", reference)
	}
	if findings := s.refer(played, run(4)); len(findings) != 1 || findings[0].Oracle != "expected" {
		t.Errorf("4 events: %v", findings)
	}
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
	if err := s.playAll(ctx, s.report.begin("storms", ""), s.storms(), false); !errors.Is(err, ctx.Err()) {
		t.Error(err)
	}
}

func TestPageOfFaults(t *testing.T) {
	r := newReport(&options{seed: 1}, "0123")
	r.positions, r.notJudged = 2, []string{"upgrades: there is no release"}
	singles := r.begin(singlesCampaign, "every write")
	singles.plans = []*planReport{
		{scenario: "foo-create", faults: "patch apps/deployments #1: 409", fired: 1},
		{scenario: "foo-create", faults: "patch apps/deployments #1: hang", fired: 1,
			findings: []oracle.Finding{{Oracle: "rest", Text: "it writes\nmuch"}}},
	}
	dir := t.TempDir()
	if err := r.page().Write(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, expected := range []string{"plans with a violation", "1 of 2", "| hang | 1 of 1 | 0 of 0 | 0 of 0 | 1 |",
		"upgrades: there is no release |  |  | not judged |", "## Campaigns"} {
		if !strings.Contains(string(page), expected) {
			t.Errorf("the page does not contain %q:\n%s", expected, page)
		}
	}
	if claims := r.claims(); r.violations() != 1 || claims[0].Verdict != proof.Missed || claims[2].Found != "1 of 2" ||
		claims[2].Verdict != proof.Missed {
		t.Errorf("%d violations, %+v", r.violations(), claims)
	}
	var printed strings.Builder
	if err := r.print(&printed); err != nil || !strings.Contains(printed.String(),
		"VIOLATION rest: (foo-create / patch apps/deployments #1: hang) it writes\n") {
		t.Error(printed.String(), err)
	}
}

func TestCoverageNeedsFaultsThatOccurred(t *testing.T) {
	r := newReport(&options{}, "0123")
	r.positions = 1
	singles := r.begin(singlesCampaign, "every write")
	for _, fault := range proxy.Faults {
		singles.plans = append(singles.plans, &planReport{scenario: "foo-create",
			faults: "patch apps/deployments #1: " + fault.String(), fired: 1})
	}
	if claim := r.coverage(); claim.Verdict != proof.Met || claim.Note != "" {
		t.Errorf("all have occurred: %+v", claim)
	}
	singles.plans[0].fired = 0
	if claim := r.coverage(); claim.Verdict != proof.Missed || !strings.Contains(claim.Note, singles.plans[0].faults) {
		t.Errorf("one has not: %+v", claim)
	}
	singles.plans = singles.plans[1:]
	if claim := r.coverage(); claim.Verdict != proof.Missed {
		t.Errorf("one did not run: %+v", claim)
	}
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
		if is := (&planReport{faults: c.faults, fired: c.fired}).hasOccurred(); is != c.is {
			t.Errorf("%+v: %t", c, is)
		}
	}
}

// Only an API server that has just started may refuse requests.
func TestRefusedRequests(t *testing.T) {
	s := testSuite(0)
	s.report.rbac = &rbacReport{}
	at := time.Now()
	run := &oracle.Run{Requests: []proxy.Request{{At: at, Verb: "patch", Resource: "apps/deployments", Name: "web",
		Status: http.StatusForbidden}}, AwayFrom: at.Add(-time.Second), AwayTo: at.Add(time.Second)}
	s.use("foo-create", run, run.Requests)
	if claims := s.report.claimRBAC(); claims[0].Verdict != proof.Met || claims[1].Verdict != proof.Met {
		t.Errorf("%+v", claims)
	}
	for i, away := range [][2]time.Time{{at.Add(time.Second), at.Add(2 * time.Second)},
		{at.Add(-2 * time.Second), at.Add(-time.Second)}, {}} {
		run.AwayFrom, run.AwayTo = away[0], away[1]
		s.use("foo-create", run, run.Requests)
		if claims := s.report.claimRBAC(); claims[1].Verdict != proof.Missed || claims[1].Found != fmt.Sprint(i+1) {
			t.Errorf("%+v", claims)
		}
	}
	s.report.rbac.control = []string{"foo-create: it does not settle"}
	if claims := s.report.claimRBAC(); claims[0].Verdict != proof.NotJudged {
		t.Errorf("a failure with all permissions does not show that one is needed: %+v", claims[0])
	}
}
