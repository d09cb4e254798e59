// Command reliability breaks the operator's connection to the API server in every way and at every place that it knows,
// and the operator itself, and judges what comes of it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
)

func main() {
	log.SetLogger(logr.Discard()) // warnings of the API server about what scenarios make
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed, err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reliability:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// options is what the suite is told by flags.
type options struct {
	manager  string
	scenario string
	fault    string
	rules    []proxy.Rule // of fault
	storm    *uint64      // the seed of fault, if that is a storm
	campaign string
	short    bool
	seed     uint64
	parallel int
	patience time.Duration
	hasty    bool
	output   string
	proof    string
	evidence string
}

func parse() (*options, error) {
	o := &options{}
	flag.StringVar(&o.manager, "manager", "", "the operator's `program`; by default it is built, with the race detector")
	flag.StringVar(&o.scenario, "scenario", "", "a regular `expression`: only scenarios whose whole name matches")
	flag.StringVar(&o.fault, "fault", "", "only this: `faults` as the report names them, separated by semicolons")
	flag.StringVar(&o.campaign, "campaign", "", "a regular `expression`: only campaigns whose whole name matches")
	flag.BoolVar(&o.short, "short", false, "only what takes less than 5 minutes")
	flag.Uint64Var(&o.seed, "seed", 1, "for all that is chosen by chance")
	flag.IntVar(&o.parallel, "parallel", 6, "in how many plans something happens at the same time")
	flag.DurationVar(&o.patience, "patience", 0,
		"for how `long` to wait for the operator to come to an end; 0 for long enough after any fault")
	flag.BoolVar(&o.hasty, "hasty", false, "end as soon as something is found")
	flag.StringVar(&o.output, "json", "", "a `file` for all that was found, as JSON")
	flag.StringVar(&o.proof, "proof", "", "a `directory` for a page of all that was found")
	flag.StringVar(&o.evidence, "evidence", "",
		"a `directory` for what was recorded of plans that fail; by default one that is made for it")
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: all options are flags, see --help", flag.Arg(0))
	}
	if o.proof != "" && (o.scenario != "" || o.campaign != "" || o.fault != "") {
		return nil, errors.New("--proof is for all there is: a part of it, which --scenario, --campaign and --fault " +
			"choose, proves nothing")
	}
	if seed, isStorm := strings.CutPrefix(o.fault, runner.StormFault); isStorm {
		number, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: a storm has a number: %w", o.fault, err)
		}
		o.storm = &number
	} else if o.fault != "" {
		var err error
		if o.rules, err = proxy.ParseRules(o.fault); err != nil {
			return nil, err
		}
	}
	if o.parallel < 1 {
		return nil, errors.New("--parallel must be at least 1")
	}
	return o, nil
}

// say tells of progress.
func (s *suite) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}
