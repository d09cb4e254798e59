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
	flag.StringVar(&options.Program, "manager", "", "The `program` to test. Default: the manager of this tree.")
	flag.BoolVar(&options.Short, "short", false,
		"Test some values of each field and some fields of the template, and no limits of the history.")
	flag.Uint64Var(&options.Seed, "seed", 1,
		"The `number` that chooses the values of templates and what a short run tests.")
	flag.DurationVar(&options.Patience, "patience", 90*time.Second, "How long anything may take to match the spec.")
	only := flag.String("only", "", "Test only fields that match this regular `expression`, such as 'Foo spec.replicas'.")
	file := flag.String("json", "", "A `file` for the whole report.")
	page := flag.String("proof", "", "A `directory` for the page of the report.")
	flag.Parse()
	if *only != "" {
		options.Only = regexp.MustCompile(*only)
	}
	log.SetLogger(logr.Discard()) // what matters is in the report
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	report, err := schema.Run(ctx, options)
	end()
	if report != nil {
		err = errors.Join(err, write(report, options, *file, *page, err == nil))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "transitions: %v\n", err)
	}
	if err != nil || len(report.Violations) > 0 {
		os.Exit(1)
	}
}

// write prints a report, and writes it to a file and a directory that are asked for. An incomplete one has no page.
func write(report *schema.Report, options schema.Options, file, dir string, isWhole bool) error {
	operator, err := proof.OperatorOf(testenv.Root(), options.Program)
	if err != nil {
		return err
	}
	page := report.Page(operator)
	err = page.Print(os.Stdout)
	for _, violation := range report.Violations {
		fmt.Printf("VIOLATION %s\n", violation)
	}
	if file != "" {
		err = errors.Join(err, proof.Keep(file, report))
	}
	if dir != "" && isWhole {
		err = errors.Join(err, page.Write(dir))
	}
	return err
}
