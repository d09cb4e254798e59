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
	perRun := float64(measure.All(requests[1])) / float64(runs[1])
	page := proof.Page{
		Title:    fmt.Sprintf("%d CronJobs due in the same minute, %d times", r.Count, 2*len(r.Pairs[0])),
		Settings: []proof.Setting{{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())}},
		Sections: []proof.Section{{Title: "In-tree and ours", Tables: []proof.Table{times,
			measure.RequestTable("requests per run, second time", sideNames, requests, runs)}}},
		Claims: []proof.Claim{r.skewClaim(), {What: "requests per run", Bar: fmt.Sprintf("at most %d", requestsBar),
			Found: measure.Digits(perRun), Verdict: proof.Judge(perRun <= requestsBar)}},
	}
	if err := page.Print(out); err != nil {
		return err
	}
	if perRun > requestsBar {
		return fmt.Errorf("ours sends %.3f requests per run; the bar is %d", perRun, requestsBar)
	}
	return nil
}

// skewClaim compares the start skews of the same run of each pair. With few CronJobs they are not judged.
func (r *report) skewClaim() proof.Claim {
	inTree, shares := r.of(0, p99), r.of(1, p99)
	for i := range shares {
		shares[i] /= inTree[i]
	}
	share := measure.IntervalOf(shares)
	c := proof.Claim{What: "p99 of the start skew, as a share of the in-tree default's",
		Bar: fmt.Sprintf("at most %.1f", skewBar), Found: share.String(), Verdict: proof.Judge(share.High <= skewBar)}
	switch {
	case r.Count < skewCount:
		c.Verdict, c.Note = proof.NotJudged, fmt.Sprintf("the bar is for %d CronJobs", skewCount)
	case share.Low <= skewBar && share.High > skewBar:
		c.Verdict, c.Note = proof.NotJudged, "the interval includes the bar"
	}
	return c
}
