package main

import (
	"fmt"
	"net/http"
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
	few := s.few([]*runner.Plan{plan("foo-create", "patch apps/deployments #1: hang"), plan(name, fault),
		plan("foo-create", "patch apps/deployments #1: 409")})
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

// A write that was not chosen yet is; of a few writes there are not so many pairs, and none is played twice. The same
// seed gives the same pairs.
func TestPairs(t *testing.T) {
	created := scenario.Scenario{Name: "foo-create"}
	match := proxy.Match{Verb: "patch", Resource: "apps/deployments"}
	s := &suite{options: &options{seed: 1}, scenarios: []scenario.Scenario{created}, report: newReport(&options{}, "0123")}
	for _, writes := range []int{3, 1} {
		s.references = map[string]*oracle.Reference{created.Name: {Writes: map[proxy.Match]int{match: writes}}}
		pairs, again := s.pairs(), s.pairs()
		seen := map[string]bool{}
		for i, plan := range pairs {
			if seen[plan.String()] || plan.String() != again[i].String() {
				t.Errorf("%s is played twice, or not with the same seed", plan)
			}
			seen[plan.String()] = true
		}
		if len(pairs) == 0 || (len(pairs) == pairsCount) != (writes == 3) {
			t.Errorf("of %d writes there are %d pairs", writes, len(pairs))
		}
	}
}

// What differs from run to run without faults is kept as the most and the fewest there were.
func TestReferencesDiffer(t *testing.T) {
	s := &suite{references: map[string]*oracle.Reference{}}
	told := func(times int) *oracle.Run {
		run := &oracle.Run{Anew: times}
		for i := range times {
			run.Requests = append(run.Requests, proxy.Request{Verb: "create", Resource: "events.k8s.io/events",
				Name: fmt.Sprint(i), Reason: "Synced", Status: http.StatusCreated})
		}
		return run
	}
	played := &scenario.Scenario{Name: "foo-create", Expected: scenario.Expected{Events: map[string][2]int{"Synced": {1,
		3}}}}
	for _, times := range []int{2, 3, 1} {
		if findings := s.refer(played, told(times)); len(findings) > 0 {
			t.Error(findings)
		}
	}
	if findings := s.refer(played, told(4)); len(findings) != 1 || findings[0].Oracle != "expected" {
		t.Errorf("%v are found of 4 events", findings)
	}
	s.references["foo-create"].Events["Synced"] = 3
	reference := s.references["foo-create"]
	if reference.Events["Synced"] != 3 || reference.FewestEvents["Synced"] != 1 ||
		reference.Writes[proxy.Match{Verb: "create", Resource: "events.k8s.io/events"}] != 1 {
		t.Errorf("%+v", reference)
	}
}
