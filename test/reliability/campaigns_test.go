package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

// What has found a bug once does not rot: it names a scenario and a fault that there are.
func TestOnceFound(t *testing.T) {
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

// The short form plays what has found a bug once, and says which of that it cannot play.
func TestFew(t *testing.T) {
	s := &suite{options: &options{short: true}, scenarios: scenario.All(), report: newReport(&options{}, "0123")}
	again := onceFound[2]
	name, fault, _ := strings.Cut(again, " / ")
	few := s.few([]*runner.Plan{plan("foo-create", "patch apps/deployments #1: hang"), plan(name, fault), plan("foo-create", "patch apps/deployments #1: 409")})
	if len(few) != 2 || few[0].String() != again {
		t.Errorf("%v", few)
	}
	if gone := s.report.NotJudged; len(gone) != len(onceFound)-1 || !strings.HasPrefix(gone[0], onceFound[0]) {
		t.Errorf("%v", gone)
	}
	s.report.NotJudged, s.scenarios = nil, nil
	if s.few(nil); len(s.report.NotJudged) != 0 {
		t.Errorf("what was not asked for is not lacking: %v", s.report.NotJudged)
	}
}

// A write that was tried before stays one that is tried, also if the references of this run do not show it.
func TestSinglesTriedBefore(t *testing.T) {
	created := scenario.Scenario{Name: "foo-create"}
	shown := proxy.Match{Verb: "patch", Resource: "apps/deployments"}
	s := &suite{options: &options{}, scenarios: []scenario.Scenario{created}, report: newReport(&options{}, "0123"),
		references: map[string]*oracle.Reference{created.Name: {Writes: map[proxy.Match]int{shown: 1}}}}
	singles := s.report.begin("singles", "every write")
	for _, faults := range []string{"patch apps/deployments #1: 409", "patch apps/deployments #2: 409"} {
		singles.add(&planReport{Scenario: created.Name, Faults: faults})
	}
	singles.add(&planReport{Scenario: "foo-scale", Faults: "patch apps/deployments #3: 409"})
	plans, err := s.singles()
	if err != nil || s.report.Positions != 2 || len(plans) != 2*len(proxy.Faults) {
		t.Errorf("%d plans of %d writes: %v", len(plans), s.report.Positions, err)
	}
}
