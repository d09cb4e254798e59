// Command foos measures what the operator costs, beside the Kubernetes sample-controller, whose kind Foo it manages:
// requests, rate, CPU time, memory, and what a restart costs.
//
// "make bench" takes up to two hours on a machine that runs nothing else; "make bench-short" only counts requests and
// takes minutes. Programs are compared, each a process with its own service account, on one etcd and one API server,
// one at a time:
//
//   - this operator, as config/manager starts it, but without its memory limit;
//   - the sample-controller, without client-go's limit of 5 requests a second;
//   - for creations, the floor: a program that only makes the writes that no controller can leave out.
//
// With --baseline=PROGRAM, another build of the operator replaces the sample-controller, to show what a code change
// costs.
//
// No other controllers run. The benchmark creates and watches Foos and simulates the Deployment controller: one write
// of its status makes a Deployment available.
//
// The exit code is 1 if the operator sends too many requests. Durations do not make it fail, except for timeouts.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// scale is the amount of work that is measured.
type scale struct {
	Foos     int           // the number of Foos that are created
	Rounds   int           // how often they are created
	Sizes    []int         // the numbers of Foos that exist when an operator starts
	Restarts int           // how often an operator is started with each of these numbers
	Started  int           // the number of Foos that exist when the compared programs are started in turn
	Starts   int           // how often each of them is started
	Changes  int           // the number of Foos that are scaled after each start
	Idle     time.Duration // the time without changes, with Started Foos
	// Latencies is the number of Foos that are created at half of the floor's rate; 0 leaves that out.
	Latencies int
	// Failovers is how often a leader is ended by each signal.
	Failovers int
}

// full is the scale of the page in docs/proof; short is enough to count requests; paired compares two builds in 10
// minutes.
var (
	full = scale{Foos: 2000, Rounds: 10, Sizes: []int{1000, 10_000, 50_000}, Restarts: 6, Changes: 1000,
		Idle: 100 * time.Second, Started: 10_000, Starts: 10, Latencies: 500, Failovers: 6}
	short = scale{Foos: 200, Rounds: 1, Sizes: []int{200}, Restarts: 1, Changes: 50, Idle: 10 * time.Second,
		Started: 200, Starts: 1, Latencies: 50}
	paired = scale{Foos: 400, Rounds: 10, Sizes: []int{100, 2000}, Restarts: 2, Started: 2000, Starts: 10}
)

// bench has the settings of all sections.
type bench struct {
	scale
	programs, baseline string
	work               string // a directory for logs and programs
}

func main() {
	measure.Main("bench", run)
}

func run(ctx context.Context, work string) (err error) {
	b := &bench{scale: full, work: work}
	isShort := flag.Bool("short", false, "only count requests, with few Foos")
	file := flag.String("json", "", "a `file` for all that was measured")
	page := flag.String("proof", "", "the `directory` to write the page to")
	flag.StringVar(&b.programs, "programs", "", "a `directory` for the programs, to build them faster the next time")
	flag.StringVar(&b.baseline, "baseline", "", "another build of the operator, a `program` to compare this one with")
	flag.Parse()
	switch {
	case *isShort && b.baseline != "" || *page != "" && (*isShort || b.baseline != ""):
		return errors.New("only one of -short, -baseline and -proof can be used")
	case *isShort:
		b.scale = short
	case b.baseline != "":
		b.scale = paired
	}
	b.programs = cmp.Or(b.programs, b.work)
	if err := b.build(ctx); err != nil {
		return err
	}
	f := &found{Scale: b.scale, Run: proof.Begin(testenv.Root(), ""), Baseline: b.baseline,
		Samples: map[string]measure.Samples{}}
	for _, s := range sections {
		if err := b.measure(ctx, s, f); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	f.Run.End()
	if *file != "" {
		if err := proof.Keep(*file, f); err != nil {
			return err
		}
	}
	return f.report(os.Stdout, *page)
}

// measure measures one section on a new control plane, so that earlier sections do not affect it.
func (b *bench) measure(ctx context.Context, s section, f *found) (err error) {
	if s.name == failoverSection && b.Failovers == 0 || s.name == latencySection && b.Latencies == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	measure.Log("section %s", s.name)
	p, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	defer p.simulate(ctx)()
	if f.Settings, err = p.settings(); err != nil {
		return err
	}
	f.Samples[s.name], err = s.measure(ctx, p)
	return err
}
