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

// requestTimeout is after what time an API server gives up on a request (--request-timeout). A Job has to be that old
// before it is deleted from the history: another request to create it may still be on its way, from a manager that led
// before and was stopped, and creates no second one while the Job exists.
const requestTimeout = time.Minute

// countLimit is up to how many missed runs are counted.
const countLimit = 1000

// plan is what a pass is to do, and what is then to be reported.
type plan struct {
	past
	// invalid is why the schedule allows no runs; nil if it does.
	invalid error
	// run is the time to create a Job for; zero for none.
	run time.Time
	// waits is the first time that waits for active Jobs to finish (Forbid); zero if none does.
	waits time.Time
	// missed are the times that are given up. Skipped are those that were given up when a Job was created which is in no
	// status yet.
	missed, skipped missed
	// replace are the Jobs to delete before the run, prune those to delete from the history.
	replace, prune []*batchv1.Job
	// next is when it is due next; zero if never, or not while it is suspended.
	next time.Time
	// wake is when to make another pass; zero for not before something happens.
	wake time.Time
}

// first returns the first time that is run or given up; zero if none is.
func (p plan) first() time.Time {
	if !p.missed.first.IsZero() {
		return p.missed.first
	}
	return p.run
}

// needsConfirmation reports whether another manager may have run, or given up, the times that the plan is about.
func (p plan) needsConfirmation() bool {
	first := p.first()
	return !first.IsZero() && (p.aloneSince.IsZero() || p.aloneSince.After(first))
}

// missed are times that are given up.
type missed struct {
	count       int // up to countLimit; 0 once an event has reported them
	first, last time.Time
	// late reports that even the last could not be run, because the deadline has passed.
	late bool
}

// and returns what is missed with more that is missed later.
func (m missed) and(more missed) missed {
	switch {
	case more.count == 0:
		return m
	case m.count == 0:
		return more
	}
	return missed{count: min(m.count+more.count, countLimit), first: m.first, last: more.last, late: more.late}
}

// decide works out what is to be done for a CronJob with these Jobs of its own and this past, at a time.
func decide(cj *tutorialv1.CronJob, jobs []*batchv1.Job, past past, now time.Time) plan {
	p := plan{past: past}
	p.prune, p.wake = history(cj, jobs, now)
	base := latest(p.accounted, p.ran)
	if base.After(now.Add(clockTolerance)) {
		p.wake = sooner(p.wake, base.Add(-clockTolerance)) // then the clock is no longer behind, and the status says so
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
			p.wake = sooner(p.wake, due.Add(seconds(*deadline)).Add(time.Second)) // then it is too late, which an event reports
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

// missed returns the times after one and up to another, as given up; none if there is no last one.
func (s schedule) missed(after, last time.Time) missed {
	if last.IsZero() {
		return missed{}
	}
	return missed{count: s.count(after, last, countLimit), first: s.next(after), last: last}
}

// history returns the finished Jobs that are more than the limits allow, the oldest first, and when to look again for
// those that cannot go yet.
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
				continue // the next pass, which the status makes, finds it recorded
			}
			if until := job.CreationTimestamp.Add(requestTimeout); now.Before(until) {
				wake = sooner(wake, until)
				continue
			}
			prune = append(prune, job)
		}
	}
	return prune, wake
}

// beyond returns what is left of Jobs without the newest ones, as many as the limit allows.
func beyond(cj *tutorialv1.CronJob, jobs []*batchv1.Job, limit *int32, byDefault int32) []*batchv1.Job {
	sortByAge(cj, jobs)
	return jobs[:max(0, len(jobs)-int(ptr.Deref(limit, byDefault)))]
}

// sortByAge sorts Jobs by the times they are of, which their names do not: those of full minutes have fewer digits than
// others.
func sortByAge(cj *tutorialv1.CronJob, jobs []*batchv1.Job) {
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return cmp.Or(started(cj, a).Compare(started(cj, b)), cmp.Compare(a.Name, b.Name))
	})
}

// started returns the scheduled time of a Job, or when it was created if somebody else did that.
func started(cj *tutorialv1.CronJob, job *batchv1.Job) time.Time {
	if scheduled, ok := scheduledTime(cj.Name, job.Name); ok {
		return scheduled
	}
	return job.CreationTimestamp.UTC()
}

// isRecorded reports whether the status has all of a finished Job that must be known after it is deleted: that its time
// has run, and when it succeeded or failed.
func isRecorded(cj *tutorialv1.CronJob, job *batchv1.Job) bool {
	scheduled, ok := scheduledTime(cj.Name, job.Name)
	isRun := !ok || !scheduled.After(timeOf(cj.Status.LastScheduleTime))
	return isRun && !succeededAt(job).After(timeOf(cj.Status.LastSuccessfulTime)) &&
		!failedAt(job).After(timeOf(cj.Status.LastFailedTime))
}

// activeOf returns the Jobs that have not finished. The pods of one that is being deleted may run on for a while.
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

// finished returns the condition by which a Job has finished, Complete or Failed; nil if it has not.
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

// timeOf returns a time that may not be there as one that may be zero, in UTC.
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

// sooner returns the sooner of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// seconds returns a number of seconds as a duration, the longest there is if that is longer.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, int64(1<<63-1)/int64(time.Second))) * time.Second
}
