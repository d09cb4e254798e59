package cronjob

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestJobNamesNeverChange pins the names by which the controller finds existing Jobs after an upgrade.
func TestJobNamesNeverChange(t *testing.T) {
	for _, test := range []struct{ name, cronJob, scheduled, want string }{
		{"on a full minute", "backup", "2026-07-01T02:30:00Z", "backup-29714550"},
		{"on a full minute in another zone", "backup", "2026-07-01T04:30:00+02:00", "backup-29714550"},
		{"not on a full minute", "backup", "2026-07-01T02:30:07Z", "backup-1782873007"},
		{"one second later", "backup", "2026-07-01T02:30:08Z", "backup-1782873008"},
		{"just after the supported range starts", "backup", "2001-09-09T01:46:41Z", "backup-1000000001"},
		{"last minute of the supported range", "backup", "2159-12-31T23:59:00Z", "backup-99930239"},
		{"last second of the supported range", "backup", "2159-12-31T23:59:59Z", "backup-5995814399"},
		{"longest CronJob name", strings.Repeat("a", 52), "2026-07-01T02:30:07Z", strings.Repeat("a", 52) + "-1782873007"},
	} {
		t.Run(test.name, func(t *testing.T) {
			scheduled := utc(t, test.scheduled)
			if got := jobName(test.cronJob, scheduled); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got, ok := scheduledTime(test.cronJob, test.want); !ok || !got.Equal(scheduled) {
				t.Errorf("scheduledTime(%q, %q) = %s, %t, want %s", test.cronJob, test.want, got, ok, scheduled)
			}
		})
	}
}

func TestScheduledTimeRejectsOtherJobs(t *testing.T) {
	for _, test := range []struct{ name, job string }{
		{"Job of another CronJob", "restore-29714550"},
		{"Job of a CronJob with the same prefix", "backup-2-29714550"},
		{"same prefix, seven digits", "backup-1-9714550"},
		{"CronJob name only", "backup"},
		{"no digits", "backup-"},
		{"suffix chosen by a user", "backup-manual"},
		{"seven digits", "backup-2971455"},
		{"nine digits", "backup-297145501"},
		{"eleven digits", "backup-17828730071"},
		{"full minute written in seconds", "backup-1782873000"},
		{"plus sign", "backup-+9714550"},
		{"minus sign", "backup--9714550"},
		{"underscore", "backup-2971_550"},
		{"integer overflow", "backup-99999999999999999999"},
		{"non-ASCII digits", "backup-٢٩٧١"}, // eight bytes, as many as minutes have
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, ok := scheduledTime("backup", test.job); ok {
				t.Errorf("scheduledTime accepts %q as %s", test.job, got)
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
				t.Skip() // the API server rejects CronJobs with such names
			}
		}
		if min(seconds, otherSeconds) < begin || max(seconds, otherSeconds) >= end {
			t.Skip() // outside the times that jobName supports
		}
		scheduled := time.Unix(seconds, 0)
		job := jobName(cronJob, scheduled)
		if got, ok := scheduledTime(cronJob, job); !ok || !got.Equal(scheduled) {
			t.Errorf("scheduledTime(%q, %q) = %s, %t, want %s", cronJob, job, got, ok, scheduled)
		}
		otherJob := jobName(other, time.Unix(otherSeconds, 0))
		if same := cronJob == other && seconds == otherSeconds; same != (job == otherJob) {
			t.Errorf("jobName(%q, %d) = %q, jobName(%q, %d) = %q", cronJob, seconds, job, other, otherSeconds, otherJob)
		}
		errs := validation.IsValidLabelValue(job) // its pods have it as their job-name label
		if len(validation.IsDNS1123Label(cronJob)) == 0 {
			errs = append(errs, validation.IsDNS1123Label(job)...) // without dots, it must also be a DNS label
		} else {
			errs = append(errs, validation.IsDNS1123Subdomain(job)...)
		}
		if len(errs) > 0 || len(job) > 63 {
			t.Errorf("%s has %d characters: %v", job, len(job), errs)
		}
	})
}
