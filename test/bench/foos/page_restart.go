package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// Columns of restarts: those that arms are compared by, and all others.
var (
	startColumns = []column[*restart]{
		{"ready after, s", func(r *restart) float64 { return r.Ready }, median("%.2f")},
		{"requests", func(r *restart) float64 { return float64(measure.All(r.Requests)) }, median("%.0f")},
		{"writes", func(r *restart) float64 { return float64(r.Writes) }, median("%.0f")},
		{"CPU s", func(r *restart) float64 { return r.CPU }, median("%.2f")},
	}
	moreStartColumns = []column[*restart]{
		{"all looked at after, s", func(r *restart) float64 { return r.Passed }, knownMedian("%.2f")},
		{"first new Foo after, s", func(r *restart) float64 { return r.First }, knownMedian("%.2f")},
		{"new Foos", func(r *restart) float64 { return float64(r.NewFoosCount) }, sum},
		{"p50, s", func(r *restart) float64 { return r.NewFoos.P50 }, knownMedian("%.3f")},
		{"longest, s", func(r *restart) float64 { return r.NewFoos.Max }, knownMedian("%.3f")},
		{"not made", func(r *restart) float64 { return float64(r.Missing) }, sum},
		{othersColumn, func(r *restart) float64 { return r.Others }, most},
	}
)

func (f *found) restartSection() *proof.Section {
	if len(f.Restarts) == 0 {
		return nil
	}
	of := byArm(f.Restarts)
	return &proof.Section{
		Title: "Restart",
		Text: []string{fmt.Sprintf("A controller starts with %d Foos that are as they should be, in each round once with nothing else to do, and once more while a new one is made "+
			"every %s. Of these, the time is told of those that were made after its caches were filled and before it had looked at all others, by how long that took "+
			"the time before. The sample-controller does not tell when that is: there, those count that were made within %[3]s after its caches were filled. What was not made "+
			"two minutes after the last is told as such, and is in no time. Requests, of the first start, are all until %[3]s after the caches were filled; writes are those "+
			"for objects: that somebody leads is told by a lease and an event.", f.Scale.Restart, newFoosApart, startTime),
			"The arms follow each other, in every other round the other way round. Who follows the other one has first made all Foos its own: the sample-controller takes " +
				"away from a status what it does not know, and the operator puts it back."},
		Tables: []proof.Table{armTable("", of, slices.Concat(startColumns, moreStartColumns)...), ratioTable(of, []arm{lifted}, startColumns...), f.startsTable()},
	}
}

// startsTable tells what was requested in the last round.
func (f *found) startsTable() proof.Table {
	table := proof.Table{Title: "The requests, of the last round", Columns: []string{"request"}}
	of, sorts, last := byArm(f.Restarts), map[string]int{}, []*restart{}
	for _, a := range []arm{ours, lifted} {
		if all := of[a.name]; len(all) > 0 {
			last, table.Columns = append(last, all[len(all)-1]), append(table.Columns, a.name)
			measure.Add(sorts, all[len(all)-1].Requests)
		}
	}
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		counts := each(last, func(r *restart) string { return fmt.Sprint(r.Requests[sort]) })
		table.Rows = append(table.Rows, slices.Concat([]string{sort}, counts))
	}
	return table
}
