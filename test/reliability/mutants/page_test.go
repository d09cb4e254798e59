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
