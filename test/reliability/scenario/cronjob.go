package scenario

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/reliability/history"
)

// oldEnough is how old a Job has to be before the operator deletes it from the history: a minute, and the second that
// the API server's times leave out.
const oldEnough = 62 * time.Second

// isRunning is reached when the Job for the tick runs, and fire is the step in which the operator makes it.
var (
	isRunning = hasRun("Progressing=True/JobsRunning")
	fire      = Step{Name: "fire", Until: isRunning}
)

func cronJobs() []Scenario {
	return []Scenario{
		{Name: "cronjob-create", Steps: []Step{
			{Name: "create", Do: createCronJob, Until: cronJobSays(fine...)},
			{Name: "suspend", Do: suspend(true), Until: cronJobSays("Available=False/Suspended", "Degraded=False")},
			{Name: "resume", Do: suspend(false), Until: cronJobSays("Available=True", "Degraded=False")},
		}},
		{Name: "cronjob-fire", Prepare: due(1), Steps: []Step{
			fire,
			{Name: "take the Job from its owner", Do: disown, Until: isRunning},
		}},
		{Name: "cronjob-missed", Prepare: due(4), Steps: []Step{
			{Name: "fire", Until: func(s *Stage, world history.World) string {
				return first(isRunning(s, world), hasMissed(1)(s, world), jobCount(world, 1))
			}},
		}},
		{Name: "cronjob-late", Prepare: late, Steps: []Step{
			{Name: "give up", Until: func(s *Stage, world history.World) string {
				return first(cronJobSays(fine...)(s, world), hasMissed(0)(s, world),
					jobCount(world, 0))
			}},
		}},
		{Name: "cronjob-finish", Prepare: due(1), Setup: []Step{fire}, Steps: []Step{
			{Name: "complete", Do: finish(0, batchv1.JobComplete), Until: hasSucceeded},
			{Name: "clean up", Do: cleanUp,
				Until: func(s *Stage, world history.World) string { return first(jobCount(world, 0), hasSucceeded(s, world)) }},
		}},
		{Name: "cronjob-unseen", Prepare: due(1), Setup: []Step{fire}, Steps: []Step{
			{Name: "complete and clean up", IsUnseen: true, Do: inTurn(finish(0, batchv1.JobComplete), cleanUp),
				Until: func(s *Stage, world history.World) string {
					return first(jobCount(world, 0), cronJobSays("Available=True", "Progressing=False")(s, world))
				}},
		}},
		{Name: "cronjob-fail", Prepare: due(1), Setup: []Step{fire}, Steps: []Step{
			{Name: "fail", Do: finish(0, batchv1.JobFailed), Until: cronJobSays("Degraded=True/LastRunFailed",
				"Progressing=False")},
		}},
		{Name: "cronjob-replace", Prepare: active(tutorialv1.ReplaceConcurrent), Steps: []Step{
			{Name: "fire", Until: func(s *Stage, world history.World) string {
				if in[batchv1.Job](world, history.Jobs, jobName(s, 1)) != nil {
					return "the Job that is replaced is still there"
				}
				return isRunning(s, world)
			}},
		}},
		{Name: "cronjob-forbid", Prepare: active(tutorialv1.ForbidConcurrent), Steps: []Step{
			{Name: "wait", Until: cronJobSays("Progressing=True/WaitingForJob")},
			{Name: "complete", Do: finish(1, batchv1.JobComplete), Until: isRunning},
		}},
		{Name: "cronjob-prune", Prepare: finished, Age: oldEnough, Steps: []Step{
			{Name: "prune", Until: func(s *Stage, world history.World) string {
				for _, before := range []int{2, 3} {
					if in[batchv1.Job](world, history.Jobs, jobName(s, before)) != nil {
						return jobName(s, before) + " is still there"
					}
				}
				return hasSucceeded(s, world)
			}},
		}},
		{Name: "cronjob-foreign", Prepare: inTurn(func(ctx context.Context, s *Stage) error {
			return s.make(ctx, job(jobName(s, 0)))
		}, due(1)), Steps: []Step{
			{Name: "wait", Until: cronJobSays("Degraded=True/NameTaken")},
			{Name: "make room", Do: cleanUp, Until: hasRun("Progressing=True/JobsRunning", "Degraded=False")},
		}},
		{Name: "cronjob-delete", IsOpen: true, Prepare: due(1), Steps: []Step{
			{Name: "fire", Until: func(s *Stage, world history.World) string {
				if in[batchv1.Job](world, history.Jobs, jobName(s, 0)) == nil {
					return "there is no Job"
				}
				return ""
			}},
			{Name: "delete", Do: end(cronJob()), Until: nothingLeft},
		}},
		{Name: "cronjob-recreate", Prepare: due(1), Setup: []Step{fire}, Steps: []Step{
			{Name: "delete and create", Do: inTurn(end(cronJob()), createCronJob),
				Until: func(s *Stage, world history.World) string {
					return first(gone(world, history.Jobs), cronJobSays(fine...)(s,
						world))
				}},
		}},
	}
}

func cronJob() *tutorialv1.CronJob {
	return &tutorialv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
}

// hourly returns a CronJob that is due at the tick of the stage and every hour before and after. Its Jobs are
// suspended: they end when the scenario says so.
func hourly(s *Stage) *tutorialv1.CronJob {
	cj := cronJob()
	cj.Spec.Schedule = fmt.Sprintf("%d * * * *", s.Tick.Minute())
	cj.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](1)
	cj.Spec.JobTemplate.Spec = job("").Spec
	return cj
}

func job(name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Suspend:      ptr.To(true),
			BackoffLimit: ptr.To[int32](0),
			Template:     corev1.PodTemplateSpec{Spec: containers()},
		},
	}
}

// jobName returns the name of the Job for so many hours before the tick.
func jobName(s *Stage, hoursBefore int) string {
	return fmt.Sprintf("one-%08d", s.Tick.Add(-time.Duration(hoursBefore)*time.Hour).Unix()/60)
}

// disown has the Job for the tick lose its owner reference.
func disown(ctx context.Context, s *Stage) error {
	return edit(ctx, s, job(jobName(s, 0)), func(job *batchv1.Job) { job.OwnerReferences = nil })
}

// cleanUp deletes the Job for the tick.
func cleanUp(ctx context.Context, s *Stage) error { return s.end(ctx, job(jobName(s, 0))) }

func createCronJob(ctx context.Context, s *Stage) error {
	return s.make(ctx, hourly(s))
}

func suspend(is bool) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		return edit(ctx, s, cronJob(), func(cj *tutorialv1.CronJob) { cj.Spec.Suspend = &is })
	}
}

// due makes a CronJob that has been looked at so many hours before the tick, and not since.
func due(hours int) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		cj := hourly(s)
		cj.Spec.ConcurrencyPolicy = tutorialv1.AllowConcurrent
		if err := s.make(ctx, cj); err != nil {
			return err
		}
		return lookedAt(ctx, s, cj, s.Tick.Add(-time.Duration(hours)*time.Hour), nil)
	}
}

// late makes a CronJob that was due four times, each too long ago for its deadline.
func late(ctx context.Context, s *Stage) error {
	cj := hourly(s)
	cj.Spec.StartingDeadlineSeconds = ptr.To[int64](60)
	if err := s.make(ctx, cj); err != nil {
		return err
	}
	return lookedAt(ctx, s, cj, s.Tick.Add(-4*time.Hour), nil)
}

// lookedAt writes the status that a manager has left behind which looked at a CronJob at a time.
func lookedAt(ctx context.Context, s *Stage, cj *tutorialv1.CronJob, at time.Time,
	change func(*tutorialv1.CronJobStatus)) error {
	cj.Status.ScheduledSince = ptr.To(metav1.NewTime(at))
	cj.Status.ObservedSchedule = cj.Spec.Schedule
	if change != nil {
		change(&cj.Status)
	}
	return s.Client.Status().Update(ctx, cj)
}

// ran makes the Job that a manager has made for so many hours before the tick.
func ran(ctx context.Context, s *Stage, cj *tutorialv1.CronJob, hoursBefore int) (*batchv1.Job, error) {
	made := job(jobName(s, hoursBefore))
	made.Annotations = map[string]string{
		child.OwnerAnnotation:            string(cj.UID),
		tutorialv1.ScheduledAtAnnotation: s.Tick.Add(-time.Duration(hoursBefore) * time.Hour).Format(time.RFC3339),
	}
	made.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cj,
		tutorialv1.GroupVersion.WithKind("CronJob"))}
	return made, s.make(ctx, made)
}

// active makes a CronJob that is due while the Job of the hour before goes on, and so does one of another CronJob whose
// UID is nearly its own.
func active(policy tutorialv1.ConcurrencyPolicy) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		cj := hourly(s)
		cj.Spec.ConcurrencyPolicy = policy
		if err := s.make(ctx, cj); err != nil {
			return err
		}
		other := job(theirs)
		other.Annotations = map[string]string{child.OwnerAnnotation: neighbour(cj.UID)}
		if err := s.make(ctx, other); err != nil {
			return err
		}
		made, err := ran(ctx, s, cj, 1)
		if err != nil {
			return err
		}
		return lookedAt(ctx, s, cj, s.Tick.Add(-2*time.Hour), func(status *tutorialv1.CronJobStatus) {
			status.LastScheduleTime = ptr.To(metav1.NewTime(s.Tick.Add(-time.Hour)))
			status.Active = []corev1.ObjectReference{{APIVersion: "batch/v1", Kind: "Job", Namespace: s.Namespace,
				Name: made.Name, UID: made.UID}}
			status.ActiveJobs = 1
		})
	}
}

// finished makes a CronJob that has run three times, which is two more than it keeps. The manager knew of none of their
// ends.
func finished(ctx context.Context, s *Stage) error {
	cj := hourly(s)
	if err := s.make(ctx, cj); err != nil {
		return err
	}
	for _, before := range []int{3, 2, 1, 0} {
		if _, err := ran(ctx, s, cj, before); err != nil {
			return err
		}
		if before == 0 {
			break // goes on
		}
		if err := finish(before, batchv1.JobComplete)(ctx, s); err != nil {
			return err
		}
	}
	return lookedAt(ctx, s, cj, s.Tick.Add(-4*time.Hour), func(status *tutorialv1.CronJobStatus) {
		status.LastScheduleTime = ptr.To(metav1.NewTime(s.Tick))
	})
}

// finish ends a Job, as the controller of Jobs does.
func finish(hoursBefore int, how batchv1.JobConditionType) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		job := job(jobName(s, hoursBefore))
		job.Namespace = s.Namespace
		return jobstate.Finish(ctx, s.Client, job, how)
	}
}

func cronJobSays(conditions ...string) func(*Stage, history.World) string {
	return func(_ *Stage, world history.World) string { return says(world, history.CronJobs, "one", conditions...) }
}

// hasRun is reached when there is the Job for the tick, and the status knows.
func hasRun(conditions ...string) func(*Stage, history.World) string {
	return func(s *Stage, world history.World) string {
		cj := in[tutorialv1.CronJob](world, history.CronJobs, "one")
		job := in[batchv1.Job](world, history.Jobs, jobName(s, 0))
		switch {
		case cj == nil:
			return "there is no CronJob"
		case job == nil || !metav1.IsControlledBy(job, cj):
			return "there is no Job of its own"
		case cj.Status.LastScheduleTime == nil || !cj.Status.LastScheduleTime.Equal(ptr.To(metav1.NewTime(s.Tick))):
			return "the status does not say that it has run"
		}
		return cronJobSays(conditions...)(s, world)
	}
}

// hasMissed is reached when the status says that the time of so many hours before the tick was missed.
func hasMissed(hoursBefore int) func(*Stage, history.World) string {
	return func(s *Stage, world history.World) string {
		cj := in[tutorialv1.CronJob](world, history.CronJobs, "one")
		missed := metav1.NewTime(s.Tick.Add(-time.Duration(hoursBefore) * time.Hour))
		if cj == nil || !missed.Equal(cj.Status.LastMissedTime) {
			return "the status does not say what was missed"
		}
		return ""
	}
}

// jobCount returns what is wrong with how many Jobs there are.
func jobCount(world history.World, wanted int) string {
	count := 0
	for key := range world {
		if key.Resource == history.Jobs {
			count++
		}
	}
	if count != wanted {
		return fmt.Sprintf("there are %d Jobs, not %d", count, wanted)
	}
	return ""
}

// hasSucceeded is reached when the status says so.
func hasSucceeded(_ *Stage, world history.World) string {
	cj := in[tutorialv1.CronJob](world, history.CronJobs, "one")
	if cj == nil || cj.Status.LastSuccessfulTime == nil {
		return "the status does not say that it has succeeded"
	}
	return says(world, history.CronJobs, "one", "Available=True", "Degraded=False")
}
