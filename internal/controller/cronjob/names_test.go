package cronjob

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// These names must never change: Jobs are found by them after an upgrade.
func TestJobNamesNeverChange(t *testing.T) {
	for _, test := range []struct{ name, cronJob, tick, want string }{
		{"a minute", "backup", "2026-07-01T02:30:00Z", "backup-29714550"},
		{"a minute in another zone", "backup", "2026-07-01T04:30:00+02:00", "backup-29714550"},
		{"a second", "backup", "2026-07-01T02:30:07Z", "backup-1782873007"},
		{"the second after", "backup", "2026-07-01T02:30:08Z", "backup-1782873008"},
		{"the first with ten digits", "backup", "2001-09-09T01:46:41Z", "backup-1000000001"},
		{"the last minute", "backup", "2159-12-31T23:59:00Z", "backup-99930239"},
		{"the last second", "backup", "2159-12-31T23:59:59Z", "backup-5995814399"},
		{"the longest", strings.Repeat("a", 52), "2026-07-01T02:30:07Z", strings.Repeat("a", 52) + "-1782873007"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := jobName(test.cronJob, utc(t, test.tick)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if tick, ok := scheduledTime(test.cronJob, test.want); !ok || !tick.Equal(utc(t, test.tick)) {
				t.Errorf("the tick of %s is %s, %t", test.want, tick, ok)
			}
		})
	}
}

func TestScheduledTimeRejectsOtherNames(t *testing.T) {
	for _, test := range []struct{ name, job string }{
		{"another CronJob's", "restore-29714550"},
		{"that of a CronJob whose name begins alike", "backup-2-29714550"},
		{"that of a CronJob whose name begins alike, in digits", "backup-1-9714550"},
		{"only the name", "backup"},
		{"no digits", "backup-"},
		{"kubectl create job", "backup-manual"},
		{"seven digits", "backup-2971455"},
		{"nine digits", "backup-297145501"},
		{"eleven digits", "backup-17828730071"},
		{"a full minute in seconds", "backup-1782873000"},
		{"a sign", "backup-+9714550"},
		{"a negative time", "backup--9714550"},
		{"an underscore", "backup-2971_550"},
		{"more digits than a number has", "backup-99999999999999999999"},
		{"digits of another script", "backup-٢٩٧١"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if tick, ok := scheduledTime("backup", test.job); ok {
				t.Errorf("it stands for %s", tick)
			}
		})
	}
}

func FuzzJobName(f *testing.F) {
	begin := time.Date(2001, time.September, 9, 1, 46, 40, 0, time.UTC).Unix()
	end := time.Date(2160, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	f.Add("backup", int64(29714550*60), "backup", int64(1782873007))
	f.Add("a", begin, "a-10000000", begin+1)
	f.Add(strings.Repeat("a.", 25)+"aa", end-1, "1", end-60)
	f.Fuzz(func(t *testing.T, cronJob string, seconds int64, other string, otherSeconds int64) {
		for _, name := range []string{cronJob, other} {
			if len(validation.IsDNS1123Subdomain(name)) > 0 || len(name) > 52 {
				t.Skip() // no CronJob can have it
			}
		}
		if min(seconds, otherSeconds) < begin || max(seconds, otherSeconds) >= end {
			t.Skip() // outside the range of job names
		}
		tick := time.Unix(seconds, 0)
		job := jobName(cronJob, tick)
		if got, ok := scheduledTime(cronJob, job); !ok || !got.Equal(tick) {
			t.Errorf("%s of %s at %s stands for %s, %t", job, cronJob, tick, got, ok)
		}
		if same := cronJob == other && seconds == otherSeconds; same != (job == jobName(other, time.Unix(otherSeconds, 0))) {
			t.Errorf("%s is the Job of %s at %d and of %s at %d", job, cronJob, seconds, other, otherSeconds)
		}
		faults := validation.IsValidLabelValue(job) // the label job-name of its pods
		if len(validation.IsDNS1123Label(cronJob)) == 0 {
			faults = append(faults, validation.IsDNS1123Label(job)...)
		} else {
			faults = append(faults, validation.IsDNS1123Subdomain(job)...)
		}
		if len(faults) > 0 || len(job) > 63 {
			t.Errorf("%s has %d characters: %v", job, len(job), faults)
		}
	})
}
