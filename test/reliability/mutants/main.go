// Command mutants puts bugs into the operator on purpose, one at a time, and looks whether the suites find them: a suite that has never
// found anything has shown nothing. It counts alarms on the operator as it is, too. Its exit code is 1 if a bug is not found, or
// something is found where there is none.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/test/reliability/schema"
)

// report is what has become of the mutants.
type report struct {
	Mutants, Killed   int
	CleanRuns, Alarms int
	Seconds           float64
	Outcomes          []outcome
	AlarmTexts        []string `json:",omitempty"`
}

// outcome is what has become of one mutant.
type outcome struct {
	Name, Pattern string
	KilledBy      string // the suite and its part; empty if the mutant lives
	Finding       string // the first
	Findings      int
	Seconds       float64
	Error         string `json:",omitempty"`
}

func main() {
	only := flag.String("only", "", "Only mutants whose name matches this regular `expression`.")
	clean := flag.Int("clean", 0, "How many times to try the operator as it is, by what the mutants are tried by.")
	file := flag.String("json", "", "A `file` for all that is found.")
	proofDir := flag.String("proof", "", "A `directory` for a page of all that is found.")
	flag.Parse()
	log.SetLogger(logr.Discard()) // what matters is in the report
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	r, err := run(ctx, regexp.MustCompile(*only), *clean)
	end()
	if r != nil {
		r.print()
		if *file != "" {
			content, _ := json.MarshalIndent(r, "", "  ")
			err = errors.Join(err, os.WriteFile(*file, content, 0o644))
		}
		if *proofDir != "" {
			err = errors.Join(err, r.page().Write(*proofDir))
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
	}
	if err != nil || r.Killed < r.Mutants || r.Alarms > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, only *regexp.Regexp, clean int) (r *report, err error) {
	begun := time.Now()
	all, err := mutants()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l := &lab{dir: dir}
	defer func() { err = errors.Join(err, l.close()) }()
	r = &report{}
	for _, m := range all {
		if !only.MatchString(m.Name) || ctx.Err() != nil {
			continue
		}
		outcome := l.hunt(ctx, m)
		r.Mutants++
		if outcome.KilledBy != "" {
			r.Killed++
		}
		r.Outcomes = append(r.Outcomes, outcome)
		fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(begun).Seconds(), outcome)
	}
	if err := l.alarms(ctx, r, all, clean); err != nil {
		return r, err
	}
	r.Seconds = time.Since(begun).Seconds()
	return r, ctx.Err()
}

// hunt builds a mutant and asks its killers one after the other until one finds something.
func (l *lab) hunt(ctx context.Context, m mutant) outcome {
	begun := time.Now()
	result := outcome{Name: m.Name, Pattern: m.Pattern}
	program, err := m.build(ctx, l.dir)
	if err == nil {
		defer func() { _ = os.Remove(program) }()
	}
	for _, killer := range m.Killers {
		if err != nil {
			break
		}
		var found []string
		if found, err = l.ask(ctx, program, killer); len(found) > 0 {
			result.KilledBy, result.Finding, result.Findings = killer, found[0], len(found)
			break
		}
	}
	if err != nil {
		result.Error = err.Error()
	}
	result.Seconds = time.Since(begun).Seconds()
	return result
}

// ask has a killer try a manager.
func (l *lab) ask(ctx context.Context, program, killer string) ([]string, error) {
	suite, part, _ := strings.Cut(killer, " ")
	return suites[suite](ctx, l, program, part)
}

// alarms has the killers try the operator as it is, one after the other, as often as is asked for.
func (l *lab) alarms(ctx context.Context, r *report, all []mutant, runs int) error {
	if runs == 0 {
		return nil
	}
	program, err := schema.Build(ctx, filepath.Join(l.dir, "manager"))
	if err != nil {
		return err
	}
	var killers []string
	seen := map[string]bool{}
	for _, m := range all {
		for _, killer := range m.Killers {
			if !seen[killer] {
				seen[killer] = true
				killers = append(killers, killer)
			}
		}
	}
	for i := range runs {
		found, err := l.ask(ctx, program, killers[i%len(killers)])
		if err != nil {
			return err
		}
		r.CleanRuns++
		if len(found) > 0 {
			r.Alarms++
			r.AlarmTexts = append(r.AlarmTexts, killers[i%len(killers)]+": "+found[0])
		}
	}
	return nil
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

// print prints a table.
func (r *report) print() {
	var rows strings.Builder
	rows.WriteString("mutant\tpattern\tkilled by\tfindings\tseconds\n")
	for _, o := range r.Outcomes {
		killedBy := o.KilledBy
		if killedBy == "" {
			killedBy = "NOBODY"
		}
		fmt.Fprintf(&rows, "%s\t%s\t%s\t%d\t%.0f\n", o.Name, o.Pattern, killedBy, o.Findings, o.Seconds)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, rows.String())
	_ = table.Flush()
	for _, o := range r.Outcomes {
		fmt.Println(o)
	}
	fmt.Printf("%d of %d mutants killed; %d alarms in %d clean runs; %.0f s\n", r.Killed, r.Mutants, r.Alarms, r.CleanRuns, r.Seconds)
	for _, alarm := range r.AlarmTexts {
		fmt.Println("ALARM", alarm)
	}
}
