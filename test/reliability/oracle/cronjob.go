package oracle

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/reliability/history"
)

// times finds what is not true of the times of the schedule in a CronJob's status.
func (p *past) times(previous, status *tutorialv1.CronJobStatus) []string {
	var lies []string
	if ran := status.LastScheduleTime; ran != nil && !ran.Equal(previous.LastScheduleTime) &&
		!p.hasRun(p.versions, ran.Time) {
		lies = append(lies, fmt.Sprintf("says that the time %s was run; there was no Job for it", ran.UTC()))
	}
	if missed := status.LastMissedTime; missed != nil && !missed.Equal(previous.LastMissedTime) {
		if !p.isTick(missed.Time) || missed.After(p.self.At) {
			lies = append(lies, fmt.Sprintf("says that the time %s was missed, which was not due", missed.UTC()))
		}
		if p.hasRun(p.run.Versions, missed.Time) { // before or since
			lies = append(lies, fmt.Sprintf("says that the time %s was missed; there is a Job for it", missed.UTC()))
		}
	}
	if next := status.NextScheduleTime; next != nil && (!p.isTick(next.Time) || !next.After(p.self.At)) {
		lies = append(lies, fmt.Sprintf("says that the next time is %s, which is not to come", next.UTC()))
	}
	return lies
}

// ends finds ends of Jobs in a CronJob's status that there were not.
func (p *past) ends(status *tutorialv1.CronJobStatus) []string {
	var lies []string
	if ended := status.LastSuccessfulTime; ended != nil && !some(p, history.Jobs,
		func(job *batchv1.Job) bool { return ended.Equal(job.Status.CompletionTime) }) {
		lies = append(lies, fmt.Sprintf("says that a Job completed at %s; none did", ended.UTC()))
	}
	if ended := status.LastFailedTime; ended != nil && !some(p, history.Jobs,
		func(job *batchv1.Job) bool { return ended.Time.Equal(failedAt(job)) }) {
		lies = append(lies, fmt.Sprintf("says that a Job failed at %s; none did", ended.UTC()))
	}
	return lies
}

// isTick tells whether a time is one of the schedule's: all that can be due in a scenario have a name.
func (p *past) isTick(t time.Time) bool {
	for _, tick := range p.run.Symbols {
		if tick.Equal(t) {
			return true
		}
	}
	return false
}

// hasRun tells whether there is a Job of the CronJob for a time in a record.
func (p *past) hasRun(versions []history.Version, t time.Time) bool {
	all := &past{run: p.run, versions: versions, self: p.self}
	return some(all, history.Jobs, func(job *batchv1.Job) bool {
		return job.Annotations[tutorialv1.ScheduledAtAnnotation] == t.UTC().Format(time.RFC3339)
	})
}

// failedAt returns when a Job failed; zero if it has not.
func failedAt(job *batchv1.Job) time.Time {
	if failed := jobstate.Condition(job, batchv1.JobFailed); failed != nil {
		return failed.LastTransitionTime.Time
	}
	return time.Time{}
}

// contradiction is something that a status says, and the rest of it, or the specification, denies.
type contradiction struct {
	is   bool
	text string
}

// conditions finds conditions of a CronJob that the rest of its status, or its specification, contradicts.
func (p *past) conditions(status *tutorialv1.CronJobStatus) []string {
	said, observed := history.As[history.Reported](p.self.Object), p.observed()
	if observed == nil {
		return nil
	}
	cj := history.As[tutorialv1.CronJob](observed)
	var lies []string
	for _, c := range slices.Concat(availability(said, &cj.Spec, status), progress(said, &cj.Spec, status),
		failure(said, status)) {
		if c.is {
			lies = append(lies, c.text)
		}
	}
	return lies
}

func availability(said *history.Reported, spec *tutorialv1.CronJobSpec,
	status *tutorialv1.CronJobStatus) []contradiction {
	isSuspended, isAvailable := ptr.Deref(spec.Suspend, false), said.Is("Available", metav1.ConditionTrue)
	reason, isDegraded := said.Condition("Available").Reason, said.Is("Degraded", metav1.ConditionTrue)
	return []contradiction{
		{isAvailable && isSuspended, "says that Jobs are made, and it is suspended"},
		{isAvailable && status.NextScheduleTime == nil, "says that Jobs are made, and not when the next one is due"},
		{reason == tutorialv1.ReasonSuspended && !isSuspended, "says that it is suspended, and it is not"},
		{isSuspended && status.NextScheduleTime != nil && said.Is("Available", metav1.ConditionFalse),
			"is suspended, and says when the next Job is due"},
		{reason == tutorialv1.ReasonNotObserved && !isDegraded,
			"says that its Jobs could not be looked at, and that nothing is wrong"},
	}
}

func progress(said *history.Reported, spec *tutorialv1.CronJobSpec, status *tutorialv1.CronJobStatus) []contradiction {
	reason, isForbidden := said.Condition("Progressing").Reason, spec.ConcurrencyPolicy == tutorialv1.ForbidConcurrent
	return []contradiction{
		{reason == tutorialv1.ReasonBlocked && !said.Is("Degraded", metav1.ConditionTrue),
			"says that it is blocked, and that nothing is wrong"},
		{reason == tutorialv1.ReasonJobsRunning && status.ActiveJobs == 0, "says that Jobs go on, and that none is active"},
		{reason == tutorialv1.ReasonIdle && status.ActiveJobs > 0, "says that no Job goes on, and that some are active"},
		{reason == tutorialv1.ReasonWaitingForJob && (status.ActiveJobs == 0 || !isForbidden),
			"says that it waits for a Job, and there is none to wait for"},
	}
}

func failure(said *history.Reported, status *tutorialv1.CronJobStatus) []contradiction {
	failed, completed := status.LastFailedTime, status.LastSuccessfulTime
	hasFailed := failed != nil && (completed == nil || failed.After(completed.Time)) // the last Job has
	return []contradiction{
		{hasFailed && !said.Is("Degraded", metav1.ConditionTrue), "says that the last Job failed, and that nothing is wrong"},
		{said.Condition("Degraded").Reason == tutorialv1.ReasonLastRunFailed && !hasFailed,
			"says that the last Job failed, and not when"},
	}
}
