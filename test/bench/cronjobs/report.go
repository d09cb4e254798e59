package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// The bars. Only the one for requests fails: it is the same on every machine.
const (
	skewBar     = 0.1 // of the in-tree default's p99, with skewCount CronJobs: few go through a limit at once
	skewCount   = 1000
	requestsBar = 4 // per run
)

// The names of the measured numbers.
const (
	inTreeName     = "in-tree default"
	ownName        = "this operator"
	skewP50        = "p50 of the start skew, s"
	skewP99        = "p99 of the start skew, s"
	skewMost       = "longest start skew, s"
	cpuPerRun      = "CPU of the controller, ms per run"
	requestsPerRun = "requests per run, second time"
)

// report prints tables and claims. It returns an error if this operator sends too many requests.
func report(out io.Writer, count int, samples measure.Samples) error {
	of := func(side, number string) []float64 { return samples.Of(side, count).Numbers(number) }
	skew := measure.Bar{What: "p99 of the start skew, as a share of the in-tree default's", Limit: skewBar,
		Values: measure.Ratios(of(ownName, skewP99), of(inTreeName, skewP99))}
	if count < skewCount {
		skew.Unjudged = fmt.Sprintf("the bar is for %d CronJobs", skewCount)
	}
	requests := measure.Bar{What: requestsPerRun, Limit: requestsBar, IsCount: true, Values: of(ownName, requestsPerRun)}
	claim := requests.Claim()
	page := proof.Page{
		Title:    fmt.Sprintf("%d CronJobs due in the same minute, twice", count),
		Settings: []proof.Setting{{Name: "CPUs", Value: fmt.Sprint(runtime.NumCPU())}},
		Sections: []proof.Section{{Title: "Both controllers", Tables: samples.Tables(ownName,
			[]string{skewP50, skewP99, skewMost, cpuPerRun, requestsPerRun}, true)}},
		Claims: []proof.Claim{skew.Claim(), claim},
	}
	if err := page.Print(out); err != nil {
		return err
	}
	if claim.Verdict == proof.Missed {
		return fmt.Errorf("this operator sends %s requests per run; the bar is %d", claim.Found, requestsBar)
	}
	return nil
}
