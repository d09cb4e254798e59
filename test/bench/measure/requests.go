package measure

import (
	"fmt"

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
