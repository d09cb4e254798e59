package schema

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/example/memcached-operator/test/proof"
)

// Page returns the report for people. The operator is that which was tested, as proof.Operator names it.
func (r *Report) Page(operator string) *proof.Page {
	sections := []proof.Section{{Title: "Fields", Tables: []proof.Table{r.fieldTable()}}}
	if fields := r.RoundTrip.Dropped; len(fields) > 0 {
		sections = append(sections, proof.Section{Title: "Fields of the template that this API server drops",
			Text: []string{strings.Join(fields, ", ") + "."}})
	}
	return &proof.Page{
		Name:  "transitions",
		Title: "Every field, from every class of values to every other",
		Text: []string{
			"The fields are those that the CustomResourceDefinitions declare. Each has classes of values, which the table " +
				"names: absent, null, the bounds, the values next to them and beyond, each word of an enum, and values of a " +
				"wrong form or type. One resource is changed from each class to each other one, and the result is compared with " +
				"a resource that is created with the second value. For the limits of the history, each change has a resource " +
				"of its own, and the Jobs that are kept are compared with the limit. What the API server must reject, it must " +
				"reject by the name of the field, after each value that it accepts, and nothing may change. With one value of " +
				"each field, nothing may be written for a while.",
			"What is below spec.jobTemplate is copied to Jobs. Random templates that together have all its fields are put " +
				"into CronJobs, and each Job is compared with what the API server makes of the same template by hand. Where it " +
				"refuses a Job, the operator must have requested all of the template, and must report the refusal in the same " +
				"words. `make reliability` writes this page; test/README.md describes it.",
		},
		Settings: []proof.Setting{
			proof.OperatorSetting(operator),
			{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())},
			{Name: "seed", Value: fmt.Sprint(r.Seed)},
			{Name: "form", Value: map[bool]string{true: "short", false: "full"}[r.IsShort]},
			{Name: "time", Value: fmt.Sprintf("%.0f s", r.Seconds)},
		},
		Claims:   r.claims(),
		Sections: sections,
	}
}

func (r *Report) fieldTable() proof.Table {
	table := proof.Table{Columns: []string{"field", "classes of values", "transitions", "rejected", "different ends"}}
	for _, result := range r.Results {
		table.Rows = append(table.Rows, []string{result.name(), strings.Join(result.Classes, ", "),
			fmt.Sprint(result.Transitions), fmt.Sprint(result.Rejections), fmt.Sprint(result.Ends)})
	}
	return table
}

func (r *Report) claims() []proof.Claim {
	trip := r.RoundTrip
	own := r.Tried - trip.Fields
	fields := proof.Claim{What: "fields tested, except those of spec.jobTemplate", Bar: "100 %",
		Found: fmt.Sprintf("%d of %d", own, r.Fields), Verdict: proof.Judge(own == r.Fields)}
	template := proof.Claim{
		What: "fields of spec.jobTemplate that arrived in a Job, or were requested in one that is refused", Bar: "100 %",
		Verdict: proof.Judge(len(trip.Untested) == 0 && trip.Fields > 0), Found: fmt.Sprintf(
			"%d and %d of %d, in %d Jobs", trip.Arrived, trip.Requested, trip.Fields-trip.Forbidden, trip.Templates)}
	if template.Verdict == proof.Met && len(trip.Dropped) > 0 {
		template.Verdict = proof.NotJudged
		template.Note = fmt.Sprintf("the other %d, named below, are dropped from a Job by hand, too", len(trip.Dropped))
	}
	if template.Verdict == proof.Missed {
		template.Note = "in no template: " + strings.Join(trip.Untested, ", ")
	}
	if r.IsShort {
		fields.Verdict, fields.Note = proof.NotJudged, "a sample"
		template.Verdict, template.Note = proof.NotJudged, "a sample"
	}
	window := fmt.Sprintf("%.0f s", restWindow.Seconds())
	rest := none("writes of the operator for a settled resource", r.RestWrites,
		fmt.Sprintf(" in %d windows of %s", r.RestWindows, window))
	if r.RestWindows == 0 {
		rest.Verdict = proof.NotJudged
	}
	return []proof.Claim{
		fields, template,
		none("changes that end otherwise than a fresh resource, or are not rejected as they should be", r.Wrong,
			fmt.Sprintf(" of %d", r.Transitions+r.Rejections+trip.Templates)),
		none("fields without effect", r.Dead, ""),
		rest,
		none("writes of the operator when everything was deleted", r.EndWrites, " in "+window),
		none("children left of deleted resources", r.Left, ""),
		none("panics and data races in the log of the operator", r.Defects, ""),
	}
}

// none returns the claim that there is none of what was found.
func none(what string, found []string, of string) proof.Claim {
	return proof.Claim{What: what, Bar: "0", Found: fmt.Sprint(len(found)) + of, Verdict: proof.Judge(len(found) == 0),
		Note: strings.Join(found, "; ")}
}
