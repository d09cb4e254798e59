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
	page.Sections = append(page.Sections, proof.Section{Title: "What this does not judge", Tables: []proof.Table{limits}})
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

// limits are what the benchmark cannot tell.
var limits = proof.Table{
	Columns: []string{"what", "why"},
	Rows: [][]string{
		{"pods, networks and disks", "a simulator stands for the controller of Deployments and for kubelets, all runs on one machine, and etcd does not wait for its disk"},
		{"the floor at rest, its memory, and its restart", "it keeps nothing, and looks at nothing again"},
		{"the sample-controller with its limits, but for its requests and its rate", "they limit nothing else: where it is not named, it is the one without them"},
		{"failover of others", "none of them has a leader election"},
		{"what collecting garbage costs a change with many Foos", "changes are counted from a collection on, and with that much memory it is by chance whether the next one falls into them"},
	},
}

var introduction = []string{
	"This operator beside the [Kubernetes sample-controller](https://github.com/kubernetes/sample-controller) v0.37.0, whose kind `Foo` it manages too, " +
		"on one etcd and one API server, new for each section. `make bench` measures all of it again.",
	"The sample-controller is there twice: as it is, with the 5 requests a second that client-go allows a client by default, and without that limit. " +
		"The floor is a program that makes only the writes that nobody could do without, as cheaply as they can be made, and nothing else. What it achieves stands for the most that the machine allows. " +
		"Deployments have no pods: a simulator writes their status at once, so that nothing but controllers is measured.",
	"Numbers are medians of rounds, but the share of CPU that other processes took is the most of all rounds, and numbers of Foos in a restart are sums; a ratio is " +
		"that of two arms in the same round, with the interval that it may be in. What was measured once has none. Requests are counted in the API server's audit " +
		"log. This operator's requests for a Foo are the same on every machine; those of the sample-controllers depend on time a little, and times are those of this machine.",
	"etcd does not wait for the disk here (`--unsafe-no-fsync`), so that it is CPU time that limits all arms and not one disk; and no program has a limit to its " +
		"memory or CPU time.",
	fmt.Sprintf("Where Foos are made, the CPU time of all arms is read from before the first until %s after the last is as it should be, or the time is up. Requests "+
		"of the sample-controller, which never rests, are counted until then, too, and those of this operator and the floor until they request nothing more.", countedAfter),
}

func (f *found) requestsSection() *proof.Section {
	if len(f.Paced) == 0 {
		return nil
	}
	sorts := map[string]int{}
	table := proof.Table{Columns: []string{"requests per Foo"}}
	plot := proof.Plot{Name: "requests", Title: "Requests for each Foo, from its creation on", X: proof.Axis{Label: "requests"}}
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
	rates := armTable("How fast that was", byArm(f.Paced), ofRate, ofConverged, ofOthers)
	return &proof.Section{
		Title: "Requests",
		Text: []string{fmt.Sprintf("%d Foos, no more than %d of them under way at a time. Each arm was measured once, so there is no interval. The sample-controller with its "+
			"limits made as many as it could in %s; its requests for those that were not ready by then are counted too.", f.Scale.Paced, paced, f.Scale.StockTime)},
		Tables: []proof.Table{table, rates},
		Plots:  []proof.Plot{plot},
	}
}

func (f *found) rateSection() *proof.Section {
	if len(f.Bursts) == 0 {
		return nil
	}
	compared := []column[*batch]{
		ofRate,
		ofRequests,
		{"controller, CPU s per 1,000 Foos", (*batch).controller, median("%.2f")},
		{"controller, API server and etcd, CPU s per 1,000", (*batch).system, median("%.2f")},
	}
	of := byArm(f.Bursts)
	table := armTable("", of, append(slices.Clone(compared), ofConverged, ofOthers)...)
	rates := proof.Plot{Name: "rate", Title: fmt.Sprintf("Foos that converge in a second, of %d made at once", f.Scale.Burst), X: proof.Axis{Label: "Foos per second"}}
	cpu := proof.Plot{Name: "cpu", Title: "CPU time of the controller for 1,000 Foos", X: proof.Axis{Label: "seconds"}}
	for _, a := range []arm{lowest, ours, lifted, stock} {
		if len(of[a.name]) == 0 {
			continue
		}
		rates.Bars = append(rates.Bars, bar(a.name, each(of[a.name], (*batch).rate)))
		if a.name != stock.name { // which makes too few for its time to be that of a Foo
			cpu.Bars = append(cpu.Bars, bar(a.name, each(of[a.name], (*batch).controller)))
		}
	}
	return &proof.Section{
		Title: "Rate and CPU time",
		Text: []string{fmt.Sprintf("%d Foos are made at once, in %d rounds; the arms follow each other, in every other round the other way round. "+
			"The stock sample-controller would take too long, so its rate is that of %s, and its CPU time for 1,000 Foos is that of all it did in that time, by the few that "+
			"came of it; the bar takes the rates with paced Foos instead, its own and this operator's, of the section before.", f.Scale.Burst, f.Scale.Rounds, f.Scale.StockTime)},
		Tables: []proof.Table{table, ratioTable(of, []arm{lowest, lifted}, compared...)},
		Plots:  []proof.Plot{rates, cpu},
	}
}

func (f *found) latencySection() *proof.Section {
	if len(f.Steady) == 0 {
		return nil
	}
	milliseconds := func(of func(spread) float64) func(*batch) float64 {
		return func(b *batch) float64 { return 1000 * of(b.Latency) }
	}
	times := []column[*batch]{
		{"p50, ms", milliseconds(func(s spread) float64 { return s.P50 }), median("%.1f")},
		{"p99, ms", milliseconds(func(s spread) float64 { return s.P99 }), median("%.1f")},
		{"longest, ms", milliseconds(func(s spread) float64 { return s.Max }), median("%.0f")},
	}
	of := byArm(f.Steady)
	table := armTable("", of, append(slices.Clone(times), ofRate, ofRequests, ofOthers)...)
	return &proof.Section{
		Title: "Time to converge",
		Text: []string{fmt.Sprintf("%d Foos come at a steady rate, half of what the floor can do, whatever becomes of those before. "+
			"The time is from when a Foo was to be made until a watch shows its status as it should be. Who makes fewer Foos a second than come has Foos wait for those "+
			"before them: its times are those of the queue, and the longer the more Foos come.", f.Scale.Steady)},
		Tables: []proof.Table{table, ratioTable(of, []arm{lowest, lifted}, times...)},
	}
}
