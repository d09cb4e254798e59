package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

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
	page := &proof.Page{Name: "bench", Title: "What the operator costs", Text: introduction,
		Settings: append(slices.Clone(f.Settings), proof.OperatorSetting(f.Operator)),
		Claims:   append(counts, others...), Data: f}
	if f.Baseline != "" {
		page.Settings = append(page.Settings, proof.Setting{Name: baselineName, Value: f.Baseline})
	}
	for _, section := range []struct {
		isMeasured bool
		of         func() proof.Section
	}{
		{len(f.Paced) > 0, f.requestsSection},
		{len(f.Bursts) > 0, f.rateSection},
		{len(f.Sizes) > 0, func() proof.Section { return f.sizesSection(limit) }},
		{len(f.Idle) > 0, f.idleSection},
		{len(f.Restarts) > 0, f.restartSection},
	} {
		if section.isMeasured {
			page.Sections = append(page.Sections, section.of())
		}
	}
	errs := []error{page.Print(out)}
	if directory != "" {
		errs = append(errs, page.Write(directory))
	}
	for _, claim := range counts {
		if claim.Verdict == proof.Missed {
			errs = append(errs, fmt.Errorf("%s: %s; the bar is %s", claim.What, claim.Found, claim.Bar))
		}
	}
	return errors.Join(errs...)
}

var introduction = []string{
	"This operator beside the [Kubernetes sample-controller](https://github.com/kubernetes/sample-controller) v0.37.0, " +
		"whose kind `Foo` it manages too, on one etcd and one API server, new for each section. The sample-controller runs " +
		"without the limit of 5 requests a second that client-go sets by default. `make bench` measures all of it again.",
	"Numbers are medians of rounds, but the share of CPU that other processes used is the most of all rounds. A ratio " +
		"compares two programs in the same round, and has its least and greatest value. Numbers that were measured once " +
		"have none. Requests are counted in the API server's audit log. This operator's requests for a Foo are the same on " +
		"every machine; those of the sample-controller depend a little on time, and times are those of this machine.",
	"What this does not judge: pods, networks and disks. Deployments have no pods, and a simulator writes their status " +
		"at once; everything runs on one machine, etcd does not wait for its disk (`--unsafe-no-fsync`), and no program has a " +
		"limit of memory or CPU time. Nor the memory of the sample-controller, which is never at rest.",
	fmt.Sprintf("Where Foos are created, the CPU time of all programs is read from before the first until %s after the "+
		"last is ready. Requests of the sample-controller are counted until then, too, and those of the operator until it "+
		"sends no more.", countedAfter),
}

// Columns of batches.
var (
	ofRate    = column[*batch]{"Foos per second", (*batch).rate, median("%.1f")}
	ofRequest = column[*batch]{"requests per Foo", (*batch).perFoo, median("%.2f")}
	ofCPU     = column[*batch]{"controller, CPU s per 1,000 Foos", (*batch).controller, median("%.2f")}
	ofSystem  = column[*batch]{"controller, API server and etcd, CPU s per 1,000", (*batch).system, median("%.2f")}
	ofOthers  = column[*batch]{othersColumn, func(b *batch) float64 { return b.Others }, most("%.3f")}
)

func (f *found) requestsSection() proof.Section {
	requests := measure.RequestTable("requests per Foo", programsOf(f.Paced),
		each(f.Paced, func(b *batch) map[string]int { return b.Requests }),
		each(f.Paced, func(b *batch) int { return b.Foos }), "%.3f")
	times := table(f.Paced, ofRate,
		column[*batch]{"p50, s", func(b *batch) float64 { return b.Latency.P50 }, median("%.3f")},
		column[*batch]{"p99, s", func(b *batch) float64 { return b.Latency.P99 }, median("%.3f")}, ofOthers)
	times.Title = "How fast that was, and how long a Foo took"
	return proof.Section{
		Title: "Requests",
		Text: []string{fmt.Sprintf("%d Foos, at most %d of them pending at a time. Each program was "+
			"measured once.", f.Scale.Paced, paced)},
		Tables: []proof.Table{requests, times},
	}
}

func (f *found) rateSection() proof.Section {
	return proof.Section{
		Title: "Rate and CPU time",
		Text: []string{fmt.Sprintf("%d Foos are created at once, in %d rounds of all programs; every other round is in "+
			"reverse order.", f.Scale.Burst, f.Scale.Rounds)},
		Tables: []proof.Table{table(f.Bursts, ofRate, ofRequest, ofCPU, ofSystem, ofOthers),
			ratioTable(f.Bursts, ofRate, ofRequest, ofCPU, ofSystem)},
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
	{othersColumn, func(s *size) float64 { return s.Change.Others }, most("%.3f")},
}

func (s *size) programName() string { return s.Program }

func (f *found) sizesSection(limit resource.Quantity) proof.Section {
	sizes := proof.Table{Columns: slices.Concat([]string{"program", "Foos"}, heads(sizeColumns))}
	perFoo := proof.Table{Title: "For each Foo with its Deployment",
		Columns: []string{"program", "bytes of heap", "bytes of memory"}}
	for _, name := range programsOf(f.Sizes) {
		for _, count := range f.Scale.Sizes {
			sizes.Rows = append(sizes.Rows,
				slices.Concat([]string{name, fmt.Sprint(count)}, cells(sizeColumns, f.sizesOf(name, count))))
		}
		slope := func(of func(*size) int64) string { return measure.IntervalOf(f.slopes(name, of)).String() }
		perFoo.Rows = append(perFoo.Rows, []string{name, slope(func(s *size) int64 { return s.Heap }),
			slope(func(s *size) int64 { return s.RSS })})
	}
	return proof.Section{
		Title: "Memory, and changes among many Foos",
		Text: []string{fmt.Sprintf("Newly started operators, each of which watches one namespace with so many Foos, in %d "+
			"rounds of all sizes, every other one in reverse order. In each, Foos are scaled.", f.Scale.Rounds),
			fmt.Sprintf("By the most memory that a start used, the operator can start with %s Foos and their Deployments "+
				"within the limit of `config/manager`, %s. For more, raise the limit: `spec.config.resources` of the "+
				"Subscription.", f.capacity(limit.Value()), limit.String()),
		},
		Tables: []proof.Table{sizes, perFoo},
	}
}

// capacity returns how many Foos a memory limit is enough for when the operator starts, which takes more memory than to
// run: where the line through the most memory of each size reaches the limit, in hundreds. It does not extrapolate.
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
			return fmt.Sprintf("about %d", int(foos+(float64(count)-foos)*(float64(limit)-memory)/(most-memory))/100*100)
		}
		foos, memory = float64(count), most
	}
	return fmt.Sprintf("more than %.0f", foos)
}

func (f *found) idleSection() proof.Section {
	t := proof.Table{Columns: []string{"program", "Foos", "seconds", "resyncs", "requests", "writes",
		"CPU share of the controller", othersColumn}}
	for _, i := range f.Idle {
		resyncs := "every 30 s"
		if i.Resyncs > 0 {
			resyncs = fmt.Sprintf("%d times", i.Resyncs)
		}
		t.Rows = append(t.Rows, []string{i.Program, fmt.Sprint(i.Foos), fmt.Sprintf("%.0f", i.Seconds), resyncs,
			fmt.Sprint(measure.All(i.Requests)), fmt.Sprint(i.Writes),
			fmt.Sprintf("%.4f", i.CPU[controllerProcess]/i.Seconds), fmt.Sprintf("%.3f", i.Others)})
	}
	return proof.Section{
		Title: "At rest",
		Text: []string{"Nothing happens but resyncs. Watches and the leader election are not counted. Each program was " +
			"measured once."},
		Tables: []proof.Table{t},
	}
}

// startColumns are the columns of restarts.
var startColumns = []column[*restart]{
	{"ready after, s", func(r *restart) float64 { return r.Ready }, median("%.2f")},
	{"all reconciled after, s", func(r *restart) float64 { return r.Passed }, median("%.2f")},
	{"requests", func(r *restart) float64 { return float64(measure.All(r.Requests)) }, median("%.0f")},
	{"most writes", func(r *restart) float64 { return float64(r.Writes) }, most("%.0f")},
	{"CPU s", func(r *restart) float64 { return r.CPU[controllerProcess] }, median("%.2f")},
	{"first new Foo after, s", func(r *restart) float64 { return r.First }, median("%.2f")},
	{"last new Foo after, s", func(r *restart) float64 { return r.Last }, median("%.2f")},
	{othersColumn, func(r *restart) float64 { return r.Others }, most("%.3f")},
}

func (f *found) restartSection() proof.Section {
	of, programs := byProgram(f.Restarts), programsOf(f.Restarts)
	last := each(programs, func(name string) map[string]int { return of[name][len(of[name])-1].Requests })
	requests := measure.RequestTable("request", programs, last, slices.Repeat([]int{1}, len(last)), "%.0f")
	requests.Title = "The requests of the last round"
	return proof.Section{
		Title: "Restart",
		Text: []string{fmt.Sprintf("The operator starts with %d Foos that match their specs, in each round once with "+
			"nothing else to do, and once more while %d new Foos are created. Requests and CPU time are those of the first "+
			"start until %s after all Foos are reconciled. Writes are those for objects, not for the leader election.",
			f.Scale.Restart, newFoos, startTime)},
		Tables: []proof.Table{table(f.Restarts, startColumns...), requests},
	}
}
