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
	fields := proof.Table{Columns: []string{"field", "classes of values", "transitions", "refused", "different ends", "it shows in"}}
	for _, row := range r.rows() {
		fields.Rows = append(fields.Rows, []string{
			row.label, strings.Join(row.Classes, ", "), fmt.Sprint(row.Transitions),
			fmt.Sprint(row.Refusals), fmt.Sprint(row.Ends), row.shown(),
		})
	}
	return &proof.Page{
		Name:  "transitions",
		Title: "Every field, from every sort of value to every other",
		Text: []string{
			"All fields are those of a spec that hold a value, as the CustomResourceDefinitions declare them. Each of our own has classes of values, which the table names, such as " +
				"absent, null, the least and the most that is allowed, those next to them and beyond, each word that is allowed, and what has a form or a type " +
				"that is not. Each that is handed on to Jobs has four: absent (with what it is in, where it may not be absent alone), two values, and a wrong type.",
			"One resource is changed from each of them to each other one, and what comes of each change is compared with what comes of a " +
				"resource that is made so at once. For the limits of the history, each change has a resource of its own, and which Jobs stay is compared with the limit. " +
				"What the API server is to refuse, it must refuse with the name of the field, from each value that it takes, and nothing may come of it. " +
				"With one value of each of our own fields, and of one in ten of the others, nothing may be written for a while. " +
				"Where Kubernetes refuses the Job, the operator must have asked for the same as is asked for by hand, and tell the refusal in the same words. " +
				"`make reliability` makes this page; test/README.md tells how.",
		},
		Settings: []proof.Setting{
			proof.OperatorSetting(operator),
			{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())},
			{Name: "seed", Value: fmt.Sprint(seed)},
			{Name: "form", Value: map[bool]string{true: "short", false: "full"}[isShort]},
			{Name: "time", Value: fmt.Sprintf("%.0f s", r.Seconds)},
		},
		Claims: r.claims(isShort),
		Sections: []proof.Section{
			{Title: "Fields", Tables: []proof.Table{fields}, Plots: []proof.Plot{r.effectPlot()}},
			{Title: "Fields that are not judged", Text: r.leftOut()},
		},
		Data: r,
	}
}

// name returns the kind and the path of the leaf.
func (r *Result) name() string { return r.Kind + " " + r.Path }

// shown returns in what the leaf shows, in words.
func (r *Result) shown() string {
	switch {
	case r.Effect == "":
		return "nothing"
	case r.IsGated:
		return r.Effect + ", with its feature gate open"
	}
	return r.Effect
}

// row is one leaf, or many of the template that show in the same.
type row struct {
	Result
	label  string
	fields int // of the template; 0 for one of our own
}

// rows returns our own leaves one by one, and those of the template together by what they show in.
func (r *Report) rows() []row {
	var rows []row
	template := map[string]*row{} // by what is shown
	for _, result := range r.Results {
		if !(Leaf{Path: result.Path}).inTemplate() {
			rows = append(rows, row{Result: result, label: result.name()})
			continue
		}
		effect := result.shown()
		if template[effect] == nil {
			template[effect] = &row{Result: Result{Kind: result.Kind, Effect: result.Effect, IsGated: result.IsGated}}
		}
		template[effect].fields++
		template[effect].include(&result)
	}
	for _, effect := range slices.Sorted(maps.Keys(template)) {
		all := template[effect]
		all.label = fmt.Sprintf("%s %s.*, %d of them", all.Kind, templatePath, all.fields)
		rows = append(rows, *all)
	}
	return rows
}

// include adds the numbers of another leaf, and the names of classes that are new.
func (r *Result) include(other *Result) {
	r.Transitions += other.Transitions
	r.Refusals += other.Refusals
	r.Ends += other.Ends
	r.Violations = append(r.Violations, other.Violations...)
	for _, class := range other.Classes {
		if !slices.Contains(r.Classes, class) {
			r.Classes = append(r.Classes, class)
		}
	}
}

// effectPlot shows in what the fields show.
func (r *Report) effectPlot() proof.Plot {
	counts := map[string]int{}
	for _, result := range r.Results {
		counts[result.shown()]++
	}
	plot := proof.Plot{Name: "effects", Title: "Fields, by what a change of them shows in", X: proof.Axis{Label: "fields"}}
	for _, effect := range slices.Sorted(maps.Keys(counts)) {
		plot.Bars = append(plot.Bars, proof.Bar{Name: effect, Value: float64(counts[effect])})
	}
	return plot
}

func (r *Report) claims(isShort bool) []proof.Claim {
	fields := proof.Claim{What: "fields tried", Bar: "100 %", Found: fmt.Sprintf("%d of %d", r.Tried, r.Leaves+len(r.Opaque)),
		Verdict: proof.Judge(r.Tried+len(r.Unknown)+len(r.Single) == r.Leaves)}
	if left := len(r.Unknown) + len(r.Single) + len(r.Opaque); fields.Verdict == proof.Met && left > 0 {
		fields.Verdict, fields.Note = proof.NotJudged, fmt.Sprintf("the other %d are not judged, see below; all that can be were tried", left)
	}
	if isShort {
		fields.Verdict, fields.Note = proof.NotJudged, "a sample"
	}
	window := fmt.Sprintf("%.0f s", restWindow.Seconds())
	rest := none("writes of the operator when a resource has come to rest", r.RestWrites, fmt.Sprintf(" in %d windows of %s", r.RestWindows, window))
	if r.RestWindows == 0 {
		rest.Verdict = proof.NotJudged
	}
	return []proof.Claim{
		fields,
		none("changes that end otherwise than a fresh resource, or are not refused as they should be", r.Wrong, fmt.Sprintf(" of %d", r.Transitions+r.Refusals)),
		none("fields without effect", r.Dead, ""),
		rest,
		none("writes of the operator when all was deleted", r.EndWrites, " in "+window),
		none("children left of resources that are gone", r.Left, ""),
		none("panics and data races in the log of the operator", r.Defects, ""),
		notJudged(ofOpaque, r.Opaque),
		notJudged(ofSingle, r.Single),
		notJudged(ofUnknown, r.Unknown),
	}
}

// Why fields are not judged.
const (
	ofOpaque  = "fields that declare no fields of their own and take anything"
	ofSingle  = "fields of which Kubernetes takes one value, and sets it by itself"
	ofUnknown = "fields that this API server does not know"
)

// leftOut names the fields that are not judged.
func (r *Report) leftOut() []string {
	named := func(why string, fields []string) string {
		return fmt.Sprintf("%d %s: %s.", len(fields), why, cmp.Or(strings.Join(fields, ", "), "none"))
	}
	return []string{named(ofOpaque, r.Opaque), named(ofSingle, r.Single), named(ofUnknown, r.Unknown)}
}

// none returns the claim that there is none of what was found.
func none(what string, found []string, of string) proof.Claim {
	return proof.Claim{What: what, Bar: "0", Found: fmt.Sprint(len(found)) + of, Verdict: proof.Judge(len(found) == 0), Note: strings.Join(found, "; ")}
}

func notJudged(what string, fields []string) proof.Claim {
	return proof.Claim{What: what, Bar: "none", Found: fmt.Sprint(len(fields)), Verdict: proof.NotJudged, Note: "named below"}
}
