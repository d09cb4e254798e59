package main

import (
	"fmt"
	"io"
	"maps"
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
	Begun      time.Time `json:"begun"`
	Kubernetes string    `json:"kubernetes"`
	CPUs       int       `json:"cpus"`
	Count      int       `json:"count"`
	Results    []*result `json:"results"`
}

// result is what one measurement of one side has found.
type result struct {
	Side string `json:"side"`
	// Before are the requests until everything had been created and was at rest.
	Before map[string]int `json:"requestsBefore"`
	// Idle is the CPU time of each process in a second in which nothing is due, measured for IdleFor seconds.
	Idle    map[string]float64 `json:"idleCPU"`
	IdleFor float64            `json:"idleSeconds"`
	// Ticks are the two times that were due.
	Ticks []*tick `json:"ticks"`
}

// tick is one time that everything was due.
type tick struct {
	Due  time.Time `json:"due"`
	Runs int       `json:"runs"`
	// Skews are how many seconds after it was due the watch showed each Job, sorted; CreatedSkews the same by its creation
	// timestamp, in whole seconds, so that these are at most a second less.
	Skews        []float64      `json:"skewSeconds"`
	CreatedSkews []float64      `json:"creationTimestampSkewSeconds"`
	Requests     map[string]int `json:"requests"`
	// CPU is the CPU time of each process until the side was at rest, and CPUFor how many seconds that took.
	CPU    map[string]float64 `json:"cpuSeconds"`
	CPUFor float64            `json:"seconds"`
}

// tickOf returns what the Jobs of a time show.
func tickOf(due time.Time, made []job) *tick {
	t := &tick{Due: due.UTC(), Runs: len(made)}
	for _, job := range made {
		t.Skews = append(t.Skews, job.seen.Sub(due).Seconds())
		t.CreatedSkews = append(t.CreatedSkews, job.created.Sub(due).Seconds())
	}
	slices.Sort(t.Skews)
	slices.Sort(t.CreatedSkews)
	return t
}

// summary is the sum of one side's measurements.
type summary struct {
	skews, createdSkews []float64
	runs, lastRuns      int            // of both times, and of the second
	requests            map[string]int // of the second
	cpu, idle           map[string]float64
}

// sum sums up the measurements of a side.
func (r *report) sum(side string) summary {
	s := summary{requests: map[string]int{}, cpu: map[string]float64{}, idle: map[string]float64{}}
	for _, result := range r.Results {
		if result.Side != side {
			continue
		}
		for i, tick := range result.Ticks {
			s.skews, s.createdSkews = append(s.skews, tick.Skews...), append(s.createdSkews, tick.CreatedSkews...)
			s.runs += tick.Runs
			if i == 1 {
				s.lastRuns += tick.Runs
				measure.Add(s.requests, tick.Requests)
			}
			for name, seconds := range tick.CPU {
				idle := result.Idle[name] * tick.CPUFor
				s.cpu[name] += seconds - idle
				s.idle[name] += idle
			}
		}
	}
	slices.Sort(s.skews)
	slices.Sort(s.createdSkews)
	return s
}

// print prints tables and whether the bars are met. It returns an error if ours sends too many requests.
func (r *report) print(out io.Writer) error {
	inTree, ours := r.sum(r.Results[0].Side), r.sum(r.Results[1].Side)
	table := func(title string) proof.Table {
		return proof.Table{Columns: []string{title, r.Results[0].Side, r.Results[1].Side, "ratio"}}
	}
	row := func(t *proof.Table, name, format string, of func(summary) float64) {
		ratio := ""
		if of(inTree) > 0 {
			ratio = fmt.Sprintf("%.3f", of(ours)/of(inTree))
		}
		t.Rows = append(t.Rows, []string{name, fmt.Sprintf(format, of(inTree)), fmt.Sprintf(format, of(ours)), ratio})
	}
	skews, requests, cpu := table("start skew, s"), table("requests per run, second time"), table("CPU, s")
	for _, p := range []int{50, 99, 100} {
		row(&skews, fmt.Sprintf("p%d", p), "%.2f", func(s summary) float64 { return measure.Percentile(s.skews, p) })
	}
	row(&skews, "p99 by creation timestamp", "%.0f", func(s summary) float64 {
		return measure.Percentile(s.createdSkews, 99)
	})
	sorts := maps.Clone(inTree.requests)
	measure.Add(sorts, ours.requests)
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		row(&requests, sort, "%.3f", func(s summary) float64 { return float64(s.requests[sort]) / float64(s.lastRuns) })
	}
	row(&requests, "all", "%.3f", summary.perRun)
	row(&cpu, "controller, ms per run", "%.2f", func(s summary) float64 {
		return 1000 * s.cpu[cronJobController] / float64(s.runs)
	})
	for _, process := range []string{cronJobController, controllerManager, apiServer, etcd} {
		row(&cpu, process+", more than idle", "%.2f", func(s summary) float64 { return s.cpu[process] })
		row(&cpu, process+", idle as long", "%.2f", func(s summary) float64 { return s.idle[process] })
	}
	page := proof.Page{
		Title:    fmt.Sprintf("%d CronJobs due in the same minute, %d times", r.Count, inTree.runs/r.Count),
		Settings: []proof.Setting{{Name: "Kubernetes", Value: r.Kubernetes}, {Name: "CPUs", Value: fmt.Sprint(r.CPUs)}},
		Sections: []proof.Section{{Title: "In-tree and ours", Tables: []proof.Table{skews, requests, cpu}}},
		Claims:   r.claims(inTree, ours),
	}
	if err := page.Print(out); err != nil {
		return err
	}
	if ours.perRun() > requestsBar {
		return fmt.Errorf("ours sends %.3f requests per run; the bar is %d", ours.perRun(), requestsBar)
	}
	return nil
}

// perRun returns how many requests a run takes the second time.
func (s summary) perRun() float64 { return float64(measure.All(s.requests)) / float64(s.lastRuns) }

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
