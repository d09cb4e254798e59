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
			{Title: "Bugs that are not seeded", Text: []string{"Operators have had these bugs, too."},
				Tables: []proof.Table{notSeeded}},
		},
		Data: r,
	}
}

// notSeeded are patterns of bugs that no mutant is of, and why.
var notSeeded = proof.Table{
	Columns: []string{"a pattern of bugs", "why none of it is seeded"},
	Rows: [][]string{
		{"a finalizer that nobody removes", "the operator sets none"},
		{"what only a webhook checks",
			"there is no webhook: the API server checks everything by the rules of the CustomResourceDefinitions"},
		{"a conversion between versions that loses something", "each kind has one version"},
		{"a reference into another namespace",
			"the operator follows none: what a template names, Kubernetes judges by the rights of the Job's pods"},
		{"a secret in a log, an event or a status", "the operator may not read Secrets"},
		{"a second child, made because the cache does not show the first",
			"a child's name follows from its owner: names-by-the-server is the way to get there"},
		{"errors without end in a namespace that is being deleted",
			"each plan has a namespace of its own, which stays; `make contract` shows it"},
		{"no CustomResourceDefinition, or one that comes later", "`make contract` and `make e2e` show it"},
		{"no time zones in the image",
			"the machine that tests has them; `make e2e` runs the image, in which there is nothing but the program"},
		{"metrics that anybody may read", "`make contract` shows it"},
		{"metrics or log lines that a user can write into",
			"the log is JSON, whatever is in it, as `make contract` shows; the metrics are those of controller-runtime, which " +
				"name no resource"},
		{"pods that run as root, or with more rights than they need",
			"`make unit` breaks each rule of Pod Security for our pods, and the evaluator of Kubernetes refuses each"},
		{"a template by which a user's pod gets more rights than the user has",
			"what pods may do, Kubernetes judges by the namespace that they are in"},
		{"an annotation of a child that is believed",
			"the operator reads when a Job was due off its name; unit tests have the annotation lie"},
		{"resources that are so large, or so many, that others have to wait",
			"`make bench` and `make bench-cronjobs` show what many cost"},
		{"a clock that is set back or stands still", "the clock is that of the machine; unit tests of CronJobs set theirs"},
	},
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
