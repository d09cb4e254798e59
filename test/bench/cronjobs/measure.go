package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	// quiet is how long nothing must have been requested to say that a side is at rest.
	quiet = 5 * time.Second
	// idle is how long a side is measured while it has nothing to do.
	idle = 10 * time.Second
	// patience is how much longer than guessed anything may take.
	patience = 3 * time.Minute
	// requestsPerRun is a guess of how many requests a first run takes, and some.
	requestsPerRun = 6
	// created is how many CronJobs can be made in a second, at least.
	created = 40
)

// measure measures one side.
func (b *bench) measure(ctx context.Context, s side) (*result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		return nil, err
	}
	seen := b.watchJobs(ctx, s.namespace)
	mark := b.audit.Now()
	controller, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	defer controller.Stop()
	m := &measurement{bench: b, side: s, controller: controller, jobs: seen, requests: func() []testenv.Request {
		return b.audit.Since(mark, func(r testenv.Request) bool { return r.User == s.user && r.Verb != "watch" })
	}}

	m.due = dueTimes(time.Now(), s, b.count)
	b.say("%d CronJobs, due at %s and %s", b.count, m.due[0].Format(time.TimeOnly), m.due[1].Format(time.TimeOnly))
	if err := b.makeCronJobs(ctx, s, schedule(m.due)); err != nil {
		return nil, err
	}
	result, err := m.run(ctx)
	if err != nil {
		return nil, err
	}
	controller.Stop()
	return result, b.deleteNamespace(ctx, s.namespace)
}

// dueTimes returns the two minutes that everything is due in: the first leaves time to make the CronJobs and to come to
// rest, the second to end what the first has begun.
func dueTimes(now time.Time, s side, count int) [2]time.Time {
	lead := quiet + idle + 10*time.Second + time.Duration(count)*time.Second/created
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

// makeCronJobs creates the CronJobs of a side.
func (b *bench) makeCronJobs(ctx context.Context, s side, schedule string) error {
	return measure.Parallel(8, measure.Numbers(b.count), func(number int) error {
		object := s.cronJob(fmt.Sprintf("cronjob-%04d", number), schedule)
		object.SetNamespace(s.namespace)
		return b.client.Create(ctx, object)
	})
}

// measurement is one side while it is measured.
type measurement struct {
	*bench
	side       side
	controller *measure.Process
	jobs       *jobs
	requests   func() []testenv.Request // of the controller, so far
	due        [2]time.Time
}

// run waits for both times and returns what was measured. The CPU time of a run is read until the side is at rest.
func (m *measurement) run(ctx context.Context) (*result, error) {
	result := &result{Side: m.side.name}
	if _, err := m.rest(ctx, m.due[0].Add(-idle), 0); err != nil {
		return nil, fmt.Errorf("before the first time: %w", err)
	}
	result.Before = measure.Counted(m.requests())
	idleCost, idleFor, err := m.cost(func() error { return measure.Pause(ctx, time.Until(m.due[0].Add(-time.Second))) })
	if err != nil {
		return nil, err
	}
	result.Idle, result.IdleFor = map[string]float64{}, idleFor
	for name, seconds := range idleCost {
		result.Idle[name] = seconds / idleFor
	}
	for i, due := range m.due {
		if err := measure.Pause(ctx, time.Until(due)); err != nil {
			return nil, err
		}
		deadline := due.Add(2*time.Duration(m.count)*requestsPerRun*time.Second/time.Duration(m.side.rate) + patience)
		if i == 0 {
			deadline = m.due[1]
		}
		var end time.Time
		cpu, seconds, err := m.cost(func() (err error) {
			end, err = m.rest(ctx, deadline, (i+1)*m.count)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("the runs of %s: %w", due.Format(time.TimeOnly), err)
		}
		m.say("%d Jobs are complete %.0f s after they were due", m.count, end.Sub(due).Seconds())
		tick := tickOf(due, m.jobs.of(due))
		tick.CPU, tick.CPUFor = cpu, seconds
		tick.Requests = measure.Counted(slices.DeleteFunc(m.requests(),
			func(r testenv.Request) bool { return r.At.Before(due) }))
		if made := tick.Requests[createJobs]; made != tick.Runs {
			return nil, fmt.Errorf("%d Jobs were made for %s, and the audit log has %d requests that made some", tick.Runs, due,
				made)
		}
		result.Ticks = append(result.Ticks, tick)
	}
	return result, nil
}

// cost returns how many seconds of CPU time each process has used while something is done, and how long that took.
func (m *measurement) cost(do func() error) (map[string]float64, float64, error) {
	pids := maps.Clone(m.clusterParts)
	pids[cronJobController] = m.controller.PID
	before, begun := measure.ReadCPU(pids), time.Now()
	if err := do(); err != nil {
		return nil, 0, err
	}
	cost, err := before.Until(measure.ReadCPU(pids))
	return cost.CPU, time.Since(begun).Seconds(), err
}

// rest waits until so many Jobs have been made and are complete and the controller requests nothing more, and returns
// when the last thing happened.
func (m *measurement) rest(ctx context.Context, deadline time.Time, made int) (time.Time, error) {
	begun := time.Now()
	for {
		last := begun
		requests := m.requests()
		if len(requests) > 0 && requests[len(requests)-1].At.After(last) {
			last = requests[len(requests)-1].At
		}
		total, finished, lastFinished := m.jobs.progress()
		if lastFinished.After(last) {
			last = lastFinished
		}
		switch {
		case total > made:
			return last, fmt.Errorf("%d Jobs were made instead of %d", total, made)
		case total == made && finished == made && time.Since(last) > quiet:
			return last, nil
		case time.Now().After(deadline):
			return last, fmt.Errorf("of %d Jobs %d were made until %s, %d of them are complete, and the last request was %.0f "+
				"s before",
				made, total, deadline.Format(time.TimeOnly), finished, time.Since(last).Seconds())
		}
		if err := m.controller.Alive(); err != nil {
			return last, err
		}
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
