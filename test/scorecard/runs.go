package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/jobstate"
)

// Schedules: one by which nothing is due while a test runs, and one by which something soon is.
const (
	rarely = "0 0 1 1 *"
	period = 3 * time.Second
)

func hurry(object client.Object) {
	object.(*tutorialv1.CronJob).Spec.Schedule = "@every " + period.String()
}

func calm(object client.Object) { object.(*tutorialv1.CronJob).Spec.Schedule = rarely }

// complete has the next Jobs complete at once: they need no pod to succeed.
func complete(object client.Object) {
	spec := &object.(*tutorialv1.CronJob).Spec.JobTemplate.Spec
	spec.Suspend, spec.Completions = nil, ptr.To(int32(0))
}

// growRuns has an object create a Job soon, whatever else is active.
func growRuns(object client.Object) {
	hurry(object)
	object.(*tutorialv1.CronJob).Spec.ConcurrencyPolicy = tutorialv1.AllowConcurrent
}

func suspend(object client.Object) { object.(*tutorialv1.CronJob).Spec.Suspend = ptr.To(true) }

// noRunIsRepeated shows that nothing is repaired: a Job that a user has changed stays so, and one that a user has
// deleted does not run again.
func noRunIsRepeated(ctx context.Context, t *trial) {
	object := t.createRunning(ctx)
	jobs, err := jobstate.Owned(ctx, t, object)
	t.must(err)
	changed := &jobs[0]
	t.change(ctx, changed, func(job client.Object) { unmanaged(job) })
	deleted := t.nextJob(ctx, object, jobstate.ScheduledAt(changed))
	t.delete(ctx, deleted)
	isThere := false
	for _, job := range t.jobsLater(ctx, object, jobstate.ScheduledAt(deleted)) {
		switch {
		case job.Name == deleted.Name:
			t.must(failed("%s was deleted and must not be made again, and was; look at how the operator knows what has been run",
				t.called(deleted)))
		case job.UID == changed.UID && job.Labels["somebody"] != "else":
			t.must(failed("%s had to stay as somebody had changed it, and its labels are %v; look at what the operator writes",
				t.called(&job), job.Labels))
		}
		isThere = isThere || job.UID == changed.UID
	}
	if !isThere {
		t.must(failed("%s had to stay, and is gone; look at the history limits, and at what the operator deletes",
			t.called(changed)))
	}
}

// statusOfRunsIsHonest shows that the status reports the state of the Jobs: while they are active, when some are
// complete, and when none is active.
func statusOfRunsIsHonest(ctx context.Context, t *trial) {
	object := t.createRunning(ctx)
	t.carriedOut(ctx, object, t.hasActive(object, 2), t.tellsOfActive(object))
	t.change(ctx, object, complete)
	t.carriedOut(ctx, object, hasSucceeded(t, object), t.tellsOfActive(object))
	t.change(ctx, object, suspend)
	t.carriedOut(ctx, object, t.tellsOfActive(object))
	jobs, err := jobstate.Owned(ctx, t, object, isUnfinished)
	t.must(err)
	for _, job := range jobs {
		t.delete(ctx, &job)
	}
	t.until(ctx, t.called(object)+" says that none of its Jobs is active", managerLog, t.tellsOfActive(object),
		t.says(object, "Progressing", metav1.ConditionFalse, tutorialv1.ReasonIdle))
}

func isUnfinished(job *batchv1.Job) bool { return !jobstate.IsFinished(job) }

// createRunning creates an object that has a Job soon, and may have several at once, and waits for the first.
func (t *trial) createRunning(ctx context.Context) *tutorialv1.CronJob {
	object := t.newObject().(*tutorialv1.CronJob)
	growRuns(object)
	t.create(ctx, object)
	t.carriedOut(ctx, object, t.hasActive(object, 1))
	return object
}

// nextJob waits for a Job of a later time, and returns the first.
func (t *trial) nextJob(ctx context.Context, object client.Object, after string) (next *batchv1.Job) {
	t.until(ctx, fmt.Sprintf("%s has a Job of a time after %s", t.called(object), after), managerLog,
		func(ctx context.Context) (string, error) {
			jobs, err := jobstate.Owned(ctx, t, object, func(job *batchv1.Job) bool {
				return jobstate.ScheduledAt(job) > after
			})
			if err != nil || len(jobs) == 0 {
				return "there is none", err
			}
			next = &jobs[0]
			return "", nil
		})
	return next
}

// jobsLater returns the Jobs of an object when there are two of later times than all that there are, and than another.
// The operator may have been about to create the first; when it has created the second, it has observed all that had
// happened before.
func (t *trial) jobsLater(ctx context.Context, object client.Object, than string) []batchv1.Job {
	jobs, err := jobstate.Owned(ctx, t, object)
	t.must(err)
	for _, job := range jobs {
		than = max(than, jobstate.ScheduledAt(&job))
	}
	for range 2 {
		than = jobstate.ScheduledAt(t.nextJob(ctx, object, than))
	}
	jobs, err = jobstate.Owned(ctx, t, object)
	t.must(err)
	return jobs
}

// contradictsSchedule tells what in the status does not follow from the schedule.
func contradictsSchedule(cj *tutorialv1.CronJob) string {
	isSuspended := ptr.Deref(cj.Spec.Suspend, false)
	available := meta.FindStatusCondition(cj.Status.Conditions, tutorialv1.ConditionAvailable)
	switch zone := ptr.Deref(cj.Spec.TimeZone, ""); {
	case cj.Status.ObservedSchedule != cj.Spec.Schedule:
		return fmt.Sprintf("status.observedSchedule is %q, and spec.schedule %q", cj.Status.ObservedSchedule,
			cj.Spec.Schedule)
	case cj.Status.ObservedTimeZone != zone:
		return fmt.Sprintf("status.observedTimeZone is %q, and spec.timeZone %q", cj.Status.ObservedTimeZone, zone)
	case isSuspended != cj.Status.NextScheduleTime.IsZero():
		return fmt.Sprintf("spec.suspend is %t, and status.nextScheduleTime %s", isSuspended, cj.Status.NextScheduleTime)
	case available == nil || isSuspended != (available.Reason == tutorialv1.ReasonSuspended):
		return fmt.Sprintf("spec.suspend is %t, and condition Available %+v", isSuspended, available)
	}
	return ""
}

// isDueAt is the effect that the next time is at an hour in UTC.
func isDueAt(hour int) func(*trial, client.Object) check {
	return func(_ *trial, object client.Object) check {
		return func(context.Context) (string, error) {
			if next := object.(*tutorialv1.CronJob).Status.NextScheduleTime; next.UTC().Hour() != hour {
				return fmt.Sprintf("status.nextScheduleTime is %s, and not at %d o'clock in UTC", next, hour), nil
			}
			return "", nil
		}
	}
}

// activeJobs is the effect that at least so many Jobs are active.
func activeJobs(count int) func(*trial, client.Object) check {
	return func(t *trial, object client.Object) check { return t.hasActive(object, count) }
}

// hasActive is a check that an object has at least so many active Jobs.
func (t *trial) hasActive(object client.Object, count int) check {
	return func(ctx context.Context) (string, error) {
		active, err := jobstate.Owned(ctx, t, object, isUnfinished)
		if err == nil && len(active) < count {
			return fmt.Sprintf("%s has %d active Jobs, and should have %d", t.called(object), len(active), count), nil
		}
		return "", err
	}
}

// hasMissed is the effect that a time was missed.
func hasMissed(_ *trial, object client.Object) check {
	return func(context.Context) (string, error) {
		if object.(*tutorialv1.CronJob).Status.LastMissedTime == nil {
			return "status.lastMissedTime tells of nothing that was given up", nil
		}
		return "", nil
	}
}

// hasSucceeded is the effect that a Job is complete, and that the status has the time of the last one.
func hasSucceeded(t *trial, object client.Object) check {
	return func(ctx context.Context) (string, error) {
		jobs, err := jobstate.Owned(ctx, t, object)
		if err != nil {
			return "", err
		}
		var last *metav1.Time
		for _, job := range jobs {
			if at := job.Status.CompletionTime; at != nil && (last == nil || last.Before(at)) {
				last = at
			}
		}
		told := object.(*tutorialv1.CronJob).Status.LastSuccessfulTime
		switch {
		case last == nil:
			return "no Job has completed", nil
		case !last.Equal(told):
			return fmt.Sprintf("status.lastSuccessfulTime is %s, and the last Job completed at %s", told, last), nil
		}
		return "", nil
	}
}

// tellsOfActive is a check that the status tells of the active Jobs, and of the latest time that was run.
func (t *trial) tellsOfActive(cronJob client.Object) check {
	object := cronJob.(*tutorialv1.CronJob)
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		jobs, err := jobstate.Owned(ctx, t, object)
		if err != nil {
			return "", err
		}
		var active, told []string
		latest := ""
		for _, job := range jobs {
			latest = jobstate.ScheduledAt(&job)
			if isUnfinished(&job) {
				active = append(active, job.Name)
			}
		}
		for _, reference := range object.Status.Active {
			told = append(told, reference.Name)
		}
		slices.Sort(active)
		progressing := meta.FindStatusCondition(object.Status.Conditions, tutorialv1.ConditionProgressing)
		switch {
		case int(object.Status.ActiveJobs) != len(active):
			return fmt.Sprintf("the status tells of %d active Jobs, and there are %d", object.Status.ActiveJobs,
				len(active)), nil
		case !slices.Equal(told, active):
			return fmt.Sprintf("status.active are %v, and the active Jobs %v", told, active), nil
		case latest > ptr.Deref(object.Status.LastScheduleTime, metav1.Time{}).UTC().Format(time.RFC3339):
			return fmt.Sprintf("status.lastScheduleTime is %s, and there is a Job of %s", object.Status.LastScheduleTime,
				latest), nil
		case progressing == nil || (progressing.Status == metav1.ConditionTrue) != (len(active) > 0):
			return fmt.Sprintf("%d Jobs are active, and condition Progressing is %+v", len(active), progressing), nil
		}
		return "", nil
	}
}

// jobName is the name of the Job of a time, by which users may find it.
func jobName(object string, at time.Time) string {
	if at.Unix()%60 == 0 {
		return fmt.Sprintf("%s-%08d", object, at.Unix()/60)
	}
	return fmt.Sprintf("%s-%010d", object, at.Unix())
}
