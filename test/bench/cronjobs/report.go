package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// The bars. Only the one for requests fails: it is the same on every machine.
const (
	skewBar     = 0.1 // of the in-tree default's p99, with skewCount CronJobs: few go through a limit at once
	skewCount   = 1000
	requestsBar = 4 // per run
)

const createJobs = "create jobs"

// sideNames are those of the sides, in the order in which they are measured.
var sideNames = []string{"in-tree default", "ours"}

// report is all that was measured: by side and by pair, the first and the second run.
type report struct {
	Count int
	Pairs [2][][]*sample
}

// sample is what one run of all CronJobs has cost.
type sample struct {
	Skews    []float64 // seconds from when it was due until the watch showed each Job, sorted
	Requests map[string]int
	CPU      float64 // seconds of the controller until the side has settled
}

// of returns a number of both runs of each pair of a side.
func (r *report) of(side int, number func(*sample) float64) []float64 {
	var values []float64
	for _, s := range slices.Concat(r.Pairs[side]...) {
		values = append(values, number(s))
	}
	return values
}

func p99(s *sample) float64 { return measure.Percentile(s.Skews, 99) }

// print prints tables and claims. It returns an error if ours sends too many requests.
func (r *report) print(out io.Writer) error {
	times := proof.Table{Columns: append([]string{"both runs"}, sideNames...)}
	row := func(name string, number func(*sample) float64) {
		times.Rows = append(times.Rows, []string{name, measure.IntervalOf(r.of(0, number)).String(),
			measure.IntervalOf(r.of(1, number)).String()})
	}
	row("p50 of the start skew, s", func(s *sample) float64 { return measure.Percentile(s.Skews, 50) })
	row("p99 of the start skew, s", p99)
	row("longest start skew, s", func(s *sample) float64 { return s.Skews[len(s.Skews)-1] })
	row("CPU of the controller, ms per run", func(s *sample) float64 { return 1000 * s.CPU / float64(len(s.Skews)) })
	requests, runs := []map[string]int{{}, {}}, []int{0, 0}
	for side, pairs := range r.Pairs {
		for _, both := range pairs {
			measure.Add(requests[side], both[1].Requests)
			runs[side] += len(both[1].Skews)
		}
	}
	skew := measure.Bar{What: "p99 of the start skew, as a share of the in-tree default's", Limit: skewBar,
		Values: measure.Ratios(r.of(1, p99), r.of(0, p99))} // of the same run of each pair
	if r.Count < skewCount {
		skew.Unjudged = fmt.Sprintf("the bar is for %d CronJobs", skewCount)
	}
	perRun := measure.Bar{What: "requests per run", Limit: requestsBar, IsCount: true,
		Values: []float64{float64(measure.All(requests[1])) / float64(runs[1])}}
	claim := perRun.Claim()
	page := proof.Page{
		Title:    fmt.Sprintf("%d CronJobs due in the same minute, %d times", r.Count, 2*len(r.Pairs[0])),
		Settings: []proof.Setting{{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())}},
		Sections: []proof.Section{{Title: "In-tree and ours", Tables: []proof.Table{times,
			measure.RequestTable("requests per run, second time", sideNames, requests, runs)}}},
		Claims: []proof.Claim{skew.Claim(), claim},
	}
	if err := page.Print(out); err != nil {
		return err
	}
	if claim.Verdict == proof.Missed {
		return fmt.Errorf("ours sends %s requests per run; the bar is %d", claim.Found, requestsBar)
	}
	return nil
}
