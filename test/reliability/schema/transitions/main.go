// Command transitions tests every field of every spec, as the CustomResourceDefinitions declare them: all ordered pairs
// of the classes of its values, and that everything in a CronJob's template arrives in the Job. Its exit code is 1 if
// it finds a violation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/schema"
	"github.com/example/memcached-operator/test/testenv"
)

func main() {
	var options schema.Options
	program := flag.String("manager", "", "The `program` to test. Default: the manager of this tree.")
	flag.BoolVar(&options.Short, "short", false, "Test some values of each field, and no limits of the history.")
	flag.Uint64Var(&options.Seed, "seed", 1,
		"The `number` that chooses the values of templates and what a short run tests.")
	flag.DurationVar(&options.Timeout, "patience", 90*time.Second, "How long anything may take to match the spec.")
	only := flag.String("only", "", "Test only fields that match this regular `expression`, such as 'Foo spec.replicas'.")
	directory := flag.String("proof", "", "A `directory` for the page of the report.")
	flag.Parse()
	if *directory != "" && (*only != "" || options.Short) {
		fmt.Fprintln(os.Stderr, "transitions: -proof needs a whole run: do not set -only or -short")
		os.Exit(2)
	}
	options.Only = regexp.MustCompile(*only)
	log.SetLogger(logr.Discard()) // what matters is in the report
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	thisRun := proof.Begin(testenv.Root(), *program)
	report, err := run(ctx, *program, options)
	isInterrupted := ctx.Err() != nil
	end()
	if report != nil && !isInterrupted { // also if the end of the control plane has failed
		err = errors.Join(err, write(report, thisRun, *directory))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "transitions: %v\n", err)
	}
	if err != nil || len(report.Violations) > 0 {
		os.Exit(1)
	}
}

// run tests the fields on a control plane of its own.
func run(ctx context.Context, program string, options schema.Options) (_ *schema.Report, err error) {
	dir, err := os.MkdirTemp("", "schema-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if program == "" {
		if program, err = testenv.BuildManager(dir); err != nil {
			return nil, err
		}
	}
	w, err := schema.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Use(ctx, program); err != nil {
		return nil, err
	}
	return w.Try(ctx, options)
}

// write prints a report, and writes its page to a directory if one is asked for.
func write(report *schema.Report, thisRun *proof.Run, directory string) error {
	thisRun.End()
	page := report.Page(thisRun)
	err := page.Print(os.Stdout)
	for _, violation := range report.Violations {
		fmt.Printf("VIOLATION %s\n", violation)
		err = errors.Join(err, thisRun.Record("transitions", violation))
	}
	return errors.Join(err, thisRun.Write(page, directory))
}
