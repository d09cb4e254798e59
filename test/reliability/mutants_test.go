package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
)

// Each text that a seeded bug replaces is in the operator once.
func TestMutantsApply(t *testing.T) {
	all, err := mutants()
	if err != nil {
		t.Fatal(err)
	}
	names, patterns, faulty := map[string]bool{}, map[string]bool{}, 0
	made := map[string]bool{} // the oracles for which a bug is made
	for _, m := range all {
		if names[m.Name] || m.Name == "" {
			t.Errorf("two mutants are called %q", m.Name)
		}
		names[m.Name], patterns[m.Pattern] = true, true
		if _, err := m.files(); err != nil {
			t.Error(err)
		}
		if m.FirstAttempt != "" && !slices.ContainsFunc(firstAttempts,
			func(attempt [2]string) bool { return attempt[0] == m.FirstAttempt }) {
			t.Errorf("mutant %s: no first attempt is %q", m.Name, m.FirstAttempt)
		}
		if m.FirstAttempt != "" && m.FirstAttempt != "found without a fault" {
			faulty++
		}
		made[m.Only] = true
		if len(m.Killers) == 0 {
			t.Errorf("mutant %s has no killer", m.Name)
		}
		for _, text := range m.Killers {
			if _, err := newKiller(text); err != nil {
				t.Errorf("mutant %s: %v", m.Name, err)
			}
		}
	}
	if faulty < fewestAdded || len(patterns) < 25 {
		t.Errorf("%d mutants of %d patterns, %d of them only with a fault", len(all), len(patterns), faulty)
	}
	delete(made, "")
	if got := slices.Sorted(maps.Keys(made)); !slices.Equal(got, slices.Sorted(slices.Values(soleOracles))) {
		t.Errorf("bugs are made for the oracles %v", got)
	}
}

func TestPageOfMutants(t *testing.T) {
	r := &mutantReport{run: &proof.Run{}, atFirst: map[string]int{"not found": 6}, outcomes: []outcome{
		{name: "forgets", pattern: "28", attempts: []string{"plan foo-scale / hang", "scenario foo-create"},
			covered: &coverage{answer: answer{runs: 9}, isElsewhere: true},
			answer:  answer{runs: 7, findings: []oracle.Finding{{Oracle: "end state", Text: "it | lacks\nall"}}}},
		{name: "lives", pattern: "1"},
	}}
	dir := t.TempDir()
	if err := r.page().Write(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "mutants.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, expected := range []string{"1 of 2", "MISSED", `end state: it \| lacks |`, "NOT FOUND", "scenario | 6 |",
		"| scenario foo-create | plan foo-scale / hang | 7 | NOT FOUND (9) |"} {
		if !strings.Contains(string(page), expected) {
			t.Errorf("the page does not contain %q:\n%s", expected, page)
		}
	}
}

// outcomesOf returns the outcomes of mutants that an oracle each has found, and of others that none has.
func outcomesOf(killer string, oracles []string, alive int) []outcome {
	outcomes := make([]outcome, alive, alive+len(oracles))
	for _, name := range oracles {
		outcomes = append(outcomes, outcome{name: name, attempts: []string{killer},
			answer: answer{findings: []oracle.Finding{{Oracle: name}}}})
	}
	return outcomes
}

func TestClaimsOfMutants(t *testing.T) {
	const killer = "scenario foo-create"
	all := oracles()
	for _, name := range soleOracles {
		if !slices.Contains(all, name) {
			t.Errorf("there is no oracle %q", name)
		}
	}
	forty := make([]string, 40)
	alarm := answer{findings: []oracle.Finding{{Oracle: "rest", Text: "it writes"}}}
	alone := outcome{only: "rest", answer: alarm}
	isCovered := func(by answer, isElsewhere bool) outcome {
		return outcome{covered: &coverage{answer: by, isElsewhere: isElsewhere}, answer: answer{needsFault: true}}
	}
	withFault := make([]outcome, fewestWithFault)
	for i := range withFault {
		withFault[i].needsFault = true
	}
	for _, c := range []struct {
		name    string
		claim   int
		report  mutantReport
		verdict proof.Verdict
	}{
		{"all are found", 0, mutantReport{seeded: 40, outcomes: outcomesOf(killer, forty, 0)}, proof.Met},
		{"all that were tried", 0, mutantReport{seeded: 41, outcomes: outcomesOf(killer, forty, 0)}, proof.NotJudged},
		{"one lives", 0, mutantReport{seeded: 41, outcomes: outcomesOf(killer, forty, 1)}, proof.Missed},
		{"silent", 1, mutantReport{outcomes: outcomesOf(killer, forty, 0),
			controls: []outcome{{attempts: []string{killer}}}}, proof.Met},
		{"no control", 1, mutantReport{outcomes: outcomesOf(killer, forty, 0)}, proof.NotJudged},
		{"alarm", 1, mutantReport{outcomes: outcomesOf(killer, forty, 0),
			controls: []outcome{{attempts: []string{killer}, answer: alarm}}}, proof.Missed},
		{"failure", 1, mutantReport{outcomes: outcomesOf(killer, forty, 0),
			controls: []outcome{{attempts: []string{killer}, err: errFound}}}, proof.Missed},
		{"covered", 2, mutantReport{outcomes: []outcome{isCovered(alarm, false), isCovered(alarm, true), {}}},
			proof.Met},
		{"covered so far", 2, mutantReport{seeded: 2, outcomes: []outcome{isCovered(alarm, false)}}, proof.NotJudged},
		{"not covered", 2, mutantReport{outcomes: []outcome{isCovered(alarm, false), isCovered(answer{}, true)}},
			proof.Missed},
		{"nothing to cover", 2, mutantReport{outcomes: outcomesOf(killer, forty, 0)}, proof.NotJudged},
		{"all oracles", 3, mutantReport{seeded: 99, outcomes: outcomesOf(killer, all, 0)}, proof.Met},
		{"a blind oracle", 3, mutantReport{outcomes: outcomesOf(killer, all[1:], 0)}, proof.Missed},
		{"not all mutants", 3, mutantReport{seeded: 99, outcomes: outcomesOf(killer, all[1:], 0)}, proof.NotJudged},
		{"each alone", 4, mutantReport{outcomes: []outcome{alone}}, proof.Met},
		{"by another oracle", 4, mutantReport{outcomes: []outcome{{only: "templates", answer: alarm}}}, proof.Missed},
		{"none for one oracle", 4, mutantReport{}, proof.NotJudged},
		{"with a fault", 5, mutantReport{outcomes: withFault}, proof.Met},
		{"too few with a fault", 5, mutantReport{outcomes: withFault[1:]}, proof.Missed},
		{"too few so far", 5, mutantReport{seeded: 99, outcomes: withFault[1:]}, proof.NotJudged},
	} {
		c.report.run = &proof.Run{}
		if claim := c.report.claims()[c.claim]; claim.Verdict != c.verdict {
			t.Errorf("%s: %+v", c.name, claim)
		}
	}
}

// A whole run may find with the same scenarios what a killer has found.
func TestCovering(t *testing.T) {
	for text, want := range map[string]string{
		"plan foo-scale / patch apps/deployments #1: 500":                  singlesCampaign,
		"plan foo-scale / patch apps/deployments for 5s: 500":              refusalsCampaign,
		"plan foo-scale / patch apps/deployments for 45s: 500":             "",
		"plan foo-scale / patch apps/deployments #1: freeze":               "",
		"plan foo-scale / patch apps/deployments #1: cut-off":              "",
		"plan foo-scale / patch apps/deployments #1: etcd-away":            "",
		"plan foo-scale / patch apps/deployments #1: 500;create x #1: 409": "",
		"plan foo-scale / read apps/deployments #1: 500":                   readsCampaign,
		"plan foo-create / storm 3":                                        stormsCampaign,
		"singles foo-.*":                                                   singlesCampaign,
		"leaders foo-.*":                                                   "",
		"scenario foo-scale":                                               "",
	} {
		k, err := newKiller(text)
		if err != nil {
			t.Fatal(err)
		}
		covering, ok := k.covering()
		if ok != (want != "") || ok && (covering.suite != want || covering.scenario != k.scenario) {
			t.Errorf("%s: %+v, %t", text, covering, ok)
		}
	}
}

// The other scenarios are those of the same kinds.
func TestOthers(t *testing.T) {
	for expression, want := range map[string][]string{
		"foo-scale":                 {"foo-create", "foo-rename"},
		"foo-scale|memcached-scale": {"foo-create", "memcached-create"},
		"foo-.*":                    nil,
	} {
		others, ok := killer{scenario: expression, isOfWholeRun: true}.others()
		names := strings.Split(others.scenario, "|")
		if ok != (want != nil) || ok && !others.isOfWholeRun || slices.Contains(names, "foo-scale") ||
			slices.Contains(names, "cronjob-fire") {
			t.Errorf("%s: %+v, %t", expression, others, ok)
		}
		for _, name := range want {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s is not among %q", expression, name, names)
			}
		}
	}
}
