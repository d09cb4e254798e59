package cronjob

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Job's name ends in its tick: minutes since 1970, or seconds for the ticks of @every that are not at a full minute.
// The count of digits tells the one from the other.
const (
	minuteDigits = 8
	secondDigits = 10
)

// jobName returns the name of the Job of a tick, which is whole seconds: two ticks of a CronJob never share one, nor do
// two CronJobs. It is at most 11 characters longer than the CronJob's, and a valid name wherever that is one.
//
// That holds for ticks between 2001-09-09, when seconds got their tenth digit, and the end of 2159. Jobs are found by
// it after an upgrade, so what it returns must never change.
func jobName(cronJob string, tick time.Time) string {
	seconds := tick.Unix()
	if seconds%60 == 0 {
		return fmt.Sprintf("%s-%0*d", cronJob, minuteDigits, seconds/60)
	}
	return fmt.Sprintf("%s-%0*d", cronJob, secondDigits, seconds)
}

// tickOf returns the tick that the name of a Job stands for, in UTC; false if jobName has not made the name for this
// CronJob.
func tickOf(cronJob, job string) (time.Time, bool) {
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
	tick := time.Unix(int64(count), 0).UTC()
	if jobName(cronJob, tick) != job { // a full minute, in seconds
		return time.Time{}, false
	}
	return tick, true
}
