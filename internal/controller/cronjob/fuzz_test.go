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

// For any status, any Jobs and any time, the plan violates no rule.
func FuzzDecide(f *testing.F) {
	// Times are seconds from 09:00; those of the status count if their bit is set, and those of Jobs are in minutes and in
	// states.
	f.Add("0 * * * *", "", uint16(0b0111), int64(-1800), int64(0), int64(0), int64(60), int64(-1), int16(3), int16(1),
		[]byte("\x00\x00\x00\x3c\x00\x01"))
	f.Add("@every 20s", "", uint16(0b0011), int64(0), int64(20), int64(0), int64(45), int64(10), int16(0), int16(0),
		[]byte("\x00\x00\x10\x00\x01\x12"))
	f.Add("30 2 * * *", "Europe/Berlin", uint16(0b01_0111), int64(-86400), int64(0), int64(0), int64(27*86400),
		int64(3600), int16(1), int16(1), []byte{})
	f.Fuzz(func(t *testing.T, schedule, zone string, bits uint16, since, ran, lastMissed, now, deadline int64, succeeded,
		failed int16, jobs []byte) {
		fx, at := fuzzed(schedule, zone, bits, since, ran, lastMissed, deadline, succeeded, failed, jobs), instant(now)
		p := planOf(fx.cj, fx.jobs, remembered{}, at)
		if err := fx.violation(p, at); err != "" {
			t.Fatalf("%s\nplan: %s\nat %s, status: %+v", err, fx.outline(p), at, fx.cj.Status)
		}

		slices.Reverse(fx.jobs)
		again := planOf(fx.cj, fx.jobs, remembered{}, at)
		for _, jobs := range []*[]*batchv1.Job{&p.replace, &again.replace} { // of which the order does not matter
			slices.SortFunc(*jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
		}
		if first, second := fx.outline(p), fx.outline(again); first != second {
			t.Fatalf("the order of the Jobs makes a difference\n is: %s\nwas: %s", second, first)
		}

		seen := fx.pass(at, nil)
		after := fixture{cj: fx.cj.DeepCopy(), jobs: seen.jobs}
		after.cj.Status = statusOf(fx.cj, seen, nil)
		next := planOf(after.cj, after.jobs, remembered{}, at)
		if !next.run.IsZero() || next.missed != (missed{}) || len(next.replace) > 0 {
			t.Fatalf("it is not done in one pass\n then: %s\nfirst: %s", after.outline(next), fx.outline(p))
		}
		if !next.next.Equal(p.next) {
			t.Fatalf("the next time is %s, after a pass %s", p.next, next.next)
		}
		if then := statusOf(after.cj, after.pass(at, nil),
			nil); timeOf(then.LastScheduleTime).Before(timeOf(fx.cj.Status.LastScheduleTime)) ||
			timeOf(then.LastMissedTime).Before(timeOf(fx.cj.Status.LastMissedTime)) ||
			timeOf(then.LastSuccessfulTime).Before(timeOf(fx.cj.Status.LastSuccessfulTime)) {
			t.Fatalf("the status goes back\n then: %+v\nfirst: %+v", then, fx.cj.Status)
		}
	})
}

// instant is a time within some 100 years of the day of the tests.
func instant(seconds int64) time.Time {
	return moment("09:00").Add(time.Duration(seconds%(100*365*24*3600)) * time.Second)
}

// fuzzed makes a fixture from fuzzed values, one that the API server would store.
func fuzzed(schedule, zone string, bits uint16, since, ran, lastMissed, deadline int64, succeeded, failed int16,
	jobs []byte) fixture {
	is := func(bit int) bool { return bits&(1<<bit) != 0 }
	fx := on(schedule).in(zone)
	fx.cj.CreationTimestamp, fx.cj.Status.ScheduledSince = metav1.NewTime(instant(since)), at(instant(since))
	if is(1) {
		fx.cj.Status.LastScheduleTime = at(instant(ran))
	}
	if is(2) {
		fx.cj.Status.LastMissedTime = at(instant(lastMissed))
	}
	if is(3) {
		fx = fx.suspended()
	}
	fx = fx.policy([]tutorialv1.ConcurrencyPolicy{"", tutorialv1.AllowConcurrent, tutorialv1.ForbidConcurrent,
		tutorialv1.ReplaceConcurrent}[bits>>4&3])
	if is(6) {
		fx = fx.resumes()
	}
	if is(7) {
		fx = fx.edited()
	}
	if !is(0) {
		fx = fx.new()
	}
	if is(8) {
		fx.cj.Status.ObservedSchedule = "another"
	}
	if is(9) {
		fx.cj.Status.LastSuccessfulTime = at(instant(lastMissed + since))
	}
	if deadline >= 0 {
		fx = fx.deadline(deadline)
	}
	if succeeded >= 0 {
		fx.cj.Spec.SuccessfulJobsHistoryLimit = new(int32)
		*fx.cj.Spec.SuccessfulJobsHistoryLimit = int32(succeeded)
	}
	if failed >= 0 {
		fx.cj.Spec.FailedJobsHistoryLimit = new(int32)
		*fx.cj.Spec.FailedJobsHistoryLimit = int32(failed)
	}
	for ; len(jobs) >= 3 && len(fx.jobs) < 50; jobs = jobs[3:] {
		fx = fx.fuzzedJob(int64(int8(jobs[0]))*60+int64(jobs[1]), jobs[2])
	}
	return fx
}

// fuzzedJob adds a Job of some seconds after 09:00. Names are unique.
func (fx fixture) fuzzedJob(seconds int64, state byte) fixture {
	tick := instant(seconds)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: jobName("c", tick),
		CreationTimestamp: metav1.NewTime(tick.Add(time.Duration(state>>5) * time.Minute))}}
	if state&4 != 0 {
		job.Name = fmt.Sprintf("by-hand-%d", seconds)
	}
	job.UID = types.UID(job.Name)
	if slices.ContainsFunc(fx.jobs, func(other *batchv1.Job) bool { return other.Name == job.Name }) {
		return fx
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
	fx.jobs = append(fx.jobs, job)
	return fx
}

// violation returns the rule that a plan violates; "" if there is none.
func (fx fixture) violation(p plan, now time.Time) string {
	recorded := fx.cj.Status
	isSuspended := fx.cj.Spec.Suspend != nil && *fx.cj.Spec.Suspend
	limits := map[batchv1.JobConditionType]int{batchv1.JobComplete: limit(fx.cj.Spec.SuccessfulJobsHistoryLimit, 3),
		batchv1.JobFailed: limit(fx.cj.Spec.FailedJobsHistoryLimit, 1)}
	kept, active := map[batchv1.JobConditionType]int{}, 0
	for _, job := range fx.jobs {
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
		if tick, ok := scheduledTime("c", job.Name); ok && tick.After(timeOf(recorded.LastScheduleTime)) {
			return "a Job is pruned whose time is not in the status"
		}
	}
	if both := slices.Concat(p.prune, p.replace); slices.ContainsFunc(both, func(job *batchv1.Job) bool {
		return job.DeletionTimestamp != nil || !slices.Contains(fx.jobs, job)
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
		return "the next pass is in the past"
	case !p.next.IsZero() && (p.wake.IsZero() || p.wake.After(p.next)):
		return "the next pass is after the next time"
	case !p.waits.IsZero() &&
		(active == 0 || !p.run.IsZero() || fx.cj.Spec.ConcurrencyPolicy != tutorialv1.ForbidConcurrent):
		return "it waits for nothing"
	case p.missed.count > countLimit || p.missed.count < 0 || (p.missed.count == 0) != (p.missed == missed{}) ||
		p.missed.last.Before(p.missed.first):
		return "the missed times are inconsistent"
	case p.missed.count > 0 && (p.missed.late == !p.run.IsZero() || !p.run.IsZero() && !p.missed.last.Before(p.run)):
		return "a missed time runs"
	case len(p.replace) > 0 && (p.run.IsZero() || fx.cj.Spec.ConcurrencyPolicy != tutorialv1.ReplaceConcurrent):
		return "Jobs are deleted without a run"
	}
	if p.run.IsZero() {
		return ""
	}
	switch deadline := fx.cj.Spec.StartingDeadlineSeconds; {
	case isSuspended || p.invalid != nil:
		return "it runs, and cannot"
	case p.run.After(now):
		return "it runs in the future"
	case !p.run.After(p.counting.since) || p.counting.since.IsZero():
		return "it runs for a time before times count"
	case !p.run.After(timeOf(recorded.LastScheduleTime)):
		return "it runs for a time that has been run, or one before it"
	case !p.run.After(timeOf(recorded.LastMissedTime)):
		return "it runs for a missed time"
	case slices.ContainsFunc(fx.jobs, func(job *batchv1.Job) bool { return job.Name == jobName("c", p.run) }):
		return "it runs for a time that has a Job"
	case active > 0 && fx.cj.Spec.ConcurrencyPolicy == tutorialv1.ForbidConcurrent:
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
