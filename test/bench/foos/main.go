// Command foos measures what the operator costs, and puts it beside the Kubernetes sample-controller, whose Foos it manages: requests, rate,
// CPU time, memory, and what happens at a restart and when the leader ends.
//
// "make bench" runs it. It needs a machine that nobody else uses meanwhile, and takes hours; "make bench-short" counts requests only and
// takes some minutes. All arms are processes of their own with service accounts of their own, on one etcd and one API server, and only one of
// them runs at a time:
//
//   - this operator, as config/manager starts it, but without its memory limit;
//   - the sample-controller as it is, which makes 5 requests a second of each sort;
//   - the same without that limit: one number of client-go is changed as it is built;
//   - the floor (the directory floor): only those writes that nobody could do without.
//
// There are no other controllers. The harness makes Foos, watches them, and plays the Deployment controller: a Deployment is available by
// one write of its status, at once.
//
// Its exit code is 1 if the operator requests more than it may. How long anything takes is told and does not fail, unless it never ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// section is a part of what is measured.
type section struct {
	name    string
	isShort bool // it counts requests, so it belongs to the short form
	isStill bool // nobody plays the Deployment controller, unless it does
	measure func(context.Context, *plane, *found) error
}

// roomSection goes with the section sizes: it takes what that has found.
const roomSection = "room"

var sections = []section{
	{name: "requests", isShort: true, measure: measurePaced},
	{name: "growth", isShort: true, measure: measureGrowths},
	{name: "restart", isShort: true, measure: measureRestarts},
	{name: "idle", isShort: true, measure: measureIdle},
	{name: "failover", measure: measureFailovers},
	{name: "rate", measure: measureBursts},
	{name: partsSection, measure: measureParts},
	{name: "prices", isStill: true, measure: measurePrices},
	{name: "latency", measure: measureSteady},
	{name: "sizes", measure: measureSizes},
	{name: roomSection, measure: measureRooms},
}

// bench is what all sections need.
type bench struct {
	programs string // the directory of what is measured
	work     string // a directory that goes away in the end
	begun    time.Time
	profiles string // the directory of CPU profiles; empty for none
	started  int    // processes
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	ctrl.SetLogger(logr.Discard()) // what envtest tells
	isShort := flag.Bool("short", false, "count requests only, with few Foos")
	factor := flag.Float64("scale", 1, "how many Foos there are, as a `share` of all")
	rounds := flag.Int("rounds", 0, "how often to measure what is compared (default: 8, or 1 with -short)")
	only := flag.String("only", "", "measure these `sections` only, comma-separated: "+strings.Join(names(sections), ", "))
	resume := flag.Bool("resume", false, "leave out what the file of --json has already, if it was measured with the same operator and the same form of this benchmark")
	file := flag.String("json", "", "a `file` that keeps what was found, section by section (default: none)")
	output := flag.String("proof", "", "the `directory` to write the page to (default: none)")
	programs := flag.String("programs", "", "a `directory` for the programs that are measured, to be built faster the next time (default: one that goes away)")
	profiles := flag.String("profiles", "", "a `directory` for CPU profiles of the operator and the API server, which cost some time themselves (default: none)")
	flag.Parse()
	s := full.times(*factor)
	if *isShort {
		s = short
	}
	if *rounds > 0 {
		s.Rounds = *rounds
	}
	chosen, err := choose(*only, *isShort)
	if err != nil {
		return err
	}
	b := &bench{begun: time.Now(), programs: *programs, profiles: *profiles}
	if b.work, err = os.MkdirTemp("", "bench-foos-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.work) }()
	if b.programs == "" {
		b.programs = b.work
	}
	if b.programs, err = filepath.Abs(b.programs); err != nil {
		return err
	}
	if err := os.MkdirAll(b.programs, 0o755); err != nil {
		return err
	}
	if *file == "" {
		*file = filepath.Join(b.work, "found.json")
	}
	f, err := read(*file, s)
	if err != nil {
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	if f.operator, err = proof.Operator(testenv.Root()); err != nil {
		return err
	}
	if f.benchmark, err = benchmark(testenv.Root()); err != nil {
		return err
	}
	if err := b.measureAll(ctx, chosen, f, *file, *resume); err != nil {
		return err
	}
	return f.report(os.Stdout, *output)
}

// measureAll measures sections one after the other, and keeps what is found in a file after each. Where it resumes, it leaves out what
// the file has already of the operator and the benchmark that there are now.
func (b *bench) measureAll(ctx context.Context, chosen []section, f *found, file string, resume bool) error {
	for _, section := range chosen {
		if resume && f.has(section.name) {
			b.say("%s was measured at %s", section.name, f.Measured[section.name].At.Format(time.DateTime))
			continue
		}
		if err := b.measure(ctx, section, f); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
		if err := proof.Keep(file, f); err != nil {
			return err
		}
	}
	return nil
}

// measure measures one section on a control plane of its own, so that nothing is left of what was measured before.
func (b *bench) measure(ctx context.Context, s section, f *found) (err error) {
	b.say("section %s", s.name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if !s.isStill {
		defer p.play(ctx)()
	}
	if err := s.measure(ctx, p, f); err != nil {
		return err
	}
	settings, err := p.settings(ctx)
	f.Measured[s.name] = measured{At: time.Now().UTC().Truncate(time.Second), Operator: f.operator, Benchmark: f.benchmark, Settings: settings}
	return err
}

// choose returns the sections that are named, or all.
func choose(only string, isShort bool) ([]section, error) {
	var chosen []section
	if only == "" {
		for _, section := range sections {
			if section.isShort || !isShort {
				chosen = append(chosen, section)
			}
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.Index(names(sections), name)
		if i < 0 {
			return nil, fmt.Errorf("there is no section %q; there are %s", name, strings.Join(names(sections), ", "))
		}
		chosen = append(chosen, sections[i])
	}
	return chosen, nil
}

func names(sections []section) []string {
	all := make([]string, len(sections))
	for i, section := range sections {
		all[i] = section.name
	}
	return all
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}
