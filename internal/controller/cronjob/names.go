package cronjob

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Job's name ends in its scheduled time: minutes since 1970, or seconds for times of @every that are not full
// minutes. The number of digits distinguishes the two.
const (
	minuteDigits = 8
	secondDigits = 10
)

// jobName returns the name of the Job for a scheduled time in whole seconds. The name is unique for the CronJob and the
// time, at most 11 characters longer than the CronJob's name, and valid wherever that name is.
//
// That holds for times from 2001-09-09, when seconds got their tenth digit, to the end of 2159. Jobs are found by name
// after an upgrade, so the result must never change.
func jobName(cronJob string, scheduled time.Time) string {
	seconds := scheduled.Unix()
	if seconds%60 == 0 {
		return fmt.Sprintf("%s-%0*d", cronJob, minuteDigits, seconds/60)
	}
	return fmt.Sprintf("%s-%0*d", cronJob, secondDigits, seconds)
}

// scheduledTime returns the scheduled time in the name of a Job, in UTC; false if jobName never returns that name for
// this CronJob.
func scheduledTime(cronJob, job string) (time.Time, bool) {
	digits, ok := strings.CutPrefix(job, cronJob+"-")
	if !ok {
		return time.Time{}, false
	}
	count, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || len(digits) != minuteDigits && len(digits) != secondDigits {
		return time.Time{}, false
	}
	if len(digits) == minuteDigits {
		count *= 60
	}
	scheduled := time.Unix(int64(count), 0).UTC()
	if jobName(cronJob, scheduled) != job { // a full minute that is written in seconds
		return time.Time{}, false
	}
	return scheduled, true
}
