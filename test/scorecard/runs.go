package main

import (
	"cmp"
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

const (
	rarely = "0 0 1 1 *" // a schedule by which nothing is due while a test runs
	period = 3 * time.Second
)

func hurry(object client.Object) {
	object.(*tutorialv1.CronJob).Spec.Schedule = "@every " + period.String()
}

func calm(object client.Object) { object.(*tutorialv1.CronJob).Spec.Schedule = rarely }

// complete changes the template so that the next Jobs complete at once, without a pod.
func complete(object client.Object) {
	spec := &object.(*tutorialv1.CronJob).Spec.JobTemplate.Spec
	spec.Suspend, spec.Completions = nil, ptr.To(int32(0))
}

// growRuns makes an object create a Job soon, even if others are active.
func growRuns(object client.Object) {
	hurry(object)
	object.(*tutorialv1.CronJob).Spec.ConcurrencyPolicy = tutorialv1.AllowConcurrent
}

func suspend(object client.Object) { object.(*tutorialv1.CronJob).Spec.Suspend = ptr.To(true) }

// sampleRuns shows that the Job of the example, as it is but for its schedule, completes.
func sampleRuns(ctx context.Context, t *trial) {
	object := t.copyOfSample().(*tutorialv1.CronJob)
	hurry(object)
	t.create(ctx, object)
	t.until(ctx, t.called(object)+" has a Job that is complete", "the pods of its Job, and their events",
		func(ctx context.Context) (string, error) {
			if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return "", err
			}
			return hasSucceeded(t, object)(ctx)
		})
}

// noRunIsRepeated shows that nothing is repaired: a Job that a user has changed stays so, and one that a user has
// deleted does not run again.
func noRunIsRepeated(ctx context.Context, t *trial) {
	object := t.createRunning(ctx)
	changed := &t.jobs(ctx, object)[0]
	t.change(ctx, changed, func(job client.Object) { unmanaged(job) })
	deleted := t.nextJob(ctx, object, jobstate.ScheduledAt(changed))
	t.delete(ctx, deleted)

	// The operator may have been about to create a first Job. When it has created a second, it has observed all of this.
	latest := jobstate.ScheduledAt(deleted)
	for _, job := range t.jobs(ctx, object) {
		latest = max(latest, jobstate.ScheduledAt(&job))
	}
	for range 2 {
		latest = jobstate.ScheduledAt(t.nextJob(ctx, object, latest))
	}
	jobs := t.jobs(ctx, object)
	if slices.ContainsFunc(jobs, func(job batchv1.Job) bool { return job.Name == deleted.Name }) {
		t.must(failed("%s was deleted and must not be created again, and was; look at how the operator knows what has run",
			t.called(deleted)))
	}
	if !slices.ContainsFunc(jobs, func(job batchv1.Job) bool {
		return job.UID == changed.UID && job.Labels["another"] == "client"
	}) {
		t.must(failed("%s had to stay as it was changed, and did not; look at the history limits, and at what the operator "+
			"writes and deletes", t.called(changed)))
	}
}

// statusOfRunsIsHonest shows that the status reports the state of the Jobs: while they are active, when some are
// complete, and when none is active.
func statusOfRunsIsHonest(ctx context.Context, t *trial) {
	object := t.createRunning(ctx)
	t.reconciled(ctx, object, t.hasActive(object, 2), t.reportsActive(object))
	t.change(ctx, object, complete)
	t.reconciled(ctx, object, hasSucceeded(t, object), t.reportsActive(object))
	t.change(ctx, object, suspend)
	t.reconciled(ctx, object, t.reportsActive(object))
	for _, job := range t.jobs(ctx, object, isUnfinished) {
		t.delete(ctx, &job)
	}
	t.until(ctx, t.called(object)+" reports that none of its Jobs is active", managerLog, t.reportsActive(object),
		t.hasCondition(object, "Progressing", metav1.ConditionFalse, tutorialv1.ReasonIdle))
}

func isUnfinished(job *batchv1.Job) bool { return !jobstate.IsFinished(job) }

// jobs returns the Jobs of an object that match all filters.
func (t *trial) jobs(ctx context.Context, object client.Object, filters ...func(*batchv1.Job) bool) []batchv1.Job {
	jobs, err := jobstate.Owned(ctx, t, object, filters...)
	t.must(err)
	return jobs
}

// createRunning creates an object that has a Job soon, and may have several at once, and waits for the first.
func (t *trial) createRunning(ctx context.Context) *tutorialv1.CronJob {
	object := t.newObject().(*tutorialv1.CronJob)
	growRuns(object)
	t.create(ctx, object)
	t.reconciled(ctx, object, t.hasActive(object, 1))
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

// contradictsSchedule returns what in the status does not follow from the schedule.
func contradictsSchedule(cj *tutorialv1.CronJob) string {
	isSuspended := ptr.Deref(cj.Spec.Suspend, false)
	available := conditionOf(cj, tutorialv1.ConditionAvailable)
	return cmp.Or(differs("status.observedSchedule", cj.Status.ObservedSchedule, cj.Spec.Schedule),
		differs("status.observedTimeZone", cj.Status.ObservedTimeZone, ptr.Deref(cj.Spec.TimeZone, "")),
		differs("that status.nextScheduleTime is empty", cj.Status.NextScheduleTime.IsZero(), isSuspended),
		differs("that condition Available reports a suspension", available.Reason == tutorialv1.ReasonSuspended, isSuspended))
}

// conditionOf returns a condition, which is empty if there is none.
func conditionOf(cj *tutorialv1.CronJob, name string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(cj.Status.Conditions, name), metav1.Condition{})
}

// isDueAt is the effect that the next time is at an hour in UTC.
func isDueAt(hour int) func(*trial, client.Object) check {
	return func(_ *trial, object client.Object) check {
		return func(context.Context) (string, error) {
			next := object.(*tutorialv1.CronJob).Status.NextScheduleTime
			return differs("the hour of status.nextScheduleTime in UTC", next.UTC().Hour(), hour), nil
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
			return "status.lastMissedTime is not set", nil
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
		if last == nil {
			return "no Job has completed", nil
		}
		return differs("status.lastSuccessfulTime", object.(*tutorialv1.CronJob).Status.LastSuccessfulTime, last), nil
	}
}

// reportsActive is a check that the status reports the active Jobs, and the latest time that was run.
func (t *trial) reportsActive(cronJob client.Object) check {
	object := cronJob.(*tutorialv1.CronJob)
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		jobs, err := jobstate.Owned(ctx, t, object)
		if err != nil {
			return "", err
		}
		var active, reported []string
		latest := ""
		for _, job := range jobs {
			latest = jobstate.ScheduledAt(&job)
			if isUnfinished(&job) {
				active = append(active, job.Name)
			}
		}
		for _, reference := range object.Status.Active {
			reported = append(reported, reference.Name)
		}
		slices.Sort(active)
		last := ptr.Deref(object.Status.LastScheduleTime, metav1.Time{}).UTC().Format(time.RFC3339)
		progressing := metav1.ConditionFalse
		if len(active) > 0 {
			progressing = metav1.ConditionTrue
		}
		return cmp.Or(differs("status.activeJobs", int(object.Status.ActiveJobs), len(active)),
			differs("status.active", reported, active),
			differs("status.lastScheduleTime", last, max(last, latest)),
			differs("condition Progressing", conditionOf(object, tutorialv1.ConditionProgressing).Status, progressing)), nil
	}
}

// jobName is the name of the Job of a time, by which users may find it.
func jobName(object string, at time.Time) string {
	if at.Unix()%60 == 0 {
		return fmt.Sprintf("%s-%08d", object, at.Unix()/60)
	}
	return fmt.Sprintf("%s-%010d", object, at.Unix())
}
