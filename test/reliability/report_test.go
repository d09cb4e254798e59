package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

// plan is one of the campaign singles.
func plan(name, fault string) *runner.Plan {
	rule, err := proxy.ParseRule(fault)
	if err != nil {
		panic(err)
	}
	return planOf(scenario.Scenario{Name: name}, rule)
}

// found returns a report of two plans, in the second of which something was found.
func found() *report {
	r := newReport(&options{seed: 1})
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
	for _, expected := range []string{"plans with a violation", "1 of 2", "| hang | 1 of 1 |", "in 2 | not judged | not all were played |", "upgrades: there is no release |  |  | not judged |", "reliability-seconds.svg", "reliability-rate.svg"} {
		if !strings.Contains(string(page), expected) {
			t.Errorf("the page has no %q:\n%s", expected, page)
		}
	}
}

// What was found before is kept, and what was wrong is tried again.
func TestResume(t *testing.T) {
	before := found()
	before.Used = []string{"list /pods"}
	path := filepath.Join(t.TempDir(), "found.json")
	if err := proof.Keep(path, before); err != nil {
		t.Fatal(err)
	}
	r := newReport(&options{seed: 1})
	if err := r.resume(path); err != nil {
		t.Fatal(err)
	}
	singles := r.begin("singles", "every write")
	if len(r.Campaigns) != 1 || len(r.Used) != 1 || r.Positions != 2 || singles.IsWhole {
		t.Errorf("%+v", r)
	}
	if !singles.has(plan("foo-create", "patch apps/deployments #1: 409")) || singles.has(plan("foo-create", "patch apps/deployments #1: hang")) {
		t.Errorf("%+v", singles.Plans)
	}
	if err := newReport(&options{seed: 2}).resume(path); err == nil {
		t.Error("what another seed has found is taken over")
	}
	if err := newReport(&options{seed: 1}).resume(path + "-not-there"); err != nil {
		t.Errorf("nothing was found before: %v", err)
	}
}
