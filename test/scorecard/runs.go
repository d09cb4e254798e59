package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/jobstate"
)

// ofRuns are for a kind that makes a Job at each time of a schedule, once, and then leaves it to itself.
var ofRuns = &tries{isolated: runsAreIsolated, drift: noRunIsRepeated, foreign: foreignJobIsRefused,
	honest: statusOfRunsIsHonest}

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

// runsAreIsolated shows that two resources of a kind in one namespace have nothing to do with each other's Jobs, and
// that nothing becomes of those of one when the other is changed or deleted.
func runsAreIsolated(ctx context.Context, t *trial) error {
	var pair [2]*tutorialv1.CronJob
	for i := range pair {
		object, err := t.createRunning(ctx)
		if err != nil {
			return err
		}
		if err := t.change(ctx, object, calm); err != nil {
			return err
		}
		if err := t.carriedOut(ctx, object, t.tellsOfActive(object)); err != nil {
			return err
		}
		pair[i] = object
	}
	one, other := pair[0], pair[1]
	theirs, err := t.family(ctx, other)
	if err != nil {
		return err
	}
	before, err := t.identity(ctx, theirs)
	if err != nil {
		return err
	}

	had, err := t.jobs(ctx, one)
	if err != nil {
		return err
	}
	more := func(object client.Object) {
		hurry(object)
		object.(*tutorialv1.CronJob).Spec.ConcurrencyPolicy = tutorialv1.AllowConcurrent
	}
	if err := t.change(ctx, one, more); err != nil {
		return err
	}
	if err := t.carriedOut(ctx, one, func(ctx context.Context) (string, error) {
		return hasActive(len(had)+1)(ctx, t, one)
	}); err != nil {
		return err
	}
	if err := t.areAsBefore(ctx, theirs, before, t.called(one)+" was changed"); err != nil {
		return err
	}

	gone, err := t.family(ctx, one)
	if err != nil {
		return err
	}
	if err := t.Delete(ctx, one); err != nil {
		return fmt.Errorf("deleting %s: %w", t.called(one), err)
	}
	for _, object := range gone {
		if err := t.until(ctx, t.called(object)+" is gone", "its finalizers and owner references",
			t.gone(object)); err != nil {
			return err
		}
	}
	return t.areAsBefore(ctx, theirs, before, t.called(one)+" was deleted")
}

// noRunIsRepeated shows that nothing is repaired: a Job that somebody has changed stays so, and one that somebody has
// deleted is not run again.
func noRunIsRepeated(ctx context.Context, t *trial) error {
	object, err := t.createRunning(ctx)
	if err != nil {
		return err
	}
	changed, err := t.jobs(ctx, object)
	if err != nil {
		return err
	}
	mark := func(job client.Object) { job.SetLabels(map[string]string{"somebody": "else"}) }
	if err := t.change(ctx, &changed[0], mark); err != nil {
		return err
	}
	deleted, err := t.nextJob(ctx, object, scheduledAt(changed[0]))
	if err != nil {
		return err
	}
	if err := t.Delete(ctx, deleted, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("deleting %s: %w", t.called(deleted), err)
	}
	t.logf("deleted %s", t.called(deleted))
	jobs, err := t.jobsLater(ctx, object, scheduledAt(*deleted))
	if err != nil {
		return err
	}
	for _, job := range jobs {
		switch {
		case job.Name == deleted.Name:
			return failed("%s was deleted and must not be made again, and was; look at how the operator knows what has been run",
				t.called(deleted))
		case job.UID == changed[0].UID && job.Labels["somebody"] != "else":
			return failed("%s had to stay as somebody had changed it, and its labels are %v; look at what the operator writes",
				t.called(&job), job.Labels)
		}
	}
	if !slices.ContainsFunc(jobs, func(job batchv1.Job) bool { return job.UID == changed[0].UID }) {
		return failed("%s had to stay, and is gone; look at the history limits, and at what the operator deletes",
			t.called(&changed[0]))
	}
	return nil
}

// foreignJobIsRefused shows that Jobs of somebody else, under the names that are due, stay as they are; that the
// resource says so, by condition and event; and that all is well when the names are free.
func foreignJobIsRefused(ctx context.Context, t *trial) error {
	object := t.newObject().(*tutorialv1.CronJob)
	hurry(object)
	object.Spec.ConcurrencyPolicy = tutorialv1.AllowConcurrent
	if err := t.create(ctx, object); err != nil {
		return err
	}
	if err := t.carriedOut(ctx, object); err != nil {
		return err
	}
	// Several in a row leave time to observe them. The operator may have been faster with the first.
	var foreign []*batchv1.Job
	for next := object.Status.NextScheduleTime.Time; len(foreign) < 6; next = next.Add(period) {
		job := jobOfSomebody(object.Namespace, jobName(object.Name, next))
		err := t.create(ctx, job)
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return err
		}
		foreign = append(foreign, job)
	}
	if err := t.until(ctx, t.called(object)+" says that the name is taken", managerLog,
		t.says(object, "Degraded", metav1.ConditionTrue, "NameTaken")); err != nil {
		return err
	}
	if err := t.until(ctx, "an event of "+t.called(object)+" says that the name is taken", managerLog,
		t.hasEvent(object, t.NameTaken)); err != nil {
		return err
	}

	// A write has the operator look again: it must not have changed its mind, nor come to it with a delay.
	again := func(object client.Object) {
		object.(*tutorialv1.CronJob).Spec.SuccessfulJobsHistoryLimit = ptr.To(int32(7))
	}
	if err := t.change(ctx, object, again); err != nil {
		return err
	}
	if err := t.until(ctx, t.called(object)+" says so of its new spec too", managerLog,
		t.says(object, "Degraded", metav1.ConditionTrue, "NameTaken")); err != nil {
		return err
	}
	for _, job := range foreign {
		if err := t.isTheirs(ctx, job); err != nil {
			return err
		}
	}

	had, err := t.jobs(ctx, object)
	if err != nil {
		return err
	}
	for _, job := range foreign {
		if err := t.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return fmt.Errorf("deleting %s of somebody else: %w", t.called(job), err)
		}
	}
	t.logf("deleted the Jobs of somebody else")
	if err := t.carriedOut(ctx, object, func(ctx context.Context) (string, error) {
		return hasActive(len(had)+1)(ctx, t, object)
	}); err != nil {
		return err
	}
	return t.until(ctx, t.called(object)+" says that nothing is wrong", managerLog,
		t.says(object, "Degraded", metav1.ConditionFalse, "AsExpected"))
}

// statusOfRunsIsHonest shows that the status says what has become of the Jobs: while they are active, when some have
// completed, and when none is active any more.
func statusOfRunsIsHonest(ctx context.Context, t *trial) error {
	object, err := t.createRunning(ctx)
	if err != nil {
		return err
	}
	if err := t.carriedOut(ctx, object, func(ctx context.Context) (string, error) { return hasActive(2)(ctx, t, object) },
		t.tellsOfActive(object)); err != nil {
		return err
	}
	if err := t.change(ctx, object, complete); err != nil {
		return err
	}
	if err := t.carriedOut(ctx, object, func(ctx context.Context) (string, error) { return hasSucceeded(ctx, t, object) },
		t.tellsOfActive(object)); err != nil {
		return err
	}
	if err := t.change(ctx, object, func(object client.Object) {
		object.(*tutorialv1.CronJob).Spec.Suspend = ptr.To(true)
	}); err != nil {
		return err
	}
	if err := t.carriedOut(ctx, object, t.tellsOfActive(object)); err != nil {
		return err
	}
	jobs, err := t.jobs(ctx, object)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if !jobstate.IsFinished(&job) {
			if err := t.Delete(ctx, &job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				return fmt.Errorf("deleting %s: %w", t.called(&job), err)
			}
		}
	}
	return t.until(ctx, t.called(object)+" says that none of its Jobs is active", managerLog,
		func(ctx context.Context) (string, error) {
			if wrong, err := t.tellsOfActive(object)(ctx); wrong != "" || err != nil {
				return wrong, err
			}
			return t.says(object, "Progressing", metav1.ConditionFalse, tutorialv1.ReasonIdle)(ctx)
		})
}

// createRunning makes a new object that has a Job soon, and may have several at once, and waits for the first.
func (t *trial) createRunning(ctx context.Context) (*tutorialv1.CronJob, error) {
	object := t.newObject().(*tutorialv1.CronJob)
	hurry(object)
	object.Spec.ConcurrencyPolicy = tutorialv1.AllowConcurrent
	if err := t.create(ctx, object); err != nil {
		return nil, err
	}
	return object,
		t.carriedOut(ctx, object, func(ctx context.Context) (string, error) { return hasActive(1)(ctx, t, object) })
}

// jobs returns the Jobs of an object, those of the latest times last.
func (t *trial) jobs(ctx context.Context, object client.Object) ([]batchv1.Job, error) {
	var jobs batchv1.JobList
	if err := t.List(ctx, &jobs, client.InNamespace(t.namespace)); err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool { return !metav1.IsControlledBy(&job, object) })
	slices.SortFunc(own, func(a, b batchv1.Job) int { return strings.Compare(scheduledAt(a), scheduledAt(b)) })
	return own, nil
}

// nextJob waits for a Job of a later time, and returns the first.
func (t *trial) nextJob(ctx context.Context, object client.Object, after string) (next *batchv1.Job, err error) {
	err = t.until(ctx, fmt.Sprintf("%s has a Job of a time after %s", t.called(object), after), managerLog,
		func(ctx context.Context) (string, error) {
			jobs, err := t.jobs(ctx, object)
			if err != nil {
				return "", err
			}
			i := slices.IndexFunc(jobs, func(job batchv1.Job) bool { return scheduledAt(job) > after })
			if i < 0 {
				return "there is none", nil
			}
			next = &jobs[i]
			return "", nil
		})
	return next, err
}

// jobsLater returns the Jobs of an object when there are two of later times than all that there are, and than another.
// The operator may have been about to make the first; when it has made the second, it has seen all that had happened
// before.
func (t *trial) jobsLater(ctx context.Context, object client.Object, than string) ([]batchv1.Job, error) {
	jobs, err := t.jobs(ctx, object)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		than = max(than, scheduledAt(job))
	}
	for range 2 {
		next, err := t.nextJob(ctx, object, than)
		if err != nil {
			return nil, err
		}
		than = scheduledAt(*next)
	}
	return t.jobs(ctx, object)
}

// family returns an object and its Jobs.
func (t *trial) family(ctx context.Context, object client.Object) ([]client.Object, error) {
	jobs, err := t.jobs(ctx, object)
	family := append(make([]client.Object, 0, 1+len(jobs)), object)
	for i := range jobs {
		family = append(family, &jobs[i])
	}
	return family, err
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

// isDueAt is the effect that what is due next is so at an hour in UTC.
func isDueAt(hour int) func(context.Context, *trial, client.Object) (string, error) {
	return func(_ context.Context, _ *trial, object client.Object) (string, error) {
		if next := object.(*tutorialv1.CronJob).Status.NextScheduleTime; next.UTC().Hour() != hour {
			return fmt.Sprintf("status.nextScheduleTime is %s, and not at %d o'clock in UTC", next, hour), nil
		}
		return "", nil
	}
}

// hasActive is the effect that at least so many Jobs are active.
func hasActive(count int) func(context.Context, *trial, client.Object) (string, error) {
	return func(ctx context.Context, t *trial, object client.Object) (string, error) {
		jobs, err := t.jobs(ctx, object)
		if err != nil {
			return "", err
		}
		if active := slices.DeleteFunc(jobs, func(job batchv1.Job) bool {
			return jobstate.IsFinished(&job)
		}); len(active) < count {
			return fmt.Sprintf("%s has %d active Jobs, and should have %d", t.called(object), len(active), count), nil
		}
		return "", nil
	}
}

// hasMissed is the effect that something due was given up.
func hasMissed(_ context.Context, _ *trial, object client.Object) (string, error) {
	if object.(*tutorialv1.CronJob).Status.LastMissedTime == nil {
		return "status.lastMissedTime tells of nothing that was given up", nil
	}
	return "", nil
}

// hasSucceeded is the effect that a Job has completed, and that the status tells when the last one has.
func hasSucceeded(ctx context.Context, t *trial, object client.Object) (string, error) {
	jobs, err := t.jobs(ctx, object)
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

// tellsOfActive is a check that the status tells of the active Jobs, and of the latest time that was run.
func (t *trial) tellsOfActive(object *tutorialv1.CronJob) check {
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		jobs, err := t.jobs(ctx, object)
		if err != nil {
			return "", err
		}
		var active, told []string
		latest := ""
		for _, job := range jobs {
			latest = scheduledAt(job)
			if !jobstate.IsFinished(&job) {
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

func scheduledAt(job batchv1.Job) string {
	return job.Annotations[tutorialv1.ScheduledAtAnnotation]
}

// jobOfSomebody returns a Job that somebody else could have made. It makes no pods, so no image is needed.
func jobOfSomebody(namespace, name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"somebody": "else"}},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(true),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "it", Image: "somebody.invalid/else:1"}},
			}},
		},
	}
}
