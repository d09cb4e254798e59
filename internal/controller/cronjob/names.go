package cronjob

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Job's name ends in its scheduled time: in minutes since 1970, or in seconds for a time that is not on the minute,
// which only @every produces. The number of digits distinguishes the two.
const (
	minuteDigits = 8
	secondDigits = 10
)

// jobName returns the name of the Job for a scheduled time, which must not have fractions of a second. The name is
// unique for the CronJob and the time. It adds a hyphen and at most ten digits to the CronJob's name, whose length the
// CustomResourceDefinition limits so that the result is valid, also as a label.
//
// These guarantees hold for times from 1970 to the end of 2159; in 2160, minutes need a ninth digit. A new version of
// the operator must find the Jobs of an older one, so the result must never change.
func jobName(cronJob string, scheduled time.Time) string {
	seconds := scheduled.Unix()
	if seconds%60 == 0 {
		return fmt.Sprintf("%s-%0*d", cronJob, minuteDigits, seconds/60)
	}
	return fmt.Sprintf("%s-%0*d", cronJob, secondDigits, seconds)
}

// scheduledTime returns the scheduled time in the name of a Job, in UTC; false if it is not a name that jobName returns
// for this CronJob and a time in that range.
func scheduledTime(cronJob, job string) (time.Time, bool) {
	digits, ok := strings.CutPrefix(job, cronJob+"-")
	if !ok {
		return time.Time{}, false
	}
	if len(digits) != minuteDigits && len(digits) != secondDigits {
		return time.Time{}, false
	}
	number, err := strconv.ParseUint(digits, 10, 63) // rejects signs, too
	if err != nil {
		return time.Time{}, false
	}
	seconds := int64(number)
	if len(digits) == minuteDigits {
		seconds *= 60
	}
	scheduled := time.Unix(seconds, 0).UTC()
	if jobName(cronJob, scheduled) != job { // a time on the minute, written in seconds
		return time.Time{}, false
	}
	return scheduled, true
}
