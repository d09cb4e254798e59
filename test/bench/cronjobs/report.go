package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
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
	// Before are the requests until everything had been made and was at rest.
	Before map[string]int `json:"requestsBefore"`
	// Idle is how much CPU time each process takes in a second in which nothing is due, and IdleFor for how many it was
	// measured.
	Idle    map[string]float64 `json:"idleCPU"`
	IdleFor float64            `json:"idleSeconds"`
	// Ticks are the two times that were due.
	Ticks []*tick `json:"ticks"`
}

// tick is one time that everything was due.
type tick struct {
	Due  time.Time `json:"due"`
	Runs int       `json:"runs"`
	// Skews are how much later than due this machine was told of each Job, sorted; CreatedSkews the same by the time that
	// the API server gave it, which is whole seconds.
	Skews        []float64 `json:"skewSeconds"`
	CreatedSkews []float64 `json:"creationTimestampSkewSeconds"`
	// Lags are the least and the most that this machine was told later than the API server says. It leaves out what is
	// less than a second, so it must be 0 to 1, and some for the way.
	Lags     [2]float64     `json:"lagSeconds"`
	Requests map[string]int `json:"requests"`
	// CPU is the CPU time that each process has taken in the time that it took, and CPUFor how long that was.
	CPU    map[string]float64 `json:"cpuSeconds"`
	CPUFor float64            `json:"seconds"`
}

// tickOf returns what the Jobs of a time tell.
func tickOf(due time.Time, made []job) *tick {
	t := &tick{Due: due.UTC(), Runs: len(made), Lags: [2]float64{math.Inf(1), math.Inf(-1)}}
	for _, job := range made {
		lag := job.seen.Sub(job.created).Seconds()
		t.Lags = [2]float64{min(t.Lags[0], lag), max(t.Lags[1], lag)}
		t.Skews = append(t.Skews, job.seen.Sub(due).Seconds())
		t.CreatedSkews = append(t.CreatedSkews, job.created.Sub(due).Seconds())
	}
	slices.Sort(t.Skews)
	slices.Sort(t.CreatedSkews)
	return t
}

// summary is what one side's measurements come to.
type summary struct {
	skews, createdSkews []float64
	lags                [2]float64
	runs, lastRuns      int            // of both times, and of the second
	requests, last      map[string]int // likewise
	cpu                 map[string]float64
	idle                map[string]float64
}

// sum sums up the measurements of a side.
func (r *report) sum(side string) summary {
	s := summary{lags: [2]float64{math.Inf(1), math.Inf(-1)}, requests: map[string]int{}, last: map[string]int{},
		cpu: map[string]float64{}, idle: map[string]float64{}}
	for _, result := range r.Results {
		if result.Side != side {
			continue
		}
		for i, tick := range result.Ticks {
			s.skews = append(s.skews, tick.Skews...)
			s.createdSkews = append(s.createdSkews, tick.CreatedSkews...)
			s.lags = [2]float64{min(s.lags[0], tick.Lags[0]), max(s.lags[1], tick.Lags[1])}
			s.runs += tick.Runs
			measure.Add(s.requests, tick.Requests)
			if i == 1 {
				s.lastRuns += tick.Runs
				measure.Add(s.last, tick.Requests)
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

// print prints the table and how the bars are met. It fails if ours takes too many requests.
func (r *report) print(out io.Writer) error {
	var text strings.Builder
	inTree, ours := r.sum(r.Results[0].Side), r.sum(r.Results[1].Side)
	fmt.Fprintf(&text, "\n%d CronJobs due in the same minute, %d times; Kubernetes %s, %d CPUs\n\n", r.Count,
		inTree.runs/r.Count, r.Kubernetes, r.CPUs)
	line := func(cells ...any) { fmt.Fprintf(&text, "%-44s%16s%12s%10s\n", cells...) }
	row := func(name, format string, of func(summary) float64) {
		a, b := of(inTree), of(ours)
		ratio := ""
		if a > 0 {
			ratio = fmt.Sprintf("%.3f", b/a)
		}
		line("  "+name, fmt.Sprintf(format, a), fmt.Sprintf(format, b), ratio)
	}
	heading := func(heading string) { text.WriteString(heading + "\n") }
	line("", r.Results[0].Side, r.Results[1].Side, "ratio")
	heading("start skew (s)")
	for _, hundredths := range []int{50, 99, 100} {
		row(fmt.Sprintf("p%d", hundredths), "%.2f", func(s summary) float64 {
			return measure.Percentile(s.skews,
				hundredths)
		})
	}
	row("p99 by creationTimestamp", "%.0f", func(s summary) float64 { return measure.Percentile(s.createdSkews, 99) })
	row("watch after creationTimestamp, least", "%.2f", func(s summary) float64 { return s.lags[0] })
	row("most", "%.2f", func(s summary) float64 { return s.lags[1] })
	heading("requests per run, second time")
	r.requestRows(row, func(s summary) (map[string]int, int) { return s.last, s.lastRuns }, inTree, ours)
	heading("requests per run, both times")
	r.requestRows(row, func(s summary) (map[string]int, int) { return s.requests, s.runs }, inTree, ours)
	heading("CPU seconds, more than idle")
	row("controller", "%.2f", func(s summary) float64 { return s.cpu[cronJobController] })
	row("controller, ms per run", "%.2f", func(s summary) float64 {
		return 1000 * s.cpu[cronJobController] / float64(s.runs)
	})
	row("and the other controllers", "%.2f", func(s summary) float64 {
		return s.cpu[cronJobController] +
			s.cpu[controllerManager]
	})
	row("API server", "%.2f", func(s summary) float64 { return s.cpu[apiServer] })
	row("etcd", "%.2f", func(s summary) float64 { return s.cpu[etcd] })
	heading("CPU seconds idle in as long")
	row("controller", "%.2f", func(s summary) float64 { return s.idle[cronJobController] })
	row("the other controllers", "%.2f", func(s summary) float64 { return s.idle[controllerManager] })

	skew := measure.Percentile(ours.skews, 99) / measure.Percentile(inTree.skews, 99)
	met := verdict(skew <= skewBar)
	if r.Count < skewCount {
		met = fmt.Sprintf("that is for %d CronJobs", skewCount)
	}
	fmt.Fprintf(&text, "\np99 of the start skew is %.3f of the in-tree default's; the bar is %.1f: %s\n", skew, skewBar,
		met)
	perRun := float64(measure.All(ours.last)) / float64(ours.lastRuns)
	fmt.Fprintf(&text, "requests per run are %.3f; the bar is %d: %s\n", perRun, requestsBar,
		verdict(perRun <= requestsBar))
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	if perRun > requestsBar {
		return fmt.Errorf("ours takes %.3f requests per run", perRun)
	}
	return nil
}

// requestRows prints a row for all requests and one for each sort.
func (r *report) requestRows(row func(string, string, func(summary) float64), of func(summary) (map[string]int, int),
	sides ...summary) {
	row("all", "%.3f", func(s summary) float64 {
		counts, runs := of(s)
		return float64(measure.All(counts)) / float64(runs)
	})
	sorts := map[string]int{}
	for _, side := range sides {
		counts, _ := of(side)
		measure.Add(sorts, counts)
	}
	for _, sort := range slices.Sorted(maps.Keys(sorts)) {
		row(sort, "%.3f", func(s summary) float64 {
			counts, runs := of(s)
			return float64(counts[sort]) / float64(runs)
		})
	}
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "NOT MET"
}

// write writes everything to a file.
func (r *report) write(path string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}
