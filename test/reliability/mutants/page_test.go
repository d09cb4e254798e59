package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	r := &report{}
	r.add(outcome{Name: "forgets", KilledBy: "scenario foo-create", Seconds: 2})
	r.add(outcome{Name: "lives", Seconds: 3})
	r.add(outcome{Name: "does-not-build", Error: "exit status 1"})
	if r.Mutants != 3 || r.Killed != 1 || r.Seconds != 5 {
		t.Errorf("%+v", r)
	}
	if err := r.save(path); err != nil {
		t.Fatal(err)
	}
	before, err := foundBefore(path)
	if err != nil || len(before) != 1 || before["forgets"].KilledBy != "scenario foo-create" {
		t.Errorf("%v, %v", before, err)
	}
	if before, err := foundBefore(path + "-not-there"); err != nil || len(before) != 0 {
		t.Errorf("%v, %v", before, err)
	}
}
