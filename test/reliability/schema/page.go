package schema

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/example/memcached-operator/test/proof"
)

// Page returns the report for people. The operator is that which was tried, as proof.Operator says it.
func (r *Report) Page(operator string, seed uint64, isShort bool) *proof.Page {
	slices.SortFunc(r.Results, func(a, b Result) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Path, b.Path)) })
	own := proof.Table{Columns: []string{"field", "classes of values", "transitions", "refused", "different ends", "it shows in"}}
	template := Result{}
	leaves := 0
	for _, result := range r.Results {
		if (Leaf{Path: result.Path}).inTemplate() {
			leaves++
			template.Transitions += result.Transitions
			template.Refusals += result.Refusals
			template.Ends += result.Ends
			continue
		}
		own.Rows = append(own.Rows, []string{
			result.Kind + " " + result.Path, strings.Join(result.Classes, ", "), fmt.Sprint(result.Transitions),
			fmt.Sprint(result.Refusals), fmt.Sprint(result.Ends), result.Effect,
		})
	}
	if leaves > 0 {
		own.Rows = append(own.Rows, []string{fmt.Sprintf("CronJob %s.*, %d fields", templatePath, leaves), "", fmt.Sprint(template.Transitions),
			fmt.Sprint(template.Refusals), fmt.Sprint(template.Ends), "the Job"})
	}
	return &proof.Page{
		Name:  "transitions",
		Title: "Every field, from every value to every other",
		Text: []string{
			"All fields are those that the CustomResourceDefinitions declare. Of each field's values there are classes, such as absent, zero, " +
				"the least and the most that is allowed, and beyond that. For every ordered pair of them a resource is made with the one and " +
				"changed to the other, and what comes of it is compared with what comes of a resource that is made with the other at once. " +
				"What the API server is to refuse, it must refuse with the name of the field, and nothing may come of it. " +
				"`make reliability` makes this page; test/README.md tells how.",
		},
		Settings: []proof.Setting{
			{Name: "operator", Value: operator},
			{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())},
			{Name: "seed", Value: fmt.Sprint(seed)},
			{Name: "form", Value: map[bool]string{true: "short", false: "full"}[isShort]},
			{Name: "time", Value: fmt.Sprintf("%.0f s", r.Seconds)},
		},
		Claims:   r.claims(isShort),
		Sections: []proof.Section{{Title: "Fields", Tables: []proof.Table{own}, Plots: []proof.Plot{r.effectPlot()}}},
		Data:     r,
	}
}

// effectPlot shows in what the fields show.
func (r *Report) effectPlot() proof.Plot {
	counts := map[string]int{}
	for _, result := range r.Results {
		counts[cmp.Or(result.Effect, "nothing")]++
	}
	plot := proof.Plot{Name: "effects", Title: "Fields, by what a change of them shows in", X: proof.Axis{Label: "fields"}}
	for _, effect := range slices.Sorted(maps.Keys(counts)) {
		plot.Bars = append(plot.Bars, proof.Bar{Name: effect, Value: float64(counts[effect])})
	}
	return plot
}

func (r *Report) claims(isShort bool) []proof.Claim {
	fields := proof.Claim{What: "fields tried", Bar: "all", Found: fmt.Sprintf("%d of %d", r.Tried, r.Leaves), Verdict: proof.Judge(r.Tried == r.Leaves),
		Note: fmt.Sprintf("%d more declare no fields of their own and take anything", r.Opaque)}
	if isShort {
		fields.Verdict = proof.NotJudged
	}
	return []proof.Claim{
		fields,
		{What: "changes that end otherwise than a fresh resource, or are not refused as they should be", Bar: "0",
			Found:   fmt.Sprintf("%d of %d", len(r.Violations), r.Transitions+r.Refusals),
			Verdict: proof.Judge(len(r.Violations) == 0), Note: strings.Join(r.Violations, "; ")},
		{What: "fields without effect", Bar: "0", Found: fmt.Sprint(len(r.Dead)), Verdict: proof.Judge(len(r.Dead) == 0), Note: strings.Join(r.Dead, ", ")},
		{What: "writes of the operator when all was done", Bar: "0", Found: fmt.Sprint(r.IdleWrites), Verdict: proof.Judge(r.IdleWrites == 0)},
		{What: "fields of which Kubernetes takes one value, and sets it by itself", Bar: "none", Found: fmt.Sprint(len(r.Single)), Verdict: proof.NotJudged,
			Note: strings.Join(r.Single, ", ")},
		{What: "fields that this API server does not know", Bar: "none", Found: fmt.Sprint(len(r.Unknown)), Verdict: proof.NotJudged, Note: strings.Join(r.Unknown, ", ")},
	}
}
