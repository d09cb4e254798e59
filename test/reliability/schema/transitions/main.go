// Command transitions tries every field of every spec, as the CustomResourceDefinitions declare them: all ordered pairs of the classes
// of its values. It tells what it has found; its exit code is 1 if that is a violation.
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
	flag.StringVar(&options.Program, "manager", "", "The `program` that is tried. Default: the manager of this tree.")
	flag.BoolVar(&options.Short, "short", false, "Try some values of our own fields and some fields below spec.jobTemplate, and no limits of the history.")
	flag.Uint64Var(&options.Seed, "seed", 1, "The `number` that chooses what a short run tries.")
	flag.IntVar(&options.Workers, "workers", 16, "How many fields to try at the same time.")
	flag.DurationVar(&options.Patience, "patience", 90*time.Second, "How long anything may take to become as it should be.")
	only := flag.String("only", "", "Try only fields that match this regular `expression`, such as 'Foo spec.replicas'.")
	file := flag.String("json", "", "A `file` for all that is found.")
	page := flag.String("proof", "", "A `directory` for a page of all that is found.")
	flag.Parse()
	if *only != "" {
		options.Only = regexp.MustCompile(*only)
	}
	log.SetLogger(logr.Discard()) // what matters is in the report
	begun := time.Now()
	options.Progress = func(tried, of int) {
		if tried%50 == 0 {
			fmt.Fprintf(os.Stderr, "[%4.0f s] %d of %d fields tried\n", time.Since(begun).Seconds(), tried, of)
		}
	}
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	report, err := schema.Run(ctx, options)
	end()
	if report != nil {
		report.Print(os.Stdout)
	}
	if report != nil && *file != "" {
		err = errors.Join(err, proof.Keep(*file, report))
	}
	if err == nil && *page != "" { // a part of what was asked for proves nothing
		err = write(*page, report, options)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "transitions: %v\n", err)
	}
	if err != nil || len(report.Violations) > 0 {
		os.Exit(1)
	}
}

// write writes the page of a report to a directory.
func write(dir string, report *schema.Report, options schema.Options) error {
	operator, err := proof.OperatorOf(testenv.Root(), options.Program)
	if err != nil {
		return err
	}
	return report.Page(operator, options.Seed, options.Short).Write(dir)
}
