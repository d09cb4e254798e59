package kinds

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// CronJob creates a Job at each time of its schedule; the one that Make returns has none due within an hour.
var CronJob = Kind{
	Name:         "CronJob",
	GroupVersion: tutorialv1.GroupVersion,
	Resource:     "cronjobs",
	New:          func() client.Object { return &tutorialv1.CronJob{} },
	Make: func(namespace, name string, pods int32) client.Object {
		cronJob := &tutorialv1.CronJob{Spec: tutorialv1.CronJobSpec{Schedule: "@every 1h"}}
		cronJob.Namespace, cronJob.Name = namespace, name
		cronJob.Spec.JobTemplate.Spec = NewJob("", "").Spec
		cronJob.Spec.JobTemplate.Spec.Suspend = nil
		cronJob.Spec.JobTemplate.Spec.Parallelism = &pods
		return cronJob
	},
	Children: []Child{job()},
	Status: func(object client.Object) Status {
		s := object.(*tutorialv1.CronJob).Status
		return Status{ObservedGeneration: s.ObservedGeneration, Conditions: s.Conditions}
	},
	LongestName: 52,
	NameTaken:   tutorialv1.ReasonNameTaken,
	Kubernetes:  []string{"spec.jobTemplate"},
	Values: map[string][]Value{
		"spec.schedule": append(accepted(
			"* * * * *", "? ? ? ? ?", "*/1 */1 */1 */1 */1", "0 0 1 1 0", "59 23 31 12 6", "05 08 01 02 03",
			"00 00 01 01 00", "0 0 1 jan sun", "0 0 * JUL,Aug Mon-FRI", "0 0 * jan-6 1-fri",
			"0-59 0-23 1-31 1-12 0-6", "0-30 8-17 1-7 4-9 mon-fri", "*/15 */2 */10 */3 */2",
			"5/15 0-20/4 1-15/2 2/3 mon-fri/2", "*/05 */90 * * *",
			"0,15,30,45 6,12-14,20/2 1,15,*/10 1,apr-jun,12 sat,sun", "0 9 1-7,15-21 * ?",
			"  0   6  * *   mon  ", "0\t6\t*\t*\tmon", "@yearly", "@annually", "@monthly", "@weekly", "@daily",
			"@midnight", "@hourly", "@every 1s", "@every 90m", "@every 1h30m", "@every 1h30m10s", "@every 48h",
			"@every 0h5m", "@every 1h5s", "@every 86400s", "@every 999999h9999999m999999999s", "30-10 * * * *",
			"0 0 * * fri-mon", "0 0 30 feb *", "*/5 * * * *"+strings.Repeat(" ", 245)),
			rejected("", shape),
			rejected(" ", shape),
			rejected("*/5 * * * *"+strings.Repeat(" ", 246), "256"),
			rejected("0 * * *", shape),
			rejected("0 0 * * * *", shape),
			rejected("0 *\n* * *", shape),
			rejected("0 * * * *\n", shape),
			rejected("every five minutes please now", "first field, the minute, must be * or 0 to 59"),
			rejected("TZ=Europe/Berlin 0 6 * * *", "put it into spec.timeZone"),
			rejected("CRON_TZ=Europe/Berlin 0 6 * * *", "put it into spec.timeZone"),
			rejected("TZ=UTC @daily", "put it into spec.timeZone"),
			rejected("@fortnightly", "@yearly, @annually, @monthly"),
			rejected("@Daily", "@daily"),
			rejected(" @daily", "@daily"),
			rejected("@reboot", "@daily"),
			rejected("@every", `such as "@every 1h30m"`),
			rejected("@every 0s", "must leave at least one second between Jobs"),
			rejected("@every 0h00m0s", "must leave at least one second between Jobs"),
			rejected("@every 500ms", "in whole numbers"),
			rejected("@every 1.5h", "in whole numbers"),
			rejected("@every 1d", "hours, minutes and seconds"),
			rejected("@every -1h", "in whole numbers"),
			rejected("@every 30", "hours, minutes and seconds"),
			rejected("@every 30m1h", "hours, minutes and seconds"),
			rejected("@every 1000000h", "@every"),
			rejected("60 * * * *", "first field, the minute, must be * or 0 to 59"),
			rejected("-1 * * * *", "the minute"),
			rejected("005 * * * *", "the minute"),
			rejected("0,60 * * * *", "the minute"),
			rejected("0,30, * * * *", "the minute"),
			rejected("5- * * * *", "the minute"),
			rejected("1-2-3 * * * *", "the minute"),
			rejected("*/0 * * * *", "a step such as */15"),
			rejected("*/ * * * *", "a step such as */15"),
			rejected("*/2/3 * * * *", "a step such as */15"),
			rejected("H * * * *", "the minute"),
			rejected("0 24 * * *", "second field, the hour, must be * or 0 to 23"),
			rejected("0 1.5 * * *", "the hour"),
			rejected("0 0 0 * *", "third field, the day of the month, must be * or 1 to 31"),
			rejected("0 0 32 * *", "the day of the month"),
			rejected("0 0 L * *", "the day of the month"),
			rejected("0 0 15W * *", "the day of the month"),
			rejected("0 0 1 0 *", "fourth field, the month, must be * or 1 to 12 or jan to dec"),
			rejected("0 0 1 13 *", "the month"),
			rejected("0 0 1 january *", "the month"),
			rejected("0 0 * * 7", "fifth field, the day of the week, must be * or 0 to 6 or sun to sat (Sunday is 0)"),
			rejected("0 0 * * monday", "the day of the week"),
			rejected("0 0 * * 1#2", "the day of the week"),
			rejected("60 24 * * *", "the minute", "the hour"),
		),
		"spec.timeZone": append(accepted(
			"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT-14", "Etc/GMT+12", "EST5EDT",
			"America/Port-au-Prince", "GB-Eire", "Atlantis/Nowhere"),
			rejected("", zone),
			rejected(" UTC", zone),
			rejected("UTC ", zone),
			rejected("New York", zone),
			rejected("../etc/passwd", zone),
			rejected("/Europe/Berlin", zone),
			rejected("Europe/", zone),
			rejected("+02:00", zone),
			rejected("Local", "must name a zone that is the same on every machine"),
			rejected("local", "must name a zone that is the same on every machine"),
		),
	},
}

// What the API server answers to a schedule and to a time zone that it cannot read.
const (
	shape = `must be five fields on one line with spaces between them, "minute hour day-of-month month day-of-week", such as "30 2 * * mon-fri"`
	zone  = "must be the name of a zone in the IANA time zone database, such as Europe/Berlin"
)
