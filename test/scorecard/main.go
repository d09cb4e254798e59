// Memcached-operator-scorecard holds the tests of this project for "operator-sdk scorecard". It runs one of them,
// against the operator that is installed in the cluster and against the bundle it is installed from, and prints a
// TestStatus in JSON.
//
// Scorecard reads the log of the pod, in which standard output and standard error are one. So nothing is ever written
// to standard error: the Log of the results has it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	scorecardv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// tests are all tests. The configuration of scorecard names each of them once.
var tests = []struct {
	name string
	run  func(ctx context.Context, s settings) ([]finding, error)
}{
	{"writing-into-crs-has-effect", forEachKind(writingHasEffect)},
	{"crs-are-isolated", forEachKind(areIsolated)},
	{"drift-is-repaired", forEachKind(either(driftIsRepaired, noRunIsRepeated))},
	{"foreign-child-is-refused", forEachKind(foreignChildIsRefused)},
	{"status-is-honest", forEachKind(either(statusIsHonest, statusOfRunsIsHonest))},
	{"crds-are-compatible", crdsAreCompatible},
	{"no-dangling-volumes", noDanglingVolumes},
	{"sample-runs", forKinds([]kind{cronJobs}, sampleRuns)},
	{"images-are-those-of-the-bundle", imagesAreThoseOfTheBundle},
	{"metrics-need-a-token", metricsNeedAToken},
}

// settings come from flags and the environment.
type settings struct {
	bundle    string // the directory of the bundle
	released  string // the directory of the bundles released so far, one directory for each version
	namespace string // where to create objects
	metrics   string // the URL of the metrics; if empty, that of the Service in the bundle
	timeout   time.Duration
}

func main() {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// A signal ends the test, which then still deletes what it has created.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	status := run(ctx, os.Args[1:], os.Getenv("SCORECARD_NAMESPACE"))
	stop()
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(status); err != nil || !passed(status) {
		os.Exit(1)
	}
}

// run runs the test that the arguments name. Whatever goes wrong is in the status it returns.
func run(ctx context.Context, args []string, namespace string) scorecardv1alpha3.TestStatus {
	s := settings{namespace: namespace}
	flags := flag.NewFlagSet("memcached-operator-scorecard", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.bundle, "bundle", "/bundle", "the directory of the bundle")
	flags.StringVar(&s.released, "released", "/released",
		"the directory of the released bundles, <version>/manifests each")
	flags.StringVar(&s.metrics, "metrics", "", "the URL of the metrics, by default that of the Service in the bundle")
	flags.DurationVar(&s.timeout, "timeout", 3*time.Minute, "how long a test may take")
	if err := flags.Parse(args); err != nil {
		return statusOf("", []finding{{err: fmt.Errorf("wrong arguments %q: %w", args, err)}})
	}

	names := make([]string, 0, len(tests))
	for _, test := range tests {
		if flags.NArg() == 1 && flags.Arg(0) == test.name {
			ctx, cancel := context.WithTimeout(ctx, s.timeout)
			defer cancel()
			findings, err := test.run(ctx, s)
			if err != nil {
				findings = append(findings, finding{err: err})
			}
			return statusOf(test.name, findings)
		}
		names = append(names, test.name)
	}
	return statusOf("", []finding{{err: failed("there is no test %q: name one of %s", strings.Join(flags.Args(), " "),
		strings.Join(names, ", "))}})
}

// finding is the result of a test for one subject.
type finding struct {
	subject     string // a kind, or nothing if the test has one subject only
	err         error  // a failure if the subject is defective; another error if that could not be determined
	suggestions []string
	log         string
}

// failure is an error that the subject of a test causes.
type failure struct{ error }

// failed returns a failure. Its text has what was expected, what was observed, and where to look.
func failed(format string, args ...any) error {
	return failure{fmt.Errorf(format, args...)}
}

func statusOf(test string, findings []finding) scorecardv1alpha3.TestStatus {
	var status scorecardv1alpha3.TestStatus
	for _, f := range findings {
		result := scorecardv1alpha3.TestResult{Name: test, State: scorecardv1alpha3.PassState, Log: f.log,
			Suggestions: f.suggestions}
		if f.subject != "" {
			result.Name += "/" + f.subject
		}
		if f.err != nil {
			result.State = scorecardv1alpha3.ErrorState
			if _, ok := errors.AsType[failure](f.err); ok {
				result.State = scorecardv1alpha3.FailState
			}
			result.Errors = strings.Split(f.err.Error(), "\n")
		}
		status.Results = append(status.Results, result)
	}
	return status
}

func passed(status scorecardv1alpha3.TestStatus) bool {
	return len(status.Results) > 0 && !slices.ContainsFunc(status.Results, func(result scorecardv1alpha3.TestResult) bool {
		return result.State != scorecardv1alpha3.PassState
	})
}
