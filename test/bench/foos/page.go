package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// report prints what was found, writes the page if there is a directory for it, and fails if too much is requested.
func (f *found) report(out io.Writer, directory string) error {
	limit, err := memoryLimit()
	if err != nil {
		return err
	}
	counted, timed := f.claims()
	page := &proof.Page{
		Name:     "bench",
		Title:    "What the operator costs",
		Text:     introduction,
		Settings: f.settings(),
		Claims:   append(counted, timed...),
		Data:     f,
	}
	for _, section := range []*proof.Section{
		f.requestsSection(), f.rateSection(), f.partsSection(), f.pricesSection(), f.latencySection(),
		f.sizesSection(limit), f.idleSection(), f.restartSection(), f.failoverSection(), f.growthSection(),
	} {
		if section != nil {
			page.Sections = append(page.Sections, *section)
		}
	}
	if err := page.Print(out); err != nil {
		return err
	}
	if directory != "" {
		if err := page.Write(directory); err != nil {
			return err
		}
	}
	var errs []error
	for _, claim := range counted {
		if claim.Verdict == proof.Missed {
			errs = append(errs, fmt.Errorf("%s: %s; the bar is %s", claim.What, claim.Found, claim.Bar))
		}
	}
	return errors.Join(errs...)
}

var introduction = []string{
	"This operator beside the [Kubernetes sample-controller](https://github.com/kubernetes/sample-controller) v0.37.0, whose kind `Foo` it manages too, " +
		"on one etcd and one API server, new for each section. `make bench` measures all of it again.",
	"The sample-controller is there twice: as it is, with the 5 requests a second that client-go allows a client by default, and without that limit. " +
		"The floor is a program that makes only the writes that nobody could do without, and nothing else: what it achieves is the most that the machine allows. " +
		"Deployments have no pods: a simulator writes their status at once, so that nothing but controllers is measured.",
	"Numbers are medians of rounds; a ratio is that of two arms in the same round, with the interval that it may be in. Requests are counted in the " +
		"API server's audit log. Requests are the same on every machine, times are not.",
}

func (f *found) requestsSection() *proof.Section {
	if len(f.Paced) == 0 {
		return nil
	}
	sorts := map[string]int{}
	table := proof.Table{Columns: []string{"requests per Foo"}}
	plot := proof.Plot{Name: "requests", Title: "Requests for each Foo, from its creation until it is as it should be", X: proof.Axis{Label: "requests"}}
	for _, b := range f.Paced {
		measure.Add(sorts, b.Requests)
		table.Columns = append(table.Columns, b.Arm)
		plot.Bars = append(plot.Bars, proof.Bar{Name: b.Arm, Value: b.perFoo()})
	}
	row := func(name string, of func(*batch) int) {
		cells := make([]string, len(f.Paced))
		for i, b := range f.Paced {
			cells[i] = fmt.Sprintf("%.3f", float64(of(b))/float64(b.Converged))
		}
		table.Rows = append(table.Rows, slices.Concat([]string{name}, cells))
	}
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		row(sort, func(b *batch) int { return b.Requests[sort] })
	}
	row("all", func(b *batch) int { return measure.All(b.Requests) })
	cells := []string{"Foos"}
	for _, b := range f.Paced {
		cells = append(cells, fmt.Sprint(b.Converged))
	}
	table.Rows = append(table.Rows, cells)
	return &proof.Section{
		Title: "Requests",
		Text: []string{fmt.Sprintf("%d Foos, no more than %d of them under way at a time. The sample-controller with its limits made as many as it could in %s; "+
			"its requests for those that were not ready by then are counted too.", f.Scale.Paced, paced, f.Scale.StockTime)},
		Tables: []proof.Table{table},
		Plots:  []proof.Plot{plot},
	}
}

// column is a number of a batch in a table.
type column struct {
	name, format string
	of           func(*batch) float64
}

// armTable returns a table of the medians of batches, with a row for each arm.
func armTable(title string, batches []*batch, columns ...column) proof.Table {
	table := proof.Table{Title: title, Columns: []string{"arm"}}
	for _, c := range columns {
		table.Columns = append(table.Columns, c.name)
	}
	for _, a := range []arm{lowest, ours, lifted, stock} {
		var of []*batch
		for _, b := range batches {
			if b.Arm == a.name {
				of = append(of, b)
			}
		}
		if len(of) == 0 {
			continue
		}
		medians := make([]string, len(columns))
		for i, c := range columns {
			medians[i] = fmt.Sprintf(c.format, measure.Median(each(of, c.of)))
		}
		table.Rows = append(table.Rows, slices.Concat([]string{a.name}, medians))
	}
	return table
}

// ratioTable returns a table of how many times as much the operator has as others in the same round.
func ratioTable(batches []*batch, columns ...column) proof.Table {
	table := proof.Table{Title: "This operator, as a multiple of others in the same round", Columns: []string{"multiple of", lowest.name, lifted.name}}
	of := map[string][]*batch{}
	for _, b := range batches {
		of[b.Arm] = append(of[b.Arm], b)
	}
	for _, c := range columns {
		row := []string{c.name}
		for _, other := range []arm{lowest, lifted} {
			if len(of[other.name]) != len(of[ours.name]) || len(of[ours.name]) == 0 {
				row = append(row, "")
				continue
			}
			row = append(row, measure.IntervalOf(measure.Ratios(each(of[ours.name], c.of), each(of[other.name], c.of))).String())
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

func (f *found) rateSection() *proof.Section {
	if len(f.Bursts) == 0 {
		return nil
	}
	compared := []column{
		{"Foos per second", "%.1f", (*batch).rate},
		{"requests per Foo", "%.2f", (*batch).perFoo},
		{"controller, CPU s per 1,000 Foos", "%.2f", (*batch).controller},
		{"controller, API server and etcd, CPU s per 1,000", "%.2f", (*batch).system},
	}
	table := armTable("", f.Bursts, slices.Concat(compared, []column{
		{"converged", "%.0f", func(b *batch) float64 { return float64(b.Converged) }},
		{"share of CPU that others took", "%.3f", func(b *batch) float64 { return b.Others }},
	})...)
	rates := proof.Plot{Name: "rate", Title: fmt.Sprintf("Foos that converge in a second, of %d made at once", f.Scale.Burst), X: proof.Axis{Label: "Foos per second"}}
	cpu := proof.Plot{Name: "cpu", Title: "CPU time of the controller for 1,000 Foos", X: proof.Axis{Label: "seconds"}}
	of := f.rounds()
	for _, a := range []arm{lowest, ours, lifted, stock} {
		if len(of[a.name]) == 0 {
			continue
		}
		rates.Bars = append(rates.Bars, bar(a.name, each(of[a.name], (*batch).rate)))
		cpu.Bars = append(cpu.Bars, bar(a.name, each(of[a.name], (*batch).controller)))
	}
	return &proof.Section{
		Title: "Rate and CPU time",
		Text: []string{fmt.Sprintf("%d Foos are made at once, in %d rounds; the arms follow each other, in every other round the other way round. "+
			"The stock sample-controller would take too long, so its rate is that of %s; the bar takes its rate with paced Foos "+
			"instead, of the section before.", f.Scale.Burst, f.Scale.Rounds, f.Scale.StockTime)},
		Tables: []proof.Table{table, ratioTable(f.Bursts, compared...)},
		Plots:  []proof.Plot{rates, cpu},
	}
}

// bar is the bar of the median of values, with its interval.
func bar(name string, values []float64) proof.Bar {
	i := measure.IntervalOf(values)
	return proof.Bar{Name: name, Value: i.Median, Low: i.Low, High: i.High}
}

func (f *found) latencySection() *proof.Section {
	if len(f.Steady) == 0 {
		return nil
	}
	milliseconds := func(of func(spread) float64) func(*batch) float64 {
		return func(b *batch) float64 { return 1000 * of(b.Latency) }
	}
	times := []column{
		{"p50, ms", "%.1f", milliseconds(func(s spread) float64 { return s.P50 })},
		{"p99, ms", "%.1f", milliseconds(func(s spread) float64 { return s.P99 })},
		{"longest, ms", "%.0f", milliseconds(func(s spread) float64 { return s.Max })},
	}
	table := armTable("", f.Steady, slices.Concat(times, []column{
		{"Foos per second", "%.1f", (*batch).rate},
		{"requests per Foo", "%.2f", (*batch).perFoo},
	})...)
	return &proof.Section{
		Title: "Time to converge",
		Text: []string{fmt.Sprintf("%d Foos come at a steady rate, half of what the floor can do, whatever becomes of those before. "+
			"The time is from when a Foo was to be made until a watch shows its status as it should be.", f.Scale.Steady)},
		Tables: []proof.Table{table, ratioTable(f.Steady, times...)},
	}
}
