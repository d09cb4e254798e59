package measure

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// AuditPolicy returns an audit policy that logs only the requests of the given users. It omits the RequestReceived
// stage so that each request is not logged, and counted, twice.
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

// Counted returns the number of requests by verb and resource, such as "create jobs". Requests with a status code of
// 300 or higher are counted separately for each code, such as "create jobs (409)".
func Counted(requests []testenv.Request) map[string]int {
	counts := map[string]int{}
	for _, request := range requests {
		name := request.Verb + " " + request.Resource
		if request.Code >= 300 {
			name += fmt.Sprintf(" (%d)", request.Code)
		}
		counts[name]++
	}
	return counts
}

// Add adds counts to sums.
func Add(sums, counts map[string]int) {
	for name, count := range counts {
		sums[name] += count
	}
}

// All returns the total of counts.
func All(counts map[string]int) int {
	sum := 0
	for _, count := range counts {
		sum += count
	}
	return sum
}

// RequestTable returns a table with a row for each name that Counted returned, and a last row with the totals.
// The column headings[i] shows counts[i] divided by divisors[i], such as the number of rounds.
func RequestTable(title string, headings []string, counts []map[string]int, divisors []int) proof.Table {
	sums := map[string]int{}
	for _, column := range counts {
		Add(sums, column)
	}
	t := proof.Table{Title: title, Columns: append([]string{"request"}, headings...)}
	for _, name := range append(slices.Sorted(maps.Keys(sums)), "all") {
		row := make([]string, 0, 1+len(counts))
		row = append(row, name)
		for i, column := range counts {
			count := column[name]
			if name == "all" {
				count = All(column)
			}
			row = append(row, Digits(float64(count)/float64(divisors[i])))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
