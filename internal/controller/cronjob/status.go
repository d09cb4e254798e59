package cronjob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/status"
)

// observed is what one pass has observed and done.
type observed struct {
	// isObserved reports whether the Jobs could be read.
	isObserved bool
	// isNameShared reports whether a batch/v1 CronJob has the same name.
	isNameShared bool
	// jobs are the CronJob's Jobs, updated by what the pass has created and deleted.
	jobs []*batchv1.Job
	// plan is the plan of the pass; once its run has a Job, it is computed again.
	plan plan
	// known is what the manager remembers, including this pass.
	known remembered
	// mayReportLater reports whether the status may be left to the next pass.
	mayReportLater bool
	// isAhead reports whether the cache does not show one of the Jobs yet.
	isAhead bool
	// now is when the pass began; for the status, when it had sent its other requests, which may take long.
	now time.Time
}

// confirmAfter is how soon a pass follows one that counts a Job which the cache does not show. If that Job was deleted
// before any watch showed it, no event triggers a pass.
const confirmAfter = time.Second

// wake returns when the next pass is due; zero if only an event triggers one.
func (o observed) wake() time.Time {
	if o.isAhead {
		return sooner(o.plan.wake, o.now.Add(confirmAfter))
	}
	return o.plan.wake
}

// maxActive is how many Jobs status.active lists.
const maxActive = 100

// clockTolerance is how far in the future a time in the status may be before it is reported as a problem.
const clockTolerance = time.Minute

// statusOf returns the status of a CronJob after a pass. If the plan still has a run, its Job could not be created.
func statusOf(cj *tutorialv1.CronJob, seen observed, err error) tutorialv1.CronJobStatus {
	recorded := *cj.Status.DeepCopy()
	recorded.ObservedGeneration = cj.Generation
	if seen.isObserved {
		recorded.LastScheduleTime = later(recorded.LastScheduleTime, seen.plan.ran)
		recorded.LastMissedTime = later(recorded.LastMissedTime, seen.known.missed.last)
		for _, job := range seen.jobs {
			recorded.LastSuccessfulTime = later(recorded.LastSuccessfulTime, succeededAt(job))
			recorded.LastFailedTime = later(recorded.LastFailedTime, failedAt(job))
		}
		recorded.ScheduledSince = at(seen.plan.counting.since)
		recorded.ObservedSchedule, recorded.ObservedTimeZone = seen.plan.counting.schedule, seen.plan.counting.timeZone
		recorded.NextScheduleTime = at(seen.plan.next)
		recorded.Active, recorded.ActiveJobs = active(cj, seen)
	} else if cj.Status.ObservedGeneration != cj.Generation {
		recorded.NextScheduleTime = nil // it may be of another schedule
	}
	if next := recorded.NextScheduleTime; next != nil && !next.After(seen.now) {
		recorded.NextScheduleTime = nil // it has passed since it was computed
	}
	status.SetConditions(&recorded.Conditions, cj.Generation,
		available(cj, &recorded, seen), progressing(seen, recorded.ActiveJobs),
		status.Degraded(problems(cj, &recorded, seen, err)))
	return recorded
}

// active returns references to the latest active Jobs, sorted by name, and how many there are.
func active(cj *tutorialv1.CronJob, seen observed) ([]corev1.ObjectReference, int32) {
	jobs := activeOf(seen.jobs)
	count := int32(len(jobs))
	sortByAge(cj, jobs)
	jobs = jobs[max(0, len(jobs)-maxActive):]
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	references := make([]corev1.ObjectReference, 0, len(jobs))
	for _, job := range jobs {
		references = append(references, reference(job))
	}
	return references, count
}

func reference(job *batchv1.Job) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID,
	}
}

func available(cj *tutorialv1.CronJob, recorded *tutorialv1.CronJobStatus, seen observed) status.Condition {
	switch {
	case !seen.isObserved:
		return status.Condition{Status: metav1.ConditionUnknown, Reason: tutorialv1.ReasonNotObserved,
			Message: "the Jobs could not be observed; see condition Degraded"}
	case ptr.Deref(cj.Spec.Suspend, false):
		return status.Condition{Status: metav1.ConditionFalse, Reason: tutorialv1.ReasonSuspended,
			Message: "spec.suspend is true: no Job is created, and times that pass meanwhile do not run later"}
	case seen.plan.invalid != nil:
		return status.Condition{Status: metav1.ConditionFalse, Reason: reasonOf(seen.plan.invalid),
			Message: seen.plan.invalid.Error()}
	case futureTime(recorded, seen.now) != "":
		return status.Condition{Status: metav1.ConditionFalse, Reason: tutorialv1.ReasonClockBehind,
			Message: futureTime(recorded, seen.now) + ", which is in the future; see condition Degraded"}
	}
	return status.Condition{Status: metav1.ConditionTrue, Reason: tutorialv1.ReasonScheduled,
		Message: "Jobs are created on schedule"}
}

func progressing(seen observed, activeJobs int32) status.Condition {
	switch {
	case !seen.isObserved || seen.plan.invalid != nil || !seen.plan.run.IsZero():
		return status.Condition{Status: metav1.ConditionFalse, Reason: tutorialv1.ReasonBlocked,
			Message: "see condition Degraded"}
	case !seen.plan.waits.IsZero():
		return status.Condition{Status: metav1.ConditionTrue, Reason: tutorialv1.ReasonWaitingForJob,
			Message: fmt.Sprintf("a run has been due since %s and waits until no Job is active "+
				"(spec.concurrencyPolicy is Forbid)", text(seen.plan.waits))}
	case activeJobs == 1:
		return status.Condition{Status: metav1.ConditionTrue, Reason: tutorialv1.ReasonJobsRunning,
			Message: "1 Job is active"}
	case activeJobs > 1:
		return status.Condition{Status: metav1.ConditionTrue, Reason: tutorialv1.ReasonJobsRunning,
			Message: fmt.Sprintf("%d Jobs are active", activeJobs)}
	}
	return status.Condition{Status: metav1.ConditionFalse, Reason: tutorialv1.ReasonIdle, Message: "no Job is active"}
}

// problems returns the problems of a CronJob, the worst first.
func problems(cj *tutorialv1.CronJob, recorded *tutorialv1.CronJobStatus, seen observed, err error) []status.Problem {
	all := slices.Concat([]status.Problem{nameTaken(cj, seen, err)},
		status.ChildProblems(child.ToRetry(err), cj.Namespace, ""),
		[]status.Problem{scheduleProblem(seen), clockBehind(recorded, seen), lastRunFailed(cj, recorded, seen),
			nameShared(cj, seen)})
	return slices.DeleteFunc(all, func(p status.Problem) bool { return p == status.Problem{} })
}

// nameTaken is the problem that the name of the Job that is due is taken.
func nameTaken(cj *tutorialv1.CronJob, seen observed, err error) status.Problem {
	notControlled := child.AsNotControlled(err)
	if notControlled == nil {
		return status.Problem{}
	}
	return status.Problem{Reason: tutorialv1.ReasonNameTaken,
		Message: fmt.Sprintf("%v, and the run of %s needs that name; delete it (kubectl -n %s delete job %s)",
			notControlled, text(seen.plan.run), cj.Namespace, notControlled.Name)}
}

// scheduleProblem is the problem that the schedule or its time zone allows no runs.
func scheduleProblem(seen observed) status.Problem {
	if seen.plan.invalid == nil {
		return status.Problem{}
	}
	return status.Problem{Reason: reasonOf(seen.plan.invalid), Message: seen.plan.invalid.Error()}
}

// clockBehind is the problem that a time in the status is in the future.
func clockBehind(recorded *tutorialv1.CronJobStatus, seen observed) status.Problem {
	ahead := futureTime(recorded, seen.now)
	if ahead == "" {
		return status.Problem{}
	}
	return status.Problem{Reason: tutorialv1.ReasonClockBehind,
		Message: ahead + ", which is in the future: no Job is created until then. Correct the clocks of the nodes; " +
			"if they are correct, delete the CronJob and create it again"}
}

// lastRunFailed is the problem that the Job that finished last has failed.
func lastRunFailed(cj *tutorialv1.CronJob, recorded *tutorialv1.CronJobStatus, seen observed) status.Problem {
	failure := lastFailure(cj, recorded, seen)
	if failure == "" {
		return status.Problem{}
	}
	return status.Problem{Reason: tutorialv1.ReasonLastRunFailed, Message: failure}
}

// sharedName begins the message of [nameShared], which follows that of [lastRunFailed].
const sharedName = "a batch/v1 CronJob is also named"

// nameShared is the problem that a batch/v1 CronJob has the same name.
func nameShared(cj *tutorialv1.CronJob, seen observed) status.Problem {
	if !seen.isNameShared {
		return status.Problem{}
	}
	return status.Problem{Reason: tutorialv1.ReasonNameShared,
		Message: fmt.Sprintf(sharedName+" %s, and Kubernetes matches Jobs to owners by "+
			"name alone: it may delete this one's Jobs. Rename one of the two", cj.Name)}
}

// futureTime describes a time in the status that is in the future by more than clockTolerance; "" if there is none.
// Only later times run.
func futureTime(recorded *tutorialv1.CronJobStatus, now time.Time) string {
	for _, known := range []struct {
		field string
		time  *metav1.Time
	}{{"lastScheduleTime", recorded.LastScheduleTime}, {"lastMissedTime", recorded.LastMissedTime},
		{"scheduledSince", recorded.ScheduledSince}} {
		if timeOf(known.time).After(now.Add(clockTolerance)) {
			return fmt.Sprintf("status.%s is %s", known.field, text(known.time.Time))
		}
	}
	return ""
}

// lastFailure describes the Job that failed last, even if it has been deleted; "" if a Job has succeeded since.
func lastFailure(cj *tutorialv1.CronJob, recorded *tutorialv1.CronJobStatus, seen observed) string {
	failed := timeOf(recorded.LastFailedTime)
	if !failed.After(timeOf(recorded.LastSuccessfulTime)) {
		return ""
	}
	var last *batchv1.Job
	for _, job := range slices.Concat(seen.jobs, seen.plan.prune) {
		if failedAt(job).Equal(failed) && (last == nil || job.Name > last.Name) {
			last = job
		}
	}
	if last != nil {
		return fmt.Sprintf("Job %s failed: %s: %s; kubectl -n %s logs --selector=batch.kubernetes.io/job-name=%s shows why",
			last.Name, finished(last).Reason, finished(last).Message, last.Namespace, last.Name)
	}
	before := meta.FindStatusCondition(cj.Status.Conditions, tutorialv1.ConditionDegraded)
	if before != nil && before.Reason == tutorialv1.ReasonLastRunFailed && timeOf(cj.Status.LastFailedTime).Equal(failed) {
		message, _, _ := strings.Cut(before.Message, "; "+sharedName)
		return message
	}
	return fmt.Sprintf("a Job failed at %s and was deleted; a higher spec.failedJobsHistoryLimit keeps more failed Jobs",
		text(failed))
}

// message describes missed times for an event; ran is the latest time that has run. It returns "" if an event has
// reported all of them.
func (m missed) message(ran time.Time) string {
	if m.count == 0 {
		return ""
	}
	what := fmt.Sprintf("missed the run of %s", text(m.last))
	switch {
	case m.count == countLimit:
		what = fmt.Sprintf("missed %d runs or more, from %s to %s", m.count, text(m.first), text(m.last))
	case m.count > 1:
		what = fmt.Sprintf("missed %d runs, from %s to %s", m.count, text(m.first), text(m.last))
	}
	if m.late {
		return what + ": spec.startingDeadlineSeconds has passed; a longer deadline lets the latest of them start later"
	}
	return fmt.Sprintf("%s; ran the latest, %s", what, text(ran))
}

// reasonOf returns the condition reason for a schedule that allows no runs.
func reasonOf(err error) string {
	if invalid := (*scheduleError)(nil); errors.As(err, &invalid) {
		return invalid.reason
	}
	return tutorialv1.ReasonError
}

// later returns the later of two times, of which a may be nil and b may be zero.
func later(a *metav1.Time, b time.Time) *metav1.Time {
	if b.After(timeOf(a)) {
		return at(b)
	}
	return a
}

// at converts a time to the API type; nil for the zero time.
func at(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return ptr.To(metav1.NewTime(t))
}

func text(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}
