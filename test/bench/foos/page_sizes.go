package main

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

func (f *found) sizesSection(limit resource.Quantity) *proof.Section {
	if len(f.Sizes) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"arm", "Foos", "heap, MB", "memory, MB", "most memory, MB", "ready after, s", "CPU ms per change", "requests per change"}}
	heap := proof.Plot{Name: "heap", Title: "Live heap", X: proof.Axis{Label: "Foos", Log: true}, Y: proof.Axis{Label: "MB"}}
	memory := proof.Plot{Name: "memory", Title: "Memory of the process (RSS)", X: proof.Axis{Label: "Foos", Log: true}, Y: proof.Axis{Label: "MB"}}
	changes := proof.Plot{Name: "change", Title: "CPU time of the controller for a change",
		X: proof.Axis{Label: "Foos that there are", Log: true}, Y: proof.Axis{Label: "ms"}}
	for _, a := range []arm{ours, lifted} {
		heapLine, memoryLine, changeLine := proof.Line{Name: a.name}, proof.Line{Name: a.name}, proof.Line{Name: a.name}
		for _, count := range f.Scale.Sizes {
			of := f.sizesOf(a, count)
			if len(of) == 0 {
				continue
			}
			median := func(value func(*size) float64) float64 { return measure.Median(eachSize(of, value)) }
			heapMB, memoryMB := median(func(s *size) float64 { return megabytes(s.Heap) }), median(func(s *size) float64 { return megabytes(s.RSS) })
			row := []string{a.name, fmt.Sprint(count), fmt.Sprintf("%.1f", heapMB), fmt.Sprintf("%.1f", memoryMB),
				fmt.Sprintf("%.1f", median(func(s *size) float64 { return megabytes(s.Peak) })), fmt.Sprintf("%.2f", median(func(s *size) float64 { return s.Ready })), "", ""}
			heapLine.Points = append(heapLine.Points, proof.Point{X: float64(count), Y: heapMB})
			memoryLine.Points = append(memoryLine.Points, proof.Point{X: float64(count), Y: memoryMB})
			if of[0].Change != nil {
				change := median((*size).change)
				row[6], row[7] = fmt.Sprintf("%.2f", change), fmt.Sprintf("%.2f", median(func(s *size) float64 { return s.Change.perFoo() }))
				changeLine.Points = append(changeLine.Points, proof.Point{X: float64(count), Y: change})
			}
			table.Rows = append(table.Rows, row)
		}
		heap.Lines, memory.Lines = append(heap.Lines, heapLine), append(memory.Lines, memoryLine)
		if len(changeLine.Points) > 0 {
			changes.Lines = append(changes.Lines, changeLine)
		}
	}
	return &proof.Section{
		Title: "Memory, and changes among many Foos",
		Text: []string{fmt.Sprintf("Freshly started controllers. The operator looks at one namespace at a time, which has so many Foos, in %d rounds of all sizes, "+
			"every other one from the most to the fewest; in each, Foos are scaled. The sample-controller looks at all there are, once with each number; "+
			"its heap is that of its last garbage collection, in whole MiB, and it does not come to rest, so changes cannot be told apart.", f.Scale.Rounds),
			fmt.Sprintf("By the most memory that a start has had, the operator can start with %s Foos and their Deployments within the limit of `config/manager`, %s. "+
				"Who has more raises the limit: `spec.config.resources` of the Subscription.", f.carried(limit.Value()), limit.String()),
		},
		Tables: append([]proof.Table{table, f.slopeTable()}, f.roomTables()...),
		Plots:  []proof.Plot{heap, memory, changes},
	}
}

// roomTables tell what a change costs with more memory to use until garbage is collected, and nothing else different; none if that was not
// measured.
func (f *found) roomTables() []proof.Table {
	little, much := f.roomsOf()
	if len(little) == 0 || len(much) == 0 {
		return nil
	}
	change := func(of []*size) string {
		return fmt.Sprintf("%.2f", measure.Median(eachSize(of, (*size).change)))
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

// slopeTable tells how many bytes each Foo takes, by what the most take more than the fewest.
func (f *found) slopeTable() proof.Table {
	table := proof.Table{Title: "For each Foo with its Deployment", Columns: []string{"arm", "bytes of heap", "bytes of memory"}}
	for _, a := range []arm{ours, lifted} {
		few, many := f.ends(a)
		if len(few) == 0 || len(few) != len(many) || few[0].Foos == many[0].Foos {
			continue
		}
		table.Rows = append(table.Rows, []string{a.name,
			fmt.Sprintf("%.0f", measure.Median(slopes(few, many, func(s *size) int64 { return s.Heap }))),
			fmt.Sprintf("%.0f", measure.Median(slopes(few, many, func(s *size) int64 { return s.RSS })))})
	}
	return table
}

func (f *found) idleSection() *proof.Section {
	if len(f.Idle) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"arm", "Foos", "seconds", "looked at again", "requests", "writes", "CPU share of the controller"}}
	for _, i := range f.Idle {
		passes := "every 30 s"
		if i.Looks > 0 {
			passes = fmt.Sprintf("%d times", i.Looks)
		}
		table.Rows = append(table.Rows, []string{i.Arm, fmt.Sprint(i.Foos), fmt.Sprintf("%.0f", i.Seconds), passes,
			fmt.Sprint(measure.All(i.Requests)), fmt.Sprint(i.Writes), fmt.Sprintf("%.4f", i.CPU[controllerProcess]/i.Seconds)})
	}
	return &proof.Section{
		Title: "At rest",
		Text: []string{"Nothing happens, but that everything is looked at again: the operator is told to every so often (`--sync-period`), the sample-controller does by itself. " +
			fmt.Sprintf("Beside the Foos there are %d Memcacheds and %[1]d CronJobs, which are looked at as well. ", f.Idle[0].OtherKinds) +
			"Not counted are watches, and the leader election, which the sample-controller does not have."},
		Tables: []proof.Table{table},
	}
}

func (f *found) restartSection() *proof.Section {
	if len(f.Restarts) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"arm", "ready after, s", "all looked at after, s", "requests", "writes", "CPU s", "first new Foo after, s",
		"new Foos", "p50, s", "longest, s", "not made"}}
	kinds := proof.Table{Title: "The requests, of the last round", Columns: []string{"request"}}
	sorts, last := map[string]int{}, []*restart{}
	for _, a := range []arm{ours, lifted} {
		var of []*restart
		for _, r := range f.Restarts {
			if r.Arm == a.name {
				of = append(of, r)
			}
		}
		if len(of) == 0 {
			continue
		}
		median := func(format string, value func(*restart) float64) string {
			values := make([]float64, len(of))
			for i, r := range of {
				values[i] = value(r)
			}
			return fmt.Sprintf(format, measure.Median(values))
		}
		passed := ""
		if of[0].Passed > 0 {
			passed = median("%.2f", func(r *restart) float64 { return r.Passed })
		}
		count, p50, longest := newFoos(of)
		table.Rows = append(table.Rows, []string{a.name,
			median("%.2f", func(r *restart) float64 { return r.Ready }), passed,
			median("%.0f", func(r *restart) float64 { return float64(measure.All(r.Requests)) }),
			median("%.0f", func(r *restart) float64 { return float64(r.Writes) }),
			median("%.2f", func(r *restart) float64 { return r.CPU }),
			median("%.2f", func(r *restart) float64 { return r.First }),
			count, p50, longest,
			median("%.0f", func(r *restart) float64 { return float64(r.Missing) }),
		})
		measure.Add(sorts, of[len(of)-1].Requests)
		last, kinds.Columns = append(last, of[len(of)-1]), append(kinds.Columns, a.name)
	}
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		row := []string{sort}
		for _, r := range last {
			row = append(row, fmt.Sprint(r.Requests[sort]))
		}
		kinds.Rows = append(kinds.Rows, row)
	}
	return &proof.Section{
		Title: "Restart",
		Text: []string{fmt.Sprintf("A controller starts with %d Foos that are as they should be, in each round once with nothing else to do, and once more while a new one is made "+
			"every %s. Of these, the time is told of those that were made after its caches were filled and before it had looked at all others, by how long that took "+
			"the time before. The sample-controller does not tell when that is: there, those count that were made within %[3]s after its caches were filled. Requests, "+
			"of the first start, are all until %[3]s after the caches were filled. Writes are those for objects: that somebody leads is told by a lease and an event.",
			f.Scale.Restart, newFoosApart, startTime)},
		Tables: []proof.Table{table, kinds},
	}
}

// newFoos returns cells: how many new Foos were made while a controller looked at all others, in all restarts, and the medians of how long
// half of them took and how long the longest did, of the restarts with such Foos.
func newFoos(restarts []*restart) (count, p50, longest string) {
	all, halves, most := 0, []float64{}, []float64{}
	for _, r := range restarts {
		if r.NewFoosCount > 0 {
			all, halves, most = all+r.NewFoosCount, append(halves, r.NewFoos.P50), append(most, r.NewFoos.Max)
		}
	}
	if all == 0 {
		return "0", "-", "-"
	}
	return fmt.Sprint(all), fmt.Sprintf("%.3f", measure.Median(halves)), fmt.Sprintf("%.3f", measure.Median(most))
}

func (f *found) failoverSection() *proof.Section {
	if len(f.Failovers) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"signal", "longest time without a Foo, s", "least", "most", "times"}}
	plot := proof.Plot{Name: "failover", Title: "How long nobody works when the leader ends", X: proof.Axis{Label: "seconds"}}
	for _, signal := range []string{"SIGTERM", "SIGKILL"} {
		gaps := f.gaps(signal)
		if len(gaps) == 0 {
			continue
		}
		table.Rows = append(table.Rows, []string{signal, fmt.Sprintf("%.2f", measure.Median(gaps)),
			fmt.Sprintf("%.2f", slices.Min(gaps)), fmt.Sprintf("%.2f", slices.Max(gaps)), fmt.Sprint(len(gaps))})
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
