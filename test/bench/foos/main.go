// Command foos measures what the operator costs, beside the Kubernetes sample-controller, whose kind Foo it manages:
// requests, rate, CPU time, memory, and what a restart costs.
//
// "make bench" runs it. It takes hours, on a machine that runs nothing else; "make bench-short" only counts requests
// and takes minutes. Two programs are compared, each a process with its own service account, on one etcd and one API
// server, one at a time:
//
//   - this operator, as config/manager starts it, but without its memory limit;
//   - the sample-controller, whose clients would send 5 requests a second: that limit of client-go is lifted before it
//     is built.
//
// With --baseline=PROGRAM, another build of the operator takes the place of the sample-controller, which shows what a
// change of the code costs.
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
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/memcached-operator/test/bench/measure"
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
	{name: "restart", isShort: true, isPaired: true, measure: measureRestarts},
	{name: "idle", isShort: true, measure: measureIdle},
	{name: "rate", isPaired: true, measure: measureBursts},
	{name: "sizes", isPaired: true, measure: measureSizes},
}

// bench is what all sections need.
type bench struct {
	short              bool
	rounds             int
	only, file, output string
	programs, baseline string
	work               string // a directory that is removed in the end
}

func main() {
	measure.Main("bench", run)
}

func (b *bench) parse() error {
	flag.BoolVar(&b.short, "short", false, "only count requests, with few Foos")
	flag.IntVar(&b.rounds, "rounds", 0, "how often to measure what is compared (default: 8, 1 with -short, 3 with "+
		"-baseline)")
	flag.StringVar(&b.only, "only", "", "measure only these `sections`, comma-separated: "+strings.Join(names(sections),
		", "))
	flag.StringVar(&b.file, "json", "", "a `file` for all that was measured (default: none)")
	flag.StringVar(&b.output, "proof", "", "the `directory` to write the page to (default: none)")
	flag.StringVar(&b.programs, "programs", "", "a `directory` for the programs, to build them faster the next time "+
		"(default: a temporary one)")
	flag.StringVar(&b.baseline, "baseline", "", "another build of the operator, a `program` to compare this one with, "+
		"in pairs")
	flag.Parse()
	switch {
	case b.output != "" && (b.only != "" || b.baseline != ""):
		return errors.New("-proof cannot be used with -only or -baseline: the page is about one whole run")
	case b.short && b.baseline != "":
		return errors.New("-baseline cannot be used with -short")
	case b.baseline == "":
		return nil
	}
	var err error
	if b.baseline, err = filepath.Abs(b.baseline); err == nil {
		_, err = os.Stat(b.baseline)
	}
	return err
}

func run(ctx context.Context) (err error) {
	ctrl.SetLogger(logr.Discard()) // that of envtest
	b := &bench{}
	if err := b.parse(); err != nil {
		return err
	}
	chosen, err := b.choose()
	if err != nil {
		return err
	}
	f := &found{Scale: b.scale(), Baseline: b.baseline}
	if f.Operator, err = proof.Operator(testenv.Root()); err != nil {
		return err
	}
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
	if err := errors.Join(os.MkdirAll(b.programs, 0o755), b.build(ctx)); err != nil {
		return err
	}
	for _, section := range chosen {
		if err := b.measure(ctx, section, f); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
	}
	if b.file != "" {
		if err := proof.Keep(b.file, f); err != nil {
			return err
		}
	}
	return f.report(os.Stdout, b.output)
}

// measure measures one section on a new control plane, so that nothing is left of what was measured before.
func (b *bench) measure(ctx context.Context, s section, f *found) (err error) {
	measure.Log("section %s", s.name)
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
	return s.measure(ctx, p, f)
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
