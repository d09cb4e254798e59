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

// day is the date of times that are written without one: a Monday. All times are in UTC.
const day = "2026-03-02"

// moment parses a time in a test row: "10:01", "10:01:30", "10:01:30.5", or one of these after a date.
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

// formatTime formats a time as in test rows.
func formatTime(t time.Time) string {
	text := strings.TrimPrefix(t.UTC().Format(time.DateTime+".999"), day+" ")
	if t.Truncate(time.Minute).Equal(t) {
		text = strings.TrimSuffix(text, ":00")
	}
	return text
}

// fixture is a CronJob named "c" with its Jobs. Methods change it; those about Jobs change the Jobs that were added
// last.
type fixture struct {
	cj   *tutorialv1.CronJob
	jobs []*batchv1.Job
	last int // how many Jobs were added last
}

// hourly is the fixture of most rows: a schedule of every full hour that counts since 08:30.
func hourly() fixture {
	return on("0 * * * *")
}

// on is a fixture with a schedule that counts since 08:30.
func on(schedule string) fixture {
	return fixture{cj: &tutorialv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "c-uid", Generation: 1,
			CreationTimestamp: metav1.NewTime(moment("08:30"))},
		Spec:   tutorialv1.CronJobSpec{Schedule: schedule},
		Status: tutorialv1.CronJobStatus{ObservedSchedule: schedule, ScheduledSince: at(moment("08:30"))},
	}}
}

// new removes the status, as before the first pass.
func (fx fixture) new() fixture {
	fx.cj.Status = tutorialv1.CronJobStatus{}
	return fx
}

// edited has the spec changed before the first pass.
func (fx fixture) edited() fixture {
	fx.cj.Generation = 2
	return fx.new()
}

func (fx fixture) created(t string) fixture {
	fx.cj.CreationTimestamp = metav1.NewTime(moment(t))
	return fx
}

// since sets status.scheduledSince.
func (fx fixture) since(t string) fixture {
	fx.cj.Status.ScheduledSince = at(moment(t))
	return fx
}

// becomes changes the schedule; the status still has the old one.
func (fx fixture) becomes(schedule string) fixture {
	fx.cj.Spec.Schedule = schedule
	fx.cj.Generation++
	return fx
}

// in sets a time zone that the status has already.
func (fx fixture) in(zone string) fixture {
	fx.cj.Spec.TimeZone, fx.cj.Status.ObservedTimeZone = &zone, zone
	return fx
}

// moves changes the time zone; the status still has the old one.
func (fx fixture) moves(zone string) fixture {
	fx.cj.Spec.TimeZone = &zone
	fx.cj.Generation++
	return fx
}

func (fx fixture) suspended() fixture {
	yes := true
	fx.cj.Spec.Suspend = &yes
	return fx
}

// resumes ends a suspension that the status still shows.
func (fx fixture) resumes() fixture {
	no := false
	fx.cj.Spec.Suspend, fx.cj.Status.ScheduledSince = &no, nil
	return fx
}

func (fx fixture) allow() fixture   { return fx.policy(tutorialv1.AllowConcurrent) }
func (fx fixture) forbid() fixture  { return fx.policy(tutorialv1.ForbidConcurrent) }
func (fx fixture) replace() fixture { return fx.policy(tutorialv1.ReplaceConcurrent) }

func (fx fixture) policy(policy tutorialv1.ConcurrencyPolicy) fixture {
	fx.cj.Spec.ConcurrencyPolicy = policy
	return fx
}

func (fx fixture) deadline(seconds int64) fixture {
	fx.cj.Spec.StartingDeadlineSeconds = &seconds
	return fx
}

// keep sets both history limits.
func (fx fixture) keep(succeeded, failed int32) fixture {
	fx.cj.Spec.SuccessfulJobsHistoryLimit, fx.cj.Spec.FailedJobsHistoryLimit = &succeeded, &failed
	return fx
}

// ran sets status.lastScheduleTime.
func (fx fixture) ran(t string) fixture {
	fx.cj.Status.LastScheduleTime = at(moment(t))
	return fx
}

// lastMissed sets status.lastMissedTime.
func (fx fixture) lastMissed(t string) fixture {
	fx.cj.Status.LastMissedTime = at(moment(t))
	return fx
}

// succeeded sets status.lastSuccessfulTime.
func (fx fixture) succeeded(t string) fixture {
	fx.cj.Status.LastSuccessfulTime = at(moment(t))
	return fx
}

// lastFailed sets status.lastFailedTime.
func (fx fixture) lastFailed(t string) fixture {
	fx.cj.Status.LastFailedTime = at(moment(t))
	return fx
}

// active adds unfinished Jobs for some times, created on time.
func (fx fixture) active(ticks ...string) fixture {
	for _, tick := range ticks {
		fx.jobs = append(fx.jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: jobName(fx.cj.Name, moment(tick)), UID: types.UID("uid of " + tick),
			CreationTimestamp: metav1.NewTime(moment(tick)),
		}})
	}
	fx.last = len(ticks)
	return fx
}

// done adds Jobs for some times that completed a minute later.
func (fx fixture) done(ticks ...string) fixture {
	return fx.active(ticks...).each(func(job *batchv1.Job) {
		finish(job, batchv1.JobComplete, job.CreationTimestamp.Add(time.Minute))
	})
}

// failed adds Jobs for some times that failed a minute later.
func (fx fixture) failed(ticks ...string) fixture {
	return fx.active(ticks...).each(func(job *batchv1.Job) {
		finish(job, batchv1.JobFailed, job.CreationTimestamp.Add(time.Minute))
	})
}

// each changes the Jobs that were added last.
func (fx fixture) each(change func(*batchv1.Job)) fixture {
	for _, job := range fx.jobs[len(fx.jobs)-fx.last:] {
		change(job)
	}
	return fx
}

// named gives the Job that was added last another name.
func (fx fixture) named(name string) fixture {
	return fx.each(func(job *batchv1.Job) { job.Name = name })
}

// createdAt sets the creation time of the Jobs, and the time at which finished ones finished.
func (fx fixture) createdAt(t string) fixture {
	return fx.each(func(job *batchv1.Job) {
		job.CreationTimestamp = metav1.NewTime(moment(t))
		if c := finished(job); c != nil {
			kind := c.Type
			job.Status.Conditions = nil
			finish(job, kind, moment(t))
		}
	})
}

// finishedAt sets the time at which the Jobs finished.
func (fx fixture) finishedAt(t string) fixture {
	return fx.each(func(job *batchv1.Job) {
		kind := finished(job).Type
		job.Status.Conditions = nil
		finish(job, kind, moment(t))
	})
}

// terminating marks the Jobs as being deleted.
func (fx fixture) terminating() fixture {
	return fx.each(func(job *batchv1.Job) { job.DeletionTimestamp = at(job.CreationTimestamp.Time) })
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

// planOf returns the plan of a manager that has just started.
func planOf(cj *tutorialv1.CronJob, jobs []*batchv1.Job, known remembered, now time.Time) plan {
	return decide(cj, jobs, pastOf(cj, jobs, known, time.Time{}, now), now)
}

// outline formats a plan for the fixture. It omits what is zero or as in the status, and the time of the next pass if
// that is the next scheduled time.
func (fx fixture) outline(p plan) string {
	var parts []string
	add := func(what string, t time.Time) {
		if !t.IsZero() {
			parts = append(parts, what+" "+formatTime(t))
		}
	}
	switch {
	case p.counting.since.IsZero():
		parts = append(parts, "suspended")
	case !p.counting.since.Equal(timeOf(fx.cj.Status.ScheduledSince)):
		add("since", p.counting.since)
	}
	if p.invalid != nil {
		parts = append(parts, reasonOf(p.invalid))
	}
	if !p.ran.Equal(timeOf(fx.cj.Status.LastScheduleTime)) {
		add("ran", p.ran)
	}
	add("run", p.run)
	add("waits", p.waits)
	for _, given := range []struct {
		what string
		missed
	}{{"missed", p.missed}, {"skipped", p.skipped}} {
		if given.missed == (missed{}) {
			continue
		}
		text := fmt.Sprintf("%s %d from %s to %s", given.what, given.count, formatTime(given.first), formatTime(given.last))
		if given.count == 1 && given.first.Equal(given.last) {
			text = given.what + " " + formatTime(given.last)
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
			if tick, ok := scheduledTime(fx.cj.Name, name); ok {
				name = formatTime(tick)
			}
			text += " " + name
		}
		if len(jobs.jobs) > 0 {
			parts = append(parts, text)
		}
	}
	add("next", p.next)
	if !p.wake.Equal(p.next) {
		add("wake", p.wake)
	}
	return strings.Join(parts, ", ")
}

// row is a test case of decide: the outline of the plan for a fixture at a time.
type row struct {
	name    string
	fixture fixture
	at      string
	want    string
}

func testDecide(t *testing.T, rows []row) {
	t.Helper()
	var names []string
	for _, row := range rows {
		if slices.Contains(names, row.name) {
			t.Errorf("there are two rows named %q", row.name)
		}
		names = append(names, row.name)
		t.Run(row.name, func(t *testing.T) {
			before := row.fixture.cj.DeepCopy()
			got := row.fixture.outline(planOf(row.fixture.cj, row.fixture.jobs, remembered{}, moment(row.at)))
			if got != row.want {
				t.Errorf("at %s\n   is: %s\n want: %s", row.at, got, row.want)
			}
			if !equality.Semantic.DeepEqual(before, row.fixture.cj) {
				t.Error("it has changed its argument")
			}
		})
	}
}
