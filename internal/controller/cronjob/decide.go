package cronjob

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// requestTimeout is the time after which an API server cancels a request (--request-timeout, by default one minute). A
// Job has to be that old before it is deleted from the history: a second request to create it, sent by a former leader,
// may still be in flight, and fails only while the Job exists.
const requestTimeout = time.Minute

// mostPruned is how many Jobs one pass deletes from the history at most, so that a pass ends within its time and others
// have their turn.
const mostPruned = 100

// countLimit is the number up to which missed times are counted.
const countLimit = 1000

// plan is what a pass has to do, and what it reports then.
type plan struct {
	past
	// invalid is why the schedule allows no runs; nil if it is valid.
	invalid error
	// run is the time to create a Job for; zero for none.
	run time.Time
	// waits is the first time that waits for active Jobs to finish (Forbid); zero if none does.
	waits time.Time
	// missed are the times that this plan skips, skipped those that an earlier pass skipped when it created a Job that no
	// status has yet.
	missed, skipped missed
	// replace are the Jobs to delete before the run, prune those to delete from the history.
	replace, prune []*batchv1.Job
	// next is the next scheduled time; zero if there is none, or while the CronJob is suspended.
	next time.Time
	// wake is when to make another pass; zero if only an event triggers one.
	wake time.Time
}

// first returns the first time that runs or is missed; zero if there is none.
func (p plan) first() time.Time {
	if !p.missed.first.IsZero() {
		return p.missed.first
	}
	return p.run
}

// needsConfirmation reports whether another manager may already have run or skipped the times in the plan.
func (p plan) needsConfirmation() bool {
	first := p.first()
	return !first.IsZero() && (p.aloneSince.IsZero() || p.aloneSince.After(first))
}

// missed are times that are skipped and never run.
type missed struct {
	count       int // up to countLimit; 0 once an event has reported them
	first, last time.Time
	// late reports whether even the last one is skipped, because its deadline has passed.
	late bool
}

// and returns missed times combined with later ones.
func (m missed) and(more missed) missed {
	switch {
	case more.count == 0:
		return m
	case m.count == 0:
		return more
	}
	return missed{count: min(m.count+more.count, countLimit), first: m.first, last: more.last, late: more.late}
}

// decide returns the plan for a CronJob with these Jobs and this past.
func decide(cj *tutorialv1.CronJob, jobs []*batchv1.Job, past past, now time.Time) plan {
	p := plan{past: past}
	p.prune, p.wake = history(cj, jobs, now)
	base := latest(p.accounted, p.ran)
	if base.After(now.Add(clockTolerance)) {
		p.wake = sooner(p.wake, base.Add(-clockTolerance)) // then ClockBehind can be cleared
	}
	if p.counting.since.IsZero() {
		return p
	}
	times, err := parseSchedule(p.counting.schedule, p.counting.timeZone, p.counting.since)
	if err != nil {
		p.invalid = err
		return p
	}

	if !p.firstRun.IsZero() {
		p.skipped = times.missed(p.accounted, times.latest(p.accounted, p.firstRun.Add(-time.Second)))
	}
	p.next = times.next(latest(base, now))
	p.wake = sooner(p.wake, p.next)
	due := times.latest(base, now)
	if due.IsZero() {
		return p
	}
	if deadline := cj.Spec.StartingDeadlineSeconds; deadline != nil &&
		now.Truncate(time.Second).Sub(due) > seconds(*deadline) {
		p.missed = times.missed(base, due)
		p.missed.late = true
		return p
	}
	active := activeOf(jobs)
	if len(active) > 0 && cj.Spec.ConcurrencyPolicy == tutorialv1.ForbidConcurrent {
		p.waits = times.next(base)
		if deadline := cj.Spec.StartingDeadlineSeconds; deadline != nil {
			// Then the deadline has passed, which an event reports.
			p.wake = sooner(p.wake, due.Add(seconds(*deadline)).Add(time.Second))
		}
		return p
	}
	if cj.Spec.ConcurrencyPolicy == tutorialv1.ReplaceConcurrent {
		p.replace = slices.DeleteFunc(active, isTerminating)
	}
	p.run = due
	p.missed = times.missed(base, times.latest(base, due.Add(-time.Second)))
	return p
}

// missed returns the times after one time and up to another as missed; none if last is zero.
func (s schedule) missed(after, last time.Time) missed {
	if last.IsZero() {
		return missed{}
	}
	return missed{count: s.count(after, last, countLimit), first: s.next(after), last: last}
}

// history returns the finished Jobs that exceed the limits, the oldest first and at most mostPruned, and when the next
// pass may delete others.
func history(cj *tutorialv1.CronJob, jobs []*batchv1.Job, now time.Time) (prune []*batchv1.Job, wake time.Time) {
	var succeeded, failed []*batchv1.Job
	for _, job := range jobs {
		switch {
		case isTerminating(job) || !isFinished(job):
		case finished(job).Type == batchv1.JobFailed:
			failed = append(failed, job)
		default:
			succeeded = append(succeeded, job)
		}
	}
	for _, excess := range [][]*batchv1.Job{
		beyond(cj, succeeded, cj.Spec.SuccessfulJobsHistoryLimit, tutorialv1.DefaultSuccessfulJobsHistoryLimit),
		beyond(cj, failed, cj.Spec.FailedJobsHistoryLimit, tutorialv1.DefaultFailedJobsHistoryLimit),
	} {
		for _, job := range excess {
			if !isRecorded(cj, job) {
				continue // writing the status triggers the pass that deletes it
			}
			if until := job.CreationTimestamp.Add(requestTimeout); now.Before(until) {
				wake = sooner(wake, until)
				continue
			}
			prune = append(prune, job)
		}
	}
	if len(prune) > mostPruned {
		return prune[:mostPruned], now
	}
	return prune, wake
}

// beyond returns the Jobs that exceed the limit, without the newest ones.
func beyond(cj *tutorialv1.CronJob, jobs []*batchv1.Job, limit *int32, byDefault int32) []*batchv1.Job {
	sortByAge(cj, jobs)
	return jobs[:max(0, len(jobs)-int(ptr.Deref(limit, byDefault)))]
}

// sortByAge sorts Jobs by their scheduled times. Sorting by name would not do: names of full minutes have fewer digits.
func sortByAge(cj *tutorialv1.CronJob, jobs []*batchv1.Job) {
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(started(cj, a).Compare(started(cj, b)), cmp.Compare(a.Name, b.Name))
	})
}

// started returns the scheduled time of a Job, or its creation time if another client created it.
func started(cj *tutorialv1.CronJob, job *batchv1.Job) time.Time {
	if scheduled, ok := scheduledTime(cj.Name, job.Name); ok {
		return scheduled
	}
	return job.CreationTimestamp.UTC()
}

// isRecorded reports whether the status has everything that is needed of a finished Job once it is deleted: its
// scheduled time, and when it succeeded or failed.
func isRecorded(cj *tutorialv1.CronJob, job *batchv1.Job) bool {
	scheduled, ok := scheduledTime(cj.Name, job.Name)
	isRun := !ok || !scheduled.After(timeOf(cj.Status.LastScheduleTime))
	return isRun && !succeededAt(job).After(timeOf(cj.Status.LastSuccessfulTime)) &&
		!failedAt(job).After(timeOf(cj.Status.LastFailedTime))
}

// activeOf returns the Jobs that have not finished, even those being deleted: their pods may still be running.
func activeOf(jobs []*batchv1.Job) []*batchv1.Job {
	var active []*batchv1.Job
	for _, job := range jobs {
		if !isFinished(job) {
			active = append(active, job)
		}
	}
	return active
}

func isTerminating(job *batchv1.Job) bool {
	return job.DeletionTimestamp != nil
}

func isFinished(job *batchv1.Job) bool {
	return finished(job) != nil
}

// finished returns the condition Complete or Failed of a finished Job; nil if it has not finished.
func finished(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == "True" {
			return c
		}
	}
	return nil
}

// succeededAt returns when a Job completed; zero if it has not.
func succeededAt(job *batchv1.Job) time.Time {
	if c := finished(job); c == nil || c.Type != batchv1.JobComplete {
		return time.Time{}
	}
	return timeOf(job.Status.CompletionTime)
}

// failedAt returns when a Job failed; zero if it has not.
func failedAt(job *batchv1.Job) time.Time {
	if c := finished(job); c != nil && c.Type == batchv1.JobFailed {
		return timeOf(&c.LastTransitionTime)
	}
	return time.Time{}
}

// timeOf converts an API time to UTC; the zero time for nil.
func timeOf(t *metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// latest returns the latest of some times.
func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// sooner returns the earlier of two times. The zero time means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// seconds returns a number of seconds as a duration, at most the longest possible one.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, int64(1<<63-1)/int64(time.Second))) * time.Second
}
