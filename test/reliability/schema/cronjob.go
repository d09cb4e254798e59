package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/example/memcached-operator/test/reliability/history"
)

// The Jobs of the times that a test makes due, and one that stays active through all changes.
const (
	firstJob   = objectName + "-(DUE0)"
	secondJob  = objectName + "-(DUE1)"
	runningJob = "kept"
)

// calendar is a schedule that is rarely due, so that the operator creates no Job during a test.
var calendar = map[string]any{"schedule": "0 12 1 1 *"}

var schedule = special{
	base: calendar, prepare: startRunningJob, unsettle: age,
	values: []class{
		{"fields", "0 0 1 1 *", legal, nil}, {"names and ranges", "30 6 1-15 mar,sep mon-fri", legal, nil},
		{"name", "@yearly", legal, nil}, {"every", "@every 1h", legal, nil},
		{"longest", "0 12 29 2 *" + strings.Repeat(" ", 245), legal, nil}, {"never", "0 0 30 2 *", degraded, nil},
		{"ends before it begins", "30-10 * * * *", degraded, nil},
	},
	expect: func(c class, resource map[string]any, end history.Normal) error {
		next := fmt.Sprint(at(resource, "status", "nextScheduleTime"))
		return expect(strings.HasSuffix(next, nextOf[c.name]) && namesOf(end, history.Jobs) == runningJob,
			"the next time …%s, and no Job but the running one", nextOf[c.name])
	},
}

var timeZone = special{
	base: calendar, prepare: startRunningJob, unsettle: age,
	values: []class{
		{"zone", "Europe/Berlin", legal, nil}, {"UTC", "UTC", legal, nil},
		{"long", "America/Argentina/ComodRivadavia", legal, nil}, {"no such zone", "Mars/Olympus_Mons", degraded, nil},
		{"long and no zone", strings.Repeat("a", 64), degraded, nil},
	},
	expect: func(c class, resource map[string]any, _ history.Normal) error {
		next := fmt.Sprint(at(resource, "status", "nextScheduleTime"))
		return expect(strings.HasSuffix(next, nextOf[c.name]), "the next time …%s", nextOf[c.name])
	},
}

// nextOf is the end of status.nextScheduleTime in normal form, by class of schedules and time zones.
var nextOf = map[string]string{
	"fields": "-01-01 00:00:00)", "names and ranges": " 06:30:00)", "name": "-01-01 00:00:00)", "every": "(time)",
	"longest": "-02-29 12:00:00)", "never": "<nil>", "ends before it begins": "<nil>",
	"absent": "-01-01 12:00:00)", "null": "-01-01 12:00:00)", "UTC": "-01-01 12:00:00)", "zone": "-01-01 11:00:00)",
	"long": "-01-01 15:00:00)", "no such zone": "<nil>", "long and no zone": "<nil>",
}

var concurrencyPolicy = special{
	provoke: twice,
	expect: func(c class, _ map[string]any, end history.Normal) error {
		names := firstJob + " " + secondJob
		switch c.value {
		case "Forbid":
			names = firstJob
		case "Replace":
			names = secondJob
		}
		return expect(namesOf(end, history.Jobs) == names, "the Jobs %s", names)
	},
}

var suspend = special{
	expect: func(c class, resource map[string]any, end history.Normal) error {
		if c.value == true {
			return expect(namesOf(end, history.Jobs) == "" && at(resource, "status", "scheduledSince") == nil,
				"no Job, and no time to count from")
		}
		return expect(namesOf(end, history.Jobs) == firstJob, "the Job %s", firstJob)
	},
}

var startingDeadlineSeconds = special{
	expect: func(c class, resource map[string]any, end history.Normal) error {
		missed := at(resource, "status", "lastMissedTime")
		if seconds, ok := c.value.(int64); ok && seconds < 60 {
			return expect(namesOf(end, history.Jobs) == "" && missed == "(DUE0)", "no Job, and a missed time")
		}
		return expect(namesOf(end, history.Jobs) == firstJob && missed == nil, "the Job %s, and no missed time", firstJob)
	},
}

func startRunningJob(ctx context.Context, s *subject) error { return s.startJob(ctx, runningJob, "") }

func age(ctx context.Context, s *subject) error { return s.age(ctx) }

// once deletes all Jobs and makes a CronJob due.
func once(ctx context.Context, s *subject) error {
	if err := s.clear(ctx); err != nil {
		return err
	}
	return s.run(ctx)
}

// twice makes a CronJob due, and again while the first Job is active.
func twice(ctx context.Context, s *subject) error {
	if err := once(ctx, s); err != nil {
		return err
	}
	return s.run(ctx)
}
