package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// column is a number that was measured, in a table.
type column[T any] struct {
	name string
	of   func(T) float64
	// format formats the numbers of all rounds.
	format func(numbers []float64) string
}

// median returns how to format the median of numbers, without those that are 0, which means unknown; "-" if all are.
func median(format string) func([]float64) string {
	return func(numbers []float64) string {
		known := slices.DeleteFunc(slices.Clone(numbers), func(number float64) bool { return number == 0 })
		if len(known) == 0 {
			return "-"
		}
		return fmt.Sprintf(format, measure.Median(known))
	}
}

// most formats the greatest of some shares, and count the sum of whole numbers.
func most(shares []float64) string { return fmt.Sprintf("%.3f", slices.Max(shares)) }

func count(numbers []float64) string {
	sum := 0.0
	for _, number := range numbers {
		sum += number
	}
	return fmt.Sprintf("%.0f", sum)
}

// othersColumn is the share of the machine's CPU time that other processes used, the most of all rounds.
const othersColumn = "share of CPU that others used"

// Columns of batches.
var (
	ofRate      = column[*batch]{"Foos per second", (*batch).rate, median("%.1f")}
	ofConverged = column[*batch]{"ready", func(b *batch) float64 { return float64(b.Converged) }, median("%.0f")}
	ofOthers    = column[*batch]{othersColumn, func(b *batch) float64 { return b.Others }, most}
)

// table returns a table with a row for each program, in the order in which they were measured.
func table[T interface{ programName() string }](all []T, columns ...column[T]) proof.Table {
	t, of := proof.Table{Columns: slices.Concat([]string{"program"}, heads(columns))}, byProgram(all)
	for _, name := range programsOf(all) {
		t.Rows = append(t.Rows, slices.Concat([]string{name}, cells(columns, of[name])))
	}
	return t
}

// ratioTable returns a table of how many times as much this operator has as others in the same round.
func ratioTable[T interface{ programName() string }](all []T, columns ...column[T]) proof.Table {
	of := byProgram(all)
	others := slices.DeleteFunc(programsOf(all), func(name string) bool { return name == operator.name })
	t := proof.Table{Title: "This operator, as a multiple of others in the same round",
		Columns: slices.Concat([]string{"multiple of"}, others)}
	for _, c := range columns {
		t.Rows = append(t.Rows, slices.Concat([]string{c.name}, each(others, func(other string) string {
			return ratio(each(of[operator.name], c.of), each(of[other], c.of))
		})))
	}
	return t
}

// ratio formats the quotients of pairs; nothing if there are no pairs, "-" if a divisor is 0.
func ratio(own, other []float64) string {
	switch {
	case len(own) == 0 || len(own) != len(other):
		return ""
	case slices.Contains(other, 0):
		return "-"
	}
	return measure.IntervalOf(measure.Ratios(own, other)).String()
}

// requestTable returns a table of how many requests of each sort programs sent, each of them divided by something.
func requestTable(title, head string, programs []string, requests []map[string]int, by []float64,
	format string) proof.Table {
	t, sorts := proof.Table{Title: title, Columns: slices.Concat([]string{head}, programs)}, map[string]int{}
	row := func(name string, of func(map[string]int) int) {
		cells := append(make([]string, 0, 1+len(requests)), name)
		for i, counts := range requests {
			cells = append(cells, fmt.Sprintf(format, float64(of(counts))/by[i]))
		}
		t.Rows = append(t.Rows, cells)
	}
	for _, counts := range requests {
		measure.Add(sorts, counts)
	}
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		row(sort, func(counts map[string]int) int { return counts[sort] })
	}
	row("all", measure.All)
	return t
}

func heads[T any](columns []column[T]) []string {
	return each(columns, func(c column[T]) string { return c.name })
}

func cells[T any](columns []column[T], of []T) []string {
	return each(columns, func(c column[T]) string { return c.format(each(of, c.of)) })
}

// bar is the bar of the median of values, with its interval.
func bar(name string, values []float64) proof.Bar {
	i := measure.IntervalOf(values)
	return proof.Bar{Name: name, Value: i.Median, Low: i.Low, High: i.High}
}

// programsOf returns the programs of results, in their order.
func programsOf[T interface{ programName() string }](all []T) []string {
	var programs []string
	for _, one := range all {
		if !slices.Contains(programs, one.programName()) {
			programs = append(programs, one.programName())
		}
	}
	return programs
}

// byProgram returns the results of each program, in the order of the rounds.
func byProgram[T interface{ programName() string }](all []T) map[string][]T {
	of := map[string][]T{}
	for _, one := range all {
		of[one.programName()] = append(of[one.programName()], one)
	}
	return of
}

// each returns the result of a function for each of many.
func each[T, R any](all []T, of func(T) R) []R {
	results := make([]R, len(all))
	for i, one := range all {
		results[i] = of(one)
	}
	return results
}
