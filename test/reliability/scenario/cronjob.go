package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

// minJobAge is enough for the operator to delete a Job: its minimum age of a minute, plus the fraction of a second that
// times in the API do not have.
const minJobAge = 62 * time.Second

var (
	cronJobKey = history.Key{Resource: history.CronJobs, Name: "one"}
	isFine     = reports(cronJobKey, fine...)
	isRunning  = hasRun("Progressing=True/JobsRunning")
	// fire is the step in which the operator creates the Job that is due.
	fire = Step{Name: "fire", Until: isRunning}

	createCronJob Action = func(ctx context.Context, s *Stage) error { return create(hourly(s))(ctx, s) }
	deleteJob            = onJob(0, func(job *batchv1.Job) Action { return remove(job) })
	disownJob            = onJob(0, func(job *batchv1.Job) Action {
		return edit(job, func(job *batchv1.Job) { job.OwnerReferences = nil })
	})
)

func cronJobs() []Scenario {
	due, complete := leftBehind{observed: 1}.create, finish(0, batchv1.JobComplete)
	// an active Job, and one of another CronJob whose UID differs in one digit
	active := func(policy tutorialv1.ConcurrencyPolicy) Action {
		left := leftBehind{observed: 2, policy: policy, jobs: []int{1}}
		return inTurn(left.create, createNeighbor(newCronJob(), kinds.NewJob("", unmanaged)))
	}
	forbids := []Step{
		{Name: "wait", Until: reports(cronJobKey, "Progressing=True/WaitingForJob")},
		{Name: "complete", Do: finish(1, batchv1.JobComplete), Until: isRunning},
	}
	foreign := inTurn(onJob(0, func(job *batchv1.Job) Action { return create(job) }), due)
	makesRoom := []Step{
		{Name: "wait", Until: reports(cronJobKey, "Degraded=True/NameTaken")},
		{Name: "make room", Do: deleteJob, Until: hasRun("Progressing=True/JobsRunning", "Degraded=False")},
	}
	return []Scenario{
		{Name: "cronjob-create", Steps: []Step{
			{Name: "create", Do: createCronJob, Until: isFine},
			{Name: "suspend", Do: suspend(true), Until: reports(cronJobKey, "Available=False/Suspended", "Degraded=False")},
			{Name: "resume", Do: suspend(false), Until: reports(cronJobKey, "Available=True", "Degraded=False")},
		}},
		{Name: "cronjob-fire", Prepare: due, Steps: []Step{
			fire, {Name: "remove the owner reference of the Job", Do: disownJob, Until: isRunning},
		}},
		// A fault may last until the scheduled time, so the Job may be running before the step "fire".
		{Name: "cronjob-timer", Steps: []Step{
			{Name: "create", BeforeTick: true, Do: createCronJob,
				Until: reports(cronJobKey, "Available=True", "Degraded=False")},
			{Name: "fire", AtTick: true, Until: isRunning},
		}},
		// The frozen leader is resumed more than a minute after its start: in its first minute, a manager reads the CronJob
		// from the API server before it creates a Job.
		{Name: "cronjob-timer-clean", IsSlow: true, FreezesAtEvent: true, Steps: []Step{
			{Name: "create", BeforeTick: true, Do: createCronJob,
				Until: reports(cronJobKey, "Available=True", "Degraded=False")},
			{Name: "fire", AtTick: true, Until: isRunning},
			{Name: "clean up", Do: deleteJob, Until: all(jobCount(0), reportsRun)},
			{Name: "wait", AtTick: true, AfterTick: 50 * time.Second, Until: all(jobCount(0), reportsRun)},
		}},
		{Name: "cronjob-resume", Setup: []Step{
			{Name: "create", Do: createSuspended,
				Until: reports(cronJobKey, "Available=False/Suspended", "Degraded=False")},
		}, Steps: []Step{
			{Name: "reschedule and resume", BeforeTick: true, Do: rescheduleAndResume,
				Until: reports(cronJobKey, "Available=True", "Degraded=False")},
			{Name: "fire", AtTick: true, Until: isRunning},
		}},
		{Name: "cronjob-missed", Prepare: leftBehind{observed: 4}.create, Steps: []Step{
			{Name: "fire", Until: all(isRunning, hasMissed(1), jobCount(1))},
		}},
		{Name: "cronjob-late", Prepare: leftBehind{observed: 4, deadline: ptr.To[int64](60)}.create, Steps: []Step{
			{Name: "give up", Until: all(isFine, hasMissed(0), jobCount(0))},
		}},
		{Name: "cronjob-finish", Prepare: due, Setup: []Step{fire}, Steps: []Step{
			{Name: "complete", Do: complete, Until: hasSucceeded},
			{Name: "clean up", Do: deleteJob, Until: all(jobCount(0), hasSucceeded)},
		}},
		// The Job does not complete first: with an old cache, timing decides whether the operator observes that.
		{Name: "cronjob-unseen", Prepare: due, Setup: []Step{fire}, Steps: []Step{
			{Name: "clean up", IsUnseen: true, Do: deleteJob,
				Until: all(jobCount(0), reports(cronJobKey, "Available=True", "Progressing=False"))},
		}},
		// The user deletes the Job when the operator has had time to repeat a creation whose answer was lost:
		// docs/cronjob.md excepts an earlier deletion.
		{Name: "cronjob-hidden", Steps: []Step{
			{Name: "create", BeforeTick: true, Do: createCronJob,
				Until: reports(cronJobKey, "Available=True", "Degraded=False")},
			{Name: "fire and clean up", AtTick: true, Hidden: isChild,
				Do:    inTurn(onJob(0, func(job *batchv1.Job) Action { return await(job) }), waitFor(2*time.Second), deleteJob),
				Until: all(jobCount(0), reportsRun, reports(cronJobKey, "Available=True", "Progressing=False"))},
		}},
		// The operator starts less than a minute before the scheduled time, so it reads the CronJob from the API server then.
		{Name: "cronjob-hidden-suspend", Setup: []Step{
			{Name: "create", BeforeTick: true, Do: createCronJob,
				Until: reports(cronJobKey, "Available=True", "Degraded=False")},
		}, Steps: []Step{
			{Name: "suspend", AtTick: true, Hidden: history.IsOwnKind, Do: inTurn(suspend(true), passTick),
				Until: all(jobCount(0), reports(cronJobKey, "Available=False/Suspended", "Degraded=False"))},
		}},
		{Name: "cronjob-fail", Prepare: due, Setup: []Step{fire}, Steps: []Step{
			{Name: "fail", Do: finish(0, batchv1.JobFailed),
				Until: reports(cronJobKey, "Degraded=True/LastRunFailed", "Progressing=False")},
		}},
		{Name: "cronjob-replace", Prepare: active(tutorialv1.ReplaceConcurrent), Steps: []Step{
			{Name: "fire", Until: all(ofJob(1, isGone), isRunning)},
		}},
		{Name: "cronjob-forbid", Prepare: active(tutorialv1.ForbidConcurrent), Steps: forbids},
		{Name: "cronjob-behind", IsBehind: true, Prepare: active(tutorialv1.ForbidConcurrent), Steps: forbids},
		// The history limit is one Job.
		{Name: "cronjob-prune", Age: minJobAge, Prepare: inTurn(leftBehind{observed: 4, jobs: []int{3, 2, 1, 0}}.create,
			finish(3, batchv1.JobComplete), finish(2, batchv1.JobComplete), finish(1, batchv1.JobComplete)), Steps: []Step{
			{Name: "prune", Until: all(ofJob(2, isGone), ofJob(3, isGone), hasSucceeded)},
		}},
		{Name: "cronjob-foreign", Prepare: foreign, Steps: makesRoom},
		{Name: "cronjob-foreign-behind", IsBehind: true, Prepare: foreign, Steps: makesRoom},
		{Name: "cronjob-delete", IsOpen: true, Prepare: due, Steps: []Step{
			{Name: "fire", Until: ofJob(0, exists)},
			{Name: "delete", Do: remove(newCronJob()), Until: isEmpty},
		}},
		// The former operator has created the Job, and the next one must not create another.
		{Name: "cronjob-upgrade", Before: unchanged, Prepare: due, Setup: []Step{fire}, Steps: []Step{
			{Name: "upgrade", Until: all(isRunning, jobCount(1))},
			{Name: "complete", Do: complete, Until: hasSucceeded},
		}},
		{Name: "cronjob-recreate", Prepare: due, Setup: []Step{fire}, Steps: []Step{
			{Name: "delete and create", Do: inTurn(remove(newCronJob()), createCronJob), Until: all(jobCount(0), isFine)},
		}},
	}
}

func newCronJob() *tutorialv1.CronJob {
	return kinds.CronJob.Make("", "one", 1).(*tutorialv1.CronJob)
}

// hourly returns a CronJob that is due every hour, at the minute of the stage's scheduled time. Its Jobs are suspended:
// the scenario finishes them.
func hourly(s *Stage) *tutorialv1.CronJob {
	cj := newCronJob()
	cj.Namespace = s.Namespace
	cj.Spec.Schedule = fmt.Sprintf("%d * * * *", s.Tick.Minute())
	cj.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](1)
	cj.Spec.JobTemplate.Spec = kinds.NewJob("", "").Spec
	return cj
}

// jobName returns the name of the Job that was due a number of hours before the stage's scheduled time.
func jobName(s *Stage, hoursBefore int) string {
	return "one-" + history.JobSuffix(s.before(hoursBefore))
}

func onJob(hoursBefore int, action func(*batchv1.Job) Action) Action {
	return func(ctx context.Context, s *Stage) error {
		return action(kinds.NewJob(s.Namespace, jobName(s, hoursBefore)))(ctx, s)
	}
}

// finish sets a Job's status to finished, as the Job controller does.
func finish(hoursBefore int, how batchv1.JobConditionType) Action {
	return onJob(hoursBefore, func(job *batchv1.Job) Action {
		return func(ctx context.Context, s *Stage) error { return jobstate.Finish(ctx, s.Client, job, how) }
	})
}

func suspend(is bool) Action {
	return edit(newCronJob(), func(cj *tutorialv1.CronJob) { cj.Spec.Suspend = &is })
}

func createSuspended(ctx context.Context, s *Stage) error {
	cj := hourly(s)
	cj.Spec.Suspend = ptr.To(true)
	return create(cj)(ctx, s)
}

// rescheduleAndResume has the CronJob due at the stage's scheduled time, every hour, and no longer suspended.
func rescheduleAndResume(ctx context.Context, s *Stage) error {
	return edit(newCronJob(), func(cj *tutorialv1.CronJob) {
		cj.Spec.Schedule, cj.Spec.Suspend = hourly(s).Spec.Schedule, ptr.To(false)
	})(ctx, s)
}

// waitFor waits for some time.
func waitFor(d time.Duration) Action {
	return func(ctx context.Context, _ *Stage) error { return measure.Pause(ctx, d) }
}

// passTick waits until two seconds after the stage's scheduled time.
func passTick(ctx context.Context, s *Stage) error {
	return measure.Pause(ctx, time.Until(s.Tick)+2*time.Second)
}

// leftBehind is the state that an earlier manager left: a CronJob, last observed a number of hours before the stage's
// scheduled time, and Jobs for some of these hours, which its status lists as active.
type leftBehind struct {
	observed int
	policy   tutorialv1.ConcurrencyPolicy
	deadline *int64
	jobs     []int
}

func (l leftBehind) create(ctx context.Context, s *Stage) error {
	cj := hourly(s)
	cj.Spec.ConcurrencyPolicy = cmp.Or(l.policy, tutorialv1.AllowConcurrent)
	cj.Spec.StartingDeadlineSeconds = l.deadline
	if err := s.Client.Create(ctx, cj); err != nil {
		return err
	}
	status := tutorialv1.CronJobStatus{ScheduledSince: ptr.To(metav1.NewTime(s.before(l.observed))),
		ObservedSchedule: cj.Spec.Schedule, ActiveJobs: int32(len(l.jobs))}
	for _, hoursBefore := range l.jobs {
		job := kinds.NewJob(s.Namespace, jobName(s, hoursBefore))
		job.Annotations = map[string]string{child.OwnerAnnotation: string(cj.UID),
			tutorialv1.ScheduledAtAnnotation: s.before(hoursBefore).Format(time.RFC3339)}
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cj,
			tutorialv1.GroupVersion.WithKind("CronJob"))}
		if err := s.Client.Create(ctx, job); err != nil {
			return err
		}
		status.Active = append(status.Active, corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job",
			Namespace: s.Namespace, Name: job.Name, UID: job.UID})
	}
	if len(l.jobs) > 0 {
		status.LastScheduleTime = ptr.To(metav1.NewTime(s.before(slices.Min(l.jobs))))
	}
	cj.Status = status
	return s.Client.Status().Update(ctx, cj)
}

// hasStatus checks the status of the CronJob.
func hasStatus(what string, is func(*Stage, *tutorialv1.CronJobStatus) bool) Check {
	return func(s *Stage, state history.State) string {
		return holds(history.CronJobs, "one", what+" in its status",
			func(cj *tutorialv1.CronJob) bool { return is(s, &cj.Status) })(s, state)
	}
}

// hasRun checks that the CronJob controls the Job for the scheduled time, and reports it.
func hasRun(conditions ...string) Check {
	return all(ofJob(0, controlledBy(cronJobKey)), reportsRun, reports(cronJobKey, conditions...))
}

// reportsRun checks that the status reports the run for the scheduled time.
var reportsRun = hasStatus("the run", func(s *Stage, status *tutorialv1.CronJobStatus) bool {
	return status.LastScheduleTime.Equal(ptr.To(metav1.NewTime(s.Tick)))
})

// hasMissed checks that the status reports as missed the run due a number of hours before the stage's scheduled time.
func hasMissed(hoursBefore int) Check {
	return hasStatus("the missed run", func(s *Stage, status *tutorialv1.CronJobStatus) bool {
		return status.LastMissedTime.Equal(ptr.To(metav1.NewTime(s.before(hoursBefore))))
	})
}

// hasSucceeded checks that the status reports a successful run.
var hasSucceeded = all(hasStatus("a success",
	func(_ *Stage, status *tutorialv1.CronJobStatus) bool { return status.LastSuccessfulTime != nil }),
	reports(cronJobKey, "Available=True", "Degraded=False"))

func jobCount(expected int) Check {
	return func(_ *Stage, state history.State) string {
		if count := len(state.Of(history.Jobs)); count != expected {
			return fmt.Sprintf("there are %d Jobs, not %d", count, expected)
		}
		return ""
	}
}

// ofJob checks the Job that was due a number of hours before the stage's scheduled time.
func ofJob(hoursBefore int, check func(resource, name string) Check) Check {
	return func(s *Stage, state history.State) string {
		return check(history.Jobs, jobName(s, hoursBefore))(s, state)
	}
}
