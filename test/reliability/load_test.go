package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestJudgeLoad(t *testing.T) {
	for _, c := range []struct {
		name                           string
		changes, happened, deployments int
		lacking, found                 string
	}{
		{"as it should be", 9, 0, loadFoos, "", ""},
		{"late", 9, 7, loadFoos, "the Deployment of foo-1 has 1 pods", "end state: after 9 changes, the Deployment of foo-1"},
		{"restless", 9, 1, loadFoos, "", "rest: there was nothing to write"},
		{"no load", 0, 0, loadFoos, "", "end state: there was no load"},
		{"made twice", 9, 0, loadFoos + 1, "", fmt.Sprintf("counts: %d Deployments", loadFoos+1)},
	} {
		var texts []string
		for _, finding := range judgeLoad(c.changes, c.lacking, c.happened, c.deployments) {
			texts = append(texts, finding.String())
		}
		if found := strings.Join(texts, "\n"); (found == "") != (c.found == "") || len(texts) > 1 ||
			!strings.HasPrefix(found, c.found) {
			t.Errorf("%s: %q, not %q", c.name, found, c.found)
		}
	}
}

// A plan has occurred when all of its faults have.
func TestHasOccurred(t *testing.T) {
	for _, c := range []struct {
		faults string
		fired  int
		is     bool
	}{
		{"", 0, false},
		{"patch apps/deployments #1: 500", 0, false},
		{"patch apps/deployments #1: 500", 1, true},
		{"patch apps/deployments #1: 500; #2: 409", 1, false},
		{"patch apps/deployments #1: 500; #2: 409", 2, true},
		{"storm 1", 3, true},
	} {
		if is := (&planReport{Faults: c.faults, Fired: c.fired}).hasOccurred(); is != c.is {
			t.Errorf("%+v: %t", c, is)
		}
	}
}
