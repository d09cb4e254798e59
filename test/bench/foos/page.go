package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// report prints the results, writes the page if there is a directory for it, and returns an error if there are too many
// requests.
func (f *found) report(out io.Writer, directory string) error {
	limit, err := memoryLimit()
	if err != nil {
		return err
	}
	counts, others := f.claims()
	page := &proof.Page{Name: "bench", Title: "What the operator costs", Text: introduction, Settings: f.settings(),
		Claims: append(counts, others...), Data: f}
	for _, section := range []*proof.Section{f.requestsSection(), f.rateSection(), f.sizesSection(limit), f.idleSection(),
		f.restartSection(),
		f.failoverSection(), f.growthSection()} {
		if section != nil {
			page.Sections = append(page.Sections, *section)
		}
	}
	page.Sections = append(page.Sections, proof.Section{Title: "What this does not judge", Tables: []proof.Table{limits}})
	if err := page.Print(out); err != nil {
		return err
	}
	if directory != "" {
		if err := page.Write(directory); err != nil {
			return err
		}
	}
	var errs []error
	for _, claim := range counts {
		if claim.Verdict == proof.Missed {
			errs = append(errs, fmt.Errorf("%s: %s; the bar is %s", claim.What, claim.Found, claim.Bar))
		}
	}
	return errors.Join(errs...)
}

// settings returns what the numbers depend on, and when each section was measured.
func (f *found) settings() []proof.Setting {
	all := append(slices.Clone(f.Settings), proof.OperatorSetting(f.Operator),
		proof.Setting{Name: "benchmark, by a hash of its sources", Value: f.Benchmark})
	if f.Baseline != "" {
		all = append(all, proof.Setting{Name: baselineName, Value: f.Baseline})
	}
	for _, name := range names(sections) {
		if at, isMeasured := f.Measured[name]; isMeasured {
			all = append(all, proof.Setting{Name: "section " + name, Value: at.UTC().Format(time.DateTime) + " UTC"})
		}
	}
	return all
}

// limits are what the benchmark cannot show.
var limits = proof.Table{
	Columns: []string{"what", "why"},
	Rows: [][]string{
		{"pods, networks and disks", "the Deployment controller and kubelets are simulated, everything runs on one " +
			"machine, and etcd does not wait for its disk"},
		{"the memory of the sample-controller, and the floor at rest and after a restart",
			"the one is never at rest, so that its heap cannot be compared, and the other has no caches and no resync"},
		{"the sample-controller with its limits, except requests and paced rate",
			"the limits affect nothing else: all other numbers are those without limits"},
		{"failover of others", "they have no leader election"},
	},
}

var introduction = []string{
	"This operator beside the [Kubernetes sample-controller](https://github.com/kubernetes/sample-controller) v0.37.0, " +
		"whose kind `Foo` it manages too, " +
		"on one etcd and one API server, new for each section. `make bench` measures all of it again.",
	"The sample-controller is measured twice: as it is, with the 5 requests a second that client-go allows a client by " +
		"default, and without that limit. " +
		"The floor is a program that sends only the writes that no controller of Foos can do without. Its rate is the " +
		"highest that the machine allows. " +
		"Deployments have no pods: a simulator writes their status at once, so that only controllers are measured.",
	"Numbers are medians of rounds, but the share of CPU that other processes used is the most of all rounds. A ratio " +
		"compares two programs in the same " +
		"round; its interval is given. Numbers that were measured once have no interval. Requests are counted in the API " +
		"server's audit log. This operator's " +
		"requests for a Foo are the same on every machine; those of the sample-controllers depend a little on time, and " +
		"times are those of this machine.",
	"etcd does not wait for the disk (`--unsafe-no-fsync`), so that CPU time limits all programs and not one disk; no " +
		"program has a limit of memory or CPU time.",
	fmt.Sprintf("Where Foos are created, the CPU time of all programs is read from before the first until %s after the "+
		"last is ready, or the time is up. Requests "+
		"of the sample-controller, which is never at rest, are counted until then, too, and those of the others until they "+
		"send no more.", countedAfter),
}

func (f *found) requestsSection() *proof.Section {
	if len(f.Paced) == 0 {
		return nil
	}
	requests := requestTable("", "requests per Foo", programsOf(f.Paced), each(f.Paced,
		func(b *batch) map[string]int { return b.Requests }),
		each(f.Paced, func(b *batch) float64 { return float64(b.Converged) }), "%.3f")
	rates := table(f.Paced, ofRate, column[*batch]{"p50, s", func(b *batch) float64 { return b.Latency.P50 },
		median("%.3f")},
		column[*batch]{"p99, s", func(b *batch) float64 { return b.Latency.P99 }, median("%.3f")}, ofConverged, ofOthers)
	rates.Title = "How fast that was, and how long a Foo took"
	return &proof.Section{
		Title: "Requests",
		Text: []string{fmt.Sprintf("%d Foos, at most %d of them pending at a time. Each program was measured once, so "+
			"there is no interval. The sample-controller "+
			"with its limits has %s; its requests for Foos that were not ready by then count, too.", f.Scale.Paced, paced,
			f.Scale.StockTime)},
		Tables: []proof.Table{requests, rates},
		Plots: []proof.Plot{{Name: "requests", Title: "Requests for each new Foo", X: proof.Axis{Label: "requests"},
			Bars: each(f.Paced, func(b *batch) proof.Bar { return proof.Bar{Name: b.Program, Value: b.perFoo()} })}},
	}
}

func (f *found) rateSection() *proof.Section {
	if len(f.Bursts) == 0 {
		return nil
	}
	compared := []column[*batch]{
		ofRate,
		{"requests per Foo", (*batch).perFoo, median("%.2f")},
		{"controller, CPU s per 1,000 Foos", (*batch).controller, median("%.2f")},
		{"controller, API server and etcd, CPU s per 1,000", (*batch).system, median("%.2f")},
	}
	of, programs := byProgram(f.Bursts), programsOf(f.Bursts)
	bars := func(value func(*batch) float64) []proof.Bar {
		return each(programs, func(name string) proof.Bar { return bar(name, each(of[name], value)) })
	}
	return &proof.Section{
		Title: "Rate and CPU time",
		Text: []string{fmt.Sprintf("%d Foos are created at once, in %d rounds of all programs; every other round is in "+
			"reverse order. "+
			"The sample-controller with its limits would take too long: its rate is that of the section before.", f.Scale.Burst,
			f.Scale.Rounds)},
		Tables: []proof.Table{table(f.Bursts, append(slices.Clone(compared), ofOthers)...),
			ratioTable(f.Bursts, compared...)},
		Plots: []proof.Plot{
			{Name: "rate", Title: fmt.Sprintf("Foos that become ready in a second, of %d created at once", f.Scale.Burst),
				X: proof.Axis{Label: "Foos per second"}, Bars: bars((*batch).rate)},
			{Name: "cpu", Title: "CPU time of the controller for 1,000 Foos", X: proof.Axis{Label: "seconds"},
				Bars: bars((*batch).controller)},
		},
	}
}

// sizeColumns are the columns of sizes.
var sizeColumns = []column[*size]{
	{"heap, MB", func(s *size) float64 { return megabytes(s.Heap) }, median("%.1f")},
	{"memory, MB", func(s *size) float64 { return megabytes(s.RSS) }, median("%.1f")},
	{"most memory, MB", func(s *size) float64 { return megabytes(s.Peak) }, median("%.1f")},
	{"ready after, s", func(s *size) float64 { return s.Ready }, median("%.2f")},
	{"CPU ms per change", (*size).change, median("%.2f")},
	{"requests per change", func(s *size) float64 { return s.Change.perFoo() }, median("%.2f")},
	{othersColumn, func(s *size) float64 { return s.Change.Others }, most},
}

func (s *size) programName() string { return s.Program }

func (f *found) sizesSection(limit resource.Quantity) *proof.Section {
	if len(f.Sizes) == 0 {
		return nil
	}
	sizes := proof.Table{Columns: slices.Concat([]string{"program", "Foos"}, heads(sizeColumns))}
	perFoo := proof.Table{Title: "For each Foo with its Deployment", Columns: []string{"program", "bytes of heap",
		"bytes of memory"}}
	heap := proof.Plot{Name: "heap", Title: "Live heap", X: proof.Axis{Label: "Foos", Log: true},
		Y: proof.Axis{Label: "MB"}}
	for _, name := range programsOf(f.Sizes) {
		line := proof.Line{Name: name}
		for _, count := range f.Scale.Sizes {
			of := f.sizesOf(name, count)
			sizes.Rows = append(sizes.Rows, slices.Concat([]string{name, fmt.Sprint(count)}, cells(sizeColumns, of)))
			line.Points = append(line.Points, proof.Point{X: float64(count), Y: measure.Median(each(of, sizeColumns[0].of))})
		}
		heap.Lines = append(heap.Lines, line)
		slope := func(of func(*size) int64) string { return measure.IntervalOf(f.slopes(name, of)).String() }
		perFoo.Rows = append(perFoo.Rows, []string{name, slope(func(s *size) int64 { return s.Heap }),
			slope(func(s *size) int64 { return s.RSS })})
	}
	return &proof.Section{
		Title: "Memory, and changes among many Foos",
		Text: []string{fmt.Sprintf("Newly started operators, each of which watches one namespace with so many Foos, in %d "+
			"rounds of all sizes, every other one in "+
			"reverse order. In each, Foos are scaled.", f.Scale.Rounds),
			fmt.Sprintf("By the most memory that a start used, the operator can start with %s Foos and their Deployments "+
				"within the limit of `config/manager`, %s. "+
				"For more, raise the limit: `spec.config.resources` of the Subscription.", f.capacity(limit.Value()),
				limit.String()),
		},
		Tables: []proof.Table{sizes, perFoo},
		Plots:  []proof.Plot{heap},
	}
}

// capacity returns how many Foos a memory limit is enough for when the operator starts, which takes more memory than to
// run: where the line through the most memory of each size reaches the limit, rounded down. It does not extrapolate.
func (f *found) capacity(limit int64) string {
	var foos, memory float64 // of the size before
	for _, count := range f.Scale.Sizes {
		of := f.sizesOf(operator.name, count)
		if len(of) == 0 {
			continue
		}
		most := slices.Max(each(of, func(s *size) float64 { return float64(s.Peak) }))
		if most >= float64(limit) {
			if foos == 0 {
				return fmt.Sprintf("fewer than %d", count)
			}
			return fmt.Sprintf("about %d", roundDown(foos+(float64(count)-foos)*(float64(limit)-memory)/(most-memory)))
		}
		foos, memory = float64(count), most
	}
	return fmt.Sprintf("more than %.0f", foos)
}

// roundDown rounds a number down to whole thousands, or to two digits if it is less than ten thousand.
func roundDown(value float64) int {
	step := 1000
	for step > 1 && value < float64(10*step) {
		step /= 10
	}
	return int(value) / step * step
}

func (f *found) idleSection() *proof.Section {
	if len(f.Idle) == 0 {
		return nil
	}
	t := proof.Table{Columns: []string{"program", "Foos", "seconds", "resyncs", "requests", "writes",
		"CPU share of the controller", othersColumn}}
	for _, i := range f.Idle {
		resyncs := "every 30 s"
		if i.Resyncs > 0 {
			resyncs = fmt.Sprintf("%d times", i.Resyncs)
		}
		t.Rows = append(t.Rows, []string{i.Program, fmt.Sprint(i.Foos), fmt.Sprintf("%.0f", i.Seconds), resyncs,
			fmt.Sprint(measure.All(i.Requests)),
			fmt.Sprint(i.Writes), fmt.Sprintf("%.4f", i.CPU[controllerProcess]/i.Seconds), most([]float64{i.Others})})
	}
	return &proof.Section{
		Title: "At rest",
		Text: []string{fmt.Sprintf("Nothing happens but resyncs. Beside the Foos there are %d Memcacheds and %[1]d "+
			"CronJobs, which only the operator reconciles. "+
			"Watches and the leader election are not counted. Each program was measured once, so there is no interval.",
			otherKinds)},
		Tables: []proof.Table{t},
	}
}

// Columns of restarts: those that programs are compared by, and all others.
var (
	startColumns = []column[*restart]{
		{"ready after, s", func(r *restart) float64 { return r.Ready }, median("%.2f")},
		{"requests", func(r *restart) float64 { return float64(measure.All(r.Requests)) }, median("%.0f")},
		{"CPU s", func(r *restart) float64 { return r.CPU[controllerProcess] }, median("%.2f")},
	}
	moreStartColumns = []column[*restart]{
		{"writes, all rounds", func(r *restart) float64 { return float64(r.Writes) }, count},
		{"all reconciled after, s", func(r *restart) float64 { return r.Passed }, median("%.2f")},
		{"first new Foo after, s", func(r *restart) float64 { return r.First }, median("%.2f")},
		{"new Foos, p50, s", func(r *restart) float64 { return r.NewFoos.P50 }, median("%.3f")},
		{"longest, s", func(r *restart) float64 { return r.NewFoos.Max }, median("%.3f")},
		{"not ready, all rounds", func(r *restart) float64 { return float64(r.Missing) }, count},
		{othersColumn, func(r *restart) float64 { return r.Others }, most},
	}
)

func (f *found) restartSection() *proof.Section {
	if len(f.Restarts) == 0 {
		return nil
	}
	of, programs := byProgram(f.Restarts), programsOf(f.Restarts)
	last := each(programs, func(name string) map[string]int { return of[name][len(of[name])-1].Requests })
	return &proof.Section{
		Title: "Restart",
		Text: []string{fmt.Sprintf("A controller starts with %d Foos that match their specs, in each round once with "+
			"nothing else to do, and once more while %d new "+
			"Foos are created, %d a second from its start on. Requests and CPU time are those of the first start until %s "+
			"after the caches are filled and, "+
			"where the controller reports it, all Foos are reconciled. Writes are those for objects, not for the leader "+
			"election.",
			f.Scale.Restart, newFoos, failoverRate, startTime),
			"Every other round is in reverse order. A controller that follows another one has first taken over all Foos: the " +
				"sample-controller removes " +
				"status fields that it does not know, and the operator restores them."},
		Tables: []proof.Table{table(f.Restarts, slices.Concat(startColumns, moreStartColumns)...),
			ratioTable(f.Restarts, startColumns...),
			requestTable("The requests of the last round", "request", programs, last, slices.Repeat([]float64{1}, len(last)),
				"%.0f")},
	}
}

func (f *found) failoverSection() *proof.Section {
	if len(f.Failovers) == 0 {
		return nil
	}
	t := proof.Table{Columns: []string{"signal", "longest time in which no Foo became ready, s", "least", "most", "times",
		othersColumn}}
	plot := proof.Plot{Name: "failover", Title: "How long no controller works when the leader ends",
		X: proof.Axis{Label: "seconds"}}
	for _, signal := range []string{"SIGTERM", "SIGKILL"} {
		gaps, others := f.gaps(signal)
		if len(gaps) == 0 {
			continue
		}
		i := measure.RangeOf(gaps)
		t.Rows = append(t.Rows, []string{signal, fmt.Sprintf("%.2f", i.Median), fmt.Sprintf("%.2f", i.Low),
			fmt.Sprintf("%.2f", i.High),
			fmt.Sprint(len(gaps)), most(others)})
		plot.Bars = append(plot.Bars, proof.Bar{Name: signal, Value: i.Median, Low: i.Low, High: i.High})
	}
	return &proof.Section{
		Title: "Failover",
		Text: []string{fmt.Sprintf("Two operators, of which one leads and ends. %d Foos are created in each second.",
			failoverRate)},
		Tables: []proof.Table{t},
		Plots:  []proof.Plot{plot},
	}
}

func (f *found) growthSection() *proof.Section {
	if len(f.Growths) == 0 {
		return nil
	}
	t := proof.Table{Columns: []string{"nodes", "ready in, s", "status writes", "all requests", "reported after, s"}}
	for _, g := range f.Growths {
		t.Rows = append(t.Rows, []string{fmt.Sprint(g.Nodes), fmt.Sprintf("%.1f", g.Seconds), fmt.Sprint(g.StatusWrites),
			fmt.Sprint(measure.All(g.Requests)), fmt.Sprintf("%.3f", g.Last)})
	}
	return &proof.Section{
		Title: "A Memcached that grows",
		Text: []string{fmt.Sprintf("The pods of a new Memcached become ready one after the other within %s. A status for "+
			"each would be as many writes as nodes. "+
			"The last column is how much later than the last pod the status reports all of them.", ramp)},
		Tables: []proof.Table{t},
	}
}
