// Command mutants puts bugs into the operator on purpose, one at a time, and looks whether the suites find them: a
// suite that has never found anything has shown nothing. What has found one then tries the operator as it is, and must
// find nothing. Its exit code is 1 if a bug is not found, or something is found where there is none.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/schema"
	"github.com/example/memcached-operator/test/testenv"
)

// report is what has become of the mutants.
type report struct {
	Operator        string // that the bugs are put into, as proof.Operator says it
	Suite           string // by which they are found, as proof.Suite says it
	Seeded          int    // bugs that there are
	Mutants, Killed int    // those that were tried, and found
	Seconds         float64
	Outcomes        []outcome
	Controls        []control
}

// otherParts are what finds bugs beside what plays faults, below the repository's root.
var otherParts = []string{"test/reliability/mutants/suites.go", "test/reliability/schema"}

// control is what a killer has found in the operator as it is.
type control struct {
	Killer  string
	Alarm   string `json:",omitempty"` // the first finding; empty for none
	Seconds float64
}

// outcome is what has become of one mutant.
type outcome struct {
	Name, Pattern string
	KilledBy      string // the suite and its part; empty if the mutant lives
	Finding       string // the first
	Findings      int
	Oracles       []string // that have found something
	Seconds       float64
	Error         string `json:",omitempty"`
}

// options is what it is told by flags.
type options struct {
	only   *regexp.Regexp
	output string
	proof  string
}

func parse() (*options, error) {
	o := &options{}
	only := flag.String("only", "", "a regular `expression`: only mutants whose name matches")
	flag.StringVar(&o.output, "json", "", "a `file` for all that is found, as JSON")
	flag.StringVar(&o.proof, "proof", "", "a `directory` for a page of all that is found")
	flag.Parse()
	var err error
	o.only, err = regexp.Compile(*only)
	return o, err
}

func main() {
	log.SetLogger(logr.Discard()) // what matters is in the report
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	isFine, err := run(ctx)
	end()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if !isFine || err != nil {
		os.Exit(1)
	}
}

// run tells whether all mutants were found, and nothing where there is none.
func run(ctx context.Context) (isFine bool, err error) {
	o, err := parse()
	if err != nil {
		return false, err
	}
	r, err := try(ctx, o)
	printErr := r.page().Print(os.Stdout)
	if o.output != "" {
		err = errors.Join(err, proof.Keep(o.output, r))
	}
	if o.proof != "" && err == nil { // a part of what was asked for proves nothing
		err = r.page().Write(o.proof)
	}
	err = errors.Join(err, printErr)
	return r.Killed == r.Mutants && len(r.alarms()) == 0, err
}

// try tries the mutants, and then the operator as it is. What has been found until it cannot go on counts.
func try(ctx context.Context, o *options) (r *report, err error) {
	r = &report{}
	all, err := mutants()
	if err != nil {
		return r, err
	}
	r.Seeded = len(all)
	if r.Operator, err = proof.Operator(testenv.Root()); err != nil {
		return r, err
	}
	if r.Suite, err = proof.Suite(testenv.Root(), otherParts...); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l := &lab{dir: dir, faults: map[string]string{}}
	defer func() { err = errors.Join(err, l.close()) }()
	for _, m := range all {
		if !o.only.MatchString(m.Name) {
			continue
		}
		outcome := l.hunt(ctx, m)
		if ctx.Err() != nil {
			return r, ctx.Err() // that it was not found in part of the time says nothing
		}
		r.add(*outcome)
		fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", r.Seconds, outcome)
	}
	return r, errors.Join(l.control(ctx, r), ctx.Err())
}

// hunt builds a mutant and asks its killers one after the other until one finds something.
func (l *lab) hunt(ctx context.Context, m mutant) *outcome {
	begun := time.Now()
	result := &outcome{Name: m.Name, Pattern: m.Pattern}
	program, err := m.build(ctx, l.dir)
	if err == nil {
		defer func() { _ = os.Remove(program) }()
		l.root, err = m.root(l.dir)
	}
	for _, killer := range m.Killers {
		if err != nil {
			break
		}
		var found []finding
		if found, err = l.ask(ctx, program, killer); len(found) > 0 {
			result.KilledBy, result.Finding, result.Findings, result.Oracles = killer, found[0].String(), len(found),
				oraclesOf(found)
			break
		}
	}
	if err != nil {
		result.Error = err.Error()
	}
	result.Seconds = time.Since(begun).Seconds()
	return result
}

// oraclesOf returns by which oracles something was found, each once.
func oraclesOf(found []finding) []string {
	var oracles []string
	for _, f := range found {
		if !slices.Contains(oracles, f.Oracle) {
			oracles = append(oracles, f.Oracle)
		}
	}
	return oracles
}

// ask has a killer try a manager.
func (l *lab) ask(ctx context.Context, program, killer string) ([]finding, error) {
	suite, part, _ := strings.Cut(killer, " ")
	return suites[suite](ctx, l, program, part)
}

// control has each killer that has found something try the operator as it is, but for those that have.
func (l *lab) control(ctx context.Context, r *report) error {
	l.root = testenv.Root()
	program, err := schema.Build(ctx, filepath.Join(l.dir, "manager"))
	if err != nil {
		return err
	}
	for _, killer := range r.killers() {
		begun := time.Now()
		found, err := l.ask(ctx, program, killer)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return fmt.Errorf("trying the operator as it is by %s: %w", killer, err)
		}
		c := control{Killer: killer, Seconds: time.Since(begun).Seconds()}
		if len(found) > 0 {
			c.Alarm = found[0].String()
		}
		r.Controls = append(r.Controls, c)
		r.Seconds += c.Seconds
		fmt.Fprintf(os.Stderr, "[%4.0f s] %s, on the operator as it is: %.160s\n", r.Seconds, killer,
			cmp.Or(c.Alarm, "nothing"))
	}
	return nil
}

// killers returns what has found something, each once.
func (r *report) killers() []string {
	var killers []string
	for _, o := range r.Outcomes {
		if o.KilledBy != "" && !slices.Contains(killers, o.KilledBy) {
			killers = append(killers, o.KilledBy)
		}
	}
	return killers
}

// alarms returns what was found in the operator as it is.
func (r *report) alarms() []string {
	var alarms []string
	for _, c := range r.Controls {
		if c.Alarm != "" {
			alarms = append(alarms, c.Killer+": "+c.Alarm)
		}
	}
	return alarms
}

func (r *report) add(o outcome) {
	r.Outcomes = append(r.Outcomes, o)
	r.Mutants++
	if o.KilledBy != "" {
		r.Killed++
	}
	r.Seconds += o.Seconds
}

func (o outcome) String() string {
	switch {
	case o.KilledBy != "":
		return fmt.Sprintf("%s is killed by %s: %.160s", o.Name, o.KilledBy, o.Finding)
	case o.Error != "":
		return fmt.Sprintf("%s could not be tried: %.600s", o.Name, o.Error)
	}
	return o.Name + " LIVES"
}
