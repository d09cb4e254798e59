package cronjob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/child"
)

// pass returns what a pass at a time observes and does. If err is set, no request of it succeeds. If it creates a Job,
// the plan is computed again.
func (fx fixture) pass(t time.Time, err error) observed {
	seen := observed{isObserved: true, now: t, jobs: slices.Clone(fx.jobs), plan: planOf(fx.cj, fx.jobs, remembered{}, t)}
	var m memory
	seen.known = m.noteDecision(fx.cj, remembered{}, seen.plan)
	if err != nil {
		return seen
	}
	seen.jobs = slices.DeleteFunc(seen.jobs, func(job *batchv1.Job) bool {
		return slices.Contains(seen.plan.prune, job) || slices.Contains(seen.plan.replace, job)
	})
	if seen.plan.run.IsZero() {
		return seen
	}
	created := job(fx.cj, seen.plan.run)
	created.UID, created.CreationTimestamp = "created", metav1.NewTime(t)
	seen.jobs, seen.known = append(seen.jobs, created), m.noteRun(fx.cj.UID, seen.plan, reference(created))
	seen.plan = planOf(fx.cj, seen.jobs, seen.known, t)
	return seen
}

// after returns the state after a pass at a time.
func (fx fixture) after(t string) fixture {
	seen := fx.pass(moment(t), nil)
	cj := fx.cj.DeepCopy()
	cj.Status = statusOf(fx.cj, seen, nil)
	return fixture{cj: cj, jobs: seen.jobs}
}

// wasDegraded sets the condition Degraded in the status, with the time of its transition.
func (fx fixture) wasDegraded(reason, message, since string) fixture {
	fx.cj.Status.Conditions = []metav1.Condition{{Type: tutorialv1.ConditionAvailable},
		{Type: tutorialv1.ConditionProgressing},
		{Type: tutorialv1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(moment(since))}}
	return fx
}

// reasons returns the statuses and reasons of the conditions, in their order.
func reasons(status tutorialv1.CronJobStatus) string {
	var actual []string
	for _, c := range status.Conditions {
		actual = append(actual, fmt.Sprintf("%s/%s", c.Status, c.Reason))
	}
	return strings.Join(actual, " ")
}

func degradedMessage(status tutorialv1.CronJobStatus) string {
	return meta.FindStatusCondition(status.Conditions, tutorialv1.ConditionDegraded).Message
}

func TestConditions(t *testing.T) {
	const none = "nothing is wrong"
	const failure = "Job c-29540700 failed: BackoffLimitExceeded: it has failed too often; " +
		"kubectl -n default logs --selector=batch.kubernetes.io/job-name=c-29540700 shows why"
	const behind = ", which is in the future: no Job is created until then. Correct the clocks of the nodes; " +
		"if they are correct, delete the CronJob and create it again"
	resource := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for _, test := range []struct {
		name    string
		fixture fixture
		at      string
		err     error
		want    string
		message string
	}{
		{"nothing is wrong", hourly().ran("09:00"), "09:30", nil, "True/Scheduled False/Idle False/AsExpected", none},
		{"nothing is wrong, and the schedule was changed", hourly().becomes("30 * * * *"), "09:30", nil,
			"True/Scheduled False/Idle False/AsExpected", none},
		{"a Job is created", hourly(), "09:00", nil, "True/Scheduled True/JobsRunning False/AsExpected", none},
		{"a Job is active", hourly().ran("09:00").active("09:00"), "09:30", nil,
			"True/Scheduled True/JobsRunning False/AsExpected", none},
		{"Forbid waits", hourly().forbid().ran("09:00").active("09:00"), "10:30", nil,
			"True/Scheduled True/WaitingForJob False/AsExpected", none},
		{"it is too late to wait", hourly().forbid().deadline(brief).ran("09:00").active("09:00"), "10:30", nil,
			"True/Scheduled True/JobsRunning False/AsExpected", none},
		{"suspended", hourly().suspended(), "09:30", nil, "False/Suspended False/Idle False/AsExpected", none},
		{"suspended, and a Job is active", hourly().suspended().ran("09:00").active("09:00"), "09:30", nil,
			"False/Suspended True/JobsRunning False/AsExpected", none},
		{"no schedule", on("0 24 * * *"), "09:30", nil, "False/InvalidSchedule False/Blocked True/InvalidSchedule", ""},
		{"no zone", hourly().in("Mars/Olympus"), "09:30", nil,
			"False/UnknownTimeZone False/Blocked True/UnknownTimeZone", ""},
		{"never", on("0 0 30 2 *"), "09:30", nil, "False/NeverFires False/Blocked True/NeverFires", ""},
		{"the name is taken by an object without a controller",
			hourly(), "09:30", &child.NotControlledError{Kind: "Job", Name: "c-29540700"},
			"True/Scheduled False/Blocked True/NameTaken",
			`Job "c-29540700" exists and is not controlled by anything, and the run of 2026-03-02T09:00:00Z ` +
				`needs that name; delete it (kubectl -n default delete job c-29540700)`},
		{"the name is taken, and more went wrong", hourly(), "09:30",
			errors.Join(errors.New("connection reset"),
				&child.NotControlledError{Kind: "Job", Name: "c-29540700",
					Controller: &metav1.OwnerReference{Kind: "Task", Name: "x"}}),
			"True/Scheduled False/Blocked True/NameTaken",
			`Job "c-29540700" exists and is controlled by Task "x", and the run of 2026-03-02T09:00:00Z ` +
				`needs that name; delete it (kubectl -n default delete job c-29540700); connection reset`},
		{"a quota refuses", hourly(), "09:30",
			fmt.Errorf("creating: %w", apierrors.NewForbidden(resource, "c-29540700", errors.New("exceeded quota: q"))),
			"True/Scheduled False/Blocked True/Refused", `creating: jobs.batch "c-29540700" is forbidden: exceeded quota: q`},
		{"the name exists, and reading that Job is refused", hourly(), "09:30",
			fmt.Errorf("creating: %w", errors.Join(apierrors.NewAlreadyExists(resource, "c-29540700"),
				apierrors.NewForbidden(resource, "c-29540700", errors.New("no permission")))),
			"True/Scheduled False/Blocked True/Refused", `creating: jobs.batch "c-29540700" already exists` + "\n" +
				`jobs.batch "c-29540700" is forbidden: no permission`},
		{"a request fails", hourly(), "09:30", errors.New("connection reset"), "True/Scheduled False/Blocked True/Error",
			"connection reset"},
		{"a failed request comes before a failed Job", hourly().ran("09:00").failed("09:00"), "09:30",
			errors.New("connection reset"),
			"True/Scheduled False/Idle True/Error", "connection reset; " + failure},
		{"a run that is due fails", hourly(), "10:01", errors.New("connection reset"),
			"True/Scheduled False/Blocked True/Error", "connection reset"},

		{"the clock is behind the last run", hourly().ran("10:00"), "09:30", nil,
			"False/ClockBehind False/Idle True/ClockBehind",
			"status.lastScheduleTime is 2026-03-02T10:00:00Z" + behind},
		{"the clock is behind by a minute only", hourly().ran("10:00"), "09:59", nil,
			"True/Scheduled False/Idle False/AsExpected", none},
		{"the clock is behind by more than a minute", hourly().ran("10:00"), "09:58:59.9", nil,
			"False/ClockBehind False/Idle True/ClockBehind",
			"status.lastScheduleTime is 2026-03-02T10:00:00Z" + behind},
		{"the clock is behind lastMissedTime", hourly().lastMissed("2027-03-02 10:00"), "09:30", nil,
			"False/ClockBehind False/Idle True/ClockBehind",
			"status.lastMissedTime is 2027-03-02T10:00:00Z" + behind},
		{"the clock is behind scheduledSince", hourly().since("2027-03-02 10:00"), "09:30", nil,
			"False/ClockBehind False/Idle True/ClockBehind",
			"status.scheduledSince is 2027-03-02T10:00:00Z" + behind},
		{"the clock is behind the creation of the CronJob", hourly().new().created("11:00"), "09:30", nil,
			"False/ClockBehind False/Idle True/ClockBehind",
			"status.scheduledSince is 2026-03-02T11:00:00Z" + behind},

		{"the last one failed", hourly().ran("09:00").failed("09:00"), "09:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed", failure},
		{"the last one failed, and another one is active",
			hourly().ran("09:00").failed("09:00").active("09:00").named("by-hand"), "09:30", nil,
			"True/Scheduled True/JobsRunning True/LastRunFailed", failure},
		{"one failed, and one has succeeded since", hourly().ran("10:00").failed("09:00").done("10:00"), "10:30", nil,
			"True/Scheduled False/Idle False/AsExpected", none},
		{"one failed, and one that began before has succeeded since",
			hourly().ran("09:00").failed("09:00").done("08:45").named("by-hand").finishedAt("09:02"), "09:30", nil,
			"True/Scheduled False/Idle False/AsExpected", none},
		{"one succeeded, and one that began before has failed since",
			hourly().ran("09:00").failed("09:00").finishedAt("10:05").done("10:00"), "10:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed", failure},
		{"several failed", hourly().keep(3, 3).ran("09:00").failed("09:00").failed("08:45").named("by-hand"), "09:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed", failure},
		{"several failed in the same second",
			hourly().keep(3, 3).ran("09:00").failed("09:00").failed("09:00").named("a-by-hand"), "09:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed", failure},
		{"the same, in another order", hourly().keep(3, 3).ran("09:00").failed("09:00").named("a-by-hand").failed("09:00"),
			"09:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed", failure},
		{"failed ones are not kept", hourly().keep(3, 0).ran("09:00").failed("09:00"), "09:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed", failure},
		{"a failed one is being deleted", hourly().ran("09:00").failed("09:00").terminating(), "09:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed", failure},

		{"one failed, and was deleted",
			hourly().ran("09:00").lastFailed("09:01").wasDegraded("LastRunFailed", "earlier message", "09:01"),
			"09:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed", "earlier message"},
		{"one failed, and was deleted, long after another problem and a success",
			hourly().ran("12:00").succeeded("11:01").lastFailed("12:01").
				wasDegraded("LastRunFailed", "earlier message", "09:01"), "12:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed", "earlier message"},
		{"one failed, and was deleted, and there was another problem meanwhile",
			hourly().ran("09:00").lastFailed("09:01").wasDegraded("Error", "earlier message", "09:10"), "09:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed",
			"a Job failed at 2026-03-02T09:01:00Z and was deleted; a higher spec.failedJobsHistoryLimit keeps more failed Jobs"},
		{"another one failed after it",
			hourly().ran("10:00").lastFailed("09:01").wasDegraded("LastRunFailed", "earlier message", "09:01").
				failed("10:00").named("b"),
			"10:30", nil,
			"True/Scheduled False/Idle True/LastRunFailed",
			"Job b failed: BackoffLimitExceeded: it has failed too often; kubectl -n default logs " +
				"--selector=batch.kubernetes.io/job-name=b shows why"},
		{"one failed, and was deleted, and one has succeeded",
			hourly().ran("10:00").lastFailed("09:01").wasDegraded("LastRunFailed", "earlier message", "09:01").done("10:00"),
			"10:30", nil,
			"True/Scheduled False/Idle False/AsExpected", none},
		{"one failed, and one has succeeded before that was reported",
			hourly().ran("09:00").wasDegraded("LastRunFailed", failure, "09:07").
				failed("09:00").done("09:01").named("by-hand"), "09:30", nil, "True/Scheduled False/Idle False/AsExpected", none},
		{"another problem is cleared", hourly().ran("09:00").wasDegraded("Error", "earlier message", "09:01"), "09:30", nil,
			"True/Scheduled False/Idle False/AsExpected", none},
		{"a clock that was behind is cleared",
			hourly().ran("10:00").wasDegraded("ClockBehind", "earlier message", "09:01"), "10:30", nil,
			"True/Scheduled False/Idle False/AsExpected", none},
		{"an invalid schedule is cleared", hourly().ran("09:00").wasDegraded("InvalidSchedule", "earlier message", "09:01"),
			"09:30", nil, "True/Scheduled False/Idle False/AsExpected", none},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := statusOf(test.fixture.cj, test.fixture.pass(moment(test.at), test.err), test.err)
			if actual := reasons(got); actual != test.want {
				t.Errorf("\n   is: %s\n want: %s", actual, test.want)
			}
			if actual := degradedMessage(got); test.message != "" && actual != test.message {
				t.Errorf("message: %s\n   want: %s", actual, test.message)
			}
			if g := test.fixture.cj.Generation; got.ObservedGeneration != g || got.Conditions[2].ObservedGeneration != g {
				t.Errorf("it is of generation %d, its conditions of %d", got.ObservedGeneration,
					got.Conditions[2].ObservedGeneration)
			}
		})
	}
}

// The message of Degraded lists every problem, the worst first.
func TestDegradedListsEveryProblem(t *testing.T) {
	const shared = "a batch/v1 CronJob is also named c, and Kubernetes matches Jobs to owners by name alone: " +
		"it may delete this one's Jobs. Rename one of the two"
	fx := hourly().ran("09:00").lastFailed("09:01").wasDegraded("LastRunFailed", "earlier message", "09:01")
	for range 2 { // the second pass reads what the first has recorded
		seen := fx.pass(moment("09:30"), nil)
		seen.isNameShared = true
		fx.cj.Status = statusOf(fx.cj, seen, nil)
		if got := degradedMessage(fx.cj.Status); got != "earlier message; "+shared ||
			reasonOfDegraded(fx) != tutorialv1.ReasonLastRunFailed {
			t.Errorf("%s: %s", reasonOfDegraded(fx), got)
		}
	}
	fx = on("x").lastMissed("2027-01-01 00:00")
	seen := fx.pass(moment("09:30"), nil)
	seen.isNameShared = true
	fx.cj.Status = statusOf(fx.cj, seen, errors.New("connection reset"))
	message, last := degradedMessage(fx.cj.Status), -1
	for _, part := range []string{"connection reset; ", "is not valid", "status.lastMissedTime is", shared} {
		at := strings.Index(message, part)
		if at <= last {
			t.Errorf("%q is not there, or not in its place: %s", part, message)
		}
		last = at
	}
	if reasonOfDegraded(fx) != tutorialv1.ReasonError {
		t.Error(reasonOfDegraded(fx))
	}
}

func TestStatusWhenJobsCannotBeRead(t *testing.T) {
	since := func() fixture {
		fx := hourly().ran("10:00").lastMissed("09:00").succeeded("10:01")
		fx.cj.Status.Active, fx.cj.Status.ActiveJobs = []corev1.ObjectReference{{Name: "x"}}, 1
		fx.cj.Status.ObservedGeneration, fx.cj.Status.NextScheduleTime = fx.cj.Generation, at(moment("11:00"))
		return fx
	}
	for _, test := range []struct {
		name    string
		fixture fixture
		at      string
		next    *metav1.Time
	}{
		{"before the next time", since(), "10:30", at(moment("11:00"))},
		{"at the next time", since(), "11:00", nil},
		{"after a change of the spec", since().becomes("30 * * * *"), "10:15", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			cj := test.fixture.cj
			got := statusOf(cj, observed{now: moment(test.at)}, errors.New("connection reset"))
			if actual, want := reasons(got), "Unknown/NotObserved False/Blocked True/Error"; actual != want {
				t.Errorf("conditions: %s; want %s", actual, want)
			}
			want := *cj.Status.DeepCopy()
			want.ObservedGeneration, want.NextScheduleTime, want.Conditions = cj.Generation, test.next, nil
			got.Conditions = nil
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the status does not have what is still true of the earlier one:\n   is: %+v\n want: %+v", got, want)
			}
		})
	}
}

func TestStatusHasNoNextTimeThatPassedDuringThePass(t *testing.T) {
	fx := hourly().ran("10:00")
	seen := fx.pass(moment("10:59:59"), nil)
	if got := statusOf(fx.cj, seen, nil).NextScheduleTime; !got.Equal(at(moment("11:00"))) {
		t.Errorf("before that time: %s", got)
	}
	seen.now = moment("11:00")
	if got := statusOf(fx.cj, seen, nil).NextScheduleTime; got != nil {
		t.Errorf("at that time: %s", got)
	}
}

func TestMessages(t *testing.T) {
	for _, test := range []struct {
		name    string
		fixture fixture
		at      string
		index   int
		want    string
	}{
		{"scheduled", hourly().ran("09:00"), "09:30", 0, "Jobs are created on schedule"},
		{"suspended", hourly().suspended(), "09:30", 0,
			"spec.suspend is true: no Job is created, and times that pass meanwhile do not run later"},
		{"never", on("0 0 30 2 *"), "09:30", 0,
			`spec.schedule "0 0 30 2 *" never fires: no month in it has such a day; correct the day of month or the month`},
		{"blocked", on("0 0 30 2 *"), "09:30", 1, "see condition Degraded"},
		{"none", hourly().ran("09:00"), "09:30", 1, "no Job is active"},
		{"one", hourly().ran("09:00").active("09:00"), "09:30", 1, "1 Job is active"},
		{"two", hourly().ran("10:00").active("09:00", "10:00"), "10:30", 1, "2 Jobs are active"},
		{"waits", hourly().forbid().ran("09:00").active("09:00"), "12:30", 1,
			"a run has been due since 2026-03-02T10:00:00Z and waits until no Job is active (spec.concurrencyPolicy is Forbid)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := statusOf(test.fixture.cj, test.fixture.pass(moment(test.at), nil), nil)
			if actual := got.Conditions[test.index].Message; actual != test.want {
				t.Errorf("\n   is: %s\n want: %s", actual, test.want)
			}
		})
	}
}

func TestMissedMessage(t *testing.T) {
	const late = ": spec.startingDeadlineSeconds has passed; a longer deadline lets the latest of them start later"
	for _, test := range []struct {
		name    string
		fixture fixture
		at      string
		want    string
	}{
		{"none", hourly().ran("09:00"), "10:00", ""},
		{"none, as it waits", hourly().forbid().ran("09:00").active("09:00"), "12:00", ""},
		{"none, as it is suspended", hourly().suspended().ran("09:00"), "12:00", ""},
		{"one", hourly().ran("09:00"), "11:00",
			"missed the run of 2026-03-02T10:00:00Z; ran the latest, 2026-03-02T11:00:00Z"},
		{"two", hourly().ran("09:00"), "12:00",
			"missed 2 runs, from 2026-03-02T10:00:00Z to 2026-03-02T11:00:00Z; ran the latest, 2026-03-02T12:00:00Z"},
		{"one, too late", hourly().deadline(brief).ran("09:00"), "10:01", "missed the run of 2026-03-02T10:00:00Z" + late},
		{"two, too late", hourly().deadline(brief).ran("09:00"), "11:01",
			"missed 2 runs, from 2026-03-02T10:00:00Z to 2026-03-02T11:00:00Z" + late},
		{"as many as are counted but one", on("* * * * *").ran("09:00"), "2026-03-03 01:40",
			"missed 999 runs, from 2026-03-02T09:01:00Z to 2026-03-03T01:39:00Z; ran the latest, 2026-03-03T01:40:00Z"},
		{"as many as are counted", on("* * * * *").ran("09:00"), "2026-03-03 01:41",
			"missed 1000 runs or more, from 2026-03-02T09:01:00Z to 2026-03-03T01:40:00Z; ran the latest, 2026-03-03T01:41:00Z"},
		{"more than are counted, too late", on("* * * * *").deadline(brief).ran("09:00"), "2026-04-03 01:41:30",
			"missed 1000 runs or more, from 2026-03-02T09:01:00Z to 2026-04-03T01:41:00Z" + late},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := planOf(test.fixture.cj, test.fixture.jobs, remembered{}, moment(test.at))
			if got := p.missed.message(p.run); got != test.want {
				t.Errorf("\n   is: %s\n want: %s", got, test.want)
			}
		})
	}
}

func TestTimesOfStatus(t *testing.T) {
	for _, test := range []struct {
		name    string
		fixture fixture
		at      string
		err     error
		want    string // lastScheduleTime, lastMissedTime, lastSuccessfulTime, nextScheduleTime, scheduledSince
	}{
		{"nothing has happened yet", hourly().new(), "08:40", nil, "- - - 09:00 08:30"},
		{"a Job is created", hourly(), "09:01", nil, "09:00 - - 10:00 08:30"},
		{"a Job cannot be created", hourly(), "09:01", errors.New("no"), "- - - 10:00 08:30"},
		{"a Job cannot be created, and an unrecorded one exists", hourly().active("09:00"), "10:01",
			errors.New("no"), "09:00 - - 11:00 08:30"},
		{"an unrecorded Job exists", hourly().active("09:00"), "09:30", nil, "09:00 - - 10:00 08:30"},
		{"the last run only moves forward", hourly().ran("11:00").done("09:00"), "10:30", nil, "11:00 - 09:01 12:00 08:30"},
		{"a Job named for a future time is not a run yet", hourly().ran("09:00").active("11:00"), "09:30", nil,
			"09:00 - - 10:00 08:30"},

		{"one is missed, and the last runs", hourly().ran("09:00"), "11:01", nil, "11:00 10:00 - 12:00 08:30"},
		{"several are missed, and the last runs", hourly().ran("09:00"), "13:01", nil, "13:00 12:00 - 14:00 08:30"},
		{"the last of them cannot run: nothing is missed yet", hourly().ran("09:00"), "13:01", errors.New("no"),
			"09:00 - - 14:00 08:30"},
		{"it is too late", hourly().deadline(brief).ran("09:00"), "11:01", nil, "09:00 11:00 - 12:00 08:30"},
		{"it is too late, whatever else fails", hourly().deadline(brief).ran("09:00"), "11:01", errors.New("no"),
			"09:00 11:00 - 12:00 08:30"},
		{"the last missed time only moves forward", hourly().ran("09:00").lastMissed("12:00"), "10:01", nil,
			"09:00 12:00 - 13:00 08:30"},
		{"Forbid misses no time while it waits", hourly().forbid().ran("09:00").active("09:00"), "12:01", nil,
			"09:00 - - 13:00 08:30"},

		{"one succeeds", hourly().ran("09:00").done("09:00"), "09:30", nil, "09:00 - 09:01 10:00 08:30"},
		{"the last to succeed is not the last to begin",
			hourly().ran("10:00").done("09:00").finishedAt("10:20").done("10:00"),
			"10:30", nil, "10:00 - 10:20 11:00 08:30"},
		{"one succeeds that is not kept", hourly().keep(0, 0).ran("09:00").done("09:00"), "09:30", nil,
			"09:00 - 09:01 10:00 08:30"},
		{"one succeeds of which ten are kept", hourly().keep(10, 10).ran("09:00").done("09:00"), "09:30", nil,
			"09:00 - 09:01 10:00 08:30"},
		{"one succeeds while it is suspended", hourly().suspended().ran("09:00").done("09:00"), "09:30", nil,
			"09:00 - 09:01 - -"},
		{"one succeeds while a request fails", hourly().ran("09:00").done("09:00"), "09:30", errors.New("no"),
			"09:00 - 09:01 10:00 08:30"},
		{"the last success only moves forward", hourly().ran("10:00").succeeded("10:01").done("09:00"), "10:30", nil,
			"10:00 - 10:01 11:00 08:30"},
		{"it stays when the Job is deleted", hourly().ran("10:00").succeeded("10:01"), "10:30", nil,
			"10:00 - 10:01 11:00 08:30"},
		{"a failure is no success", hourly().ran("09:00").failed("09:00"), "09:30", nil, "09:00 - - 10:00 08:30"},

		{"nothing is due while it is suspended", hourly().suspended().ran("09:00"), "09:30", nil, "09:00 - - - -"},
		{"it is resumed", hourly().resumes().ran("09:00"), "11:30", nil, "09:00 - - 12:00 11:30"},
		{"the schedule changes", hourly().ran("09:00").becomes("45 * * * *"), "09:30", nil, "09:00 - - 09:45 09:30"},
		{"the schedule is invalid", hourly().ran("09:00").becomes("x"), "09:30", nil, "09:00 - - - 09:30"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := statusOf(test.fixture.cj, test.fixture.pass(moment(test.at), test.err), test.err)
			var times []string
			for _, t := range []*metav1.Time{got.LastScheduleTime, got.LastMissedTime, got.LastSuccessfulTime,
				got.NextScheduleTime, got.ScheduledSince} {
				if t == nil {
					times = append(times, "-")
				} else {
					times = append(times, formatTime(t.Time))
				}
			}
			if is := strings.Join(times, " "); is != test.want {
				t.Errorf("\n   is: %s\n want: %s", is, test.want)
			}
			if zone := test.fixture.cj.Spec.TimeZone; got.ObservedSchedule != test.fixture.cj.Spec.Schedule ||
				got.ObservedTimeZone != "" || zone != nil {
				t.Errorf("it is of the schedule %q in %q", got.ObservedSchedule, got.ObservedTimeZone)
			}
		})
	}
}

func TestStatusRecordsScheduleAndZone(t *testing.T) {
	got := statusOf(hourly().moves("Asia/Tokyo").cj, hourly().moves("Asia/Tokyo").pass(moment("09:30"), nil), nil)
	if got.ObservedTimeZone != "Asia/Tokyo" || got.ObservedSchedule != "0 * * * *" {
		t.Errorf("it is of the schedule %q in %q", got.ObservedSchedule, got.ObservedTimeZone)
	}
}

func TestActive(t *testing.T) {
	names := func(references []corev1.ObjectReference) string {
		var all []string
		for _, r := range references {
			all = append(all, r.Name)
		}
		return strings.Join(all, " ")
	}
	t.Run("lists unfinished Jobs, also those being deleted, and the created one", func(t *testing.T) {
		fx := hourly().ran("11:00").done("08:45").failed("08:50").active("11:00").active("10:00").terminating()
		got := statusOf(fx.cj, fx.pass(moment("12:00"), nil), nil)
		if is, want := names(got.Active), "c-29540760 c-29540820 c-29540880"; is != want || got.ActiveJobs != 3 {
			t.Errorf("%d: %s; want %s", got.ActiveJobs, is, want)
		}
		if want := (corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "default", Name: "c-29540760",
			UID: "uid of 10:00"}); got.Active[0] != want {
			t.Errorf("%+v; want %+v", got.Active[0], want)
		}
	})
	t.Run("does not list a replaced Job", func(t *testing.T) {
		fx := hourly().replace().ran("11:00").active("11:00")
		if got := statusOf(fx.cj, fx.pass(moment("12:00"), nil), nil); names(got.Active) != "c-29540880" {
			t.Errorf("%+v", got.Active)
		}
	})
	t.Run("does not list a Job that does not exist any more", func(t *testing.T) {
		fx := hourly().ran("09:00")
		fx.cj.Status.Active, fx.cj.Status.ActiveJobs = []corev1.ObjectReference{{Name: "x"}}, 1
		if got := statusOf(fx.cj, fx.pass(moment("09:30"), nil), nil); len(got.Active) != 0 || got.ActiveJobs != 0 {
			t.Errorf("%+v", got.Active)
		}
	})
	t.Run("lists the latest hundred, by name", func(t *testing.T) {
		fx, first := on("@every 90s"), moment("09:00")
		for i := range 150 {
			// the names of half of them end in minutes, of half in seconds
			fx = fx.active(formatTime(first.Add(time.Duration(150-i) * 90 * time.Second)))
		}
		got := statusOf(fx.cj, fx.pass(first.Add(151*90*time.Second-1), nil), nil)
		if len(got.Active) != 100 || got.ActiveJobs != 150 {
			t.Fatalf("%d are listed of %d", len(got.Active), got.ActiveJobs)
		}
		if !slices.IsSortedFunc(got.Active, func(a, b corev1.ObjectReference) int {
			return strings.Compare(a.Name, b.Name)
		}) {
			t.Error("they are not sorted by name")
		}
		for _, reference := range got.Active {
			if tick, ok := scheduledTime("c", reference.Name); !ok || !tick.After(first.Add(50*90*time.Second)) {
				t.Errorf("%s is listed, of %s, and later ones are not", reference.Name, tick)
			}
		}
	})
}

// A failure is reported until a Job succeeds, even if its Job is deleted and more passes follow.
func TestFailureLastsUntilSuccess(t *testing.T) {
	fx := hourly().keep(0, 0).after("09:00")
	finish(fx.jobs[0], batchv1.JobFailed, moment("09:20"))
	for _, now := range []string{"09:20", "09:21", "09:22", "10:00"} {
		if fx = fx.after(now); reasonOfDegraded(fx) != tutorialv1.ReasonLastRunFailed {
			t.Fatalf("at %s: %s", now, reasons(fx.cj.Status))
		}
	}
	if len(fx.jobs) != 1 {
		t.Fatalf("there are %d Jobs", len(fx.jobs))
	}
	finish(fx.jobs[0], batchv1.JobComplete, moment("10:10"))
	if fx = fx.after("10:10"); reasonOfDegraded(fx) != tutorialv1.ReasonAsExpected || len(fx.jobs) != 1 {
		t.Errorf("%s, and %d Jobs", reasons(fx.cj.Status), len(fx.jobs))
	}
	if fx = fx.after("10:11"); reasonOfDegraded(fx) != tutorialv1.ReasonAsExpected || len(fx.jobs) != 0 {
		t.Errorf("%s, and %d Jobs", reasons(fx.cj.Status), len(fx.jobs))
	}
}

func reasonOfDegraded(fx fixture) string {
	return meta.FindStatusCondition(fx.cj.Status.Conditions, tutorialv1.ConditionDegraded).Reason
}

// A pass that observes no change writes nothing.
func TestStatusIsTheSameAgain(t *testing.T) {
	for _, fx := range []fixture{hourly(), hourly().suspended(), on("x"), hourly().ran("09:00").failed("08:45", "09:00"),
		hourly().forbid().active("09:00"),
		hourly().deadline(brief), hourly().lastMissed("2027-01-01 00:00")} {
		once := fx.after("10:20")
		if twice := once.after("10:20"); fmt.Sprint(twice.cj.Status) != fmt.Sprint(once.cj.Status) {
			t.Errorf("\n once: %+v\ntwice: %+v", once.cj.Status, twice.cj.Status)
		}
	}
}

// A Job that the cache does not show may be deleted before any watch shows it: the next pass checks that.
func TestWakeWhileTheCacheIsBehind(t *testing.T) {
	now := moment("09:30")
	for _, test := range []struct {
		name     string
		observed observed
		want     time.Time
	}{
		{"settled", observed{now: now, plan: plan{wake: moment("10:00")}}, moment("10:00")},
		{"never", observed{now: now}, time.Time{}},
		{"ahead of the cache", observed{now: now, isAhead: true, plan: plan{wake: moment("10:00")}}, moment("09:30:01")},
		{"ahead of the cache, and nothing is due", observed{now: now, isAhead: true}, moment("09:30:01")},
		{"ahead of the cache, and due at once", observed{now: now, isAhead: true, plan: plan{wake: moment("09:30:00.5")}},
			moment("09:30:00.5")},
	} {
		if got := test.observed.wake(); !got.Equal(test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
