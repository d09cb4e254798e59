package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	// quiet is how long a settled side sends no requests.
	quiet = 5 * time.Second
	// perRun is the maximum time of a run: the in-tree controller sends 20 requests a second, and up to 6 for a run.
	perRun = 300 * time.Millisecond
	// perCreation is the maximum time to create a CronJob.
	perCreation = 25 * time.Millisecond
	// spare is added to all timeouts.
	spare = 3 * time.Minute

	namespace = metav1.NamespaceDefault
)

// measurement is the measurement of one side.
type measurement struct {
	side       side
	count      int
	cp         *testenv.ControlPlane
	controller *measure.Process

	mu       sync.Mutex
	seen     map[string]time.Time // when the watch first showed a Job, by its name
	finished map[string]time.Time // when the watch showed that it is complete
}

// measure measures both runs of one side on a new control plane.
func (b *bench) measure(ctx context.Context, s side) (_ *measure.Sample, err error) {
	cp, err := testenv.StartWith(testenv.Settings{AuditPolicy: measure.AuditPolicy(s.user)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	if err := cp.Install(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &measurement{side: s, count: b.count, cp: cp, seen: map[string]time.Time{}, finished: map[string]time.Time{}}
	go measure.Follow(ctx, cp.Client, &batchv1.JobList{}, m.record, client.InNamespace(namespace))
	var ready string
	if m.controller, ready, err = s.start(ctx, cp); err != nil {
		return nil, err
	}
	defer m.controller.Stop()
	if err := m.controller.WaitUntil(ctx, "it is ready", measure.Answers(ready)); err != nil {
		return nil, err
	}
	due := dueTimes(time.Now(), s.lead, b.count)
	measure.Log("%d CronJobs, due at %s and %s", b.count, due[0].Format(time.TimeOnly), due[1].Format(time.TimeOnly))
	var creating errgroup.Group
	creating.SetLimit(8)
	for number := range b.count {
		creating.Go(func() error {
			cronJob, err := s.cronJob(fmt.Sprintf("cronjob-%04d", number), schedule(due))
			if err != nil {
				return err
			}
			return cp.Client.Create(ctx, cronJob)
		})
	}
	if err := creating.Wait(); err != nil {
		return nil, err
	}
	if err := m.settle(ctx, due[0], 0); err != nil {
		return nil, fmt.Errorf("before the first run: %w", err)
	}
	return m.runs(ctx, due)
}

// runs measures both runs: times are of both, and requests of the second.
func (m *measurement) runs(ctx context.Context, due [2]time.Time) (*measure.Sample, error) {
	s := &measure.Sample{Program: m.side.name, Count: m.count}
	ends := [2]time.Time{due[1], due[1].Add(2*time.Duration(m.count)*perRun + spare)}
	var skews []float64
	cpu := 0.0
	for run := range due {
		if err := measure.Pause(ctx, time.Until(due[run])); err != nil {
			return nil, err
		}
		before, err := measure.CPUSeconds(m.controller.PID)
		if err != nil {
			return nil, err
		}
		if err := m.settle(ctx, ends[run], (run+1)*m.count); err != nil {
			return nil, fmt.Errorf("run %d: %w", run+1, err)
		}
		after, err := measure.CPUSeconds(m.controller.PID)
		if err != nil {
			return nil, err
		}
		cpu += after - before
		s.Requests = measure.Counted(m.requests(due[run]))
		late := m.skews(due[run])
		if requested := s.Requests["create jobs"]; len(late) != m.count || requested != m.count {
			return nil, fmt.Errorf("%d of %d Jobs were created at their time, by %d requests", len(late), m.count, requested)
		}
		skews = append(skews, late...)
	}
	slices.Sort(skews)
	s.Numbers = map[string]float64{skewP50: measure.Percentile(skews, 50), skewP99: measure.Percentile(skews, 99),
		skewMost: skews[len(skews)-1], cpuPerRun: 1000 * cpu / float64(len(skews)),
		requestsPerRun: float64(measure.All(s.Requests)) / float64(m.count)}
	return s, nil
}

// skews returns, for each Job that the watch showed after a time, how many seconds after it.
func (m *measurement) skews(due time.Time) []float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var skews []float64
	for _, at := range m.seen {
		if !at.Before(due) {
			skews = append(skews, at.Sub(due).Seconds())
		}
	}
	return skews
}

// dueTimes returns the two minutes in which all CronJobs are due. The first leaves time to create the CronJobs, the
// second for the first run to complete.
func dueTimes(now time.Time, lead time.Duration, count int) [2]time.Time {
	lead = max(lead, quiet+20*time.Second+time.Duration(count)*perCreation)
	first := now.Add(lead).Truncate(time.Minute).Add(time.Minute)
	return [2]time.Time{first, first.Add((quiet + 10*time.Second + time.Duration(count)*perRun).Truncate(time.Minute) +
		time.Minute)}
}

// schedule returns a schedule that is due at two minutes less than an hour apart, and at no other time from half an
// hour before the first until half an hour after the second.
func schedule(due [2]time.Time) string {
	first, second := due[0].UTC(), due[1].UTC()
	hours := fmt.Sprint(first.Hour())
	if second.Hour() != first.Hour() {
		hours += fmt.Sprintf(",%d", second.Hour())
	}
	return fmt.Sprintf("%d,%d %s * * *", first.Minute(), second.Minute(), hours)
}

// record records the state of a Job.
func (m *measurement) record(event watch.EventType, object client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, job := time.Now(), object.(*batchv1.Job)
	if m.seen[job.Name].IsZero() {
		m.seen[job.Name] = now
	}
	if event != watch.Deleted && job.Status.CompletionTime != nil && m.finished[job.Name].IsZero() {
		m.finished[job.Name] = now
	}
}

// requests returns the requests of the controller since a time.
func (m *measurement) requests(since time.Time) []testenv.Request {
	return m.cp.Audit.Since(0, func(r testenv.Request) bool { return r.Verb != "watch" && !r.At.Before(since) })
}

// settle waits until the expected number of Jobs is created and complete, and the controller sends no more requests.
func (m *measurement) settle(ctx context.Context, deadline time.Time, created int) error {
	for last := time.Now(); ; {
		m.mu.Lock()
		seen, finished := len(m.seen), len(m.finished)
		m.mu.Unlock()
		if finished < created || len(m.requests(time.Now().Add(-quiet))) > 0 {
			last = time.Now()
		}
		switch {
		case seen > created:
			return fmt.Errorf("%d Jobs were created instead of %d", seen, created)
		case time.Since(last) > quiet:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("of %d Jobs %d were created until %s, %d of them are complete", created, seen,
				deadline.Format(time.TimeOnly), finished)
		}
		if err := errors.Join(m.controller.CheckAlive(), measure.Pause(ctx, 500*time.Millisecond)); err != nil {
			return err
		}
	}
}
