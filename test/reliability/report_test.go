package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

// plan is one of the campaign singles.
func plan(name, fault string) *runner.Plan {
	if fault == "" {
		return planOf(scenario.Scenario{Name: name})
	}
	rule, err := proxy.ParseRule(fault)
	if err != nil {
		panic(err)
	}
	return planOf(scenario.Scenario{Name: name}, rule)
}

// found returns a report of two plans, in the second of which something was found.
func found() *report {
	r := newReport(&options{seed: 1}, "0123")
	r.Positions = 2
	singles := r.begin("singles", "every write")
	for i, findings := range [][]oracle.Finding{nil, {{Oracle: "rest", Text: "it writes"}}} {
		p := plan("foo-create", []string{"patch apps/deployments #1: 409", "patch apps/deployments #1: hang"}[i])
		singles.add(&planReport{Scenario: p.Scenario.Name, Faults: p.Faults(), Fired: 1, Seconds: 2, Findings: findings})
	}
	singles.IsWhole = true
	return r
}

func TestPage(t *testing.T) {
	r := found()
	r.NotJudged = []string{"upgrades: there is no release"}
	r.finish(&suite{options: &options{}, report: r})
	dir := t.TempDir()
	if err := r.page().Write(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, expected := range []string{"plans with a violation", "1 of 2", "| hang | 1 of 1 |",
		"in 2 | not judged | not all were played |",
		"upgrades: there is no release |  |  | not judged |", "## Campaigns"} {
		if !strings.Contains(string(page), expected) {
			t.Errorf("the page has no %q:\n%s", expected, page)
		}
	}
}

// A fault that has not occurred is no fault that was borne, and why it has not is told.
func TestMissed(t *testing.T) {
	r := newReport(&options{seed: 1}, "0123")
	r.Positions = 1
	singles := r.begin("singles", "every write")
	for _, fault := range proxy.Faults {
		singles.add(&planReport{Scenario: "foo-create", Faults: "patch apps/deployments #1: " + fault.String(), Fired: 1})
	}
	singles.IsWhole = true
	if claim := r.coverage(); claim.Verdict != proof.Met || claim.Note != "" {
		t.Errorf("all have occurred: %+v", claim)
	}
	for _, plan := range singles.Plans {
		if strings.HasSuffix(plan.Faults, ": expire-watches") || strings.HasSuffix(plan.Faults, ": hang") {
			plan.Fired = 0
		}
	}
	claim := r.coverage()
	if claim.Verdict != proof.Missed || !strings.Contains(claim.Note, "in 1, no watch was answered with 410") ||
		!strings.Contains(claim.Note, "in 1, nothing went wrong in 8 tries") {
		t.Errorf("two have not: %+v", claim)
	}
}

// resumed returns a report that goes on with what was found before, and the file that has it.
func resumed(t *testing.T, before *report) (r *report, kept string) {
	t.Helper()
	kept = filepath.Join(t.TempDir(), "found.json")
	if err := proof.Keep(kept, before); err != nil {
		t.Fatal(err)
	}
	r = newReport(&options{seed: before.Seed}, before.Operator)
	if err := r.resume(kept); err != nil {
		t.Fatal(err)
	}
	return r, kept
}

func TestResume(t *testing.T) {
	before := found()
	before.Used = []string{"list /pods"}
	r, kept := resumed(t, before)
	singles := r.begin("singles", "every write")
	if len(r.Campaigns) != 1 || len(r.Used) != 1 || r.Positions != 2 || !singles.IsWhole {
		t.Errorf("%+v", r)
	}
	right, wrong := plan("foo-create", "patch apps/deployments #1: 409"),
		plan("foo-create", "patch apps/deployments #1: hang")
	if !singles.has(right) || !singles.has(wrong) {
		t.Errorf("%+v", singles.Plans)
	}
	for what, r := range map[string]*report{
		"of another seed": newReport(&options{seed: 2}, "0123"), "of another operator": newReport(&options{seed: 1}, "4567"),
		"found by another suite": {Operator: "0123", Suite: "89ab", Seed: 1, CPUs: runtime.NumCPU()},
	} {
		if err := r.resume(kept); err == nil {
			t.Errorf("what is %s is taken over", what)
		}
	}
	if err := newReport(&options{seed: 1}, "0123").resume(kept + "-not-there"); err != nil {
		t.Errorf("nothing was found before: %v", err)
	}

	// What was found stays.
	r.finish(&suite{options: &options{}, report: r})
	if matrix := r.matrix(); r.Violations != 1 || matrix.Rows[1][4] != "1" {
		t.Errorf("%+v, %v", r, matrix.Rows)
	}
	var printed strings.Builder
	r.print(&printed)
	if !strings.Contains(printed.String(), "VIOLATION foo-create / patch apps/deployments #1: hang: rest: it writes") {
		t.Error(printed.String())
	}
	if found := r.claims()[0]; found.Found != "1 of 2" || found.Verdict != proof.Missed {
		t.Errorf("%+v", found)
	}
	if rest := r.claimRest(); rest.Found != "1 of 2" || rest.Verdict != proof.Missed || rest.Note != "" {
		t.Errorf("of two plans, one has written at rest: %+v", rest)
	}
}

// A fault that has not occurred is tried again.
func TestResumeUntried(t *testing.T) {
	before := found()
	before.Campaigns[0].Plans[0].Fired = 0
	r, _ := resumed(t, before)
	untried := plan("foo-create", "patch apps/deployments #1: 409")
	singles := r.begin("singles", "every write")
	if singles.has(untried) || singles.IsWhole {
		t.Error("it is taken for tried")
	}
	singles.add(&planReport{Scenario: untried.Scenario.Name, Faults: untried.Faults(), Fired: 1})
	if plans, fired, violations := singles.counts(); plans != 2 || fired != 2 || violations != 1 || !singles.has(untried) {
		t.Errorf("%d plans, %d with faults that occurred, %d with violations", plans, fired, violations)
	}
}

// The references are made anew; what was wrong with one stays.
func TestResumeReferences(t *testing.T) {
	before := newReport(&options{}, "0123")
	references := before.begin(referenceCampaign, "nothing goes wrong")
	references.add(&planReport{Scenario: "foo-create"})
	references.add(&planReport{Scenario: "foo-create", Findings: []oracle.Finding{{Oracle: "rest", Text: "it writes"}}})
	references.IsWhole = true
	r, _ := resumed(t, before)
	references = r.begin(referenceCampaign, "nothing goes wrong")
	for range 3 {
		references.add(&planReport{Scenario: "foo-create"})
	}
	if plans, _, violations := references.counts(); plans != 4 || violations != 1 {
		t.Errorf("%d plans, %d violations", plans, violations)
	}
}

// What an API server refuses that knows no roles yet is told apart; anything else that is refused is held against the
// operator.
func TestRefused(t *testing.T) {
	s := &suite{used: map[string]bool{}, report: newReport(&options{}, "0123")}
	s.report.RBAC = &rbacReport{}
	rbac := s.report.begin("rbac", "what is needed")
	at := time.Now()
	refused := &oracle.Run{Requests: []proxy.Request{{At: at, Verb: "patch", Resource: "apps/deployments", Name: "web",
		Status: http.StatusForbidden}},
		AwayFrom: at.Add(-time.Second), AwayTo: at.Add(time.Second)}
	s.use(refused, refused.Requests)
	if len(s.report.Refused) != 0 || s.report.Starting["patch apps/deployments"] != 1 {
		t.Errorf("%+v", s.report)
	}
	if claims := s.report.claimRBAC(); claims[0].Verdict != proof.NotJudged || claims[1].Verdict != proof.NotJudged ||
		claims[2].Verdict != proof.Met || !strings.Contains(claims[2].Note, "not counted are 1") {
		t.Errorf("%+v", claims)
	}
	for i, away := range [][2]time.Time{{at.Add(time.Second), at.Add(2 * time.Second)},
		{at.Add(-2 * time.Second), at.Add(-time.Second)}, {}} {
		refused.AwayFrom, refused.AwayTo = away[0], away[1]
		s.use(refused, refused.Requests)
		if claims := s.report.claimRBAC(); claims[2].Verdict != proof.Missed || claims[2].Found != fmt.Sprint(i+1) {
			t.Errorf("%+v", claims)
		}
	}
	rbac.IsWhole, s.report.RBAC.IsCompared = true, true
	if claims := s.report.claimRBAC(); claims[0].Verdict != proof.Met || claims[1].Verdict != proof.Met {
		t.Errorf("%+v", claims)
	}
	s.report.RBAC.Control = []string{"foo-create: it does not come to rest"}
	if claims := s.report.claimRBAC(); claims[0].Verdict != proof.NotJudged {
		t.Errorf("what goes wrong with all permissions does not say that one is needed: %+v", claims[0])
	}
}

// One storm is not another: what was found by one of them says nothing of the other.
func TestStorms(t *testing.T) {
	s := &suite{options: &options{seed: 1}, scenarios: scenario.All()[:1]}
	plans, err := s.storms()
	if err != nil || len(plans) != stormsEach {
		t.Fatal(plans, err)
	}
	r := newReport(s.options, "0123").begin("storms", "storms")
	r.add(&planReport{Scenario: plans[0].Scenario.Name, Faults: plans[0].Faults()})
	if !r.has(plans[0]) || r.has(plans[1]) {
		t.Errorf("%s, %s", plans[0], plans[1])
	}
	s.fault = plans[1].Faults()
	again, err := s.replayed()
	if err != nil || len(again) != 1 || again[0].Seed != plans[1].Seed || again[0].Storm == 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// A campaign that is cut off is not whole, even when no plan is being played.
func TestCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &suite{options: &options{parallel: 1, seed: 1}, scenarios: scenario.All()[:1],
		report: newReport(&options{}, "0123")}
	plans, err := s.storms()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.handOut(ctx, plans, make(chan job)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
