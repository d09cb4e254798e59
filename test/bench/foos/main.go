// Command foos measures what the operator costs, beside the Kubernetes sample-controller, whose kind Foo it manages:
// requests, rate, CPU time, memory, and what a restart and the end of the leader cost.
//
// "make bench" runs it. It takes hours, on a machine that runs nothing else; "make bench-short" only counts requests
// and takes minutes. These programs are compared, each a process with its own service account, on one etcd and one API
// server, one at a time:
//
//   - this operator, as config/manager starts it, but without its memory limit;
//   - the sample-controller as it is, whose clients send 5 requests a second;
//   - the sample-controller without that limit: one constant of client-go is changed before it is built;
//   - the floor (directory floor), which only sends the writes that no controller of Foos can do without.
//
// With --baseline=PROGRAM, another build of the operator takes the place of the others, which shows what a change of
// the code costs.
//
// No other controllers run. The benchmark creates and watches Foos and simulates the Deployment controller: one write
// of its status makes a Deployment available.
//
// The exit code is 1 if the operator sends too many requests. No duration makes it fail, unless something never ends.
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
	name     string
	isShort  bool // it counts requests, so it belongs to the short form
	isPaired bool // it compares the operator with a baseline
	measure  func(context.Context, *plane, *found) error
}

var sections = []section{
	{name: "requests", isShort: true, isPaired: true, measure: measurePaced},
	{name: "growth", isShort: true, measure: measureGrowths},
	{name: "restart", isShort: true, isPaired: true, measure: measureRestarts},
	{name: "idle", isShort: true, measure: measureIdle},
	{name: "failover", measure: measureFailovers},
	{name: "rate", isPaired: true, measure: measureBursts},
	{name: "sizes", isPaired: true, measure: measureSizes},
}

// bench is what all sections need.
type bench struct {
	short, resume                bool
	rounds                       int
	only, file, output           string
	programs, profiles, baseline string
	work                         string // a directory that is removed in the end
	begun                        time.Time
	namespaces, profilesTaken    int
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

func (b *bench) parse() {
	flag.BoolVar(&b.short, "short", false, "only count requests, with few Foos")
	flag.IntVar(&b.rounds, "rounds", 0, "how often to measure what is compared (default: 8, 1 with -short, 3 with "+
		"-baseline)")
	flag.StringVar(&b.only, "only", "", "measure only these `sections`, comma-separated: "+strings.Join(names(sections),
		", "))
	flag.BoolVar(&b.resume, "resume", false, "skip the sections that the file of -json has")
	flag.StringVar(&b.file, "json", "", "a `file` that keeps the results, section by section (default: none)")
	flag.StringVar(&b.output, "proof", "", "the `directory` to write the page to (default: none)")
	flag.StringVar(&b.programs, "programs", "", "a `directory` for the programs, to build them faster the next time "+
		"(default: a temporary one)")
	flag.StringVar(&b.profiles, "profiles", "", "a `directory` for CPU profiles of the operator, which cost some time "+
		"themselves (default: none)")
	flag.StringVar(&b.baseline, "baseline", "", "another build of the operator, a `program` to compare this one with, "+
		"in pairs")
	flag.Parse()
}

// checkBaseline checks the program to compare with, if there is one.
func (b *bench) checkBaseline() (err error) {
	if b.baseline == "" {
		return nil
	}
	if b.short || b.resume || b.file != "" || b.output != "" {
		return errors.New("-baseline cannot be used with -short, -resume, -json or -proof: the page is about this operator")
	}
	if b.baseline, err = filepath.Abs(b.baseline); err == nil {
		_, err = os.Stat(b.baseline)
	}
	return err
}

// prepare checks the flags and makes the directories, and returns what to measure and what was found before.
func (b *bench) prepare() (chosen []section, f *found, err error) {
	if err := b.checkBaseline(); err != nil {
		return nil, nil, err
	}
	if chosen, err = b.choose(); err != nil {
		return nil, nil, err
	}
	if b.programs == "" {
		b.programs = b.work
	}
	if b.programs, err = filepath.Abs(b.programs); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(b.programs, 0o755); err != nil {
		return nil, nil, err
	}
	if b.file == "" {
		b.file = filepath.Join(b.work, "found.json")
	}
	now := &found{Scale: b.scale(), Measured: map[string]time.Time{}, Baseline: b.baseline}
	if now.Operator, err = proof.Operator(testenv.Root()); err != nil {
		return nil, nil, err
	}
	if now.Benchmark, err = benchmark(testenv.Root()); err != nil {
		return nil, nil, err
	}
	f, err = read(b.file, now, b.resume || b.only != "")
	return chosen, f, err
}

func run(ctx context.Context) (err error) {
	ctrl.SetLogger(logr.Discard()) // that of envtest
	b := &bench{begun: time.Now()}
	b.parse()
	if b.work, err = os.MkdirTemp("", "bench-foos-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.work) }()
	chosen, f, err := b.prepare()
	if err != nil {
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	for _, section := range chosen {
		if at, isMeasured := f.Measured[section.name]; isMeasured && b.resume {
			b.log("%s was measured at %s", section.name, at.Format(time.DateTime))
			continue
		}
		if err := b.measure(ctx, section, f); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
		if err := proof.Keep(b.file, f); err != nil {
			return err
		}
	}
	return f.report(os.Stdout, b.output)
}

// measure measures one section on a new control plane, so that nothing is left of what was measured before.
func (b *bench) measure(ctx context.Context, s section, f *found) (err error) {
	b.log("section %s", s.name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	defer p.simulate(ctx)()
	if f.Settings, err = p.settings(); err != nil {
		return err
	}
	if err := s.measure(ctx, p, f); err != nil {
		return err
	}
	f.Measured[s.name] = time.Now().UTC().Truncate(time.Second)
	return nil
}

// choose returns the sections that are named, or those that belong to the form of the benchmark.
func (b *bench) choose() ([]section, error) {
	var chosen []section
	if b.only == "" {
		for _, section := range sections {
			if (section.isShort || !b.short) && (section.isPaired || b.baseline == "") {
				chosen = append(chosen, section)
			}
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(b.only, ",") {
		i := slices.Index(names(sections), name)
		if i < 0 {
			return nil, fmt.Errorf("there is no section %q; there are %s", name, strings.Join(names(sections), ", "))
		}
		chosen = append(chosen, sections[i])
	}
	return chosen, nil
}

func names(sections []section) []string {
	return each(sections, func(s section) string { return s.name })
}

func (b *bench) log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}
