package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

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

// report is all that was measured.
type report struct {
	Begun   time.Time `json:"begun"`
	Count   int       `json:"count"`
	Results []*result `json:"results"`
}

// result is what one measurement of one side has found, at the two times that were due.
type result struct {
	Side  string  `json:"side"`
	Ticks []*tick `json:"ticks"`
}

// tick is one time that everything was due.
type tick struct {
	Due time.Time `json:"due"`
	// Skews are how many seconds after it was due the watch showed each Job.
	Skews    []float64      `json:"skewSeconds"`
	Requests map[string]int `json:"requests"`
	// CPU is the CPU time of the controller until the side was at rest.
	CPU float64 `json:"cpuSeconds"`
}

// tickOf returns what the Jobs of a time show.
func tickOf(due time.Time, made []job) *tick {
	t := &tick{Due: due.UTC()}
	for _, job := range made {
		t.Skews = append(t.Skews, job.seen.Sub(due).Seconds())
	}
	slices.Sort(t.Skews)
	return t
}

// summary is the sum of one side's measurements.
type summary struct {
	skews    []float64      // of both times, sorted
	runs     int            // of the second time
	requests map[string]int // of the second time
	cpu      float64        // of both times
}

// sum sums up the measurements of a side.
func (r *report) sum(side string) summary {
	s := summary{requests: map[string]int{}}
	for _, result := range r.Results {
		if result.Side != side {
			continue
		}
		for _, tick := range result.Ticks {
			s.skews, s.cpu = append(s.skews, tick.Skews...), s.cpu+tick.CPU
		}
		second := result.Ticks[1]
		s.runs += len(second.Skews)
		measure.Add(s.requests, second.Requests)
	}
	slices.Sort(s.skews)
	return s
}

// print prints tables and whether the bars are met. It returns an error if ours sends too many requests.
func (r *report) print(out io.Writer) error {
	sides := []string{r.Results[0].Side, r.Results[1].Side}
	inTree, ours := r.sum(sides[0]), r.sum(sides[1])
	times := proof.Table{Columns: append([]string{"times"}, sides...)}
	for _, p := range []int{50, 99, 100} {
		times.Rows = append(times.Rows, []string{fmt.Sprintf("p%d of the start skew, s", p),
			fmt.Sprintf("%.2f", measure.Percentile(inTree.skews, p)), fmt.Sprintf("%.2f", measure.Percentile(ours.skews, p))})
	}
	times.Rows = append(times.Rows, []string{"CPU of the controller, ms per run", inTree.cpuPerRun(), ours.cpuPerRun()})
	page := proof.Page{
		Title:    fmt.Sprintf("%d CronJobs due in the same minute, %d times", r.Count, len(ours.skews)/r.Count),
		Settings: []proof.Setting{{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())}},
		Sections: []proof.Section{{Title: "In-tree and ours", Tables: []proof.Table{times,
			measure.RequestTable("requests per run, second time", sides, []map[string]int{inTree.requests, ours.requests},
				[]int{inTree.runs, ours.runs}, "%.3f")}}},
		Claims: r.claims(inTree, ours),
	}
	if err := page.Print(out); err != nil {
		return err
	}
	if ours.perRun() > requestsBar {
		return fmt.Errorf("ours sends %.3f requests per run; the bar is %d", ours.perRun(), requestsBar)
	}
	return nil
}

// cpuPerRun returns the milliseconds of CPU time of the controller for a run.
func (s summary) cpuPerRun() string {
	return fmt.Sprintf("%.2f", 1000*s.cpu/float64(len(s.skews)))
}

// perRun returns how many requests a run takes the second time.
func (s summary) perRun() float64 { return float64(measure.All(s.requests)) / float64(s.runs) }

// claims compares both sides with the bars. With few CronJobs, the start skew is not judged.
func (r *report) claims(inTree, ours summary) []proof.Claim {
	share := measure.Percentile(ours.skews, 99) / measure.Percentile(inTree.skews, 99)
	skew := proof.Claim{What: "p99 of the start skew, as a share of the in-tree default's",
		Bar: fmt.Sprintf("at most %.1f", skewBar), Found: fmt.Sprintf("%.3f", share), Verdict: proof.Judge(share <= skewBar)}
	if r.Count < skewCount {
		skew.Verdict, skew.Note = proof.NotJudged, fmt.Sprintf("the bar is for %d CronJobs", skewCount)
	}
	return []proof.Claim{skew, {What: "requests per run", Bar: fmt.Sprintf("at most %d", requestsBar),
		Found: fmt.Sprintf("%.3f", ours.perRun()), Verdict: proof.Judge(ours.perRun() <= requestsBar)}}
}
