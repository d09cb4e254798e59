package schema

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/example/memcached-operator/test/reliability/history"
)

// The Jobs of the times that a trial makes due, and one that keeps running through all changes.
const (
	firstJob   = objectName + "-(TICK0)"
	secondJob  = objectName + "-(TICK1)"
	runningJob = "kept"
)

var cronJobTable = table{
	base:    map[string]any{"schedule": "@every 1h", "jobTemplate": jobTemplate()},
	provoke: once,
	fields: map[string]special{
		"spec.schedule": {
			base: calendar, prepare: startRunningJob, unsettle: age,
			values: []Class{
				{"fields", "0 0 1 1 *", legal}, {"names and ranges", "30 6 1-15 mar,sep mon-fri", legal},
				{"name", "@yearly", legal}, {"every", "@every 1h", legal},
				{"longest", "0 12 29 2 *" + strings.Repeat(" ", 245), legal}, {"never", "0 0 30 2 *", degraded},
				{"ends before it begins", "30-10 * * * *", degraded},
				{"no such minute", "60 * * * *", rejected}, {"zone inside", "TZ=UTC @daily", rejected},
				{"every nothing", "@every 0s", rejected}, {"empty", "", rejected},
			},
			expect: func(class Class, resource map[string]any, end history.Normal) error {
				next := fmt.Sprint(at(resource, "status", "nextScheduleTime"))
				return expect(strings.HasSuffix(next, nextOf[class.Name]) && namesOf(end, history.Jobs) == runningJob,
					"as the next time …"+nextOf[class.Name]+", and no Job but the running one")
			},
		},
		"spec.timeZone": {
			base: calendar, prepare: startRunningJob, unsettle: age,
			values: []Class{
				{"zone", "Europe/Berlin", legal}, {"UTC", "UTC", legal}, {"long", "America/Argentina/ComodRivadavia", legal},
				{"no such zone", "Mars/Olympus_Mons", degraded}, {"long and no zone", strings.Repeat("a", 64), degraded},
				{"local", "Local", rejected}, {"two words", "New York", rejected}, {"empty", "", rejected},
			},
			expect: func(class Class, resource map[string]any, _ history.Normal) error {
				next := fmt.Sprint(at(resource, "status", "nextScheduleTime"))
				return expect(strings.HasSuffix(next, nextOf[class.Name]), "as the next time …"+nextOf[class.Name])
			},
		},
		"spec.concurrencyPolicy": {
			provoke: twice,
			expect: func(class Class, _ map[string]any, end history.Normal) error {
				names := map[any]string{"Forbid": firstJob, "Replace": secondJob}[class.value]
				if names == "" {
					names = firstJob + " " + secondJob
				}
				return expect(namesOf(end, history.Jobs) == names, "the Jobs "+names)
			},
		},
		"spec.suspend": {
			expect: func(class Class, resource map[string]any, end history.Normal) error {
				if class.value == true {
					return expect(namesOf(end, history.Jobs) == "" && at(resource, "status", "scheduledSince") == nil,
						"no Job, and no time to count from")
				}
				return expect(namesOf(end, history.Jobs) == firstJob, "the Job "+firstJob)
			},
		},
		"spec.startingDeadlineSeconds": {
			expect: func(class Class, resource map[string]any, end history.Normal) error {
				missed := at(resource, "status", "lastMissedTime")
				if seconds, ok := class.value.(int64); ok && seconds < 60 {
					return expect(namesOf(end, history.Jobs) == "" && missed == "(TICK0)", "no Job, and a missed time")
				}
				return expect(namesOf(end, history.Jobs) == firstJob && missed == nil, "the Job "+firstJob+", and no missed time")
			},
		},
		"spec.successfulJobsHistoryLimit": {limits: batchv1.JobComplete},
		"spec.failedJobsHistoryLimit":     {limits: batchv1.JobFailed},
	},
}

// calendar is a base with a schedule that is due on no day near today, so that no Job starts by itself.
var calendar = map[string]any{"schedule": "0 12 1 1 *", "jobTemplate": jobTemplate()}

// nextOf is what status.nextScheduleTime ends in, for the classes of schedules and zones.
var nextOf = map[string]string{
	"fields": "-01-01 00:00:00)", "names and ranges": " 06:30:00)", "name": "-01-01 00:00:00)", "every": "(time)",
	"longest": "-02-29 12:00:00)", "never": "<nil>", "ends before it begins": "<nil>",
	"absent": "-01-01 12:00:00)", "null": "-01-01 12:00:00)", "UTC": "-01-01 12:00:00)", "zone": "-01-01 11:00:00)",
	"long": "-01-01 15:00:00)", "no such zone": "<nil>", "long and no zone": "<nil>",
}

func startRunningJob(ctx context.Context, s *subject) error { return s.startJob(ctx, runningJob, "") }

func age(ctx context.Context, s *subject) error { return s.age(ctx) }

// once makes a CronJob due, without Jobs from before.
func once(ctx context.Context, s *subject) error {
	if err := s.clear(ctx); err != nil {
		return err
	}
	return s.run(ctx)
}

// twice makes it due again while the Job of the first time is active.
func twice(ctx context.Context, s *subject) error {
	if err := once(ctx, s); err != nil {
		return err
	}
	return s.run(ctx)
}
