package main

import (
	"regexp"
	"strings"
	"testing"
)

// Mutants do not rot: the text that each replaces is in the operator once.
func TestMutantsApply(t *testing.T) {
	all, err := mutants()
	if err != nil {
		t.Fatal(err)
	}
	names, patterns := map[string]bool{}, map[string]bool{}
	for _, m := range all {
		if names[m.Name] || m.Name == "" {
			t.Errorf("two mutants are called %q", m.Name)
		}
		names[m.Name], patterns[m.Pattern] = true, true
		if _, err := m.files(); err != nil {
			t.Error(err)
		}
		if len(m.Killers) == 0 {
			t.Errorf("mutant %s: nobody is to find it", m.Name)
		}
		for _, killer := range m.Killers {
			suite, part, _ := strings.Cut(killer, " ")
			if _, err := regexp.Compile(part); err != nil || suites[suite] == nil || part == "" {
				t.Errorf("mutant %s: killer %q: it is one of the suites and a regular expression", m.Name, killer)
			}
		}
	}
	if len(all) < fewestMutants || len(patterns) < 25 {
		t.Errorf("%d mutants of %d patterns", len(all), len(patterns))
	}
}
