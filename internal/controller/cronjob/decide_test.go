package cronjob

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

const (
	brief = 10           // a deadline of seconds
	long  = 10 * 60 * 60 // one of hours
)

// The plan in each state of the Jobs, under each policy.
func TestDecideByPolicy(t *testing.T) {
	testDecide(t, []row{
		{"never ran, not due, Allow", hourly().allow(), "08:59", "next 09:00"},
		{"never ran, not due, Forbid", hourly().forbid(), "08:59", "next 09:00"},
		{"never ran, not due, Replace", hourly().replace(), "08:59", "next 09:00"},
		{"never ran, a moment before it is due", hourly(), "08:59:59.999", "next 09:00"},
		{"never ran, due to the second", hourly(), "09:00", "run 09:00, next 10:00"},
		{"never ran, due, no policy at all", hourly(), "09:01", "run 09:00, next 10:00"},
		{"never ran, due, Allow", hourly().allow(), "09:01", "run 09:00, next 10:00"},
		{"never ran, due, Forbid", hourly().forbid(), "09:01", "run 09:00, next 10:00"},
		{"never ran, due, Replace", hourly().replace(), "09:01", "run 09:00, next 10:00"},
		{"never ran, due, in the first pass", hourly().new(), "09:01", "since 08:30, run 09:00, next 10:00"},

		{"done, not due, Allow", hourly().allow().ran("09:00").done("09:00"), "09:59", "next 10:00"},
		{"done, not due, Forbid", hourly().forbid().ran("09:00").done("09:00"), "09:59", "next 10:00"},
		{"done, not due, Replace", hourly().replace().ran("09:00").done("09:00"), "09:59", "next 10:00"},
		{"done, due, Allow", hourly().allow().ran("09:00").done("09:00"), "10:01", "run 10:00, next 11:00"},
		{"done, due, Forbid", hourly().forbid().ran("09:00").done("09:00"), "10:01", "run 10:00, next 11:00"},
		{"done, due, Replace", hourly().replace().ran("09:00").done("09:00"), "10:01", "run 10:00, next 11:00"},
		{"failed, due, Forbid", hourly().forbid().ran("09:00").failed("09:00"), "10:01", "run 10:00, next 11:00"},
		{"failed, due, Replace", hourly().replace().ran("09:00").failed("09:00"), "10:01", "run 10:00, next 11:00"},
		{"its Job was deleted, not due", hourly().ran("09:00"), "09:59", "next 10:00"},
		{"its Job was deleted, due", hourly().ran("09:00"), "10:01", "run 10:00, next 11:00"},

		{"active, not due, Allow", hourly().allow().ran("09:00").active("09:00"), "09:59", "next 10:00"},
		{"active, not due, Forbid", hourly().forbid().ran("09:00").active("09:00"), "09:59", "next 10:00"},
		{"active, not due, Replace", hourly().replace().ran("09:00").active("09:00"), "09:59", "next 10:00"},
		{"active, due, Allow", hourly().allow().ran("09:00").active("09:00"), "10:01", "run 10:00, next 11:00"},
		{"active, due, no policy at all", hourly().ran("09:00").active("09:00"), "10:01", "run 10:00, next 11:00"},
		{"active, due, Forbid", hourly().forbid().ran("09:00").active("09:00"), "10:01", "waits 10:00, next 11:00"},
		{"active, due, Replace", hourly().replace().ran("09:00").active("09:00"), "10:01",
			"run 10:00, replace 09:00, next 11:00"},
		{"several are active, Allow", hourly().allow().ran("10:00").active("09:00", "10:00"), "11:01",
			"run 11:00, next 12:00"},
		{"several are active, Forbid", hourly().forbid().ran("10:00").active("09:00", "10:00"), "11:01",
			"waits 11:00, next 12:00"},
		{"several are active, Replace", hourly().replace().ran("10:00").active("09:00", "10:00"), "11:01",
			"run 11:00, replace 09:00 10:00, next 12:00"},
		{"one is active and one is done, Replace", hourly().replace().ran("10:00").done("09:00").active("10:00"), "11:01",
			"run 11:00, replace 10:00, next 12:00"},

		{"Forbid has waited for more than one time", hourly().forbid().ran("09:00").active("09:00"), "12:01",
			"waits 10:00, next 13:00"},
		{"Forbid no longer waits", hourly().forbid().ran("09:00").done("09:00").finishedAt("10:05"), "10:05",
			"run 10:00, next 11:00"},
		{"Forbid no longer waits, of several the last runs", hourly().forbid().ran("09:00").done("09:00").finishedAt("12:05"),
			"12:05",
			"run 12:00, missed 2 from 10:00 to 11:00, next 13:00"},
		{"Forbid becomes Allow while it waits", hourly().allow().ran("09:00").active("09:00"), "10:30",
			"run 10:00, next 11:00"},
		{"Forbid becomes Replace while it waits", hourly().replace().ran("09:00").active("09:00"), "10:30",
			"run 10:00, replace 09:00, next 11:00"},

		{"a Job created by hand is active, Forbid", hourly().forbid().ran("09:00").active("09:30").named("by-hand"), "10:01",
			"waits 10:00, next 11:00"},
		{"a Job created by hand is active, Replace",
			hourly().replace().ran("09:00").active("09:30").named("by-hand"), "10:01",
			"run 10:00, replace by-hand, next 11:00"},
	})
}

func TestDecideJobsBeingDeleted(t *testing.T) {
	testDecide(t, []row{
		{"the pods of a Job that is being deleted may run on, Forbid",
			hourly().forbid().ran("09:00").active("09:00").terminating(), "10:01", "waits 10:00, next 11:00"},
		{"one that is being deleted is not deleted again, Replace",
			hourly().replace().ran("09:00").active("09:00").terminating(),
			"10:01", "run 10:00, next 11:00"},
		{"one of two is being deleted, Replace",
			hourly().replace().ran("10:00").active("10:00").active("09:00").terminating(),
			"11:01",
			"run 11:00, replace 10:00, next 12:00"},
		{"one that is being deleted, Allow", hourly().allow().ran("09:00").active("09:00").terminating(), "10:01",
			"run 10:00, next 11:00"},
		{"a finished one that is being deleted is not in the way", hourly().forbid().ran("09:00").done("09:00").terminating(),
			"10:01", "run 10:00, next 11:00"},
		{"a finished one that is being deleted is not deleted again",
			hourly().keep(0, 0).ran("10:00").succeeded("10:01").done("09:00", "10:00").terminating(), "10:30", "next 11:00"},
		{"nor does it count for the limit",
			hourly().keep(1, 1).ran("11:00").succeeded("11:01").done("09:00").done("10:00", "11:00").terminating(), "11:30",
			"next 12:00"},
		{"the time of one that is being deleted has been run", hourly().active("09:00").terminating(), "09:30",
			"ran 09:00, next 10:00"},
	})
}

func TestDecideByDeadline(t *testing.T) {
	testDecide(t, []row{
		{"never ran, within the deadline", hourly().deadline(long), "09:01", "run 09:00, next 10:00"},
		{"never ran, past the deadline", hourly().deadline(brief), "09:01", "too late: missed 09:00, next 10:00"},
		{"at the deadline", hourly().deadline(60), "09:01", "run 09:00, next 10:00"},
		{"within the second of the deadline", hourly().deadline(60), "09:01:00.999", "run 09:00, next 10:00"},
		{"a second past the deadline", hourly().deadline(60), "09:01:01", "too late: missed 09:00, next 10:00"},
		{"a deadline of no seconds, on time", hourly().deadline(0), "09:00", "run 09:00, next 10:00"},
		{"a deadline of no seconds, in the same second", hourly().deadline(0), "09:00:00.9", "run 09:00, next 10:00"},
		{"a deadline of no seconds, a second late", hourly().deadline(0), "09:00:01", "too late: missed 09:00, next 10:00"},
		{"a deadline of one second, on time", hourly().deadline(1), "09:00:00.3", "run 09:00, next 10:00"},
		{"a deadline before which there is nothing", hourly().deadline(long), "08:59", "next 09:00"},
		{"a deadline of a hundred years", hourly().deadline(3155760000).ran("09:00"), "2027-03-02 10:01",
			"run 2027-03-02 10:00, missed 1000 from 10:00 to 2027-03-02 09:00, next 2027-03-02 11:00"},
		{"a deadline longer than any duration", hourly().deadline(1<<63 - 1), "09:01", "run 09:00, next 10:00"},
		{"suspended, past the deadline", hourly().deadline(brief).suspended(), "09:01", "suspended"},

		{"done, within the deadline", hourly().deadline(long).ran("09:00").done("09:00"), "10:01", "run 10:00, next 11:00"},
		{"done, past the deadline, Allow", hourly().allow().deadline(brief).ran("09:00").done("09:00"), "10:01",
			"too late: missed 10:00, next 11:00"},
		{"done, past the deadline, Forbid", hourly().forbid().deadline(brief).ran("09:00").done("09:00"), "10:01",
			"too late: missed 10:00, next 11:00"},
		{"done, past the deadline, Replace", hourly().replace().deadline(brief).ran("09:00").done("09:00"), "10:01",
			"too late: missed 10:00, next 11:00"},

		{"active, within the deadline, Allow", hourly().allow().deadline(long).ran("09:00").active("09:00"), "10:01",
			"run 10:00, next 11:00"},
		{"active, within the deadline, Replace", hourly().replace().deadline(long).ran("09:00").active("09:00"), "10:01",
			"run 10:00, replace 09:00, next 11:00"},
		{"active, past the deadline, Allow", hourly().allow().deadline(brief).ran("09:00").active("09:00"), "10:01",
			"too late: missed 10:00, next 11:00"},
		{"active, past the deadline, Forbid: it no longer waits",
			hourly().forbid().deadline(brief).ran("09:00").active("09:00"), "10:01",
			"too late: missed 10:00, next 11:00"},
		{"active, within the deadline, Forbid: it waits until then and no longer",
			hourly().forbid().deadline(long).ran("09:00").active("09:00"), "10:01",
			"waits 10:00, next 11:00"},
		{"active, Forbid: when the deadline passes before the next time, it is reported then",
			hourly().forbid().deadline(120).ran("09:00").active("09:00"), "10:01",
			"waits 10:00, next 11:00, wake 10:02:01"},
		{"active, Forbid: the last moment before that", hourly().forbid().deadline(120).ran("09:00").active("09:00"),
			"10:02:00.9",
			"waits 10:00, next 11:00, wake 10:02:01"},
		{"active, Forbid: and that is then", hourly().forbid().deadline(120).ran("09:00").active("09:00"), "10:02:01",
			"too late: missed 10:00, next 11:00"},
		{"active, Forbid: the deadline of the last of several counts",
			hourly().forbid().deadline(120).ran("09:00").active("09:00"), "12:01",
			"waits 10:00, next 13:00, wake 12:02:01"},
		{"active, Forbid: a deadline longer than any duration",
			hourly().forbid().deadline(1<<63 - 1).ran("09:00").active("09:00"), "10:01", "waits 10:00, next 11:00"},
		{"active, past the deadline, Replace: nothing is replaced",
			hourly().replace().deadline(brief).ran("09:00").active("09:00"), "10:01",
			"too late: missed 10:00, next 11:00"},

		{"a missed time is not missed again",
			hourly().deadline(brief).ran("09:00").lastMissed("10:00"), "10:05", "next 11:00"},
		{"a missed time does not run when the deadline is removed", hourly().ran("09:00").lastMissed("10:00"), "10:05",
			"next 11:00"},
		{"a time after a missed one runs", hourly().deadline(brief).ran("09:00").lastMissed("10:00"), "11:00",
			"run 11:00, next 12:00"},
		{"missed times are counted from the last missed one", hourly().deadline(brief).ran("09:00").lastMissed("10:00"),
			"12:05",
			"too late: missed 2 from 11:00 to 12:00, next 13:00"},
	})
}

func TestDecideLongOverdue(t *testing.T) {
	const week = "2026-03-09 10:01"
	const next = ", next 2026-03-09 11:00"
	const rest = "missed 168 from 10:00 to 2026-03-09 09:00"
	testDecide(t, []row{
		{"no deadline, Allow", hourly().allow().ran("09:00").done("09:00"), week, "run 2026-03-09 10:00, " + rest + next},
		{"no deadline, Forbid", hourly().forbid().ran("09:00").done("09:00"), week, "run 2026-03-09 10:00, " + rest + next},
		{"no deadline, Replace", hourly().replace().ran("09:00").done("09:00"), week, "run 2026-03-09 10:00, " + rest + next},
		{"within the deadline, Allow", hourly().allow().deadline(10 * 24 * 3600).ran("09:00").done("09:00"), week,
			"run 2026-03-09 10:00, " + rest + next},
		{"within the deadline, Forbid", hourly().forbid().deadline(10 * 24 * 3600).ran("09:00").done("09:00"), week,
			"run 2026-03-09 10:00, " + rest + next},
		{"within the deadline, Replace", hourly().replace().deadline(10 * 24 * 3600).ran("09:00").done("09:00"), week,
			"run 2026-03-09 10:00, " + rest + next},
		{"past the first ones' deadline, within the last one's", hourly().deadline(2 * 3600).ran("09:00").done("09:00"), week,
			"run 2026-03-09 10:00, " + rest + next},
		{"past every deadline, Allow", hourly().allow().deadline(brief).ran("09:00").done("09:00"), week,
			"too late: missed 169 from 10:00 to 2026-03-09 10:00" + next},
		{"past every deadline, Forbid", hourly().forbid().deadline(brief).ran("09:00").done("09:00"), week,
			"too late: missed 169 from 10:00 to 2026-03-09 10:00" + next},
		{"past every deadline, Replace", hourly().replace().deadline(brief).ran("09:00").done("09:00"), week,
			"too late: missed 169 from 10:00 to 2026-03-09 10:00" + next},
		{"never ran", hourly(), week, "run 2026-03-09 10:00, missed 169 from 09:00 to 2026-03-09 09:00" + next},
		{"one was missed", hourly().ran("09:00"), "11:30", "run 11:00, missed 10:00, next 12:00"},
		{"active all the time, Forbid", hourly().forbid().ran("09:00").active("09:00"), week, "waits 10:00" + next},
		{"active all the time, Replace", hourly().replace().ran("09:00").active("09:00"), week,
			"run 2026-03-09 10:00, " + rest + ", replace 09:00" + next},
		{"exactly 999 were missed", on("* * * * *").ran("09:00"), "2026-03-03 01:40",
			"run 2026-03-03 01:40, missed 999 from 09:01 to 2026-03-03 01:39, next 2026-03-03 01:41"},
		{"more than are counted", on("* * * * *").ran("09:00"), "2026-03-20 01:40:20",
			"run 2026-03-20 01:40, missed 1000 from 09:01 to 2026-03-20 01:39, next 2026-03-20 01:41"},
		{"more than are counted, past the deadline", on("* * * * *").deadline(brief).ran("09:00"), "2026-03-20 01:40:20",
			"too late: missed 1000 from 09:01 to 2026-03-20 01:40, next 2026-03-20 01:41"},
		{"years of seconds", on("@every 1s").ran("09:00"), "2036-03-02 09:00",
			"run 2036-03-02 09:00, missed 1000 from 09:00:01 to 2036-03-02 08:59:59, next 2036-03-02 09:00:01"},
	})
}

func TestDecideInvalidOrSuspended(t *testing.T) {
	testDecide(t, []row{
		{"an invalid schedule, Allow", on("61 * * * *").allow(), "09:01", "InvalidSchedule"},
		{"an invalid schedule, Forbid", on("61 * * * *").forbid(), "09:01", "InvalidSchedule"},
		{"an invalid schedule, Replace", on("61 * * * *").replace().active("09:00"), "09:01",
			"InvalidSchedule, ran 09:00"},
		{"a range that ends before it begins", on("0 17-8 * * *"), "09:01", "InvalidSchedule"},
		{"an unknown zone", hourly().in("Mars/Olympus"), "09:01", "UnknownTimeZone"},
		{"the time zone of the machine", hourly().in("Local"), "09:01", "UnknownTimeZone"},
		{"a zone within the schedule", on("TZ=Europe/Berlin 0 * * * *"), "09:01", "InvalidSchedule"},
		{"a zone within the schedule and one beside it", on("CRON_TZ=UTC 0 * * * *").in("Europe/Berlin"), "09:01",
			"InvalidSchedule"},
		{"a day that does not exist", on("0 0 31 2 *"), "09:01", "NeverFires"},
		{"the history is pruned all the same", on("0 0 31 2 *").keep(0, 0).ran("09:00").succeeded("09:01").done("09:00"),
			"10:00", "NeverFires, prune 09:00"},
		{"suspended, and the schedule is invalid", on("61 * * * *").suspended(), "09:01", "suspended"},

		{"suspended, never ran", hourly().suspended(), "09:01", "suspended"},
		{"suspended, done, not due", hourly().suspended().ran("09:00").done("09:00"), "09:59", "suspended"},
		{"suspended, done, due", hourly().suspended().ran("09:00").done("09:00"), "10:01", "suspended"},
		{"suspended, active, due", hourly().suspended().ran("09:00").active("09:00"), "10:01", "suspended"},
		{"suspended, active, due, Replace", hourly().replace().suspended().ran("09:00").active("09:00"), "10:01",
			"suspended"},
		{"suspended in the first pass", hourly().new().suspended(), "10:01", "suspended"},
		{"suspended, the history is pruned all the same",
			hourly().suspended().keep(0, 0).ran("09:00").succeeded("09:01").done("09:00"), "10:01",
			"suspended, prune 09:00"},
		{"suspended, the history is pruned later, once the Job is old enough",
			hourly().suspended().keep(0, 0).ran("10:00").succeeded("10:00:05").done("10:00").createdAt("10:00:05"), "10:00:30",
			"suspended, wake 10:01:05"},
		{"suspended, an unrecorded Job has run", hourly().suspended().active("09:00"), "09:10",
			"suspended, ran 09:00"},
	})
}

func TestDecideCounting(t *testing.T) {
	testDecide(t, []row{
		{"first pass, not changed since creation", hourly().new(), "08:59", "since 08:30, next 09:00"},
		{"first pass long after creation", hourly().new(), "11:30",
			"since 08:30, run 11:00, missed 2 from 09:00 to 10:00, next 12:00"},
		{"created at a scheduled time, which does not count", hourly().new().created("09:00"), "09:00:01",
			"since 09:00, next 10:00"},
		{"changed before the first pass", hourly().edited(), "11:30", "since 11:30, next 12:00"},
		{"changed before the first pass, in the middle of a second", hourly().edited(), "11:59:59.7",
			"since 11:59:59, next 12:00"},
		{"changed after the first pass, but not the schedule",
			func() fixture { fx := hourly().allow(); fx.cj.Generation = 7; return fx }(), "09:01", "run 09:00, next 10:00"},

		{"the schedule changes, and the new one has past times", hourly().ran("11:00").becomes("15 * * * *"), "11:30",
			"since 11:30, next 12:15"},
		{"the schedule changes long after the last run",
			on("0 0 1 * *").since("2025-12-15 12:00").ran("2026-03-01 00:00").becomes("*/10 * * * *"), "11:35",
			"since 11:35, next 11:40"},
		{"the schedule changes when the old one is due", hourly().ran("10:00").becomes("30 * * * *"), "11:00",
			"since 11:00, next 11:30"},
		{"the schedule changes when the new one is due", hourly().ran("10:00").becomes("30 * * * *"), "10:30",
			"since 10:30, next 11:30"},
		{"the schedule changes while Forbid waits", hourly().forbid().ran("09:00").active("09:00").becomes("30 * * * *"),
			"10:10", "since 10:10, next 10:30"},
		{"the status has the change of the schedule", hourly().since("11:30").ran("11:00"), "12:00",
			"run 12:00, next 13:00"},
		{"the schedule was corrected", on("0 * * * *").becomes("30 * * * *").since("07:00"), "10:31",
			"since 10:31, next 11:30"},
		{"the zone changes", on("0 12 * * *").in("Europe/Berlin").ran("2026-03-01 11:00").moves("Asia/Tokyo"), "10:00",
			"since 10:00, next 2026-03-03 03:00"},
		{"a zone is set for the first time", on("0 12 * * *").ran("2026-03-01 12:00").moves("Asia/Tokyo"), "10:00",
			"since 10:00, next 2026-03-03 03:00"},
		{"both change", on("0 12 * * *").becomes("0 13 * * *").moves("Asia/Tokyo"), "10:00",
			"since 10:00, next 2026-03-03 04:00"},
		{"an empty zone is UTC", func() fixture { fx := hourly(); fx.cj.Spec.TimeZone = new(string); return fx }(), "09:01",
			"run 09:00, next 10:00"},

		{"resumed, long after the last run", hourly().resumes().ran("09:00").done("09:00"), "12:30",
			"since 12:30, next 13:00"},
		{"resumed at a scheduled time", hourly().resumes().ran("09:00"), "12:00", "since 12:00, next 13:00"},
		{"resumed a moment before", hourly().resumes().ran("09:00"), "11:59:59.9", "since 11:59:59, next 12:00"},
		{"the status has the resumption", hourly().since("12:30").ran("09:00"), "13:00", "run 13:00, next 14:00"},
		{"resumed with another schedule", hourly().resumes().becomes("30 * * * *"), "12:40", "since 12:40, next 13:30"},
		{"resumed before the first pass", hourly().edited(), "12:30", "since 12:30, next 13:00"},

		{"a Job exists for a time before the schedule changed", hourly().since("11:30").active("11:00"),
			"11:40", "ran 11:00, next 12:00"},
	})
}

func TestDecideInZones(t *testing.T) {
	// In 2026, clocks go forward in Berlin on 29 March at 01:00 UTC from 02:00 to 03:00, and back on 25 October at 01:00
	// UTC from 03:00 to 02:00; in New York forward on 8 March at 07:00 UTC, and back on 1 November at 06:00 UTC from 02:00
	// to 01:00.
	berlin := func(schedule string) fixture { return on(schedule).in("Europe/Berlin") }
	testDecide(t, []row{
		{"due in UTC, not in the zone", on("0 9 * * *").in("America/New_York"), "09:01", "next 14:00"},
		{"due in the zone, not in UTC", on("0 9 * * *").in("Asia/Kolkata").since("00:00"), "03:31",
			"run 03:30, next 2026-03-03 03:30"},
		{"without a zone it is UTC", on("0 9 * * *"), "09:01", "run 09:00, next 2026-03-03 09:00"},
		{"past the deadline in the zone", on("0 9 * * *").in("Asia/Kolkata").since("00:00").deadline(brief), "03:31",
			"too late: missed 03:30, next 2026-03-03 03:30"},

		{"forward: before the gap", berlin("30 2 * * *").since("2026-03-28 12:00"), "2026-03-29 00:59:59",
			"next 2026-03-29 01:00"},
		{"forward: a time that does not exist runs after the gap", berlin("30 2 * * *").since("2026-03-28 12:00"),
			"2026-03-29 01:00",
			"run 2026-03-29 01:00, next 2026-03-30 00:30"},
		{"forward: and only once", berlin("30 2 * * *").since("2026-03-28 12:00").ran("2026-03-29 01:00"), "2026-03-29 01:30",
			"next 2026-03-30 00:30"},
		{"forward: several times that do not exist run once", berlin("0,20,40 2 * * *").since("2026-03-28 12:00"),
			"2026-03-29 01:10",
			"run 2026-03-29 01:00, next 2026-03-30 00:00"},
		{"forward: a time after the gap is not moved", berlin("30 3 * * *").since("2026-03-28 12:00"), "2026-03-29 01:30",
			"run 2026-03-29 01:30, next 2026-03-30 01:30"},
		{"forward: every hour that passes", berlin("0 * * * *").since("2026-03-28 12:00").ran("2026-03-29 00:00"),
			"2026-03-29 01:00",
			"run 2026-03-29 01:00, next 2026-03-29 02:00"},
		{"back: a time that exists twice runs the first time", berlin("30 2 * * *").since("2026-10-24 12:00"),
			"2026-10-25 00:30",
			"run 2026-10-25 00:30, next 2026-10-26 01:30"},
		{"back: and not the second time", berlin("30 2 * * *").since("2026-10-24 12:00").ran("2026-10-25 00:30"),
			"2026-10-25 01:30", "next 2026-10-26 01:30"},
		{"back: after the first time was missed, it runs late", berlin("30 2 * * *").since("2026-10-24 12:00"),
			"2026-10-25 01:30",
			"run 2026-10-25 00:30, next 2026-10-26 01:30"},
		{"back: past the deadline of the first time", berlin("30 2 * * *").since("2026-10-24 12:00").deadline(brief),
			"2026-10-25 01:30",
			"too late: missed 2026-10-25 00:30, next 2026-10-26 01:30"},
		{"back: every hour that passes, the first time",
			berlin("30 * * * *").since("2026-10-24 12:00").ran("2026-10-24 23:30"), "2026-10-25 00:30",
			"run 2026-10-25 00:30, next 2026-10-25 01:30"},
		{"back: every hour that passes, the second time",
			berlin("30 * * * *").since("2026-10-24 12:00").ran("2026-10-25 00:30"), "2026-10-25 01:30",
			"run 2026-10-25 01:30, next 2026-10-25 02:30"},
		{"back: New York, once", on("15 1 * * *").in("America/New_York").since("2026-10-31 12:00").ran("2026-11-01 05:15"),
			"2026-11-01 06:15", "next 2026-11-02 06:15"},
		{"forward: New York, once", on("15 2 * * *").in("America/New_York").since("2026-03-07 12:00"), "2026-03-08 07:20",
			"run 2026-03-08 07:00, next 2026-03-09 06:15"},
		{"back by half an hour", on("45 1 * * *").in("Australia/Lord_Howe").since("2026-04-03 20:00").ran("2026-04-04 14:45"),
			"2026-04-04 15:15", "next 2026-04-05 15:15"},
		{"an interval does not depend on the zone",
			on("@every 1h").in("Europe/Berlin").since("2026-10-24 12:00").ran("2026-10-25 00:00"),
			"2026-10-25 01:00",
			"run 2026-10-25 01:00, next 2026-10-25 02:00"},
	})
}

func TestDecideAtIntervals(t *testing.T) {
	testDecide(t, []row{
		{"never ran, not due", on("@every 1h"), "09:00", "next 09:30"},
		{"never ran, due", on("@every 1h"), "09:30", "run 09:30, next 10:30"},
		{"never ran, past the deadline", on("@every 1h").deadline(brief), "09:30:11", "too late: missed 09:30, next 10:30"},
		{"never ran, within the deadline", on("@every 1h").deadline(brief), "09:30:10", "run 09:30, next 10:30"},
		{"first pass, it counts from creation", on("@every 1h").new(), "09:31",
			"since 08:30, run 09:30, next 10:30"},
		{"done, not due", on("@every 1h").ran("09:30").done("09:30"), "10:00", "next 10:30"},
		{"done, due", on("@every 1h").ran("09:30").done("09:30"), "10:31", "run 10:30, next 11:30"},
		{"done, past the deadline", on("@every 1h").deadline(brief).ran("09:30").done("09:30"), "10:30:11",
			"too late: missed 10:30, next 11:30"},
		{"done, within the deadline", on("@every 1h").deadline(brief).ran("09:30").done("09:30"), "10:30:09",
			"run 10:30, next 11:30"},
		{"active, not due", on("@every 1h").ran("09:30").active("09:30"), "10:00", "next 10:30"},
		{"active, due", on("@every 1h").ran("09:30").active("09:30"), "10:31", "run 10:30, next 11:30"},
		{"active, past the deadline", on("@every 1h").deadline(brief).ran("09:30").active("09:30"), "10:30:11",
			"too late: missed 10:30, next 11:30"},
		{"active, within the deadline", on("@every 1h").deadline(long).ran("09:30").active("09:30"), "10:30:09",
			"run 10:30, next 11:30"},
		{"active, due, Forbid", on("@every 1h").forbid().ran("09:30").active("09:30"), "10:31",
			"waits 10:30, next 11:30"},
		{"active, due, Replace", on("@every 1h").replace().ran("09:30").active("09:30"), "10:31",
			"run 10:30, replace 09:30, next 11:30"},
		{"long overdue, no deadline", on("@every 1h").ran("09:30").done("09:30"), "2026-03-09 10:00",
			"run 2026-03-09 09:30, missed 167 from 10:30 to 2026-03-09 08:30, next 2026-03-09 10:30"},
		{"long overdue, past the deadline", on("@every 1h").deadline(brief).ran("09:30").done("09:30"), "2026-03-09 10:00",
			"too late: missed 168 from 10:30 to 2026-03-09 09:30, next 2026-03-09 10:30"},
		{"a late run does not delay the next", on("@every 1h").ran("09:30").done("09:30").createdAt("09:55"), "10:31",
			"run 10:30, next 11:30"},
		{"changed, it counts from then", on("@every 1h").ran("09:30").becomes("@every 40m"), "10:00",
			"since 10:00, next 10:40"},
		{"resumed, it counts from then", on("@every 1h").resumes().ran("09:30"), "10:07", "since 10:07, next 11:07"},
		{"less than a minute", on("@every 20s").ran("09:00:20").done("09:00:20"), "09:00:40", "run 09:00:40, next 09:01"},
		{"less than a minute, Jobs of one minute have different names",
			on("@every 20s").done("09:00").done("09:00:20"), "09:00:39",
			"ran 09:00:20, skipped 89 from 08:30:20 to 08:59:40, next 09:00:40"},
	})
}

func TestDecideHistoryInSeveralPasses(t *testing.T) {
	var ticks []string
	for n := range mostPruned + 1 {
		ticks = append(ticks, moment("09:00").Add(time.Duration(n)*time.Minute).Format("15:04"))
	}
	fx := on("* * * * *").keep(0, 0).ran("12:00").succeeded("12:00").done(ticks...)
	now := moment("12:00:30")
	prune, wake := history(fx.cj, fx.jobs, now)
	if len(prune) != mostPruned || prune[0].Name != jobName("c", moment("09:00")) || !wake.Equal(now) {
		t.Errorf("%d Jobs from %s on, and the next pass at %s", len(prune), prune[0].Name, wake)
	}
	if prune, wake := history(fx.cj, fx.jobs[1:], now); len(prune) != mostPruned || !wake.IsZero() {
		t.Errorf("%d Jobs, and the next pass at %s", len(prune), wake)
	}
}

func TestDecideHistory(t *testing.T) {
	four := []string{"09:00", "10:00", "11:00", "12:00"}
	known := func() fixture { return hourly().ran("12:00").succeeded("12:01").lastFailed("12:40") }
	testDecide(t, []row{
		{"within the default limit", known().done("10:00", "11:00", "12:00"), "12:30", "next 13:00"},
		{"beyond the default limit", known().done(four...), "12:30", "prune 09:00, next 13:00"},
		{"failed ones have a limit of their own", known().failed("11:00", "12:00"), "12:30", "prune 11:00, next 13:00"},
		{"none", known().keep(0, 0).done(four...), "12:30", "prune 09:00 10:00 11:00 12:00, next 13:00"},
		{"no failed ones", known().keep(3, 0).failed(four...), "12:30", "prune 09:00 10:00 11:00 12:00, next 13:00"},
		{"one", known().keep(1, 1).done(four...), "12:30", "prune 09:00 10:00 11:00, next 13:00"},
		{"one of each", known().keep(1, 1).done("09:00", "11:00").failed("10:00", "12:00"), "12:30",
			"prune 09:00 10:00, next 13:00"},
		{"as many as there are", known().keep(4, 4).done(four...), "12:30", "next 13:00"},
		{"more than there are", known().keep(10, 10).done(four...), "12:30", "next 13:00"},
		{"the highest limit", known().keep(1<<31-1, 1<<31-1).done(four...), "12:30", "next 13:00"},
		{"in any order", known().keep(2, 0).done("11:00", "09:00", "12:00", "10:00"), "12:30",
			"prune 09:00 10:00, next 13:00"},
		{"active ones are not history", known().keep(0, 0).active(four...), "12:30", "next 13:00"},
		{"active ones do not count", known().keep(1, 0).active("09:00", "10:00").done("11:00", "12:00"), "12:30",
			"prune 11:00, next 13:00"},
		{"it is pruned in the pass that creates a Job, which may not fit the quota otherwise",
			hourly().keep(1, 1).ran("11:00").succeeded("11:01").done("10:00", "11:00"), "12:01",
			"run 12:00, prune 10:00, next 13:00"},
		{"it is pruned while Forbid waits",
			hourly().forbid().keep(0, 0).ran("11:00").succeeded("11:01").done("10:00").active("11:00"), "12:01",
			"waits 12:00, prune 10:00, next 13:00"},
		{"it is pruned when the deadline has passed",
			hourly().deadline(brief).keep(0, 0).ran("11:00").succeeded("11:01").done("11:00"), "12:01",
			"too late: missed 12:00, prune 11:00, next 13:00"},

		{"Jobs created by hand are history too, by creation time",
			known().keep(1, 1).done("09:30").named("z-by-hand").done("11:30").named("a-by-hand"), "12:30",
			"prune z-by-hand, next 13:00"},
		{"Jobs created by hand in the same second are sorted by name",
			known().keep(1, 1).done("09:30").named("b").done("09:30").named("a"), "12:30", "prune a, next 13:00"},
		{"the name decides the age, not the creation time",
			known().keep(1, 1).succeeded("12:20").done("11:00").createdAt("12:20").done("12:00"),
			"12:30", "prune 11:00, next 13:00"},
		{"the name is of another CronJob", known().keep(0, 0).done("09:00").named("cc-29540820"), "12:30",
			"prune cc-29540820, next 13:00"},

		{"a Job younger than a minute is kept, and checked again then",
			known().keep(0, 0).done("12:00").createdAt("12:00:02").succeeded("12:00:02"), "12:00:30",
			"next 13:00, wake 12:01:02"},
		{"a failed Job younger than a minute is kept too",
			known().keep(0, 0).failed("12:00").createdAt("12:00:02"), "12:00:30",
			"next 13:00, wake 12:01:02"},
		{"a Job a moment younger than a minute", known().keep(0, 0).done("12:00").createdAt("12:00:02").succeeded("12:00:02"),
			"12:01:01.999", "next 13:00, wake 12:01:02"},
		{"a Job of exactly a minute is pruned", known().keep(0, 0).done("12:00").createdAt("12:00:02").succeeded("12:00:02"),
			"12:01:02", "prune 12:00, next 13:00"},
		{"the first of several young ones sets the next pass",
			known().keep(0, 0).failed("12:00").createdAt("12:00:20").failed("11:00").createdAt("12:00:10"), "12:00:30",
			"next 13:00, wake 12:01:10"},
		{"the old ones of several are pruned",
			known().keep(0, 0).failed("12:00").createdAt("12:00:20").failed("11:00"), "12:00:30",
			"prune 11:00, next 13:00, wake 12:01:20"},
		{"a time that comes before the minute is over",
			on("@every 30s").keep(0, 0).ran("12:00").lastFailed("12:00:05").failed("12:00").createdAt("12:00:05"), "12:00:10",
			"next 12:00:30"},
		{"a Job created in the future by the API server's clock",
			known().keep(0, 0).failed("12:00").createdAt("12:40"), "12:30",
			"next 13:00, wake 12:41"},

		{"a Job whose time the status does not have is kept until the status has it",
			hourly().keep(0, 0).ran("11:00").succeeded("12:01").done("12:00"), "12:30", "ran 12:00, next 13:00"},
		{"a failed Job whose time the status does not have is kept",
			hourly().keep(0, 0).ran("11:00").failed("12:00"), "12:30",
			"ran 12:00, next 13:00"},
		{"a Job whose success the status does not have is kept",
			hourly().keep(0, 0).ran("12:00").succeeded("11:01").done("12:00"), "12:30", "next 13:00"},
		{"a Job that succeeded first of all", hourly().keep(0, 0).ran("12:00").done("12:00"), "12:30", "next 13:00"},
		{"a Job whose failure the status does not have is kept",
			hourly().keep(0, 0).ran("12:00").succeeded("12:02").failed("12:00"), "12:30", "next 13:00"},
		{"a failed Job does not wait for a success", hourly().keep(0, 0).ran("12:00").lastFailed("12:01").failed("12:00"),
			"12:30", "prune 12:00, next 13:00"},
	})
}

func TestDecideByEvidence(t *testing.T) {
	annotated := func(job *batchv1.Job) {
		job.Annotations = map[string]string{tutorialv1.ScheduledAtAnnotation: "2099-01-01T00:00:00Z"}
	}
	testDecide(t, []row{
		{"an annotation is wrong, of a Job of today", hourly().ran("09:00").done("09:00").each(annotated), "10:01",
			"run 10:00, next 11:00"},
		{"an annotation is wrong, of a Job created by hand",
			hourly().ran("09:00").done("09:30").named("by-hand").each(annotated),
			"10:01", "run 10:00, next 11:00"},
		{"an annotation is missing", hourly().active("09:00"), "09:01", "ran 09:00, next 10:00"},
		{"a name is wrong, of the year 2099", hourly().ran("09:00").done("2099-01-01 00:00").createdAt("09:30"), "10:01",
			"run 10:00, next 11:00"},
		{"a name is of a future time", hourly().ran("09:00").active("11:00").createdAt("10:30"), "10:30",
			"run 10:00, next 11:00"},
		{"a name is of a time that was in the future", hourly().ran("10:00").active("11:00").createdAt("10:30"), "11:00",
			"ran 11:00, next 12:00"},
		{"a finished Job of a future time stays, because no status has its time",
			hourly().keep(0, 0).ran("09:00").failed("11:00").createdAt("09:30"), "10:01", "run 10:00, next 11:00"},
		{"names without a time", hourly().ran("09:00").
			done("09:30").named("c-").done("09:30").named("c-29540880x").done("09:30").named("c-+2954088"), "10:01",
			"run 10:00, next 11:00"},
		{"the name of another CronJob's Job is ignored", hourly().ran("09:00").done("10:00").named("d-29540880"), "10:01",
			"run 10:00, next 11:00"},

		{"the manager died between the Job and the status", hourly().ran("09:00").active("10:00"), "10:01",
			"ran 10:00, next 11:00"},
		{"it died, and the Job has finished", hourly().ran("09:00").done("10:00"), "10:01", "ran 10:00, next 11:00"},
		{"it died, and much later nothing runs twice", hourly().ran("09:00").done("10:00"), "11:30",
			"ran 10:00, run 11:00, next 12:00"},
		{"it died in the first pass", hourly().new().active("09:00"), "09:01", "since 08:30, ran 09:00, next 10:00"},
		{"it died, Replace: the Job is of this very time", hourly().replace().ran("09:00").active("10:00"), "10:01",
			"ran 10:00, next 11:00"},
		{"it died, Forbid: the Job is of this very time", hourly().forbid().ran("09:00").active("10:00"), "10:01",
			"ran 10:00, next 11:00"},
		{"it died before it reported which times it had skipped for a run", hourly().active("12:00"), "12:30",
			"ran 12:00, skipped 3 from 09:00 to 11:00, next 13:00"},
		{"and earlier missed times have been reported", hourly().ran("10:00").active("12:00"), "12:30",
			"ran 12:00, skipped 11:00, next 13:00"},
		{"it died before it reported two runs", hourly().ran("09:00").active("11:00", "12:00"), "12:30",
			"ran 12:00, skipped 10:00, next 13:00"},
		{"it died before it reported a run, and another is due", hourly().active("10:00"), "12:30",
			"ran 10:00, run 12:00, missed 11:00, skipped 09:00, next 13:00"},
		{"it died after Replace deleted a Job, before it created one", hourly().replace().ran("09:00"), "10:01",
			"run 10:00, next 11:00"},
		{"it died, and the Job was deleted by hand: the exception that cannot be excluded", hourly().ran("09:00"), "10:01",
			"run 10:00, next 11:00"},

		{"the status is lost, a Job shows the time", hourly().new().done("09:00", "10:00"), "10:30",
			"since 08:30, ran 10:00, next 11:00"},
		{"the status is lost, and the Jobs too", hourly().new(), "10:30", "since 08:30, run 10:00, missed 09:00, next 11:00"},
		{"the status is lost, and the spec was changed once", hourly().edited(), "10:30", "since 10:30, next 11:00"},
		{"the status is lost, and it is suspended", hourly().new().suspended().done("09:00"), "10:30",
			"suspended, ran 09:00"},
		{"only the last times in the status are lost", hourly().since("10:10"), "10:30", "next 11:00"},
		{"the status is ahead of the Jobs", hourly().ran("10:00").done("09:00"), "10:30", "next 11:00"},

		{"the clock steps back, not due", hourly().ran("10:00").done("10:00"), "09:59", "next 11:00"},
		{"the clock steps back, Forbid", hourly().forbid().ran("10:00").done("10:00"), "09:59", "next 11:00"},
		{"the clock steps back by hours", hourly().ran("13:00").done("13:00"), "10:30", "next 14:00, wake 12:59"},
		{"the clock steps back before the status was written", hourly().ran("09:00").active("10:00"), "09:59:50",
			"next 10:00"},
		{"and it reaches that time again", hourly().ran("09:00").active("10:00"), "10:00", "ran 10:00, next 11:00"},
		{"the clock steps back to before scheduledSince", hourly().since("12:30"), "10:30", "next 13:00, wake 12:29"},
		{"the clock was years ahead once", hourly().ran("2031-03-02 09:00"), "10:30",
			"next 2031-03-02 10:00, wake 2031-03-02 08:59"},
		{"it is years behind a missed time", hourly().deadline(brief).lastMissed("2031-03-02 09:00"), "10:30",
			"next 2031-03-02 10:00, wake 2031-03-02 08:59"},
		{"it is less than a minute behind", hourly().since("12:30"), "12:29:01", "next 13:00"},
		{"it is a minute behind", hourly().ran("13:00"), "12:59", "next 14:00"},
		{"an interval, and the clock steps back", on("@every 1h").ran("10:30"), "10:29", "next 11:30"},
	})
}

// Known bugs of other CronJob implementations. Numbers without a name are issues of Kubernetes.
func TestDecideKnownBugs(t *testing.T) {
	berlin := func(schedule string) fixture { return on(schedule).in("Europe/Berlin") }
	testDecide(t, []row{
		{"#42649, #36311, #83642: after a weekend of downtime, more than 100 times are missed, and it never runs again",
			on("*/5 * * * *").ran("09:00"), "2026-03-04 09:02",
			"run 2026-03-04 09:00, missed 575 from 09:05 to 2026-03-04 08:55, next 2026-03-04 09:05"},
		{"#45825: resumed after a long time, it runs at once or never", on("*/5 * * * *").resumes().ran("09:00"),
			"2026-03-20 09:02",
			"since 2026-03-20 09:02, next 2026-03-20 09:05"},
		{"#63371, #130838: another schedule runs for past times",
			on("0 0 * * *").since("2026-01-01 00:00").ran("00:00").becomes("0 8 * * *"), "10:00",
			"since 10:00, next 2026-03-03 08:00"},
		{"#121594: twice when clocks go back", berlin("0 2 * * *").since("2026-10-20 00:00").ran("2026-10-25 00:00"),
			"2026-10-25 01:00", "next 2026-10-26 01:00"},
		{"argo #8137: never when clocks go forward", berlin("0 2 * * *").since("2026-03-20 00:00").ran("2026-03-28 01:00"),
			"2026-03-29 01:00",
			"run 2026-03-29 01:00, next 2026-03-30 00:00"},
		{"#41655: an empty schedule", on(""), "09:01", "InvalidSchedule"},
		{"robfig #470: a zone and nothing else", on("TZ=UTC"), "09:01", "InvalidSchedule"},
		{"kubeswift #586, flyte #6470: a schedule that never fires has a Job of the year 1", on("0 0 30 2 *").ran("09:00"),
			"10:00", "NeverFires"},
		{"kube-state-metrics #2978: a step larger than its range is the first alone", on("*/60 * * * *").ran("09:00"),
			"10:01", "run 10:00, next 11:00"},
		{"kube-state-metrics #2988: and so with hours", on("*/120 4-22 * * *").ran("09:00"), "10:01",
			"run 10:00, next 11:00"},
		{"#104012: an interval drifts when the manager restarts",
			on("@every 7m").ran("08:58").done("08:58").createdAt("08:59:40"), "09:04:59", "next 09:05"},
		{"#112275: the Job exists, and is created again and again", hourly().ran("09:00").active("10:00"), "10:00:01",
			"ran 10:00, next 11:00"},
		{"#37957, #106496: a Job that was deleted by hand is active for ever", func() fixture {
			fx := hourly().forbid().ran("09:00")
			fx.cj.Status.Active, fx.cj.Status.ActiveJobs = []corev1.ObjectReference{{Name: "c-29540700", UID: "gone"}}, 1
			return fx
		}(), "10:01", "run 10:00, next 11:00"},
		{"#58748: Forbid does not count a Job that is being deleted",
			hourly().forbid().ran("10:00").done("09:00").active("10:00").terminating(), "11:00", "waits 11:00, next 12:00"},
		{"#33665: Replace stops when the Job to replace does not exist any more", hourly().replace().ran("10:00"), "11:00",
			"run 11:00, next 12:00"},
		{"#115335: Replace leaves Jobs that were created by hand",
			hourly().replace().ran("09:00").active("09:20").named("manual-1").active("09:21").named("manual-2"), "10:00",
			"run 10:00, replace manual-1 manual-2, next 11:00"},
		{"#59676: a Job that waits for a finalizer is deleted again and again",
			hourly().keep(0, 0).replace().ran("09:00").succeeded("09:01").
				done("08:00").terminating().active("09:00").terminating(), "10:00", "run 10:00, next 11:00"},
		{"#76570: Jobs that cannot start pile up, Forbid", hourly().forbid().ran("09:00").active("09:00"), "2026-03-04 10:00",
			"waits 10:00, next 2026-03-04 11:00"},
		{"missed times are reported in every pass", hourly().deadline(brief).ran("09:00").lastMissed("12:00"), "12:59:59",
			"next 13:00"},
		{"#86647: a deadline of less than ten seconds", hourly().deadline(3), "09:00:02.5", "run 09:00, next 10:00"},
		{"#127678, #121763: another zone, and a past time there runs at once",
			on("0 12 * * *").since("2026-01-01 00:00").ran("2026-03-01 12:00").moves("Asia/Tokyo"), "11:59",
			"since 11:59, next 2026-03-03 03:00"},
		{"a quota has no room for a Job, and the old ones are not cleaned up",
			hourly().lastFailed("09:01").keep(0, 1).ran("11:00").failed("09:00", "10:00"), "12:01",
			"run 12:00, prune 09:00, next 13:00"},

		// Of those in the source of Kubernetes 1.36.3.
		{"the last run of a working day is lost over the weekend", on("*/5 9-17 * * 1-5").ran("2026-03-06 16:00"),
			"2026-03-08 12:00",
			"run 2026-03-06 17:55, missed 22 from 2026-03-06 16:05 to 2026-03-06 17:50, next 2026-03-09 09:00"},
		{"the last run of the year's only day is lost", on("* * 1 1 *").since("2025-12-01 00:00").ran("2026-01-01 00:05"),
			"2026-03-01 00:00",
			"run 2026-01-01 23:59, missed 1000 from 2026-01-01 00:06 to 2026-01-01 23:58, next 2027-01-01 00:00"},
		{"the last run of office hours is lost at night", on("0 9-17 * * 1-5").ran("2026-03-06 12:00"), "2026-03-07 06:00",
			"run 2026-03-06 17:00, missed 4 from 2026-03-06 13:00 to 2026-03-06 16:00, next 2026-03-09 09:00"},
		{"the last run of every four hours is lost", on("30 6-16/4 * * 1-5").ran("2026-03-06 06:30"), "2026-03-07 06:00",
			"run 2026-03-06 14:30, missed 2026-03-06 10:30, next 2026-03-09 06:30"},
		{"other changes made with the schedule wait for the next time",
			hourly().keep(1, 1).ran("09:00").succeeded("09:01").done("08:30", "09:00").becomes("30 * * * *"), "10:10",
			"since 10:10, prune 08:30, next 10:30"},
		{"other changes made with a suspension wait for the next time",
			hourly().keep(0, 0).resumes().ran("09:00").succeeded("09:01").done("09:00"), "10:10",
			"since 10:10, prune 09:00, next 11:00"},
		{"two times of an interval share a name", on("@every 20s").ran("09:00").done("09:00"), "09:00:20",
			"run 09:00:20, next 09:00:40"},

		// Of those in the tutorial of Kubebuilder.
		{"the last run is derived from the Jobs that are left", hourly().keep(0, 0).ran("10:00"), "10:30", "next 11:00"},
		{"the last run is derived from a Job that is left, and is too early", hourly().ran("11:00").failed("09:00"), "11:30",
			"next 12:00"},
		{"it stops after a hundred missed times", on("* * * * *").ran("09:00"), "10:41",
			"run 10:41, missed 100 from 09:01 to 10:40, next 10:42"},
		{"the annotation of a Job is trusted", hourly().ran("09:00").done("09:00").each(func(job *batchv1.Job) {
			job.Annotations = map[string]string{tutorialv1.ScheduledAtAnnotation: "2099-01-01T00:00:00Z"}
		}), "10:00", "run 10:00, next 11:00"},
		{"a schedule that never fires has missed too many", on("0 0 31 4 *").since("2016-01-01 00:00"), "10:00",
			"NeverFires"},
		{"finished Jobs that are being deleted take the place of others",
			hourly().keep(1, 1).ran("10:00").succeeded("10:01").done("10:00").done("09:00").terminating(),
			"10:30", "next 11:00"},
	})
}

// #47202, #78795, #80577: the time zone of the machine has no effect. Times from the API server are read as local ones.
func TestDecideIsTheSameOnEveryMachine(t *testing.T) {
	machine := time.Local
	t.Cleanup(func() { time.Local = machine })
	for _, zone := range []string{"UTC", "Asia/Tokyo", "America/Los_Angeles", "Asia/Kathmandu"} {
		t.Run(zone, func(t *testing.T) {
			var err error
			if time.Local, err = time.LoadLocation(zone); err != nil {
				t.Fatal(err)
			}
			local := func(fx fixture) fixture {
				for _, recorded := range []*metav1.Time{&fx.cj.CreationTimestamp, fx.cj.Status.ScheduledSince,
					fx.cj.Status.LastScheduleTime} {
					if recorded != nil {
						recorded.Time = recorded.Local()
					}
				}
				return fx.each(func(job *batchv1.Job) { job.CreationTimestamp.Time = job.CreationTimestamp.Local() })
			}
			for _, test := range []row{
				{"known", local(on("30 9 * * *").ran("2026-03-01 09:30").done("2026-03-01 09:30")), "10:00",
					"run 09:30, next 2026-03-03 09:30"},
				{"new", local(on("30 9 * * *").new()), "10:00", "since 08:30, run 09:30, next 2026-03-03 09:30"},
				{"elsewhere", local(on("30 18 * * *").in("Asia/Tokyo")), "10:00", "run 09:30, next 2026-03-03 09:30"},
			} {
				p := planOf(test.fixture.cj, test.fixture.jobs, remembered{}, moment(test.at).Local())
				if got := test.fixture.outline(p); got != test.want {
					t.Errorf("%s:\n   is: %s\n want: %s", test.name, got, test.want)
				}
				for _, moment := range []time.Time{p.counting.since, p.ran, p.run, p.next} {
					if !moment.IsZero() && moment.Location() != time.UTC {
						t.Errorf("%s: %s is not in UTC", test.name, moment)
					}
				}
			}
		})
	}
}
