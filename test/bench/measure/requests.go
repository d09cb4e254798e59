package measure

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// AuditPolicy returns the policy of an API server that logs every request of some users, and no others.
func AuditPolicy(users ...string) string {
	return `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + strings.Join(users, `", "`) + `"]
- level: None
`
}

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
func RequestTable(title string, controllers []string, requests []map[string]int, by []int) proof.Table {
	sorts := map[string]int{}
	for _, counts := range requests {
		Add(sorts, counts)
	}
	t := proof.Table{Title: title, Columns: append([]string{"request"}, controllers...)}
	for _, sort := range append(slices.Sorted(maps.Keys(sorts)), "all") {
		row := make([]string, 0, 1+len(requests))
		row = append(row, sort)
		for i, counts := range requests {
			count := counts[sort]
			if sort == "all" {
				count = All(counts)
			}
			row = append(row, Digits(float64(count)/float64(by[i])))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
