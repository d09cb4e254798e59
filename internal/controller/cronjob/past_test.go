package cronjob

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// carryOut notes the plan at a time, and its run, in a memory, and returns the plan and what is remembered then.
func (fx fixture) carryOut(m *memory, t string) (plan, remembered) {
	p := planOf(fx.cj, fx.jobs, m.of(fx.cj), moment(t))
	known := m.noteDecision(fx.cj, m.of(fx.cj), p)
	if !p.run.IsZero() {
		known = m.noteRun(fx.cj.UID, p, reference(job(fx.cj, p.run)))
	}
	return p, known
}

// A run that no status records yet is not repeated, even if its Job was deleted, and is reported later.
func TestMemory(t *testing.T) {
	var m memory
	fx := hourly().ran("09:00")
	p, known := fx.carryOut(&m, "12:00:01")
	if !p.run.Equal(moment("12:00")) || known.missed.message(known.ran) == "" || !known.isUnrecorded {
		t.Fatalf("%+v, %+v", p, known)
	}

	again := planOf(fx.cj, nil, m.of(fx.cj), moment("12:00:02"))
	if !again.run.IsZero() || again.missed != (missed{}) {
		t.Errorf("it runs again: %+v", again)
	}
	status := statusOf(fx.cj, observed{isObserved: true, now: moment("12:00:02"), plan: again, known: known}, nil)
	if !status.LastScheduleTime.Time.Equal(moment("12:00")) || !status.LastMissedTime.Time.Equal(moment("11:00")) {
		t.Errorf("%v, %v", status.LastScheduleTime, status.LastMissedTime)
	}

	_, known = fx.carryOut(&m, "15:00:01") // the status could not be written for three hours
	const message = "missed 4 runs, from 2026-03-02T10:00:00Z to 2026-03-02T14:00:00Z; ran the latest, " +
		"2026-03-02T15:00:00Z"
	if got := known.missed.message(known.ran); got != message ||
		known.created.Name != jobName(fx.cj.Name, moment("15:00")) {
		t.Errorf("%q, %+v", got, known)
	}

	// The status is written, and the cache does not show it yet.
	m.noteStatus(fx.cj.UID)
	known = m.of(fx.cj)
	if known.missed.message(known.ran) != "" || known.isUnrecorded {
		t.Errorf("it is reported twice: %+v", known)
	}
	if p := planOf(fx.cj, nil, known, moment("15:59")); !p.run.IsZero() || p.missed != (missed{}) {
		t.Errorf("a reported run is repeated: %+v", p)
	}

	fx.cj.Status = statusOf(fx.cj,
		observed{isObserved: true, now: moment("15:59"), plan: planOf(fx.cj, nil, known, moment("15:59")), known: known}, nil)
	if known := m.of(fx.cj); known != (remembered{}) || len(m.byUID) != 0 {
		t.Errorf("it remembers what the cache shows: %+v", known)
	}
}

// Times that are missed because their deadline has passed are reported once, even if the first write fails.
func TestMemoryOfDeadlines(t *testing.T) {
	var m memory
	fx := hourly().deadline(60).ran("09:00")
	p, known := fx.carryOut(&m, "11:30")
	if !p.missed.late || known.missed.count != 2 || !known.isUnrecorded {
		t.Fatalf("%+v, %+v", p, known)
	}
	p, known = fx.carryOut(&m, "11:31")
	if p.missed != (missed{}) || known.missed.count != 2 {
		t.Errorf("they are missed again: %+v, %+v", p, known)
	}
}

// A time for which a Job was observed is not run again, even if the Job is deleted before a status is written; the
// times that were skipped for it are reported once.
func TestMemoryOfJobs(t *testing.T) {
	var m memory
	fx := hourly().ran("09:00").active("12:00")
	if p, known := fx.carryOut(&m, "12:00:10"); !p.run.IsZero() || !known.isUnrecorded || known.missed.count != 2 {
		t.Fatalf("%+v, %+v", p, known)
	}
	fx.jobs = nil
	if p, known := fx.carryOut(&m, "12:00:11"); !p.run.IsZero() || !p.ran.Equal(moment("12:00")) ||
		known.missed.count != 2 {
		t.Errorf("%+v, %+v", p, known)
	}
}

// A change of the schedule and a suspension take effect even before the status has them.
func TestMemoryOfCounting(t *testing.T) {
	var m memory
	fx := hourly().ran("09:00").becomes("30 * * * *")
	fx.carryOut(&m, "09:20")
	if p, _ := fx.carryOut(&m, "09:30"); !p.run.Equal(moment("09:30")) || !p.counting.since.Equal(moment("09:20")) {
		t.Errorf("the first time of the new schedule: %+v", p)
	}
	fx = fx.becomes("0 * * * *") // as the status has it
	if p, _ := fx.carryOut(&m, "10:10"); !p.run.IsZero() || !p.counting.since.Equal(moment("10:10")) {
		t.Errorf("a time before the schedule was changed back: %+v", p)
	}

	m = memory{}
	fx = hourly().ran("09:00")
	fx.cj.Spec.Suspend = ptr.To(true)
	fx.carryOut(&m, "09:30")
	fx.cj.Spec.Suspend = nil
	if p, _ := fx.carryOut(&m, "10:30"); !p.run.IsZero() || !p.counting.since.Equal(moment("10:30")) {
		t.Errorf("a time while it was suspended: %+v", p)
	}
	if p, _ := fx.carryOut(&m, "11:00"); !p.run.Equal(moment("11:00")) {
		t.Errorf("the first time since it is not: %+v", p)
	}
}

// Nothing is remembered of a settled or a deleted CronJob.
func TestMemoryForgets(t *testing.T) {
	var m memory
	fx := hourly().ran("09:00")
	fx.cj.Status = statusOf(fx.cj, fx.pass(moment("09:10"), nil), nil)
	if fx.carryOut(&m, "09:30"); len(m.byUID) != 0 {
		t.Errorf("%+v", m.byUID)
	}
	m.noteStatus(fx.cj.UID)
	if len(m.byUID) != 0 {
		t.Errorf("%+v", m.byUID)
	}
	fx.carryOut(&m, "10:00")
	if m.forget(fx.cj.UID); len(m.byUID) != 0 {
		t.Errorf("it remembers a deleted CronJob: %+v", m.byUID)
	}
}

func TestMissedAnd(t *testing.T) {
	some := missed{count: 2, first: moment("09:00"), last: moment("10:00")}
	more := missed{count: 999, first: moment("12:00"), last: moment("13:00"), late: true}
	recorded := missed{last: moment("08:00")}
	for _, test := range []struct{ a, b, want missed }{
		{some, missed{}, some},
		{missed{}, some, some},
		{recorded, missed{}, recorded},
		{recorded, some, some},
		{some, more, missed{count: countLimit, first: moment("09:00"), last: moment("13:00"), late: true}},
	} {
		if got := test.a.and(test.b); got != test.want {
			t.Errorf("%+v and %+v: %+v", test.a, test.b, got)
		}
	}
}

// A created Job is known even if neither the status nor the cache has it.
func TestUnlisted(t *testing.T) {
	fx := hourly().active("09:00", "10:00")
	fx.cj.Status.Active = []corev1.ObjectReference{reference(fx.jobs[0])}
	created := remembered{created: reference(fx.jobs[1])}
	for _, test := range []struct {
		name  string
		known remembered
		jobs  []*batchv1.Job
		want  int
	}{
		{"the cache shows all", created, fx.jobs, 0},
		{"the cache shows none", created, nil, 2},
		{"the cache does not show the created Job", created, fx.jobs[:1], 1},
		{"the cache does not show the created Job, which the status has", remembered{created: reference(fx.jobs[0])}, nil, 1},
		{"the cache does not show an active Job, and nothing is remembered", remembered{}, nil, 1},
	} {
		if got := unlisted(fx.cj, test.known, test.jobs); len(got) != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	if len(fx.cj.Status.Active) != 1 {
		t.Error("the status has been changed")
	}
}

// Each row has what one source knows at 12:30 of an hourly schedule that counts since 08:30.
func TestPastOf(t *testing.T) {
	for _, test := range []struct {
		name                     string
		fixture                  fixture
		known                    remembered
		ran, accounted, firstRun string
	}{
		{"nothing has happened", hourly(), remembered{}, "", "08:30", ""},
		{"the status has a run", hourly().ran("10:00"), remembered{}, "10:00", "10:00", ""},
		{"the status has a missed time", hourly().ran("10:00").lastMissed("11:00"), remembered{},
			"10:00", "11:00", ""},
		{"a Job is in no status", hourly().ran("10:00").active("11:00", "12:00"), remembered{}, "12:00", "10:00", "11:00"},
		{"a Job is of a future time", hourly().active("13:00"), remembered{}, "", "08:30", ""},
		{"a Job has a name of its own", hourly().active("12:00").named("c-by-hand"), remembered{}, "", "08:30", ""},
		{"this manager knows a run", hourly().ran("10:00"), remembered{ran: moment("12:00")}, "12:00", "12:00", ""},
		{"this manager knows a missed time", hourly().ran("10:00"),
			remembered{missed: missed{last: moment("11:00")}}, "10:00", "11:00", ""},
		{"this manager knows a later start", hourly().ran("10:00"),
			remembered{counting: counting{since: moment("12:15"), schedule: "0 * * * *"}}, "10:00", "12:15", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pastOf(test.fixture.cj, test.fixture.jobs, test.known, time.Time{}, moment("12:30"))
			for _, got := range []struct {
				what string
				time time.Time
				want string
			}{{"ran", p.ran, test.ran}, {"accounted", p.accounted, test.accounted}, {"firstRun", p.firstRun, test.firstRun}} {
				if want := got.want; got.time.IsZero() != (want == "") || want != "" && !got.time.Equal(moment(want)) {
					t.Errorf("%s: %s, not %q", got.what, got.time, want)
				}
			}
		})
	}
}
