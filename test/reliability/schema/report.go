package schema

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print prints a table of the report: our own fields one by one, those of the template together.
func (r *Report) Print(out io.Writer) {
	var rows, rest strings.Builder
	rows.WriteString("field\tclasses\ttransitions\trefusals\tends\teffect\tviolations\n")
	template := Result{Kind: "CronJob", Path: templatePath + ".*"}
	leaves, effects := 0, map[string]int{}
	row := func(result Result, classes any, effect string) {
		fmt.Fprintf(&rows, "%s %s\t%v\t%d\t%d\t%d\t%s\t%d\n",
			result.Kind, result.Path, classes, result.Transitions, result.Refusals, result.Ends, effect, len(result.Violations))
	}
	for _, result := range r.Results {
		if !(Leaf{Path: result.Path}).inTemplate() {
			row(result, len(result.Classes), result.Effect)
			continue
		}
		leaves++
		effects[result.Effect]++
		template.Transitions += result.Transitions
		template.Refusals += result.Refusals
		template.Ends += result.Ends
		template.Violations = append(template.Violations, result.Violations...)
	}
	if leaves > 0 {
		row(template, "3 or 4", fmt.Sprintf("of %d fields", leaves))
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, rows.String())
	_ = table.Flush()
	for effect, count := range effects {
		fmt.Fprintf(&rest, "%5d fields of the template: %s\n", count, effect)
	}
	fmt.Fprintf(&rest, "%d of %d fields tried (%d more declare no fields of their own and are opaque), %d transitions and %d refusals in %.0f s, %.0f an hour\n",
		r.Tried, r.Leaves, r.Opaque, r.Transitions, r.Refusals, r.Seconds, float64(r.Transitions+r.Refusals)/r.Seconds*3600)
	fmt.Fprintf(&rest, "fields without effect: %d; writes at rest: %d; violations: %d\n", len(r.Dead), r.IdleWrites, len(r.Violations))
	for _, violation := range r.Violations {
		fmt.Fprintf(&rest, "VIOLATION %s\n", violation)
	}
	fmt.Fprint(out, rest.String())
}
