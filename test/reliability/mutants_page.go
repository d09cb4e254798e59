package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
)

const (
	// fewestAdded is how many seeded bugs have to be written, at least, by an author who has not read the oracles, so that
	// only a fault reveals them.
	fewestAdded = 30
	// fewestWithFault is how many seeded bugs there have to be, at least, that only a fault reveals: 12 were there before.
	fewestWithFault = 12 + fewestAdded
)

// mutantReport is the outcome of all mutants.
type mutantReport struct {
	run      *proof.Run
	seeded   int            // bugs in mutants.yaml
	atFirst  map[string]int // how many bugs have each of firstAttempts
	outcomes []outcome      // of mutants
	controls []outcome      // of the operator without bugs
}

// outcome is the result of the killers of a mutant, or of a killer of the operator without bugs.
type outcome struct {
	answer                        // of the last killer, with the runs of all
	name, pattern, only string    // of the mutant; empty for none
	attempts            []string  // the killers that ran, in order
	covered             *coverage // nil if the plans of a whole run were not tried
	seconds             float64
	err                 error
}

// killer returns the last killer that ran; empty for none.
func (o outcome) killer() string {
	if len(o.attempts) == 0 {
		return ""
	}
	return o.attempts[len(o.attempts)-1]
}

// first returns the first finding, on one line; empty if there is none.
func (o outcome) first() string { return first(o.findings) }

func first(findings []oracle.Finding) string {
	if len(findings) == 0 {
		return ""
	}
	text, _, _ := strings.Cut(findings[0].String(), "\n")
	return fmt.Sprintf("%.160s", text)
}

// oracles returns the oracles with findings.
func (o outcome) oracles() []string {
	names := make([]string, 0, len(o.findings))
	for _, f := range o.findings {
		names = append(names, f.Oracle)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (o outcome) String() string {
	switch {
	case o.err != nil:
		return fmt.Sprintf("%s: %s failed: %.600v", cmp.Or(o.name, "no bug"), o.killer(), o.err)
	case o.name == "":
		return fmt.Sprintf("no bug, %s: %s", o.killer(), cmp.Or(o.first(), "found nothing"))
	case len(o.findings) == 0:
		return o.name + ": NOT FOUND"
	}
	return fmt.Sprintf("%s: %.0f s, found by %s: %s", o.name, o.seconds, o.killer(), o.first())
}

// coverage returns the cell of a whole run.
func (o outcome) coverage() string {
	switch {
	case o.covered == nil && o.needsFault:
		return "not tried"
	case o.covered == nil:
		return ""
	case o.covered.err != nil:
		return "could not be tried"
	}
	text := "NOT FOUND"
	if o.covered.isFound() {
		text = "found"
		if o.covered.isElsewhere {
			text = "by others: " + first(o.covered.findings)
		}
	}
	return fmt.Sprintf("%s (%d)", text, o.covered.runs)
}

func (r *mutantReport) killed() int { return len(killersOfEach(r.outcomes)) }

// killersOfEach returns the killer of each mutant that was found.
func killersOfEach(outcomes []outcome) []string {
	var killers []string
	for _, o := range outcomes {
		if len(o.findings) > 0 {
			killers = append(killers, o.killer())
		}
	}
	return killers
}

// killersOf returns the killers that have found a mutant, each once.
func killersOf(outcomes []outcome) []string {
	killers := killersOfEach(outcomes)
	slices.Sort(killers)
	return slices.Compact(killers)
}

// alarms returns the killers' findings in the operator without bugs, and the killers that failed with an error.
func (r *mutantReport) alarms() []string {
	var alarms []string
	for _, o := range r.controls {
		if len(o.findings) > 0 || o.err != nil {
			alarms = append(alarms, o.String())
		}
	}
	return alarms
}

func (r *mutantReport) page() *proof.Page {
	table := proof.Table{Columns: []string{"seeded bug", "a pattern of", "found by", "not found by", "runs",
		"by a whole run", "oracles", "first finding", "s"}}
	slices.SortFunc(r.outcomes, func(a, b outcome) int { return cmp.Compare(a.name, b.name) })
	for _, o := range r.outcomes {
		foundBy := o.killer()
		switch {
		case o.err != nil:
			foundBy = "could not be tried"
		case len(o.findings) == 0:
			foundBy = "NOT FOUND"
		}
		missedBy := o.attempts
		if len(o.findings) > 0 {
			missedBy = missedBy[:len(missedBy)-1]
		}
		table.Rows = append(table.Rows, []string{o.name, o.pattern, foundBy, strings.Join(missedBy, "; "),
			fmt.Sprint(o.runs), o.coverage(), strings.Join(o.oracles(), ", "), o.first(), fmt.Sprintf("%.0f", o.seconds)})
	}
	controls := proof.Table{Title: "Without bugs", Columns: []string{"part", "runs", "what it found"}}
	for _, o := range r.controls {
		found := cmp.Or(o.first(), "nothing")
		if o.err != nil {
			found = "could not be tried"
		}
		controls.Rows = append(controls.Rows, []string{o.killer(), fmt.Sprint(o.runs), found})
	}
	slices.SortFunc(controls.Rows, slices.Compare)
	return &proof.Page{
		Name:  "mutants",
		Title: "Seeded bugs",
		Text: []string{
			"Each seeded bug changes some lines of the operator, or of its ClusterRole, as bugs in other operators did. The " +
				"parts of the suites that are listed for it in test/reliability/mutants/mutants.yaml run against the operator " +
				"with that bug until one finds it. They end at the first violation, and wait less long than for the pages of " +
				"[faults](reliability.md) and [transitions](transitions.md), so each part that has found a bug then runs " +
				"against the operator without bugs, and must find nothing. `make reliability` makes this page.",
			"If a bug needs a fault, the column of a whole run says whether the plans that the page of faults has for that " +
				"scenario find it or, if not, those for others of its kind (in which it needs a fault, too): one fault of each " +
				"class at each write, each sort of write refused with one code, each sort of live read with one fault, or " +
				"storms. They wait less long than there, but longer than the bounds for recovery, and that page, with the race " +
				"detector in storms, is their control without bugs. Not tried are two faults at once, faults that last longer, " +
				"and those that a whole run has at a few writes only: leaders that are frozen or cut off, and outages.",
			fmt.Sprintf("A plan whose fault does not occur, because the operator did not send that request this time, is "+
				"played again, up to %d times in all. The numbers of runs, those of the plans of a whole run in brackets, "+
				"count plans, with these repetitions and with runs without faults, and transitions, up to the first violation; "+
				"rbac counts as one.", tries),
		},
		Settings: append(r.run.Settings(),
			proof.Setting{Name: "seed", Value: fmt.Sprint(mutantSeed)}),
		Claims:   r.claims(),
		Sections: []proof.Section{{Title: "Seeded bugs", Tables: []proof.Table{table, controls}}, r.atFirstSection()},
	}
}

// firstAttempts are what may have come of the first attempt to find a seeded bug, and what each means.
var firstAttempts = [][2]string{
	{"found", "found, with a fault"},
	{"found without a fault", "found even without a fault"},
	{"not found", "not found: for each there is a new oracle or scenario"},
	{"false alarm", "counted as found, for a false alarm of the suite, which was fixed before they were tried again"},
	{"not ended", "not tried to the end before oracles and scenarios were changed"},
}

// atFirstSection reports how many seeded bugs were found before any oracle was changed for them.
func (r *mutantReport) atFirstSection() proof.Section {
	table := proof.Table{Columns: []string{"at the first attempt", "seeded bugs"}}
	total := 0
	for _, attempt := range firstAttempts {
		table.Rows = append(table.Rows, []string{attempt[1], fmt.Sprint(r.atFirst[attempt[0]])})
		total += r.atFirst[attempt[0]]
	}
	return proof.Section{Title: "First attempts", Tables: []proof.Table{table}, Text: []string{fmt.Sprintf("%d of these "+
		"bugs were written to show only with a fault, by an author who had not read the oracles. This is what the suite of "+
		"2026-11-26 (83e3bb5) found of them; test/reliability/mutants/mutants.yaml has it by name. The operator has changed "+
		"since, and eight of the bugs with it, three of which were rewritten: gives-up-after-five, count-of-an-old-cache "+
		"and takes-back-what-was-let-go.", total)}}
}

func (r *mutantReport) claims() []proof.Claim {
	mutants, killed := len(r.outcomes), r.killed()
	seeded := proof.Claim{What: "seeded bugs that were found", Bar: "all",
		Found: fmt.Sprintf("%d of %d", killed, mutants), Verdict: proof.Judge(killed == mutants)}
	if killed == mutants && mutants < r.seeded {
		seeded.Verdict, seeded.Note = proof.NotJudged, fmt.Sprintf("there are %d", r.seeded)
	}
	alarms := r.alarms()
	controls := proof.Claim{What: "false alarms of the parts that found a bug, without bugs", Bar: "0",
		Found: fmt.Sprintf("%d of %d", len(alarms), len(r.controls)), Verdict: proof.Judge(len(alarms) == 0),
		Note: strings.Join(alarms, "; ")}
	if killers := killersOf(r.outcomes); controls.Verdict == proof.Met && len(r.controls) < len(killers) {
		controls.Verdict, controls.Note = proof.NotJudged, fmt.Sprintf("there are %d", len(killers))
	}
	return []proof.Claim{seeded, controls, r.claimCovered(), r.claimOracles(), r.claimAlone(), r.claimFaults(),
		r.run.Claim()}
}

// claimCovered claims that faults which a whole run would choose find the bugs that one fault finds.
func (r *mutantReport) claimCovered() proof.Claim {
	tried, found, others := 0, 0, 0
	for _, o := range r.outcomes {
		switch {
		case o.needsFault && o.covered != nil:
			tried++
			if o.covered.isFound() {
				found++
			}
		case o.needsFault:
			others++
		}
	}
	claim := proof.Claim{What: "bugs that need a fault, found by the plans of a whole run", Bar: "all",
		Found: fmt.Sprintf("%d of %d", found, tried), Verdict: proof.Judge(found == tried)}
	if others > 0 {
		claim.Note = fmt.Sprintf("not tried with %d others", others)
	}
	if found == tried && (tried == 0 || len(r.outcomes) < r.seeded) {
		claim.Verdict = proof.NotJudged
	}
	return claim
}

// claimFaults claims that enough bugs were found that only a fault reveals.
func (r *mutantReport) claimFaults() proof.Claim {
	need := 0
	for _, o := range r.outcomes {
		if o.needsFault {
			need++
		}
	}
	claim := proof.Claim{What: "bugs that were found with a fault, and not in the same scenarios without",
		Bar: fmt.Sprintf("at least %d", fewestWithFault), Found: fmt.Sprint(need),
		Verdict: proof.Judge(need >= fewestWithFault)}
	if claim.Verdict == proof.Missed && len(r.outcomes) < r.seeded {
		claim.Verdict = proof.NotJudged
	}
	return claim
}

// soleOracles are those that close a gap: each must find a bug in a plan in which no other oracle finds anything.
var soleOracles = []string{"templates", "conflicts", oracle.Rest, "causes", "recovery", "backoff"}

// claimAlone claims that each bug that is made for one oracle is found by that one only, in the plan that ends the
// search.
func (r *mutantReport) claimAlone() proof.Claim {
	made, alone := 0, 0
	var missed []string
	for _, o := range r.outcomes {
		switch {
		case o.only == "":
			continue
		case slices.Equal(o.oracles(), []string{o.only}):
			alone++
		default:
			missed = append(missed, fmt.Sprintf("%s, for %s", o.name, o.only))
		}
		made++
	}
	claim := proof.Claim{What: "bugs for one oracle, found by it and no other: " + strings.Join(soleOracles, ", "),
		Bar: "all", Found: fmt.Sprintf("%d of %d", alone, made), Verdict: proof.Judge(len(missed) == 0),
		Note: strings.Join(missed, "; ")}
	if claim.Verdict == proof.Met && (made == 0 || len(r.outcomes) < r.seeded) {
		claim.Verdict = proof.NotJudged
	}
	return claim
}

// oracles returns the names of all oracles, including those for references and permissions.
func oracles() []string {
	var names []string
	for _, o := range oracle.All {
		names = append(names, o.Name)
	}
	return append(names, "expected", "same each time", "rbac")
}

// claimOracles claims that each oracle finds a seeded bug.
func (r *mutantReport) claimOracles() proof.Claim {
	all := oracles()
	blind := slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return slices.ContainsFunc(r.outcomes, func(o outcome) bool { return slices.Contains(o.oracles(), name) })
	})
	claim := proof.Claim{What: "oracles of faults that found a seeded bug, alone or with others", Bar: "all",
		Found: fmt.Sprintf("%d of %d", len(all)-len(blind), len(all)), Verdict: proof.Judge(len(blind) == 0)}
	if len(blind) > 0 {
		claim.Note = "not: " + strings.Join(blind, ", ")
		if len(r.outcomes) < r.seeded {
			claim.Verdict = proof.NotJudged
		}
	}
	return claim
}
