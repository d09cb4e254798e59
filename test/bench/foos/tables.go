package main

import (
	"fmt"
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

// most returns how to format the greatest of numbers.
func most(format string) func([]float64) string {
	return func(numbers []float64) string { return fmt.Sprintf(format, slices.Max(numbers)) }
}

// othersColumn is the share of the machine's CPU time that other processes used, the most of all rounds.
const othersColumn = "share of CPU that others used"

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
			if i, isPaired := ratios(of[operator.name], of[other], c.of); isPaired {
				return i.String()
			}
			return ""
		})))
	}
	return t
}

func heads[T any](columns []column[T]) []string {
	return each(columns, func(c column[T]) string { return c.name })
}

func cells[T any](columns []column[T], of []T) []string {
	return each(columns, func(c column[T]) string { return c.format(each(of, c.of)) })
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
