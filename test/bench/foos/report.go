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

// Bars are the limits that results must meet. Requests and writes do not depend on the machine, so only missing their
// bars is an error.
const (
	requestsBar      = 2.0  // requests per Foo, without events
	eventsBar        = 1.0  // events per Foo
	startRequestsBar = 23   // requests of a restart, with watches and discovery
	rateBar          = 3.0  // times the sample-controller's Foos per second
	floorRateBar     = 0.75 // of the floor's Foos per second
	cpuBar           = 0.5  // of the sample-controller's CPU time
	cpuSecondsBar    = 1.2  // CPU s per 1,000 Foos
	heapBar          = 4500 // bytes per Foo, with its Deployment
	memoryBar        = 110  // MB, of the process that has settled with memoryFoos Foos
	memoryFoos       = 10_000
	startBar         = 1.0          // times the sample-controller's time until its caches are filled
	startMemoryBar   = 2.0 / 3      // of the most memory that the sample-controller has had by then
	syncedBar        = 4.0          // seconds until the caches are filled with Foos
	newBar           = 1.0          // seconds from then until a Foo that was created meanwhile is ready
	stoppedBar       = 5.0          // seconds without a leader after SIGTERM
	killedBar        = 20.0         // likewise, after SIGKILL
	p50Bar, p99Bar   = 0.015, 0.080 // seconds above the floor's latency
	changeBar        = 1.15         // CPU time of a change with the most Foos, as a multiple of that with the fewest
	baselineBar      = 1.10         // times the baseline's CPU time or heap
	mostOthers       = 0.1          // of the machine's CPU for other processes: if they use more, times are not judged
)

// found holds the results of a run; --json writes it to a file.
type found struct {
	Scale    scale
	Run      *proof.Run
	Baseline string // the build that replaces the sample-controller, if any
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
	allocated         = "allocated, MB"
	decoded           = "by decoding"
	slimmed           = "by slimming"
	stored            = "by stores and indexes"
	heap              = "heap, MB"
	memory            = "memory, MB"
	mostMemory        = "most memory, MB"
	idleRequests      = "requests while idle"
	idleWrites        = "writes while idle"
	idleCPU           = "CPU share while idle"
	changeCPU         = "CPU ms per change"
	requestsPerChange = "requests per change"
	gapStopped        = "after SIGTERM, s"
	gapKilled         = "after SIGKILL, s"
)

// section is one benchmark and its section of the page.
type section struct {
	name     string
	measure  func(context.Context, *plane) (measure.Samples, error)
	title    string
	text     string
	numbers  []string
	isPerFoo bool // the request table shows requests per Foo, not per round
}

// Sections that a scale may leave out.
const (
	latencySection  = "latency"
	failoverSection = "failover"
)

var sections = []section{
	{name: "creation", measure: measureCreations, title: "Creation",
		text: fmt.Sprintf("Foos are created, at most %d of them pending at a time.", paced), isPerFoo: true,
		numbers: []string{requestsPerFoo, requestsNoEvents, foosPerSecond, cpuPerFoos, systemPerFoos}},
	{name: latencySection, measure: measureLatencies, title: "Latency",
		text: "Foos are created at half of the rate that the floor reaches in a creation like those above, whether earlier " +
			"ones are ready or not. p50 and p99 are from the time at which a Foo was due until its status is seen to match " +
			"its spec.", isPerFoo: true,
		numbers: []string{foosPerSecond, latencyP50, latencyP99}},
	{name: "start", measure: measureStarts, title: "Start",
		text: "The programs start in turn with the same existing Foos, and are stopped when their caches are filled. The " +
			"operator fills those of all three kinds, the sample-controller those of Foos and Deployments; neither has two " +
			"caches of the same objects. What the operator allocates memory for, whether it keeps it or not, is from its " +
			"allocation profile; slimming removes from objects what is not needed (internal/slim), and the rest is mostly " +
			"the HTTP client's.",
		numbers: []string{readyAfter, mostMemory, startCPU, allocated, decoded, slimmed, stored}},
	{name: "restart", measure: measureRestarts, title: "Restart and memory",
		text: fmt.Sprintf("The operator starts with existing Foos that match their specs, while one new Foo is created. "+
			"Requests, writes and CPU time are counted until %s after all Foos are reconciled. Requests include watches "+
			"and discovery, but not the leader election's lease, access checks for metrics, or the new Foo. At the end of that "+
			"time, the heap is measured after a garbage collection; the most "+
			"memory is the peak RSS, which a memory limit must allow. Then some Foos are scaled. Finally, the "+
			"operator is started again with one of the numbers of Foos: while it is idle, nothing changes, but resyncs "+
			"reconcile all Foos again, about three times.", startTime),
		numbers: []string{readyAfter, newAfter, allAfter, requestsAll, writes, startCPU, heap, memory, mostMemory,
			idleRequests, idleWrites, idleCPU, changeCPU, requestsPerChange}},
	{name: failoverSection, measure: measureFailovers, title: "Failover",
		text: "Foos are created one after the other while the leader of two operators ends: the longest time until one is " +
			"ready. docs/flags.md has the reasons for the parameters of the leader election.",
		numbers: []string{gapStopped, gapKilled}},
}

var introduction = []string{
	"This operator compared with the [Kubernetes sample-controller](https://github.com/kubernetes/sample-controller) " +
		"v0.37.0, whose kind `Foo` it also manages. The programs run one at a time on one etcd and one API server, which " +
		"are new for each section. The sample-controller runs without client-go's default limit of 5 requests a second. " +
		"The floor is a program that creates a Deployment and writes a status, without any logic. `make bench` measures " +
		"everything again.",
	"Numbers are medians of rounds with their 95 % confidence intervals, or with the minimum and maximum if there are " +
		"fewer than 9 rounds. Every other round is in reverse order, and a ratio compares two programs in the same round. " +
		"Requests are counted in the API server's audit log. The number of requests per Foo does not depend on the machine " +
		"for this operator, and depends slightly on timing for the sample-controller. Times are those of this machine.",
	"Pods, networks and disks are not measured: Deployments have no pods, and a simulator writes their status at once; " +
		"everything runs on one machine, etcd does not wait for its disk (`--unsafe-no-fsync`), and no program has a " +
		"memory or CPU limit. The memory of the sample-controller is measured at its start only: it never settles. Not " +
		"measured either: the sample-controller with client-go's default limit, which takes minutes for what takes " +
		"seconds; starts with more Foos beside the sample-controller; Memcacheds and CronJobs at rest, which [write and " +
		"read nothing](reliability.md).",
	fmt.Sprintf("In the section Creation, CPU time is measured from before the first Foo is created until %s after the "+
		"last is ready. The sample-controller's requests are counted over the same time, the operator's until it sends no "+
		"more.", countedAfter),
}

// bars returns the bars of the numbers that were measured.
func (f *found) bars() []measure.Bar {
	own := func(section, name string, foos int) []float64 { // 0 selects any number of Foos
		return f.Samples[section].Of(ownName, foos).Numbers(name)
	}
	ratios := func(section, name, other string) []float64 {
		return measure.Ratios(own(section, name, 0), f.Samples[section].Of(other, 0).Numbers(name))
	}
	aboveFloor := func(name string) []float64 {
		return measure.Differences(own(latencySection, name, 0), f.Samples[latencySection].Of(floorName, 0).Numbers(name))
	}
	counts := func(what, section, name string, limit float64) []measure.Bar {
		all := []measure.Bar{{What: what, Values: own(section, name, 0), Limit: limit, IsCount: true}}
		if base := f.Samples[section].Of(baselineName, 0).Numbers(name); len(base) > 0 {
			all = append(all, measure.Bar{What: what + ", compared with the baseline", Values: own(section, name, 0),
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
				Values: ratios("creation", foosPerSecond, sampleName)},
			{What: "rate, as a share of the floor's", IsLeast: true, Limit: floorRateBar, Unjudged: f.unjudged("creation"),
				Values: ratios("creation", foosPerSecond, floorName)},
			{What: "CPU time of the controller per 1,000 Foos, s", Limit: cpuSecondsBar, Unjudged: f.unjudged("creation"),
				Values: own("creation", cpuPerFoos, 0)},
			{What: "CPU time of the controller, as a share of the sample-controller's", Limit: cpuBar,
				Unjudged: f.unjudged("creation"), Values: ratios("creation", cpuPerFoos, sampleName)},
			{What: "CPU time per 1,000 Foos, times the baseline's", Limit: baselineBar, Unjudged: f.unjudged("creation"),
				Values: ratios("creation", cpuPerFoos, baselineName)},
			{What: "latency p50, s, above the floor's", Limit: p50Bar, Unjudged: f.unjudged(latencySection),
				Values: aboveFloor(latencyP50)},
			{What: "latency p99, s, above the floor's", Limit: p99Bar, Unjudged: f.unjudged(latencySection),
				Values: aboveFloor(latencyP99)},
			{What: "time until the caches are filled, times the sample-controller's", Limit: startBar,
				Unjudged: f.unjudged("start"), Values: ratios("start", readyAfter, sampleName)},
			{What: "most memory until then, as a share of the sample-controller's", Limit: startMemoryBar,
				Unjudged: f.unjudged("start"), Values: ratios("start", mostMemory, sampleName)},
			{What: fmt.Sprintf("seconds until the caches are filled, with %d Foos", f.Scale.Started), Limit: syncedBar,
				Unjudged: f.unjudged("start"), Values: own("start", readyAfter, 0)},
			{What: fmt.Sprintf("seconds from filled caches until a new Foo is ready, with %d Foos", memoryFoos), Limit: newBar,
				Unjudged: f.unjudged("restart"), Values: measure.Differences(own("restart", newAfter, memoryFoos),
					own("restart", readyAfter, memoryFoos))},
			{What: "seconds without a leader after SIGTERM", Limit: stoppedBar, Values: own(failoverSection, gapStopped, 0)},
			{What: "seconds without a leader after SIGKILL", Limit: killedBar, Values: own(failoverSection, gapKilled, 0)},
			{What: fmt.Sprintf("memory with %d Foos, MB", memoryFoos), Limit: memoryBar,
				Values: own("restart", memory, memoryFoos)},
			{What: "bytes of heap per Foo, with its Deployment", Limit: heapBar, Values: f.heapPerFoo(ownName)},
			{What: "heap per Foo, times the baseline's", Limit: baselineBar,
				Values: measure.Ratios(f.heapPerFoo(ownName), f.heapPerFoo(baselineName))},
		})
	if few < many {
		all = append(all, measure.Bar{What: fmt.Sprintf("CPU time of a change with %d Foos, times that with %d", many, few),
			Limit: changeBar, Unjudged: f.unjudged("restart"),
			Values: measure.Ratios(own("restart", changeCPU, many), own("restart", changeCPU, few))})
	}
	return slices.DeleteFunc(all, func(b measure.Bar) bool { return len(b.Values) == 0 })
}

// unjudged returns why the times of a section cannot be judged, or "" if they can.
func (f *found) unjudged(section string) string {
	if most := f.Samples[section].Others(); most > mostOthers {
		return fmt.Sprintf("other processes used up to %.2f of the machine's CPU", most)
	}
	return ""
}

// heapPerFoo returns the bytes of heap per additional Foo, in each round.
func (f *found) heapPerFoo(program string) []float64 {
	few, many := slices.Min(f.Scale.Sizes), slices.Max(f.Scale.Sizes)
	restarts := f.Samples["restart"]
	withFew, withMany := restarts.Of(program, few).Numbers(heap), restarts.Of(program, many).Numbers(heap) // in MB
	if few == many || len(withFew) != len(withMany) {
		return nil
	}
	perFoo := make([]float64, len(withMany))
	for i := range perFoo {
		perFoo[i] = 1e6 * (withMany[i] - withFew[i]) / float64(many-few)
	}
	return perFoo
}

// report prints the results, and writes the page to the directory, if any. Too many requests or writes are an error.
func (f *found) report(out io.Writer, directory string) error {
	page := &proof.Page{Name: "bench", Title: "What the operator costs", Text: introduction,
		Settings: append(f.Run.Settings(), f.Settings...)}
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
	page.Claims = append(page.Claims, f.Run.Claim())
	for _, s := range sections {
		if len(f.Samples[s.name]) > 0 {
			page.Sections = append(page.Sections, proof.Section{Title: s.title, Text: []string{s.text},
				Tables: f.Samples[s.name].Tables(ownName, s.numbers, s.isPerFoo)})
		}
	}
	return errors.Join(append(errs, page.Print(out), f.Run.Write(page, directory))...)
}
