package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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
		"upgrades: there is no release |  |  | not judged |", "## Campaigns"} {
		if !strings.Contains(string(page), expected) {
			t.Errorf("the page has no %q:\n%s", expected, page)
		}
	}
	if claims := r.claims(); r.Violations != 1 || claims[0].Verdict != proof.Missed || claims[2].Found != "1 of 2" ||
		claims[2].Verdict != proof.Missed {
		t.Errorf("%d violations, %+v", r.Violations, claims)
	}
	var printed strings.Builder
	if err := r.print(&printed); err != nil || !strings.Contains(printed.String(),
		"VIOLATION foo-create / patch apps/deployments #1: hang: rest: it writes") {
		t.Error(printed.String(), err)
	}
}

// A fault that has not occurred is no fault that was borne.
func TestCoverage(t *testing.T) {
	r := newReport(&options{seed: 1}, "0123")
	r.Positions = 1
	singles := r.begin("singles", "every write")
	for _, fault := range proxy.Faults {
		singles.add(&planReport{Scenario: "foo-create", Faults: "patch apps/deployments #1: " + fault.String(), Fired: 1})
	}
	if claim := r.coverage(); claim.Verdict != proof.Met || claim.Note != "" {
		t.Errorf("all have occurred: %+v", claim)
	}
	singles.Plans[0].Fired = 0
	if claim := r.coverage(); claim.Verdict != proof.Missed || !strings.Contains(claim.Note, singles.Plans[0].Faults) {
		t.Errorf("one has not: %+v", claim)
	}
	singles.Plans = singles.Plans[1:]
	if claim := r.coverage(); claim.Verdict != proof.Missed {
		t.Errorf("one was not played: %+v", claim)
	}
}

// What an API server refuses that knows no roles yet is told apart; anything else that is refused is held against the
// operator.
func TestRefused(t *testing.T) {
	s := &suite{used: map[string][]string{}, report: newReport(&options{}, "0123")}
	s.report.RBAC = &rbacReport{}
	at := time.Now()
	refused := &oracle.Run{Requests: []proxy.Request{{At: at, Verb: "patch", Resource: "apps/deployments", Name: "web",
		Status: http.StatusForbidden}},
		AwayFrom: at.Add(-time.Second), AwayTo: at.Add(time.Second)}
	s.use("foo-create", refused, refused.Requests)
	if len(s.report.Refused) != 0 || s.report.Starting["patch apps/deployments"] != 1 {
		t.Errorf("%+v", s.report)
	}
	if claims := s.report.claimRBAC(); claims[0].Verdict != proof.Met || claims[1].Verdict != proof.Met ||
		!strings.Contains(claims[1].Note, "not counted are 1") {
		t.Errorf("%+v", claims)
	}
	for i, away := range [][2]time.Time{{at.Add(time.Second), at.Add(2 * time.Second)},
		{at.Add(-2 * time.Second), at.Add(-time.Second)}, {}} {
		refused.AwayFrom, refused.AwayTo = away[0], away[1]
		s.use("foo-create", refused, refused.Requests)
		if claims := s.report.claimRBAC(); claims[1].Verdict != proof.Missed || claims[1].Found != fmt.Sprint(i+1) {
			t.Errorf("%+v", claims)
		}
	}
	s.report.RBAC.Control = []string{"foo-create: it does not come to rest"}
	if claims := s.report.claimRBAC(); claims[0].Verdict != proof.NotJudged {
		t.Errorf("what goes wrong with all permissions does not say that one is needed: %+v", claims[0])
	}
}

// One storm is not another, and each can be played again.
func TestStorms(t *testing.T) {
	s := &suite{options: &options{seed: 1}, scenarios: scenario.All()[:1]}
	plans := s.storms()
	if len(plans) != stormsEach || plans[0].Faults() == plans[1].Faults() {
		t.Fatal(plans)
	}
	s.storm = &plans[1].Seed
	if again := s.replayed(); len(again) != 1 || again[0].String() != plans[1].String() || again[0].Storm == 0 {
		t.Errorf("%+v", again)
	}
}

// A campaign that is interrupted ends with an error, even when no plan is being played.
func TestCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &suite{options: &options{parallel: 1, seed: 1}, scenarios: scenario.All()[:1],
		report: newReport(&options{}, "0123")}
	plans := s.storms()
	if err := s.playAll(ctx, s.report.begin("storms", ""), nil, false); err != nil {
		t.Error(err)
	}
	s.parallel = 0
	if err := s.playAll(ctx, s.report.begin("storms", ""), plans, false); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
