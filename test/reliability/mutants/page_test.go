package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/memcached-operator/test/proof"
)

func TestPage(t *testing.T) {
	r := &report{Mutants: 2, Killed: 1, Outcomes: []outcome{
		{Name: "forgets", Pattern: "28", KilledBy: "scenario foo-create", Finding: "end state: it | lacks\nall", Findings: 1},
		{Name: "lives", Pattern: "1"},
	}}
	dir := t.TempDir()
	if err := r.page().Write(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "mutants.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, expected := range []string{"1 of 2", "MISSED", `end state: it \| lacks |`, "NOBODY"} {
		if !strings.Contains(string(page), expected) {
			t.Errorf("the page has no %q:\n%s", expected, page)
		}
	}
}

// Only when all were tried, all are found.
func TestClaims(t *testing.T) {
	for _, c := range []struct {
		name                    string
		seeded, mutants, killed int
		verdict                 proof.Verdict
	}{
		{"all", 40, 40, 40, proof.Met},
		{"all that were tried", 40, 35, 35, proof.NotJudged},
		{"one lives", 40, 35, 34, proof.Missed},
		{"too few", 20, 20, 20, proof.Missed},
	} {
		r := &report{Seeded: c.seeded, Mutants: c.mutants, Killed: c.killed}
		if claims := r.claims(); claims[0].Verdict != c.verdict {
			t.Errorf("%s: %+v", c.name, claims)
		}
	}
	all := oracles()
	for _, c := range []struct {
		oracles []string
		seeded  int
		verdict proof.Verdict
	}{
		{all, 1, proof.Met},
		{all[1:], 1, proof.Missed},
		{all[1:], 2, proof.NotJudged},
	} {
		claim := (&report{Seeded: c.seeded, Mutants: 1, Outcomes: []outcome{{Oracles: c.oracles}}}).claims()[2]
		if claim.Verdict != c.verdict || (claim.Verdict != proof.Met) != strings.Contains(claim.Note, all[0]) {
			t.Errorf("%v: %+v", c.oracles, claim)
		}
	}
	found := []outcome{{KilledBy: "scenario foo-create"}, {KilledBy: "scenario foo-create"}, {KilledBy: "schema Foo"}, {}}
	silent, alarmed := control{Killer: "scenario foo-create"}, control{Killer: "schema Foo",
		Alarm: "end state: it lacks all"}
	for _, c := range []struct {
		controls []control
		verdict  proof.Verdict
	}{
		{[]control{silent, {Killer: "schema Foo"}}, proof.Met},
		{[]control{silent}, proof.NotJudged},
		{[]control{alarmed}, proof.Missed},
		{[]control{silent, alarmed}, proof.Missed},
	} {
		if claim := (&report{Outcomes: found, Controls: c.controls}).claims()[1]; claim.Verdict != c.verdict {
			t.Errorf("%+v: %+v", c.controls, claim)
		}
	}
}
