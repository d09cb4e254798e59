// Command cronjobs compares the controller of this operator's CronJobs with that of batch/v1: many CronJobs that are
// due in the same minute. It measures how late their Jobs start, and what a run costs in requests and CPU time.
//
// "make bench-cronjobs" runs it, on a machine that runs nothing else. Each side has a control plane of its own, and is
// a process on this machine: kube-controller-manager with only the CronJob controller and its default limits, and the
// manager of this tree with the rights of config/rbac and --controllers=cronjob. The Jobs are the same and have no pods
// (completions: 0). Another controller manager completes them, with limits that do not slow it down.
//
// Every CronJob is due twice. The second time, an old Job has to be deleted, as in the long run: that run is compared.
// Times are those of a watch on this machine.
//
// The exit code is 1 if this operator sends too many requests. No duration makes it fail.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// maxCount is the maximum number of CronJobs: with more, the two due minutes do not fit into an hour.
const maxCount = 5000

// bench has the settings of all measurements.
type bench struct {
	count int
	work  string // a directory for logs and programs
}

func main() {
	measure.Main("bench-cronjobs", run)
}

func run(ctx context.Context, work string) error {
	b := &bench{work: work}
	flag.IntVar(&b.count, "count", 1000, "how many CronJobs are due at the same time")
	pairs := flag.Int("pairs", 1, "how many times to measure both sides")
	output := flag.String("json", "", "a `file` for all that was measured, as JSON")
	flag.Parse()
	if b.count < 1 || b.count > maxCount || *pairs < 1 {
		return fmt.Errorf("-count must be 1 to %d, and -pairs at least 1", maxCount)
	}
	if err := measure.BuildManager(ctx, testenv.Root(), filepath.Join(b.work, "manager")); err != nil {
		return err
	}
	samples, err := measure.Rounds(*pairs, []side{b.inTree(), b.operator()}, func(s side) (*measure.Sample, error) {
		sample, err := b.measure(ctx, s)
		if err != nil {
			err = fmt.Errorf("measuring %s: %w", s.name, err)
		}
		return sample, err
	})
	if err != nil {
		return err
	}
	if *output != "" {
		if err := proof.Keep(*output, samples); err != nil {
			return err
		}
	}
	return report(os.Stdout, b.count, samples)
}
