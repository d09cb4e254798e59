package schema

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print prints a table of the report: our own fields one by one, those of the template together by what they show in.
func (r *Report) Print(out io.Writer) {
	var rows, rest strings.Builder
	rows.WriteString("field\tclasses\ttransitions\trefusals\tends\tviolations\tit shows in\n")
	for _, row := range r.rows() {
		classes := fmt.Sprint(len(row.Classes))
		if row.fields > 0 {
			classes = fmt.Sprintf("%d each", classesOfTemplate)
		}
		fmt.Fprintf(&rows, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n",
			row.label, classes, row.Transitions, row.Refusals, row.Ends, len(row.Violations), row.shown())
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, rows.String())
	_ = table.Flush()
	fmt.Fprintf(&rest, "%d of %d fields tried (not judged: %d opaque, %d with one value, %d unknown), %d transitions and %d refusals in %.0f s, %.0f an hour\n",
		r.Tried, r.Leaves+len(r.Opaque), len(r.Opaque), len(r.Single), len(r.Unknown), r.Transitions, r.Refusals, r.Seconds,
		float64(r.Transitions+r.Refusals)/r.Seconds*3600)
	fmt.Fprintf(&rest, "fields without effect: %d; writes at rest: %d in %d windows of %.0f s; violations: %d\n",
		len(r.Dead), len(r.RestWrites), r.RestWindows, restWindow.Seconds(), len(r.Violations))
	for _, violation := range r.Violations {
		fmt.Fprintf(&rest, "VIOLATION %s\n", violation)
	}
	fmt.Fprint(out, rest.String())
}
