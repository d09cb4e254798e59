// Command reliability injects faults into the operator's connection to the API server, and into the operator itself,
// and judges what the operator does. With --mutants it seeds bugs into the operator and judges the suites.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/testenv"
)

func main() {
	log.SetLogger(logr.Discard()) // warnings of the API server about the objects of scenarios
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

// options are the flags.
type options struct {
	manager  string
	scenario string
	fault    string
	campaign string
	times    int
	mutants  string
	short    bool
	restore  string
	seed     uint64
	proof    string
	evidence string

	timeout    time.Duration // how long the operator may take; 0 for the default, which is enough after any fault
	stopsEarly bool          // ends at the first violation, prints no progress and keeps no evidence
	// isExhaustive is for few scenarios: every fault at every write, where a whole run has one of each class.
	isExhaustive bool
}

func parse() (*options, error) {
	o := &options{}
	flag.StringVar(&o.manager, "manager", "",
		"the operator's `program`; by default it is built, for pairs and storms with the race detector")
	flag.StringVar(&o.scenario, "scenario", "", "a regular `expression`: only scenarios whose whole name matches")
	flag.StringVar(&o.fault, "fault", "", "only these `faults`, as a report names them, separated by semicolons")
	flag.StringVar(&o.campaign, "campaign", "", "a regular `expression`: only campaigns whose whole name matches")
	flag.IntVar(&o.times, "times", 1, "how `often` the campaigns are run, or --fault, one after another")
	flag.StringVar(&o.mutants, "mutants", "",
		"a regular `expression`: seed each bug in mutants.yaml whose name matches, and show that it is found")
	flag.BoolVar(&o.short, "short", false, "only a sample that takes about two minutes")
	flag.StringVar(&o.restore, "restore", "",
		"only restore etcd to an older state, as the campaign restored does, and `then` "+
			"restart the operator (\"restart\") or not (\"continue\")")
	flag.Uint64Var(&o.seed, "seed", 1, "the seed of all random choices; --mutants has its own")
	flag.StringVar(&o.proof, "proof", "", "a `directory` for the page of a whole run")
	flag.StringVar(&o.evidence, "evidence", "", "a `directory` for the records of plans that fail; by default a new one")
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: all options are flags, see --help", flag.Arg(0))
	}
	if o.times < 1 || o.times > 1 && o.short {
		return nil, errors.New("--times must be 1 or more, and 1 with --short")
	}
	if o.proof != "" && (o.scenario+o.campaign+o.fault+o.restore != "" || o.times != 1 || o.short) {
		return nil, errors.New("--proof needs a whole run: " +
			"do not set --scenario, --campaign, --fault, --restore, --times or --short")
	}
	for _, pattern := range []string{o.scenario, o.campaign, o.mutants} {
		if _, err := regexp.Compile(pattern); err != nil {
			return nil, err
		}
	}
	if !slices.Contains([]string{"", restarting, continuing}, o.restore) {
		return nil, fmt.Errorf("--restore must be %q or %q, not %q", restarting, continuing, o.restore)
	}
	_, err := parseFaults(o.fault)
	return o, err
}

// matches reports whether an expression matches a whole name; an empty one matches all.
func matches(expression, name string) bool {
	return expression == "" || regexp.MustCompile("^("+expression+")$").MatchString(name)
}

// run runs the suite, or seeds bugs, and reports whether anything failed.
func run(ctx context.Context) (failed bool, err error) {
	o, err := parse()
	if err != nil {
		return false, err
	}
	if o.restore != "" {
		return false, restore(ctx, o.manager, o.restore == restarting)
	}
	if o.mutants != "" {
		return huntMutants(ctx, o)
	}
	s, err := newSuite(ctx, o)
	if err != nil {
		return false, err
	}
	if s.env, err = runner.Start(ctx, o.manager, parallelPlans, s.hasOutages()); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.env.Stop()) }()
	s.logf("the control plane is running")
	err = s.conductAll(ctx)
	s.report.run.End()
	if o.proof != "" && err == nil { // only a complete run writes a page
		var violations proof.Table
		if violations, err = proof.ViolationTable(testenv.Root()); err == nil {
			err = s.report.run.Write(s.report.page(violations), o.proof)
		}
	}
	return s.report.violations() > 0, errors.Join(err, s.report.print(os.Stdout))
}

// restore restores etcd under an operator.
func restore(ctx context.Context, program string, restartsOperator bool) error {
	work, err := os.MkdirTemp("", "restore-")
	if err != nil {
		return err
	}
	err = runner.Restore(ctx, program, work, restartsOperator, func(format string, values ...any) {
		fmt.Fprintf(os.Stderr, format+"\n", values...)
	})
	return errors.Join(err, os.RemoveAll(work))
}

// logf prints progress.
func (s *suite) logf(format string, args ...any) {
	if !s.stopsEarly {
		fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(s.report.run.Begun).Seconds(),
			strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
}
