package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	// quiet is how long nothing must have been requested to say that a side is at rest.
	quiet = 5 * time.Second
	// patience is how much longer than guessed anything may take.
	patience = 3 * time.Minute
	// requestsPerRun is a guess of how many requests a first run takes, and some.
	requestsPerRun = 6
	// created is how many CronJobs can be made in a second, at least.
	created = 40
)

// namespace has the CronJobs.
const namespace = metav1.NamespaceDefault

// measure measures one side on a new control plane.
func (b *bench) measure(ctx context.Context, s side) (_ *result, err error) {
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
	m := &measurement{side: s, count: b.count, cp: cp, jobs: watchJobs(ctx, cp.Client)}
	if m.controller, err = s.start(ctx, cp); err != nil {
		return nil, err
	}
	defer m.controller.Stop()
	m.due = dueTimes(time.Now(), s, b.count)
	measure.Log("%d CronJobs, due at %s and %s", b.count, m.due[0].Format(time.TimeOnly), m.due[1].Format(time.TimeOnly))
	if err := m.makeCronJobs(ctx); err != nil {
		return nil, err
	}
	return m.run(ctx)
}

// dueTimes returns the two minutes that everything is due in: the first leaves time to make the CronJobs and to come to
// rest, the second to end what the first has begun.
func dueTimes(now time.Time, s side, count int) [2]time.Time {
	lead := quiet + 20*time.Second + time.Duration(count)*time.Second/created
	first := now.Add(max(lead, s.settling)).Truncate(time.Minute).Add(time.Minute)
	work := time.Duration(count) * requestsPerRun * time.Second / time.Duration(s.rate)
	return [2]time.Time{first, first.Add((quiet + 10*time.Second + work).Truncate(time.Minute) + time.Minute)}
}

// schedule returns what is due at two minutes less than an hour apart, and at no other time between half an hour before
// the first and half an hour after the second.
func schedule(due [2]time.Time) string {
	first, second := due[0].UTC(), due[1].UTC()
	hours := fmt.Sprint(first.Hour())
	if second.Hour() != first.Hour() {
		hours += fmt.Sprintf(",%d", second.Hour())
	}
	return fmt.Sprintf("%d,%d %s * * *", first.Minute(), second.Minute(), hours)
}

// measurement is one side while it is measured.
type measurement struct {
	side       side
	count      int
	cp         *testenv.ControlPlane
	controller *measure.Process
	jobs       *jobs
	due        [2]time.Time
}

// makeCronJobs creates the CronJobs of a side.
func (m *measurement) makeCronJobs(ctx context.Context) error {
	var making errgroup.Group
	making.SetLimit(8)
	for number := range m.count {
		making.Go(func() error {
			metadata := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("cronjob-%04d", number)}
			return m.cp.Client.Create(ctx, m.side.cronJob(metadata, schedule(m.due)))
		})
	}
	return making.Wait()
}

// requests returns those of the controller so far that pass all filters.
func (m *measurement) requests(filters ...func(testenv.Request) bool) []testenv.Request {
	return m.cp.Audit.Since(0, append(filters, func(r testenv.Request) bool { return r.Verb != "watch" })...)
}

// run waits for both times and returns what was measured. The CPU time of a run is read until the side is at rest.
func (m *measurement) run(ctx context.Context) (*result, error) {
	result := &result{Side: m.side.name}
	if _, err := m.rest(ctx, m.due[0], 0); err != nil {
		return nil, fmt.Errorf("before the first time: %w", err)
	}
	for i, due := range m.due {
		if err := measure.Pause(ctx, time.Until(due)); err != nil {
			return nil, err
		}
		deadline := due.Add(2*time.Duration(m.count)*requestsPerRun*time.Second/time.Duration(m.side.rate) + patience)
		if i == 0 {
			deadline = m.due[1]
		}
		before, err := measure.CPUSeconds(m.controller.PID)
		if err != nil {
			return nil, err
		}
		end, err := m.rest(ctx, deadline, (i+1)*m.count)
		if err != nil {
			return nil, fmt.Errorf("the runs of %s: %w", due.Format(time.TimeOnly), err)
		}
		after, err := measure.CPUSeconds(m.controller.PID)
		if err != nil {
			return nil, err
		}
		measure.Log("%d Jobs are complete %.0f s after they were due", m.count, end.Sub(due).Seconds())
		tick := tickOf(due, m.jobs.of(due))
		tick.CPU = after - before
		tick.Requests = measure.Counted(m.requests(func(r testenv.Request) bool { return !r.At.Before(due) }))
		if made := tick.Requests[createJobs]; made != len(tick.Skews) {
			return nil, fmt.Errorf("%d Jobs were made for %s, and the audit log has %d requests that made some",
				len(tick.Skews), due, made)
		}
		result.Ticks = append(result.Ticks, tick)
	}
	return result, nil
}

// rest waits until so many Jobs have been made and are complete and the controller requests nothing more, and returns
// when the last thing happened.
func (m *measurement) rest(ctx context.Context, deadline time.Time, made int) (time.Time, error) {
	begun := time.Now()
	for {
		total, finished, lastFinished := m.jobs.progress()
		last := slices.MaxFunc([]time.Time{begun, lastFinished}, time.Time.Compare)
		if requests := m.requests(); len(requests) > 0 && requests[len(requests)-1].At.After(last) {
			last = requests[len(requests)-1].At
		}
		switch {
		case total > made:
			return last, fmt.Errorf("%d Jobs were made instead of %d", total, made)
		case total == made && finished == made && time.Since(last) > quiet:
			return last, nil
		case time.Now().After(deadline):
			return last, fmt.Errorf("of %d Jobs %d were made until %s, %d of them are complete, and the last request was "+
				"%.0f s before", made, total, deadline.Format(time.TimeOnly), finished, time.Since(last).Seconds())
		}
		if err := errors.Join(m.controller.Alive(), measure.Pause(ctx, 500*time.Millisecond)); err != nil {
			return last, err
		}
	}
}
