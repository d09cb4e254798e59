package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// The bars, or limits. Requests and writes do not depend on the machine, so only a miss of their bars is an error.
const (
	requestsBar      = 2.0 // per Foo, without events
	eventsBar        = 1.0 // per Foo
	startRequestsBar = 23
	rateBar          = 3.0  // times the rate of the sample-controller
	cpuBar           = 0.5  // of the CPU time of the sample-controller
	heapBar          = 4500 // bytes for each Foo
	flatBar          = 1.15 // times the CPU time of a change with the fewest Foos
	baselineBar      = 1.10 // times the baseline's
	mostOthers       = 0.1  // the share of the machine that others may use where times are judged
)

// found has all results.
type found struct {
	Scale    scale
	Operator string // a hash of the sources of this operator
	Baseline string // the program that this operator was compared with; empty for the sample-controller
	Settings []proof.Setting
	Samples  map[string]measure.Samples // by section, in the order of the rounds
}

// The names of the measured numbers.
const (
	requestsPerFoo    = "requests per Foo"
	requestsNoEvents  = "requests per Foo, without events"
	foosPerSecond     = "Foos per second"
	latencyP50        = "p50, s"
	latencyP99        = "p99, s"
	cpuPerFoos        = "controller, CPU s per 1,000 Foos"
	systemPerFoos     = "controller, API server and etcd, CPU s per 1,000 Foos"
	requestsAll       = "requests"
	writes            = "writes"
	readyAfter        = "ready after, s"
	newAfter          = "new Foo ready after, s"
	allAfter          = "all reconciled after, s"
	startCPU          = "CPU s"
	heap              = "heap, MB"
	memory            = "memory, MB"
	mostMemory        = "most memory, MB"
	idleRequests      = "requests while idle"
	idleWrites        = "writes while idle"
	idleCPU           = "CPU share while idle"
	changeCPU         = "CPU ms per change"
	requestsPerChange = "requests per change"
)

// section is a part of what is measured.
type section struct {
	name     string
	measure  func(context.Context, *plane) (measure.Samples, error)
	title    string
	text     string
	numbers  []string
	isPerFoo bool // requests are shown per Foo
}

var sections = []section{
	{name: "creation", measure: measureCreations, title: "Creation",
		text: fmt.Sprintf("Foos are created, at most %d of them pending at a time. Seconds are from the creation of a Foo "+
			"until its status is seen to match its spec.", paced), isPerFoo: true,
		numbers: []string{requestsPerFoo, requestsNoEvents, foosPerSecond, latencyP50, latencyP99, cpuPerFoos,
			systemPerFoos}},
	{name: "restart", measure: measureRestarts, title: "Restart and memory",
		text: fmt.Sprintf("The operator starts with Foos that match their specs, and one new Foo is created at the same "+
			"time. Requests (with watches, discovery and authentication, without those for the lease and the new Foo), "+
			"writes for objects and CPU time are those until %s after all Foos are reconciled; the heap is that after a "+
			"garbage collection then, and the most memory is what a memory limit must allow. Then nothing changes for a "+
			"while, but all Foos are reconciled again. At last, some are scaled.", startTime),
		numbers: []string{readyAfter, newAfter, allAfter, requestsAll, writes, startCPU, heap, memory, mostMemory,
			idleRequests, idleWrites, idleCPU, changeCPU, requestsPerChange}},
}

var introduction = []string{
	"This operator beside the [Kubernetes sample-controller](https://github.com/kubernetes/sample-controller) v0.37.0, " +
		"whose kind `Foo` it manages too, on one etcd and one API server, new for each section. The sample-controller runs " +
		"without the limit of 5 requests a second that client-go sets by default. `make bench` measures all of it again.",
	"Numbers are medians of rounds with their 95 % confidence intervals, or the least and the greatest of fewer than 9 " +
		"rounds. Every other round is in reverse order, and a ratio compares two programs in the same round. Requests are " +
		"counted in the API server's audit log. This operator's requests for a Foo are the same on every machine; those of " +
		"the sample-controller depend a little on time, and times are those of this machine.",
	"What this does not judge: pods, networks and disks. Deployments have no pods, and a simulator writes their status " +
		"at once; everything runs on one machine, etcd does not wait for its disk (`--unsafe-no-fsync`), and no program has " +
		"a limit of memory or CPU time. Nor the memory of the sample-controller, which never settles.",
	fmt.Sprintf("Where Foos are created, the CPU time of all programs is read from before the first until %s after the "+
		"last is ready. Requests of the sample-controller are counted until then, too, and those of the operator until it "+
		"sends no more.", countedAfter),
}

// bars returns all bars, including those of numbers that were not measured.
func (f *found) bars() []measure.Bar {
	own := func(section, name string, foos int) []float64 {
		return f.Samples[section].Of(ownName, foos).Numbers(name)
	}
	times := func(section, name, other string, foos int) []float64 {
		return measure.Ratios(own(section, name, foos), f.Samples[section].Of(other, foos).Numbers(name))
	}
	counts := func(what, section, name string, limit float64) []measure.Bar {
		all := []measure.Bar{{What: what, Values: own(section, name, 0), Limit: limit, IsCount: true}}
		if base := f.Samples[section].Of(baselineName, 0).Numbers(name); len(base) > 0 {
			all = append(all, measure.Bar{What: what + ", beside the baseline's", Values: own(section, name, 0),
				Limit: slices.Max(base), IsCount: true})
		}
		return all
	}
	few, many := slices.Min(f.Scale.Sizes), slices.Max(f.Scale.Sizes)
	all := slices.Concat(
		counts(requestsNoEvents, "creation", requestsNoEvents, requestsBar),
		counts("requests per Foo, with events", "creation", requestsPerFoo, requestsBar+eventsBar),
		counts("requests of a restart", "restart", requestsAll, startRequestsBar),
		counts("writes of a restart", "restart", writes, 0),
		counts("writes while idle, during resyncs", "restart", idleWrites, 0),
		[]measure.Bar{
			{What: "rate, times the sample-controller's", IsLeast: true, Limit: rateBar, Unjudged: f.unjudged("creation"),
				Values: times("creation", foosPerSecond, sampleName, 0)},
			{What: "CPU time of the controller, as a share of the sample-controller's", Limit: cpuBar,
				Unjudged: f.unjudged("creation"), Values: times("creation", cpuPerFoos, sampleName, 0)},
			{What: "CPU time for 1,000 Foos, times the baseline's", Limit: baselineBar, Unjudged: f.unjudged("creation"),
				Values: times("creation", cpuPerFoos, baselineName, 0)},
			{What: "bytes of heap for each Foo and its Deployment", Limit: heapBar, Values: f.heapPerFoo(ownName)},
			{What: "heap for each Foo, times the baseline's", Limit: baselineBar,
				Values: measure.Ratios(f.heapPerFoo(ownName), f.heapPerFoo(baselineName))},
		})
	if few < many {
		all = append(all, measure.Bar{What: fmt.Sprintf("CPU time of a change with %d Foos, times that with %d", many, few),
			Limit: flatBar, Unjudged: f.unjudged("restart"),
			Values: measure.Ratios(own("restart", changeCPU, many), own("restart", changeCPU, few))})
	}
	return slices.DeleteFunc(all, func(b measure.Bar) bool { return len(b.Values) == 0 })
}

// unjudged returns the reason why the times of a section cannot be judged; empty if they can.
func (f *found) unjudged(section string) string {
	if most := f.Samples[section].Others(); most > mostOthers {
		return fmt.Sprintf("other processes used up to %.2f of the machine", most)
	}
	return ""
}

// heapPerFoo returns the bytes that each additional Foo takes, in each round.
func (f *found) heapPerFoo(program string) []float64 {
	few, many := slices.Min(f.Scale.Sizes), slices.Max(f.Scale.Sizes)
	less, more := f.Samples["restart"].Of(program, few).Numbers(heap), f.Samples["restart"].Of(program, many).Numbers(heap)
	if few == many || len(less) != len(more) {
		return nil
	}
	for i := range more {
		more[i] = 1e6 * (more[i] - less[i]) / float64(many-few)
	}
	return more
}

// report prints the results, writes the page if there is a directory for it, and returns an error if there are too many
// requests.
func (f *found) report(out io.Writer, directory string) error {
	page := &proof.Page{Name: "bench", Title: "What the operator costs", Text: introduction,
		Settings: append(slices.Clone(f.Settings), proof.OperatorSetting(f.Operator))}
	if f.Baseline != "" {
		page.Settings = append(page.Settings, proof.Setting{Name: baselineName, Value: f.Baseline})
	}
	var errs []error
	for _, b := range f.bars() {
		claim := b.Claim()
		page.Claims = append(page.Claims, claim)
		if b.IsCount && claim.Verdict == proof.Missed {
			errs = append(errs, fmt.Errorf("%s: %s; the bar is %s", claim.What, claim.Found, claim.Bar))
		}
	}
	for _, s := range sections {
		if len(f.Samples[s.name]) > 0 {
			page.Sections = append(page.Sections, proof.Section{Title: s.title, Text: []string{s.text},
				Tables: f.Samples[s.name].Tables(ownName, s.numbers, s.isPerFoo)})
		}
	}
	errs = append(errs, page.Print(out))
	if directory != "" {
		errs = append(errs, page.Write(directory))
	}
	return errors.Join(errs...)
}
