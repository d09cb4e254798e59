package cronjob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// The day on which tests take place unless they say another: a Monday. A time without a date is of this day, in UTC.
const day = "2026-03-02"

// moment reads a time as rows of tests have it: "10:01", "10:01:30", "10:01:30.5", or one of these after a date.
func moment(text string) time.Time {
	date, hour, isDated := strings.Cut(text, " ")
	if !isDated {
		date, hour = day, text
	}
	if strings.Count(hour, ":") == 1 {
		hour += ":00"
	}
	t, err := time.Parse(time.DateTime, date+" "+hour)
	if err != nil {
		panic(err)
	}
	return t
}

// said writes a time as rows of tests have it.
func said(t time.Time) string {
	text := strings.TrimPrefix(t.UTC().Format(time.DateTime+".999"), day+" ")
	if t.Truncate(time.Minute).Equal(t) {
		text = strings.TrimSuffix(text, ":00")
	}
	return text
}

// world is a CronJob named "c" with its Jobs. Methods add to it; those about Jobs change the ones that were added last.
type world struct {
	cj   *tutorialv1.CronJob
	jobs []*batchv1.Job
	last int // how many Jobs were added last
}

// hourly is the world in which most rows take place: a schedule of every full hour, known since 08:30.
func hourly() world {
	return on("0 * * * *")
}

// on is a world with a schedule that is known since 08:30.
func on(schedule string) world {
	return world{cj: &tutorialv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "c-uid", Generation: 1,
			CreationTimestamp: metav1.NewTime(moment("08:30"))},
		Spec:   tutorialv1.CronJobSpec{Schedule: schedule},
		Status: tutorialv1.CronJobStatus{ObservedSchedule: schedule, ScheduledSince: at(moment("08:30"))},
	}}
}

// new takes away the status: the CronJob is looked at for the first time.
func (w world) new() world {
	w.cj.Status = tutorialv1.CronJobStatus{}
	return w
}

// edited has the spec changed before the CronJob is looked at for the first time.
func (w world) edited() world {
	w.cj.Generation = 2
	return w.new()
}

func (w world) created(t string) world {
	w.cj.CreationTimestamp = metav1.NewTime(moment(t))
	return w
}

// since is from when on the status says that times count.
func (w world) since(t string) world {
	w.cj.Status.ScheduledSince = at(moment(t))
	return w
}

// becomes changes the schedule to one that the status does not know.
func (w world) becomes(schedule string) world {
	w.cj.Spec.Schedule = schedule
	w.cj.Generation++
	return w
}

// in is a time zone that the status knows.
func (w world) in(zone string) world {
	w.cj.Spec.TimeZone, w.cj.Status.ObservedTimeZone = &zone, zone
	return w
}

// moves changes the time zone to one that the status does not know.
func (w world) moves(zone string) world {
	w.cj.Spec.TimeZone = &zone
	w.cj.Generation++
	return w
}

func (w world) suspended() world {
	yes := true
	w.cj.Spec.Suspend = &yes
	return w
}

// resumes is no longer suspended, while the status says it is.
func (w world) resumes() world {
	no := false
	w.cj.Spec.Suspend, w.cj.Status.ScheduledSince = &no, nil
	return w
}

func (w world) allow() world   { return w.policy(tutorialv1.AllowConcurrent) }
func (w world) forbid() world  { return w.policy(tutorialv1.ForbidConcurrent) }
func (w world) replace() world { return w.policy(tutorialv1.ReplaceConcurrent) }

func (w world) policy(policy tutorialv1.ConcurrencyPolicy) world {
	w.cj.Spec.ConcurrencyPolicy = policy
	return w
}

func (w world) deadline(seconds int64) world {
	w.cj.Spec.StartingDeadlineSeconds = &seconds
	return w
}

// keep sets both history limits.
func (w world) keep(succeeded, failed int32) world {
	w.cj.Spec.SuccessfulJobsHistoryLimit, w.cj.Spec.FailedJobsHistoryLimit = &succeeded, &failed
	return w
}

// ran is the lastScheduleTime of the status.
func (w world) ran(t string) world {
	w.cj.Status.LastScheduleTime = at(moment(t))
	return w
}

// gaveUp is the lastMissedTime of the status.
func (w world) gaveUp(t string) world {
	w.cj.Status.LastMissedTime = at(moment(t))
	return w
}

// succeeded is the lastSuccessfulTime of the status.
func (w world) succeeded(t string) world {
	w.cj.Status.LastSuccessfulTime = at(moment(t))
	return w
}

// hadFailed is the lastFailedTime of the status.
func (w world) hadFailed(t string) world {
	w.cj.Status.LastFailedTime = at(moment(t))
	return w
}

// active adds the Jobs of some times, made on time and not finished.
func (w world) active(ticks ...string) world {
	for _, tick := range ticks {
		w.jobs = append(w.jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: jobName(w.cj.Name, moment(tick)), UID: types.UID("uid of " + tick),
			CreationTimestamp: metav1.NewTime(moment(tick)),
		}})
	}
	w.last = len(ticks)
	return w
}

// done adds the Jobs of some times, which have completed a minute later.
func (w world) done(ticks ...string) world {
	return w.active(ticks...).each(func(job *batchv1.Job) {
		finish(job, batchv1.JobComplete, job.CreationTimestamp.Add(time.Minute))
	})
}

// failed adds the Jobs of some times, which have failed a minute later.
func (w world) failed(ticks ...string) world {
	return w.active(ticks...).each(func(job *batchv1.Job) {
		finish(job, batchv1.JobFailed, job.CreationTimestamp.Add(time.Minute))
	})
}

// each changes the Jobs that were added last.
func (w world) each(change func(*batchv1.Job)) world {
	for _, job := range w.jobs[len(w.jobs)-w.last:] {
		change(job)
	}
	return w
}

// named gives the Job that was added last another name.
func (w world) named(name string) world {
	return w.each(func(job *batchv1.Job) { job.Name = name })
}

// made changes when the Jobs were made, which those that have finished do right then.
func (w world) made(t string) world {
	return w.each(func(job *batchv1.Job) {
		job.CreationTimestamp = metav1.NewTime(moment(t))
		if c := finished(job); c != nil {
			kind := c.Type
			job.Status.Conditions = nil
			finish(job, kind, moment(t))
		}
	})
}

// ended changes when the Jobs finished.
func (w world) ended(t string) world {
	return w.each(func(job *batchv1.Job) {
		kind := finished(job).Type
		job.Status.Conditions = nil
		finish(job, kind, moment(t))
	})
}

// ending has the Jobs being deleted, and not gone.
func (w world) ending() world {
	return w.each(func(job *batchv1.Job) { job.DeletionTimestamp = at(job.CreationTimestamp.Time) })
}

func finish(job *batchv1.Job, kind batchv1.JobConditionType, t time.Time) {
	condition := batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(t)}
	if kind == batchv1.JobComplete {
		job.Status.CompletionTime = at(t)
	} else {
		condition.Reason, condition.Message = "BackoffLimitExceeded", "it has failed too often"
	}
	job.Status.Conditions = append(job.Status.Conditions, condition)
}

// planOf returns the plan for a CronJob, as of a manager that has just begun.
func planOf(cj *tutorialv1.CronJob, jobs []*batchv1.Job, known remembered, now time.Time) plan {
	return decide(cj, jobs, pastOf(cj, jobs, known, time.Time{}, now), now)
}

// outline says what a plan is that was made for a world. What it does not say is not so, and what wakes the next pass
// is the next time unless it says another.
func (w world) outline(p plan) string {
	var parts []string
	say := func(what string, t time.Time) {
		if !t.IsZero() {
			parts = append(parts, what+" "+said(t))
		}
	}
	switch {
	case p.counting.since.IsZero():
		parts = append(parts, "nothing counts")
	case !p.counting.since.Equal(timeOf(w.cj.Status.ScheduledSince)):
		say("since", p.counting.since)
	}
	if p.invalid != nil {
		parts = append(parts, reasonOf(p.invalid))
	}
	if !p.ran.Equal(timeOf(w.cj.Status.LastScheduleTime)) {
		say("ran", p.ran)
	}
	say("run", p.run)
	say("waits", p.waits)
	for _, given := range []struct {
		what string
		missed
	}{{"missed", p.missed}, {"skipped", p.skipped}} {
		if given.missed == (missed{}) {
			continue
		}
		text := fmt.Sprintf("%s %d from %s to %s", given.what, given.count, said(given.first), said(given.last))
		if given.count == 1 && given.first.Equal(given.last) {
			text = given.what + " " + said(given.last)
		}
		if given.late {
			text = "too late: " + text
		}
		parts = append(parts, text)
	}
	for _, jobs := range []struct {
		what string
		jobs []*batchv1.Job
	}{{"replace", p.replace}, {"prune", p.prune}} {
		text := jobs.what
		for _, job := range jobs.jobs {
			name := job.Name
			if tick, ok := scheduledTime(w.cj.Name, name); ok {
				name = said(tick)
			}
			text += " " + name
		}
		if len(jobs.jobs) > 0 {
			parts = append(parts, text)
		}
	}
	say("next", p.next)
	if !p.wake.Equal(p.next) {
		say("wake", p.wake)
	}
	return strings.Join(parts, ", ")
}

// row is a row of a test of decide: what a plan made for a world at a time is.
type row struct {
	name  string
	world world
	at    string
	want  string
}

func decides(t *testing.T, rows []row) {
	t.Helper()
	var names []string
	for _, row := range rows {
		if slices.Contains(names, row.name) {
			t.Errorf("there are two rows named %q", row.name)
		}
		names = append(names, row.name)
		t.Run(row.name, func(t *testing.T) {
			before := row.world.cj.DeepCopy()
			got := row.world.outline(planOf(row.world.cj, row.world.jobs, remembered{}, moment(row.at)))
			if got != row.want {
				t.Errorf("at %s\n   is: %s\n want: %s", row.at, got, row.want)
			}
			if !equality.Semantic.DeepEqual(before, row.world.cj) {
				t.Error("it has changed the CronJob that it was given")
			}
		})
	}
}
