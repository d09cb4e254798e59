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
	for _, expected := range []string{"1 of 2", "MISSED", `end state: it \| lacks |`, "NOBODY", "mutants-found.svg"} {
		if !strings.Contains(string(page), expected) {
			t.Errorf("the page has no %q:\n%s", expected, page)
		}
	}
}

// What was found before is not looked for again, and what was not is.
func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "found.json")
	r := &report{Operator: "0123"}
	r.add(outcome{Name: "forgets", KilledBy: "scenario foo-create", Seconds: 2})
	r.add(outcome{Name: "lives", Seconds: 3})
	r.add(outcome{Name: "does-not-build", Error: "exit status 1"})
	if r.Mutants != 3 || r.Killed != 1 || r.Seconds != 5 {
		t.Errorf("%+v", r)
	}
	if err := r.save(path); err != nil {
		t.Fatal(err)
	}
	before, err := foundBefore(path, r.Operator)
	if err != nil || len(before) != 1 || before["forgets"].KilledBy != "scenario foo-create" {
		t.Errorf("%v, %v", before, err)
	}
	if _, err := foundBefore(path, "4567"); err == nil {
		t.Error("what was found in another operator is taken over")
	}
	if before, err := foundBefore(path+"-not-there", r.Operator); err != nil || len(before) != 0 {
		t.Errorf("%v, %v", before, err)
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
		if claims := r.claims(); len(claims) != 1 || claims[0].Verdict != c.verdict {
			t.Errorf("%s: %+v", c.name, claims)
		}
	}
	if claims := (&report{CleanRuns: 3, Alarms: 1}).claims(); len(claims) != 2 || claims[1].Verdict != proof.Missed {
		t.Errorf("%+v", claims)
	}
}
