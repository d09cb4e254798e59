package measure

import (
	"fmt"
	"maps"
	"slices"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// Counted returns how many requests of each sort there are; those that failed are sorts of their own.
func Counted(requests []testenv.Request) map[string]int {
	counts := map[string]int{}
	for _, request := range requests {
		sort := request.Verb + " " + request.Resource
		if request.Code >= 300 {
			sort += fmt.Sprintf(" (%d)", request.Code)
		}
		counts[sort]++
	}
	return counts
}

// Add adds counts to sums.
func Add(sums, counts map[string]int) {
	for name, count := range counts {
		sums[name] += count
	}
}

// All returns the sum of all counts.
func All(counts map[string]int) int {
	sum := 0
	for _, count := range counts {
		sum += count
	}
	return sum
}

// RequestTable returns a table of how many requests of each sort controllers sent, those of each divided by a number.
func RequestTable(head string, controllers []string, requests []map[string]int, by []int, format string) proof.Table {
	t, sorts := proof.Table{Columns: append([]string{head}, controllers...)}, map[string]int{}
	row := func(name string, of func(map[string]int) int) {
		cells := append(make([]string, 0, 1+len(requests)), name)
		for i, counts := range requests {
			cells = append(cells, fmt.Sprintf(format, float64(of(counts))/float64(by[i])))
		}
		t.Rows = append(t.Rows, cells)
	}
	for _, counts := range requests {
		Add(sorts, counts)
	}
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		row(sort, func(counts map[string]int) int { return counts[sort] })
	}
	row("all", All)
	return t
}
