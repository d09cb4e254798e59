package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
)

// fewestMutants is how many seeded bugs have to be found at least.
const fewestMutants = 30

// page returns the report for people.
func (r *report) page() *proof.Page {
	table := proof.Table{Columns: []string{"seeded bug", "a pattern of", "found by", "oracles", "first finding", "s"}}
	for _, o := range r.Outcomes {
		killedBy := o.KilledBy
		switch {
		case killedBy == "" && o.Error != "":
			killedBy = "could not be tried"
		case killedBy == "":
			killedBy = "NOBODY"
		}
		table.Rows = append(table.Rows, []string{o.Name, o.Pattern, killedBy, strings.Join(o.Oracles, ", "),
			firstLine(o.Finding), fmt.Sprintf("%.0f", o.Seconds)})
	}
	return &proof.Page{
		Name:  "mutants",
		Title: "Bugs that were put into the operator on purpose",
		Text: []string{
			"Each seeded bug is a change of some lines of the operator, or of what is installed with it, in the manner of " +
				"bugs that other operators " +
				"have had. Parts of the suites that are to find it, which are named beside it in " +
				"test/reliability/mutants/mutants.yaml, are run against the operator " +
				"with that bug until one finds something. A suite that finds none of them shows nothing. " +
				"Here they end at the first finding, and most wait less long for an operator that does not come to an end than " +
				"for the pages of " +
				"[faults](reliability.md) and [transitions](transitions.md). So each part of them that has found a bug is then " +
				"run against the operator as it is, " +
				"and must find nothing. " +
				"`make reliability` makes this page; test/README.md tells how.",
		},
		Settings: []proof.Setting{
			proof.OperatorSetting(r.Operator),
			{Name: "all suites, by a hash of their sources", Value: r.Suite},
			{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())},
			{Name: "time", Value: fmt.Sprintf("%.0f s", r.Seconds)},
		},
		Claims: r.claims(),
		Sections: []proof.Section{
			{Title: "Seeded bugs", Tables: []proof.Table{table}},
		},
	}
}

// claims are what is held against the bars.
func (r *report) claims() []proof.Claim {
	seeded := proof.Claim{What: "seeded bugs that were found", Bar: fmt.Sprintf("all, of %d at least", fewestMutants),
		Found:   fmt.Sprintf("%d of %d", r.Killed, r.Mutants),
		Verdict: proof.Judge(r.Killed == r.Mutants && r.Mutants >= fewestMutants)}
	if r.Killed == r.Mutants && r.Mutants < r.Seeded {
		seeded.Verdict, seeded.Note = proof.NotJudged, fmt.Sprintf("there are %d", r.Seeded)
	}
	alarms := r.alarms()
	found := proof.Claim{What: "alarms on the operator as it is, of all that has found a bug", Bar: "0",
		Found: fmt.Sprintf("%d of %d", len(alarms), len(r.Controls)), Verdict: proof.Judge(len(alarms) == 0),
		Note: strings.Join(alarms, "; ")}
	if killers := r.killers(); found.Verdict == proof.Met && len(r.Controls) < len(killers) {
		found.Verdict, found.Note = proof.NotJudged, fmt.Sprintf("there are %d", len(killers))
	}
	return []proof.Claim{seeded, found, r.claimOracles()}
}

// oracles returns the names of all that judge what faults do: any plan, the references, and the permissions.
func oracles() []string {
	var names []string
	for _, o := range oracle.All {
		names = append(names, o.Name)
	}
	return append(names, "expected", "same each time", "rbac")
}

// claimOracles claims that each oracle finds something where there is something to find.
func (r *report) claimOracles() proof.Claim {
	all := oracles()
	var blind []string
	for _, name := range all {
		if !slices.ContainsFunc(r.Outcomes, func(found outcome) bool { return slices.Contains(found.Oracles, name) }) {
			blind = append(blind, name)
		}
	}
	claim := proof.Claim{What: "oracles of what faults do that have found a seeded bug, be it with others", Bar: "all",
		Found: fmt.Sprintf("%d of %d", len(all)-len(blind), len(all)), Verdict: proof.Judge(len(blind) == 0)}
	if len(blind) > 0 {
		claim.Note = "not: " + strings.Join(blind, ", ")
	}
	if len(blind) > 0 && r.Mutants < r.Seeded {
		claim.Verdict = proof.NotJudged
	}
	return claim
}

// firstLine returns as much of a finding as fits into a table.
func firstLine(finding string) string {
	const most = 160
	for i, c := range finding {
		if c == '\n' || i >= most {
			return finding[:i]
		}
	}
	return finding
}
