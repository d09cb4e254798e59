package main

import (
	"fmt"
	"slices"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// column is a number of what was measured, in a table.
type column[T any] struct {
	name string
	of   func(T) float64
	// tell tells what the numbers of all rounds come to.
	tell func(numbers []float64) string
}

// median returns how to tell the median of numbers in a format.
func median(format string) func([]float64) string {
	return func(numbers []float64) string { return fmt.Sprintf(format, measure.Median(numbers)) }
}

// knownMedian returns how to tell the median of those numbers that are not 0, which stands for what is not known; "-" if none is.
func knownMedian(format string) func([]float64) string {
	return func(numbers []float64) string {
		known := slices.DeleteFunc(slices.Clone(numbers), func(number float64) bool { return number == 0 })
		if len(known) == 0 {
			return "-"
		}
		return median(format)(known)
	}
}

// most tells the greatest of some shares.
func most(shares []float64) string { return fmt.Sprintf("%.3f", slices.Max(shares)) }

// sum tells the sum of whole numbers.
func sum(numbers []float64) string {
	all := 0.0
	for _, number := range numbers {
		all += number
	}
	return fmt.Sprintf("%.0f", all)
}

// othersColumn is what a column is called that tells how much other processes took of the machine's CPU time; of rounds, the most.
const othersColumn = "share of CPU that others took"

// Columns of batches.
var (
	ofRate      = column[*batch]{"Foos per second", (*batch).rate, median("%.1f")}
	ofRequests  = column[*batch]{"requests per Foo", (*batch).perFoo, median("%.2f")}
	ofConverged = column[*batch]{"converged", func(b *batch) float64 { return float64(b.Converged) }, median("%.0f")}
	ofOthers    = column[*batch]{othersColumn, func(b *batch) float64 { return b.Others }, most}
)

// heads returns what columns are called.
func heads[T any](columns []column[T]) []string {
	return each(columns, func(c column[T]) string { return c.name })
}

// cells returns what columns tell of what was measured.
func cells[T any](columns []column[T], of []T) []string {
	return each(columns, func(c column[T]) string { return c.tell(each(of, c.of)) })
}

// armTable returns a table of what was measured of arms, with a row for each.
func armTable[T any](title string, of map[string][]T, columns ...column[T]) proof.Table {
	table := proof.Table{Title: title, Columns: slices.Concat([]string{"arm"}, heads(columns))}
	for _, a := range []arm{lowest, ours, lifted, stock} {
		if len(of[a.name]) > 0 {
			table.Rows = append(table.Rows, slices.Concat([]string{a.name}, cells(columns, of[a.name])))
		}
	}
	return table
}

// ratioTable returns a table of how many times as much the operator has as others in the same round.
func ratioTable[T any](of map[string][]T, others []arm, columns ...column[T]) proof.Table {
	table := proof.Table{Title: "This operator, as a multiple of others in the same round",
		Columns: slices.Concat([]string{"multiple of"}, each(others, func(other arm) string { return other.name }))}
	for _, c := range columns {
		ratios := each(others, func(other arm) string { return ratio(each(of[ours.name], c.of), each(of[other.name], c.of)) })
		table.Rows = append(table.Rows, slices.Concat([]string{c.name}, ratios))
	}
	return table
}

// ratio tells how many times as much the one numbers are as the others, in pairs; nothing if they are no pairs, "-" of what is 0.
func ratio(own, other []float64) string {
	switch {
	case len(own) == 0 || len(own) != len(other):
		return ""
	case slices.Contains(other, 0):
		return "-"
	}
	return measure.IntervalOf(measure.Ratios(own, other)).String()
}

// bar is the bar of the median of values, with its interval.
func bar(name string, values []float64) proof.Bar {
	i := measure.IntervalOf(values)
	return proof.Bar{Name: name, Value: i.Median, Low: i.Low, High: i.High}
}
