package cronjob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// Whatever the status says, whatever Jobs there are and whatever the clock shows, a plan is harmless.
func FuzzDecide(f *testing.F) {
	// Times are seconds from 09:00; those of the status count if their bit is set, and those of Jobs are in minutes and in
	// states.
	f.Add("0 * * * *", "", uint16(0b0111), int64(-1800), int64(0), int64(0), int64(60), int64(-1), int16(3), int16(1),
		[]byte("\x00\x00\x00\x3c\x00\x01"))
	f.Add("@every 20s", "", uint16(0b0011), int64(0), int64(20), int64(0), int64(45), int64(10), int16(0), int16(0),
		[]byte("\x00\x00\x10\x00\x01\x12"))
	f.Add("30 2 * * *", "Europe/Berlin", uint16(0b01_0111), int64(-86400), int64(0), int64(0), int64(27*86400),
		int64(3600), int16(1), int16(1), []byte{})
	f.Fuzz(func(t *testing.T, schedule, zone string, bits uint16, since, ran, gaveUp, now, deadline int64, succeeded,
		failed int16, jobs []byte) {
		w, at := fuzzed(schedule, zone, bits, since, ran, gaveUp, deadline, succeeded, failed, jobs), instant(now)
		p := planOf(w.cj, w.jobs, remembered{}, at)
		if err := w.harms(p, at); err != "" {
			t.Fatalf("%s\nplan: %s\nat %s, status: %+v", err, w.outline(p), at, w.cj.Status)
		}

		slices.Reverse(w.jobs)
		again := planOf(w.cj, w.jobs, remembered{}, at)
		for _, jobs := range []*[]*batchv1.Job{&p.replace, &again.replace} { // of which the order does not matter
			slices.SortFunc(*jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
		}
		if first, second := w.outline(p), w.outline(again); first != second {
			t.Fatalf("the order of the Jobs makes a difference\n is: %s\nwas: %s", second, first)
		}

		seen := w.pass(at, nil)
		after := world{cj: w.cj.DeepCopy(), jobs: seen.jobs}
		after.cj.Status = statusOf(w.cj, seen, nil)
		next := planOf(after.cj, after.jobs, remembered{}, at)
		if !next.run.IsZero() || next.missed != (missed{}) || len(next.replace) > 0 {
			t.Fatalf("it is not done in one pass\n then: %s\nfirst: %s", after.outline(next), w.outline(p))
		}
		if !next.next.Equal(p.next) {
			t.Fatalf("the next time is %s, after a pass %s", p.next, next.next)
		}
		if then := statusOf(after.cj, after.pass(at, nil),
			nil); timeOf(then.LastScheduleTime).Before(timeOf(w.cj.Status.LastScheduleTime)) ||
			timeOf(then.LastMissedTime).Before(timeOf(w.cj.Status.LastMissedTime)) ||
			timeOf(then.LastSuccessfulTime).Before(timeOf(w.cj.Status.LastSuccessfulTime)) {
			t.Fatalf("the status goes back\n then: %+v\nfirst: %+v", then, w.cj.Status)
		}
	})
}

// instant is a time within some 100 years of the day of the tests.
func instant(seconds int64) time.Time {
	return moment("09:00").Add(time.Duration(seconds%(100*365*24*3600)) * time.Second)
}

// fuzzed makes a world of numbers, one that the API server would store.
func fuzzed(schedule, zone string, bits uint16, since, ran, gaveUp, deadline int64, succeeded, failed int16,
	jobs []byte) world {
	is := func(bit int) bool { return bits&(1<<bit) != 0 }
	w := on(schedule).in(zone)
	w.cj.CreationTimestamp, w.cj.Status.ScheduledSince = metav1.NewTime(instant(since)), at(instant(since))
	if is(1) {
		w.cj.Status.LastScheduleTime = at(instant(ran))
	}
	if is(2) {
		w.cj.Status.LastMissedTime = at(instant(gaveUp))
	}
	if is(3) {
		w = w.suspended()
	}
	w = w.policy([]tutorialv1.ConcurrencyPolicy{"", tutorialv1.AllowConcurrent, tutorialv1.ForbidConcurrent,
		tutorialv1.ReplaceConcurrent}[bits>>4&3])
	if is(6) {
		w = w.resumes()
	}
	if is(7) {
		w = w.edited()
	}
	if !is(0) {
		w = w.new()
	}
	if is(8) {
		w.cj.Status.ObservedSchedule = "another"
	}
	if is(9) {
		w.cj.Status.LastSuccessfulTime = at(instant(gaveUp + since))
	}
	if deadline >= 0 {
		w = w.deadline(deadline)
	}
	if succeeded >= 0 {
		w.cj.Spec.SuccessfulJobsHistoryLimit = new(int32)
		*w.cj.Spec.SuccessfulJobsHistoryLimit = int32(succeeded)
	}
	if failed >= 0 {
		w.cj.Spec.FailedJobsHistoryLimit = new(int32)
		*w.cj.Spec.FailedJobsHistoryLimit = int32(failed)
	}
	for ; len(jobs) >= 3 && len(w.jobs) < 50; jobs = jobs[3:] {
		w = w.fuzzedJob(int64(int8(jobs[0]))*60+int64(jobs[1]), jobs[2])
	}
	return w
}

// fuzzedJob adds a Job of some seconds after 09:00. No two have one name.
func (w world) fuzzedJob(seconds int64, state byte) world {
	tick := instant(seconds)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: jobName("c", tick),
		CreationTimestamp: metav1.NewTime(tick.Add(time.Duration(state>>5) * time.Minute))}}
	if state&4 != 0 {
		job.Name = fmt.Sprintf("by-hand-%d", seconds)
	}
	job.UID = types.UID(job.Name)
	if slices.ContainsFunc(w.jobs, func(other *batchv1.Job) bool { return other.Name == job.Name }) {
		return w
	}
	switch state & 3 {
	case 1:
		finish(job, batchv1.JobComplete, job.CreationTimestamp.Add(time.Second))
	case 2:
		finish(job, batchv1.JobFailed, job.CreationTimestamp.Add(time.Second))
	}
	if state&8 != 0 {
		job.DeletionTimestamp = at(job.CreationTimestamp.Time)
	}
	w.jobs = append(w.jobs, job)
	return w
}

// harms says what is wrong with a plan; nothing if it is harmless.
func (w world) harms(p plan, now time.Time) string {
	told := w.cj.Status
	isSuspended := w.cj.Spec.Suspend != nil && *w.cj.Spec.Suspend
	limits := map[batchv1.JobConditionType]int{batchv1.JobComplete: limit(w.cj.Spec.SuccessfulJobsHistoryLimit, 3),
		batchv1.JobFailed: limit(w.cj.Spec.FailedJobsHistoryLimit, 1)}
	kept, active := map[batchv1.JobConditionType]int{}, 0
	for _, job := range w.jobs {
		if c := finished(job); c == nil {
			active++
		} else if job.DeletionTimestamp == nil && !slices.Contains(p.prune, job) {
			kept[c.Type]++
		}
	}
	for _, job := range p.prune {
		if kind := finished(job); kind == nil {
			return "an active Job is pruned"
		} else if kept[kind.Type] < limits[kind.Type] {
			return "too many Jobs are pruned"
		}
		if now.Sub(job.CreationTimestamp.Time) < requestTimeout {
			return "a young Job is pruned"
		}
		if tick, ok := scheduledTime("c", job.Name); ok && tick.After(timeOf(told.LastScheduleTime)) {
			return "a Job is pruned of which only its name tells that it was"
		}
	}
	if both := slices.Concat(p.prune, p.replace); slices.ContainsFunc(both, func(job *batchv1.Job) bool {
		return job.DeletionTimestamp != nil || !slices.Contains(w.jobs, job)
	}) {
		return "a Job is deleted that is being deleted, or is not there"
	} else if slices.SortFunc(both, func(a, b *batchv1.Job) int {
		return strings.Compare(a.Name, b.Name)
	}); len(slices.Compact(both)) != len(p.prune)+len(p.replace) {
		return "a Job is deleted twice"
	}
	switch {
	case !p.next.IsZero() && !p.next.After(now):
		return "the next time is past"
	case !p.wake.IsZero() && !p.wake.After(now):
		return "it is to wake in the past"
	case !p.next.IsZero() && (p.wake.IsZero() || p.wake.After(p.next)):
		return "it sleeps through the next time"
	case !p.waits.IsZero() &&
		(active == 0 || !p.run.IsZero() || w.cj.Spec.ConcurrencyPolicy != tutorialv1.ForbidConcurrent):
		return "it waits for nothing"
	case p.missed.count > countLimit || p.missed.count < 0 || (p.missed.count == 0) != (p.missed == missed{}) ||
		p.missed.last.Before(p.missed.first):
		return "what is missed is not right"
	case p.missed.count > 0 && (p.missed.late == !p.run.IsZero() || !p.run.IsZero() && !p.missed.last.Before(p.run)):
		return "what is missed is run"
	case len(p.replace) > 0 && (p.run.IsZero() || w.cj.Spec.ConcurrencyPolicy != tutorialv1.ReplaceConcurrent):
		return "Jobs are replaced by none"
	}
	if p.run.IsZero() {
		return ""
	}
	switch deadline := w.cj.Spec.StartingDeadlineSeconds; {
	case isSuspended || p.invalid != nil:
		return "it runs, and cannot"
	case p.run.After(now):
		return "it runs in the future"
	case !p.run.After(p.counting.since) || p.counting.since.IsZero():
		return "it runs for a time before times count"
	case !p.run.After(timeOf(told.LastScheduleTime)):
		return "it runs for a time that has been run, or one before it"
	case !p.run.After(timeOf(told.LastMissedTime)):
		return "it runs for a time that was given up"
	case slices.ContainsFunc(w.jobs, func(job *batchv1.Job) bool { return job.Name == jobName("c", p.run) }):
		return "it runs for a time that has a Job"
	case active > 0 && w.cj.Spec.ConcurrencyPolicy == tutorialv1.ForbidConcurrent:
		return "it runs beside another Job, which is forbidden"
	case deadline != nil && now.Sub(p.run)/time.Second > time.Duration(*deadline):
		return "it runs after its deadline"
	}
	return ""
}

func limit(n *int32, byDefault int) int {
	if n == nil {
		return byDefault
	}
	return int(*n)
}
