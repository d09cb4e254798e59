package cronjob

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// carryOut has a memory note what a world's plan is at a time, and that it is carried out, which gives what is known
// then.
func (w world) carryOut(m *memory, t string) (plan, remembered) {
	p := planOf(w.cj, w.jobs, m.of(w.cj), moment(t))
	known := m.noteDecision(w.cj, m.of(w.cj), p)
	if !p.run.IsZero() {
		known = m.noteRun(w.cj.UID, p, reference(job(w.cj, p.run)))
	}
	return p, known
}

// What the status does not say yet is not run again, whatever has become of the Job, and is written and told later.
func TestMemory(t *testing.T) {
	var m memory
	w := hourly().ran("09:00")
	p, known := w.carryOut(&m, "12:00:01")
	if !p.run.Equal(moment("12:00")) || known.missed.message(known.ran) == "" || !known.isUnrecorded {
		t.Fatalf("%+v, %+v", p, known)
	}

	again := planOf(w.cj, nil, m.of(w.cj), moment("12:00:02"))
	if !again.run.IsZero() || again.missed != (missed{}) {
		t.Errorf("it runs again: %+v", again)
	}
	status := statusOf(w.cj, observed{isObserved: true, now: moment("12:00:02"), plan: again, known: known}, nil)
	if !status.LastScheduleTime.Time.Equal(moment("12:00")) || !status.LastMissedTime.Time.Equal(moment("11:00")) {
		t.Errorf("%v, %v", status.LastScheduleTime, status.LastMissedTime)
	}

	_, known = w.carryOut(&m, "15:00:01") // the status could not be written for three hours
	const message = "missed 4 runs, from 2026-03-02T10:00:00Z to 2026-03-02T14:00:00Z; ran the latest, " +
		"2026-03-02T15:00:00Z"
	if got := known.missed.message(known.ran); got != message ||
		known.created.Name != jobName(w.cj.Name, moment("15:00")) {
		t.Errorf("%q, %+v", got, known)
	}

	// It is told, and the cache does not show it yet.
	m.noteStatus(w.cj.UID)
	known = m.of(w.cj)
	if known.missed.message(known.ran) != "" || known.isUnrecorded {
		t.Errorf("it is told twice: %+v", known)
	}
	if p := planOf(w.cj, nil, known, moment("15:59")); !p.run.IsZero() || p.missed != (missed{}) {
		t.Errorf("what is told runs again: %+v", p)
	}

	w.cj.Status = statusOf(w.cj,
		observed{isObserved: true, now: moment("15:59"), plan: planOf(w.cj, nil, known, moment("15:59")), known: known}, nil)
	if known := m.of(w.cj); known != (remembered{}) || len(m.byUID) != 0 {
		t.Errorf("what the cache shows is remembered: %+v", known)
	}
}

// Times that are given up because it is too late are told once, also if that cannot be written at once.
func TestMemoryOfDeadlines(t *testing.T) {
	var m memory
	w := hourly().deadline(60).ran("09:00")
	p, known := w.carryOut(&m, "11:30")
	if !p.missed.late || known.missed.count != 2 || !known.isUnrecorded {
		t.Fatalf("%+v, %+v", p, known)
	}
	p, known = w.carryOut(&m, "11:31")
	if p.missed != (missed{}) || known.missed.count != 2 {
		t.Errorf("they are missed again: %+v, %+v", p, known)
	}
}

// A time that a Job has been seen for is not run again, though the Job be gone before that could be written, and those
// that were given up for it are told once.
func TestMemoryOfJobs(t *testing.T) {
	var m memory
	w := hourly().ran("09:00").active("12:00")
	if p, known := w.carryOut(&m, "12:00:10"); !p.run.IsZero() || !known.isUnrecorded || known.missed.count != 2 {
		t.Fatalf("%+v, %+v", p, known)
	}
	w.jobs = nil
	if p, known := w.carryOut(&m, "12:00:11"); !p.run.IsZero() || !p.ran.Equal(moment("12:00")) ||
		known.missed.count != 2 {
		t.Errorf("%+v, %+v", p, known)
	}
}

// Neither a change of the schedule nor a suspension has to be in the status to be kept to.
func TestMemoryOfCounting(t *testing.T) {
	var m memory
	w := hourly().ran("09:00").becomes("30 * * * *")
	w.carryOut(&m, "09:20")
	if p, _ := w.carryOut(&m, "09:30"); !p.run.Equal(moment("09:30")) || !p.counting.since.Equal(moment("09:20")) {
		t.Errorf("the first time of the new schedule: %+v", p)
	}
	w = w.becomes("0 * * * *") // as the status has it
	if p, _ := w.carryOut(&m, "10:10"); !p.run.IsZero() || !p.counting.since.Equal(moment("10:10")) {
		t.Errorf("a time before the schedule was changed back: %+v", p)
	}

	m = memory{}
	w = hourly().ran("09:00")
	w.cj.Spec.Suspend = ptr.To(true)
	w.carryOut(&m, "09:30")
	w.cj.Spec.Suspend = nil
	if p, _ := w.carryOut(&m, "10:30"); !p.run.IsZero() || !p.counting.since.Equal(moment("10:30")) {
		t.Errorf("a time while it was suspended: %+v", p)
	}
	if p, _ := w.carryOut(&m, "11:00"); !p.run.Equal(moment("11:00")) {
		t.Errorf("the first time since it is not: %+v", p)
	}
}

// At rest, nothing is remembered; nor of what is deleted.
func TestMemoryForgets(t *testing.T) {
	var m memory
	w := hourly().ran("09:00")
	w.cj.Status = statusOf(w.cj, w.pass(moment("09:10"), nil), nil)
	if w.carryOut(&m, "09:30"); len(m.byUID) != 0 {
		t.Errorf("%+v", m.byUID)
	}
	m.noteStatus(w.cj.UID)
	if len(m.byUID) != 0 {
		t.Errorf("%+v", m.byUID)
	}
	w.carryOut(&m, "10:00")
	if m.forget(w.cj.UID); len(m.byUID) != 0 {
		t.Errorf("what is deleted is remembered: %+v", m.byUID)
	}
}

func TestMissedAnd(t *testing.T) {
	some := missed{count: 2, first: moment("09:00"), last: moment("10:00")}
	more := missed{count: 999, first: moment("12:00"), last: moment("13:00"), late: true}
	told := missed{last: moment("08:00")}
	for _, test := range []struct{ a, b, want missed }{
		{some, missed{}, some},
		{missed{}, some, some},
		{told, missed{}, told},
		{told, some, some},
		{some, more, missed{count: countLimit, first: moment("09:00"), last: moment("13:00"), late: true}},
	} {
		if got := test.a.and(test.b); got != test.want {
			t.Errorf("%+v and %+v: %+v", test.a, test.b, got)
		}
	}
}

// A Job that has been made is known of, although neither the status nor the cache says so.
func TestUnlisted(t *testing.T) {
	w := hourly().active("09:00", "10:00")
	w.cj.Status.Active = []corev1.ObjectReference{reference(w.jobs[0])}
	made := remembered{created: reference(w.jobs[1])}
	for _, test := range []struct {
		name  string
		known remembered
		jobs  []*batchv1.Job
		want  int
	}{
		{"the cache shows all", made, w.jobs, 0},
		{"the cache shows none", made, nil, 2},
		{"the cache does not show what was made", made, w.jobs[:1], 1},
		{"the cache does not show what was made and is told", remembered{created: reference(w.jobs[0])}, nil, 1},
		{"the cache does not show what is active, and nothing is remembered", remembered{}, nil, 1},
	} {
		if got := unlisted(w.cj, test.known, test.jobs); len(got) != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	if len(w.cj.Status.Active) != 1 {
		t.Error("the status has been changed")
	}
}

// Each row has what one source knows, of an hourly schedule that counts since 08:30, and a look at it at 12:30.
func TestPastOf(t *testing.T) {
	for _, test := range []struct {
		name                     string
		world                    world
		known                    remembered
		ran, accounted, firstRun string
	}{
		{"nothing has happened", hourly(), remembered{}, "", "08:30", ""},
		{"the status has a run", hourly().ran("10:00"), remembered{}, "10:00", "10:00", ""},
		{"the status has a time that was given up", hourly().ran("10:00").gaveUp("11:00"), remembered{},
			"10:00", "11:00", ""},
		{"a Job is in no status", hourly().ran("10:00").active("11:00", "12:00"), remembered{}, "12:00", "10:00", "11:00"},
		{"a Job is of a time to come", hourly().active("13:00"), remembered{}, "", "08:30", ""},
		{"a Job has a name of its own", hourly().active("12:00").named("c-by-hand"), remembered{}, "", "08:30", ""},
		{"this manager knows a run", hourly().ran("10:00"), remembered{ran: moment("12:00")}, "12:00", "12:00", ""},
		{"this manager knows a time that was given up", hourly().ran("10:00"),
			remembered{missed: missed{last: moment("11:00")}}, "10:00", "11:00", ""},
		{"this manager knows a later start", hourly().ran("10:00"),
			remembered{counting: counting{since: moment("12:15"), schedule: "0 * * * *"}}, "10:00", "12:15", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := pastOf(test.world.cj, test.world.jobs, test.known, time.Time{}, moment("12:30"))
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
