package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// Columns of what an arm takes with so many Foos; those of a change are of who comes to rest before it.
var (
	memoryColumns = []column[*size]{
		{"heap, MB", func(s *size) float64 { return megabytes(s.Heap) }, median("%.1f")},
		{"memory, MB", func(s *size) float64 { return megabytes(s.RSS) }, median("%.1f")},
		{"most memory, MB", func(s *size) float64 { return megabytes(s.Peak) }, median("%.1f")},
		{"ready after, s", func(s *size) float64 { return s.Ready }, median("%.2f")},
	}
	changeColumns = []column[*size]{
		{"CPU ms per change", (*size).change, median("%.2f")},
		{"requests per change", func(s *size) float64 { return s.Change.perFoo() }, median("%.2f")},
		{othersColumn, func(s *size) float64 { return s.Change.Others }, most},
	}
)

func (f *found) sizesSection(limit resource.Quantity) *proof.Section {
	if len(f.Sizes) == 0 {
		return nil
	}
	foos := proof.Axis{Label: "Foos that there are", Log: true}
	heap := proof.Plot{Name: "heap", Title: "Live heap", X: foos, Y: proof.Axis{Label: "MB"}}
	memory := proof.Plot{Name: "memory", Title: "Memory of the process (RSS)", X: foos, Y: proof.Axis{Label: "MB"}}
	for _, a := range []arm{ours, lifted} {
		heap.Lines = append(heap.Lines, f.line(a, memoryColumns[0].of))
		memory.Lines = append(memory.Lines, f.line(a, memoryColumns[1].of))
	}
	changes := proof.Plot{Name: "change", Title: "CPU time of the controller for a change", X: foos, Y: proof.Axis{Label: "ms"},
		Lines: []proof.Line{f.line(ours, (*size).change)}}
	return &proof.Section{
		Title: "Memory, and changes among many Foos",
		Text: []string{fmt.Sprintf("Freshly started controllers. The operator looks at one namespace at a time, which has so many Foos, in %d rounds of all sizes, "+
			"every other one from the most to the fewest; in each, Foos are scaled. The sample-controller looks at all there are, and was measured once with each number; "+
			"its heap is that of its last garbage collection, in whole MiB, and it does not come to rest, so changes cannot be told apart.", f.Scale.Rounds),
			fmt.Sprintf("By the most memory that a start has had, the operator can start with %s Foos and their Deployments within the limit of `config/manager`, %s. "+
				"Who has more raises the limit: `spec.config.resources` of the Subscription.", f.carried(limit.Value()), limit.String()),
		},
		Tables: slices.Concat([]proof.Table{f.sizesTable("", memoryColumns, ours, lifted), f.sizesTable("A change", changeColumns, ours),
			f.onceTable(), f.slopeTable()}, f.roomTables()),
		Plots: []proof.Plot{heap, memory, changes},
	}
}

// line is the line of the medians of an arm, over the numbers of Foos.
func (f *found) line(a arm, of func(*size) float64) proof.Line {
	line := proof.Line{Name: a.name}
	for _, count := range f.Scale.Sizes {
		if sizes := f.sizesOf(a, count); len(sizes) > 0 {
			line.Points = append(line.Points, proof.Point{X: float64(count), Y: measure.Median(each(sizes, of))})
		}
	}
	return line
}

// sizesTable returns a table with a row for each arm with each number of Foos.
func (f *found) sizesTable(title string, columns []column[*size], arms ...arm) proof.Table {
	table := proof.Table{Title: title, Columns: slices.Concat([]string{"arm", "Foos"}, heads(columns))}
	for _, a := range arms {
		for _, count := range f.Scale.Sizes {
			if of := f.sizesOf(a, count); len(of) > 0 {
				table.Rows = append(table.Rows, slices.Concat([]string{a.name, fmt.Sprint(count)}, cells(columns, of)))
			}
		}
	}
	return table
}

// onceTable tells how many times as much the operator has in its rounds as the sample-controller, which was measured once.
func (f *found) onceTable() proof.Table {
	table := proof.Table{Title: "This operator, as a multiple of " + lifted.name + ", which was measured once: from the least to the most of this operator's rounds",
		Columns: slices.Concat([]string{"Foos"}, heads(memoryColumns))}
	for _, count := range f.Scale.Sizes {
		own, other := f.sizesOf(ours, count), f.sizesOf(lifted, count)
		if len(own) == 0 || len(other) != 1 {
			continue
		}
		multiples := each(memoryColumns, func(c column[*size]) string {
			once := slices.Repeat([]float64{c.of(other[0])}, len(own))
			return measure.RangeOf(measure.Ratios(each(own, c.of), once)).String()
		})
		table.Rows = append(table.Rows, slices.Concat([]string{fmt.Sprint(count)}, multiples))
	}
	return table
}

// roomTables tell what a change costs with more memory to use until garbage is collected, and nothing else different; none if that was not
// measured.
func (f *found) roomTables() []proof.Table {
	little, much := f.roomsOf()
	if len(little) == 0 || len(much) == 0 {
		return nil
	}
	change := func(of []*size) string {
		return fmt.Sprintf("%.2f", measure.Median(each(of, (*size).change)))
	}
	return []proof.Table{{
		Title:   fmt.Sprintf("A change with %d Foos, by how much memory is used until garbage is collected", little[0].Foos),
		Columns: []string{"GOGC", "CPU ms per change", "multiple"},
		Rows: [][]string{
			{"100, as it is by default", change(little), ""},
			{fmt.Sprint(much[0].Room), change(much), measure.IntervalOf(f.roomRatios()).String()},
		},
	}}
}

func (f *found) sizesOf(a arm, count int) []*size {
	var of []*size
	for _, s := range f.Sizes {
		if s.Arm == a.name && s.Foos == count {
			of = append(of, s)
		}
	}
	return of
}

// slopeTable tells how many bytes each Foo takes, by what the most take more than the fewest; with an interval if there are rounds.
func (f *found) slopeTable() proof.Table {
	table := proof.Table{Title: "For each Foo with its Deployment", Columns: []string{"arm", "bytes of heap", "bytes of memory"}}
	for _, a := range []arm{ours, lifted} {
		few, many := f.ends(a)
		if len(few) == 0 || len(few) != len(many) || few[0].Foos == many[0].Foos {
			continue
		}
		bytes := func(of func(*size) int64) string {
			all := slopes(few, many, of)
			if len(all) == 1 {
				return fmt.Sprintf("%.0f, measured once", all[0])
			}
			return measure.IntervalOf(all).String()
		}
		table.Rows = append(table.Rows, []string{a.name, bytes(func(s *size) int64 { return s.Heap }), bytes(func(s *size) int64 { return s.RSS })})
	}
	return table
}

func (f *found) idleSection() *proof.Section {
	if len(f.Idle) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"arm", "Foos", "seconds", "looked at again", "requests", "writes", "CPU share of the controller", othersColumn}}
	for _, i := range f.Idle {
		passes := "every 30 s"
		if i.Looks > 0 {
			passes = fmt.Sprintf("%d times", i.Looks)
		}
		table.Rows = append(table.Rows, []string{i.Arm, fmt.Sprint(i.Foos), fmt.Sprintf("%.0f", i.Seconds), passes,
			fmt.Sprint(measure.All(i.Requests)), fmt.Sprint(i.Writes), fmt.Sprintf("%.4f", i.CPU[controllerProcess]/i.Seconds), most([]float64{i.Others})})
	}
	return &proof.Section{
		Title: "At rest",
		Text: []string{"Nothing happens, but that everything is looked at again: the operator is told to every so often (`--sync-period`), the sample-controller does by itself. " +
			fmt.Sprintf("Beside the Foos there are %d Memcacheds and %[1]d CronJobs, which are looked at as well. ", f.Idle[0].OtherKinds) +
			"Not counted are watches, and the leader election, which the sample-controller does not have. Each arm was measured once, so there is no interval."},
		Tables: []proof.Table{table},
	}
}

func (f *found) failoverSection() *proof.Section {
	if len(f.Failovers) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"signal", "longest time in which no Foo became true, s", "least", "most", "times", othersColumn}}
	plot := proof.Plot{Name: "failover", Title: "How long nobody works when the leader ends", X: proof.Axis{Label: "seconds"}}
	for _, signal := range []string{"SIGTERM", "SIGKILL"} {
		gaps, others := f.gaps(signal)
		if len(gaps) == 0 {
			continue
		}
		table.Rows = append(table.Rows, []string{signal, fmt.Sprintf("%.2f", measure.Median(gaps)),
			fmt.Sprintf("%.2f", slices.Min(gaps)), fmt.Sprintf("%.2f", slices.Max(gaps)), fmt.Sprint(len(gaps)), most(others)})
		plot.Bars = append(plot.Bars, proof.Bar{Name: signal, Value: measure.Median(gaps), Low: slices.Min(gaps), High: slices.Max(gaps)})
	}
	return &proof.Section{
		Title:  "Failover",
		Text:   []string{fmt.Sprintf("Two operators, of which one leads and ends. %d Foos are made in each second.", failoverRate)},
		Tables: []proof.Table{table},
		Plots:  []proof.Plot{plot},
	}
}

func (f *found) growthSection() *proof.Section {
	if len(f.Growths) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"nodes", "ready in, s", "status writes", "all requests", "told after, s"}}
	for _, g := range f.Growths {
		table.Rows = append(table.Rows, []string{fmt.Sprint(g.Nodes), fmt.Sprintf("%.1f", g.Seconds), fmt.Sprint(g.StatusWrites),
			fmt.Sprint(measure.All(g.Requests)), fmt.Sprintf("%.3f", g.Last)})
	}
	return &proof.Section{
		Title: "A Memcached that grows",
		Text: []string{fmt.Sprintf("The pods of a new Memcached come one after the other within %s, and are ready at once. A status for each would be as many writes as nodes. "+
			"The last column is how much later than the last pod the status tells of all.", ramp)},
		Tables: []proof.Table{table},
	}
}
