package cronjob

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// utc parses a time in a test row.
func utc(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func parsed(t *testing.T, text, zone, anchor string) schedule {
	t.Helper()
	s, err := parseSchedule(text, zone, utc(t, anchor))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseSchedule(t *testing.T) {
	const (
		never   = tutorialv1.ReasonNeverFires
		refused = tutorialv1.ReasonInvalidSchedule
		unknown = tutorialv1.ReasonUnknownTimeZone
	)
	for _, test := range []struct {
		name, text, zone string
		reason           string   // "" if it is accepted
		message          []string // parts of it
	}{
		{"five fields", "*/5 9-17 1,15 * mon-fri", "", "", nil},
		{"tabs, and space around", " \t0 0\t* * * ", "", "", nil},
		{"names in any case", "0 0 * JAN-Mar,dec Sun", "", "", nil},
		{"a question mark", "0 0 ? * ?", "", "", nil},
		{"a begin and a step", "5/20 * * * *", "", "", nil},
		{"yearly", "@yearly", "", "", nil},
		{"annually", "@annually", "", "", nil},
		{"monthly", "@monthly", "", "", nil},
		{"weekly", "@weekly", "", "", nil},
		{"daily", "@daily", "", "", nil},
		{"midnight", "@midnight", "", "", nil},
		{"hourly", "@hourly", "", "", nil},
		{"every", "@every 1h30m", "", "", nil},
		{"every, in any order, with leading zeros", "@every  010s02h", "", "", nil},
		{"a zone", "0 0 * * *", "Europe/Berlin", "", nil},
		{"a zone with a sign", "0 0 * * *", "Etc/GMT+5", "", nil},
		{"256 bytes", "0" + strings.Repeat(",0", 123) + " * * * * ", "", "", nil},

		{"empty (#41655)", "", "", refused, []string{`spec.schedule ""`, "it is empty; write minute"}},
		{"only space (#41655)", " \t ", "", refused, []string{`spec.schedule " \t "`, "it is empty; write minute"}},
		{"257 bytes", "0" + strings.Repeat(",0", 123) + " * * * *  ", "", refused,
			[]string{"spec.schedule", "it has 257 bytes; the limit is 256"}},
		{"four fields", "0 0 * *", "", refused,
			[]string{`spec.schedule "0 0 * *" is not valid`, "expected exactly 5 fields, found 4", "write minute"}},
		{"six fields", "0 0 0 * * *", "", refused, []string{"expected exactly 5 fields, found 6"}},
		{"a new line", "0 0 * * *\n", "", refused, []string{`"0 0 * * *\n"`, `"*\n" is not a field`}},
		{"a space of another script", "0 0 * *\u00a0*", "", refused, []string{"is not a field"}},
		{"a minute too late", "60 * * * *", "", refused, []string{"above maximum (59)", "minute (0-59)"}},
		{"an hour too late", "0 24 * * *", "", refused, []string{"above maximum (23)"}},
		{"a day of month too early", "0 0 0 * *", "", refused, []string{"below minimum (1)"}},
		{"a day of week too late", "0 0 * * 7", "", refused, []string{"above maximum (6)", "day of week (0-6 or sun-sat)"}},
		{"a range from its end", "0 17-9 * * *", "", refused, []string{"beginning of range (17) beyond end of range (9)"}},
		{"a range over the end of the week", "0 0 * * fri-mon", "", refused, []string{"beyond end of range"}},
		{"a step of nothing", "*/0 * * * *", "", refused, []string{"step of range should be a positive number"}},
		{"no step", "*/ * * * *", "", refused, []string{`"*/" is not a field`}},
		{"two steps", "*/2/2 * * * *", "", refused, []string{`"*/2/2" is not a field`}},
		{"a number of no size", "99999999999999999999 * * * *", "", refused, []string{"failed to parse int"}},
		{"a sign", "+5 * * * *", "", refused, []string{`"+5" is not a field`}},
		{"a negative number", "-5 * * * *", "", refused, []string{`"-5" is not a field`}},
		{"a list of nothing", ", * * * *", "", refused, []string{`"," is not a field`}},
		{"a list that goes on", "1, * * * *", "", refused, []string{`"1," is not a field`}},
		{"a star with an end", "*-5 * * * *", "", refused, []string{`"*-5" is not a field`}},
		{"a name where there is none", "0 mon * * *", "", refused, []string{"failed to parse int from mon"}},
		{"an unknown name", "0 0 * * someday", "", refused, []string{"failed to parse int from someday"}},
		{"a Quartz schedule", "0 0 L * *", "", refused, []string{"failed to parse int from L"}},
		{"a zone before it (#47202)", "TZ=Europe/Berlin 0 0 * * *", "", refused,
			[]string{`"TZ=Europe/Berlin 0 0 * * *"`, "set spec.timeZone instead"}},
		{"another zone before it (#47202)", " CRON_TZ=UTC 0 0 * * *", "", refused,
			[]string{"set spec.timeZone instead"}},
		{"nothing but a zone (robfig #470)", "TZ=UTC", "", refused, []string{"set spec.timeZone instead"}},
		{"nothing but half a zone (robfig #470)", "CRON_TZ=", "", refused, []string{"set spec.timeZone instead"}},
		{"at reboot", "@reboot", "", refused,
			[]string{`"@reboot"`, "unrecognized descriptor: @reboot; write one of @yearly"}},
		{"capitals", "@Daily", "", refused, []string{"unrecognized descriptor: @Daily"}},
		{"a descriptor and more", "@daily 5", "", refused, []string{"unrecognized descriptor: @daily 5"}},

		{"every what", "@every", "", refused, []string{`"@every"`, `as in "@every 1h30m"`}},
		{"every without a unit", "@every 90", "", refused, []string{"whole hours, minutes and seconds"}},
		{"every without space", "@every1h", "", refused, []string{"unrecognized descriptor"}},
		{"every with a space in it", "@every 1h 30m", "", refused, []string{"whole hours, minutes and seconds"}},
		{"every day", "@every 1d", "", refused, []string{"whole hours, minutes and seconds"}},
		{"every one and a half", "@every 1.5h", "", refused, []string{"whole hours, minutes and seconds"}},
		{"every moment", "@every 500ms", "", refused, []string{"whole hours, minutes and seconds"}},
		{"every nothing", "@every 0h0m0s", "", refused, []string{"the interval is too short", "one second or more"}},
		{"every time backwards", "@every -1h", "", refused, []string{"whole hours, minutes and seconds"}},
		{"every 300 years", "@every 2628000h", "", refused, []string{"the interval is too long"}},
		{"every 10^30 hours", "@every 1000000000000000000000000000000h", "", refused, []string{"the interval is too long"}},

		{"31 February (kubeswift #586)", "0 0 31 2 *", "", never,
			[]string{`spec.schedule "0 0 31 2 *" never fires`, "correct the day of month or the month"}},
		{"30 and 31 February", "* * 30,31 feb ?", "", never, []string{"never fires"}},
		{"the 31st of months that have 30 days", "0 0 31 4,6,9,11 *", "", never, []string{"never fires"}},
		{"29 February", "0 0 29 2 *", "", "", nil},
		{"31 February or a Monday", "0 0 31 2 mon", "", "", nil},

		{"the time zone of the machine (#78795)", "0 0 * * *", "Local", unknown,
			[]string{`spec.timeZone "Local" is a different zone on each machine`,
				`"Europe/Berlin", or remove the field for UTC`}},
		{"the time zone of the machine, in small letters", "0 0 * * *", "local", unknown,
			[]string{"a different zone on each machine"}},
		{"the file with the time zone of the machine", "0 0 * * *", "localtime", unknown,
			[]string{"a different zone on each machine"}},
		{"a place without a zone", "0 0 * * *", "Mars/Phobos", unknown,
			[]string{`spec.timeZone "Mars/Phobos" is not a known time zone`, "write a name of the IANA database"}},
		{"a place outside", "0 0 * * *", "../../etc/passwd", unknown, []string{"not a known time zone"}},
		{"a zone and a space", "0 0 * * *", "Europe/Berlin ", unknown, []string{`"Europe/Berlin "`}},
		{"an unknown zone, for every", "@every 1h", "Nowhere", unknown, []string{`spec.timeZone "Nowhere"`}},
		{"a zone of no size", "0 0 * * *", strings.Repeat("x", 100000), unknown, []string{"not a known time zone"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := parseSchedule(test.text, test.zone, utc(t, "2026-07-01T00:00:00Z"))
			if test.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				if s.next(utc(t, "2026-07-01T00:00:00Z")).IsZero() {
					t.Error("it is valid and never fires")
				}
				return
			}
			var fault *scheduleError
			if !errors.As(err, &fault) || fault.reason != test.reason {
				t.Fatalf("error %v, want one with reason %s", err, test.reason)
			}
			for _, part := range test.message {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("message: %v\n   want in it: %s", err, part)
				}
			}
			if len(err.Error()) > 1024 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
			if tick := s.next(utc(t, "2026-07-01T00:00:00Z")); !tick.IsZero() {
				t.Errorf("it is refused and fires at %s", tick)
			}
		})
	}
}

func TestNext(t *testing.T) {
	for _, test := range []struct {
		name, text, zone, after string
		want                    []string
	}{
		{"every minute", "* * * * *", "", "2026-07-01T00:00:00Z", []string{"2026-07-01T00:01:00Z", "2026-07-01T00:02:00Z"}},
		{"a tick is not after itself", "0 0 * * *", "", "2026-07-01T00:00:00Z", []string{"2026-07-02T00:00:00Z"}},
		{"a moment before", "0 0 * * *", "", "2026-06-30T23:59:59.999999999Z", []string{"2026-07-01T00:00:00Z"}},
		{"a moment after", "* * * * *", "", "2026-07-01T00:00:00.000000001Z", []string{"2026-07-01T00:01:00Z"}},
		{"a time of another zone (#47202)", "0 0 * * *", "", "2026-07-01T01:00:00+02:00", []string{"2026-07-01T00:00:00Z"}},
		{"an offset that is not full hours", "0 0 * * *", "Asia/Kathmandu", "2026-07-01T00:00:00Z",
			[]string{"2026-07-01T18:15:00Z"}},
		{"an offset with seconds", "0 0 * * *", "Europe/Amsterdam", "1930-12-01T00:00:00Z", []string{"1930-12-01T23:40:28Z"}},
		{"before all known changes", "0 0 * * *", "Europe/Amsterdam", "1700-01-01T12:00:00Z",
			[]string{"1700-01-01T23:40:28Z"}},

		{"yearly", "@yearly", "", "2026-07-01T00:00:00Z", []string{"2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"}},
		{"annually", "@annually", "", "2026-07-01T00:00:00Z", []string{"2027-01-01T00:00:00Z"}},
		{"monthly", "@monthly", "", "2026-07-01T00:00:00Z", []string{"2026-08-01T00:00:00Z"}},
		{"weekly, on Sundays", "@weekly", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-05T00:00:00Z", "2026-07-12T00:00:00Z"}},
		{"daily", "@daily", "", "2026-07-01T00:00:00Z", []string{"2026-07-02T00:00:00Z"}},
		{"midnight", "@midnight", "", "2026-07-01T00:00:00Z", []string{"2026-07-02T00:00:00Z"}},
		{"hourly", "@hourly", "", "2026-07-01T00:00:00Z", []string{"2026-07-01T01:00:00Z"}},

		{"a step as long as the field (kube-state-metrics #2978)", "*/60 * * * *", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-01T01:00:00Z", "2026-07-01T02:00:00Z"}},
		{"a step longer than the field (kube-state-metrics #2988)", "*/120 4-22 * * *", "", "2026-07-01T21:30:00Z",
			[]string{"2026-07-01T22:00:00Z", "2026-07-02T04:00:00Z"}},
		{"steps start again in each hour", "*/25 * * * *", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-01T00:25:00Z", "2026-07-01T00:50:00Z", "2026-07-01T01:00:00Z"}},
		{"a begin and a step", "5/20 * * * *", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-01T00:05:00Z", "2026-07-01T00:25:00Z", "2026-07-01T00:45:00Z", "2026-07-01T01:05:00Z"}},
		{"a range and a step", "10-30/10 0 * * *", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-01T00:10:00Z", "2026-07-01T00:20:00Z", "2026-07-01T00:30:00Z", "2026-07-02T00:10:00Z"}},
		{"a list in no order", "0 18,6 * * *", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-01T06:00:00Z", "2026-07-01T18:00:00Z"}},
		{"names in any case", "0 0 * FEB SuN", "", "2026-07-01T00:00:00Z", []string{"2027-02-07T00:00:00Z"}},

		// 2026-07-01 is a Wednesday.
		{"day of month or day of week, if both are restricted", "0 0 3 * mon", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-03T00:00:00Z", "2026-07-06T00:00:00Z", "2026-07-13T00:00:00Z"}},
		{"day of week alone", "0 0 * * mon", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-06T00:00:00Z", "2026-07-13T00:00:00Z"}},
		{"day of week alone, with a question mark", "0 0 ? * mon", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-06T00:00:00Z", "2026-07-13T00:00:00Z"}},
		{"*/1 is a star", "0 0 */1 * mon", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-06T00:00:00Z", "2026-07-13T00:00:00Z"}},
		{"*/2 is not a star", "0 0 */2 * mon", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-03T00:00:00Z", "2026-07-05T00:00:00Z", "2026-07-06T00:00:00Z", "2026-07-07T00:00:00Z"}},
		{"1-31 is not a star", "0 0 1-31 * mon", "", "2026-07-01T00:00:00Z", []string{"2026-07-02T00:00:00Z"}},
		{"a list with a star in it is a star", "0 0 5,* * mon", "", "2026-07-01T00:00:00Z", []string{"2026-07-06T00:00:00Z"}},

		{"29 February", "0 0 29 2 *", "", "2026-07-01T00:00:00Z", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"29 February around 2100, beyond the search of robfig", "0 0 29 2 *", "", "2096-02-29T00:00:00Z",
			[]string{"2104-02-29T00:00:00Z"}},
		{"29 February around 2100, in a zone with rules that have no end",
			"0 0 29 2 *", "Europe/Berlin", "2096-02-29T00:00:00Z",
			[]string{"2104-02-28T23:00:00Z"}},
		{"from 31 December of a leap year into the summer, where rules have no end", "0 0 1 7 *", "America/New_York",
			"2040-12-31T12:00:00Z",
			[]string{"2041-07-01T04:00:00Z"}},
		{"31 December of a leap year, where rules have no end", "0 */6 * * *", "America/New_York", "2040-12-31T00:00:00Z",
			[]string{"2040-12-31T05:00:00Z", "2040-12-31T11:00:00Z", "2040-12-31T17:00:00Z", "2040-12-31T23:00:00Z",
				"2041-01-01T05:00:00Z"}},

		// Clocks go forward from 2:00 to 3:00 at 1:00 UTC, and back from 3:00 to 2:00 at 1:00 UTC.
		{"Berlin, forward: skipped times run right after the gap (argo #8137)", "30 2 * * *", "Europe/Berlin",
			"2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"Berlin, forward: all skipped times run once", "*/10 2 * * *", "Europe/Berlin", "2026-03-28T01:50:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"Berlin, forward: skipped times and the time after the gap run once",
			"0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"Berlin, forward: each hour", "0 * * * *", "Europe/Berlin", "2026-03-28T23:00:00Z",
			[]string{"2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		{"Berlin, forward: each hour, at a skipped time", "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"}},
		{"Berlin, forward: each hour, right when clocks go forward", "30 * * * *", "Europe/Berlin", "2026-03-29T00:59:59.5Z",
			[]string{"2026-03-29T01:30:00Z"}},
		{"Berlin, forward: each hour, on a day", "30 * 29 3 *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}},
		{"Berlin, forward: a list of all hours", "30 0-23 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"}},
		// Clocks go forward from 2:45 to 3:45, and back from 3:45 to 2:45, at 14:00 UTC.
		{"Chatham, forward: each hour", "0 * * * *", "Pacific/Chatham", "2026-09-26T12:00:00Z",
			[]string{"2026-09-26T12:15:00Z", "2026-09-26T13:15:00Z", "2026-09-26T14:15:00Z", "2026-09-26T15:15:00Z"}},
		{"Chatham, forward: a single hour", "0 3 * * *", "Pacific/Chatham", "2026-09-26T12:00:00Z",
			[]string{"2026-09-26T14:00:00Z", "2026-09-27T13:15:00Z"}},
		{"Chatham, back: each hour", "0 * * * *", "Pacific/Chatham", "2026-04-04T12:00:00Z",
			[]string{"2026-04-04T12:15:00Z", "2026-04-04T13:15:00Z", "2026-04-04T14:15:00Z", "2026-04-04T15:15:00Z"}},
		{"Berlin, back: repeated times run once (#121594)", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"Berlin, back: repeated times do not run in the second hour (#121594)", "30 2 * * *", "Europe/Berlin",
			"2026-10-25T01:10:00Z",
			[]string{"2026-10-26T01:30:00Z"}},
		{"Berlin, back: right when clocks go back", "0,30 2,3 * * *", "Europe/Berlin", "2026-10-25T00:59:59.5Z",
			[]string{"2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z"}},
		{"Berlin, back: each hour", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
		{"Berlin, back: each hour, right when clocks go back", "0 ? * * *", "Europe/Berlin", "2026-10-25T00:30:00Z",
			[]string{"2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		{"Berlin, back: each hour, written */1", "0 */1 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z",
			[]string{"2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		{"Berlin, back: a list of all hours", "0 0-23 * * *", "Europe/Berlin", "2026-10-24T23:30:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"}},
		{"New York, forward", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		{"New York, back", "30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"Lord Howe, back by 30 minutes", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
			[]string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		{"Lord Howe, back by 30 minutes, each hour", "45 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00:00Z",
			[]string{"2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z", "2026-04-04T16:15:00Z"}},
		{"Lord Howe, forward by 30 minutes", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"Apia, a skipped day", "0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
			[]string{"2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
		{"Apia, only a skipped day", "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z",
			[]string{"2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"}},
		{"Kwajalein, a repeated day", "0 12 * * *", "Pacific/Kwajalein", "1969-09-29T12:00:00Z",
			[]string{"1969-09-30T01:00:00Z", "1969-10-02T00:00:00Z"}},
		{"Juneau, a repeated day, each hour, with seconds", "0 * * * *", "America/Juneau", "1867-10-18T23:30:00Z",
			[]string{"1867-10-18T23:57:41Z", "1867-10-19T00:57:41Z", "1867-10-19T01:57:41Z"}},
		{"Sao Paulo, no midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T00:00:00Z",
			[]string{"2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		{"Sao Paulo, no midnight on the only matching day", "0 0 4 11 *", "America/Sao_Paulo", "2018-01-01T00:00:00Z",
			[]string{"2018-11-04T03:00:00Z", "2019-11-04T03:00:00Z"}},
		{"Casablanca, back for Ramadan", "30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00Z",
			[]string{"2026-02-15T01:30:00Z", "2026-02-16T02:30:00Z"}},
		{"Casablanca, forward after Ramadan", "30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00:00Z",
			[]string{"2026-03-22T02:00:00Z", "2026-03-23T01:30:00Z"}},

		{"every counts from the anchor", "@every 1h30m", "", "2026-07-01T00:00:00Z",
			[]string{"2026-07-01T01:30:07Z", "2026-07-01T03:00:07Z", "2026-07-01T04:30:07Z"}},
		{"every has the same times whenever it is evaluated (#104012)", "@every 1h30m", "", "2026-07-02T00:00:00Z",
			[]string{"2026-07-02T00:00:07Z", "2026-07-02T01:30:07Z"}},
		{"every begins after the anchor", "@every 24h", "", "2020-01-01T00:00:00Z", []string{"2026-07-02T00:00:07Z"}},
		{"every second", "@every 1s", "", "2026-07-01T00:00:30.5Z", []string{"2026-07-01T00:00:31Z", "2026-07-01T00:00:32Z"}},
		{"every does not depend on zones", "@every 24h", "Europe/Berlin", "2026-10-24T00:00:07Z",
			[]string{"2026-10-25T00:00:07Z", "2026-10-26T00:00:07Z"}},
		{"every 292 years", "@every 2562047h", "", "2026-07-01T00:00:07Z", []string{"2318-10-10T23:00:07Z"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := parsed(t, test.text, test.zone, "2026-07-01T00:00:07.9Z")
			after := utc(t, test.after)
			for _, want := range test.want {
				after = s.next(after)
				if got := after.Format(time.RFC3339Nano); got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
		})
	}
}

func TestLatestAndCount(t *testing.T) {
	for _, test := range []struct {
		name, text, zone, after, now string
		latest                       string // "" if there is none
		count                        int
	}{
		{"none yet", "0 * * * *", "", "2026-07-01T00:00:00Z", "2026-07-01T00:59:59.9Z", "", 0},
		{"one, just now", "0 * * * *", "", "2026-07-01T00:00:00Z", "2026-07-01T01:00:00Z", "2026-07-01T01:00:00Z", 1},
		{"the one at the begin does not count", "0 * * * *", "", "2026-07-01T01:00:00Z", "2026-07-01T01:30:00Z", "", 0},
		{"now is before", "0 * * * *", "", "2026-07-01T03:00:00Z", "2026-07-01T01:00:00Z", "", 0},
		{"the same time", "0 * * * *", "", "2026-07-01T01:00:00Z", "2026-07-01T01:00:00Z", "", 0},
		{"a weekend off (#42649)", "* * * * *", "", "2026-07-03T18:00:00Z", "2026-07-06T08:00:30Z",
			"2026-07-06T08:00:00Z", 3720},
		{"ten years off (#36311)", "0 0 1 * *", "", "2016-07-03T18:00:00Z", "2026-07-06T08:00:30Z",
			"2026-07-01T00:00:00Z", 120},
		{"since the year 1", "0 0 29 2 *", "", "0001-01-01T00:00:00Z", "2026-07-06T08:00:30Z", "2024-02-29T00:00:00Z", 491},

		// What upstream does not find: it starts from a guess that takes the first two ticks for the distance of all.
		{"upstream: office hours, seen on Sunday", "*/5 9-17 * * 1-5", "", "2026-07-03T16:00:00Z", "2026-07-05T12:00:00Z",
			"2026-07-03T17:55:00Z", 23},
		{"upstream: New Year's Day, seen in March", "* * 1 1 *", "", "2026-01-01T00:05:00Z", "2026-03-01T00:00:00Z",
			"2026-01-01T23:59:00Z", 1434},
		{"upstream: hours of the week, seen on Saturday", "0 9-17 * * 1-5", "", "2026-07-03T12:00:00Z",
			"2026-07-04T12:00:00Z", "2026-07-03T17:00:00Z", 5},
		{"upstream: its own example", "30 6-16/4 * * 1-5", "", "2026-07-03T06:30:00Z", "2026-07-04T12:00:00Z",
			"2026-07-03T14:30:00Z", 2},

		// The time of a change is what counts from then on.
		{"a new schedule does not run for the past (#63371, #130838)", "0 9 * * *", "", "2026-07-01T09:30:00Z",
			"2026-07-01T12:00:00Z", "", 0},
		{"a new zone does not run for the past (#127678)", "0 9 * * *", "Asia/Tokyo", "2026-07-01T01:00:00Z",
			"2026-07-01T12:00:00Z", "", 0},
		{"back: the second hour brings nothing (#121594)", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z",
			"2026-10-25T02:00:00Z", "", 0},
		{"back: each hour does", "30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z",
			"2026-10-25T01:30:00Z", 1},
		{"forward: a moment before", "30 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z",
			"2026-03-29T00:59:59.999Z", "", 0},
		{"forward: right after", "30 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z",
			"2026-03-29T01:00:00Z", 1},

		{"every: none before the first interval is over", "@every 20s", "", "2026-07-01T00:00:00Z",
			"2026-07-01T00:00:26Z", "", 0},
		{"every: several in a minute", "@every 20s", "", "2026-07-01T00:00:00Z", "2026-07-01T00:01:00Z",
			"2026-07-01T00:00:47Z", 2},
		{"every: years", "@every 1h", "", "2026-07-01T00:00:00Z", "2036-07-01T00:00:00Z", "2036-06-30T23:00:07Z", 87671},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := parsed(t, test.text, test.zone, "2026-07-01T00:00:07Z")
			after, now := utc(t, test.after), utc(t, test.now)
			got := ""
			if latest := s.latest(after, now); !latest.IsZero() {
				got = latest.Format(time.RFC3339Nano)
			}
			if got != test.latest {
				t.Errorf("latest %q, want %q", got, test.latest)
			}
			if got := s.count(after, now, math.MaxInt); got != test.count {
				t.Errorf("count %d, want %d", got, test.count)
			}
			if got, want := s.count(after, now, 3), min(test.count, 3); got != want {
				t.Errorf("count up to 3: %d, want %d", got, want)
			}
		})
	}
}

// The zero schedule, that of a refused one, has no ticks, and no search for one loops forever.
func TestZeroScheduleHasNoTicks(t *testing.T) {
	after, now := utc(t, "2026-07-01T00:00:00Z"), utc(t, "2036-07-01T00:00:00Z")
	if tick := (schedule{}).next(after); !tick.IsZero() {
		t.Errorf("next: %s", tick)
	}
	if tick := (schedule{}).latest(after, now); !tick.IsZero() {
		t.Errorf("latest: %s", tick)
	}
	if n := (schedule{}).count(after, now, 5); n != 0 {
		t.Errorf("count: %d", n)
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, text := range []string{"*/5 9-17 1,15 jan MON-fri", "0 0 29 2 *", "0 0 31 2 *", "@hourly", "@every 1h30m",
		"TZ=", "CRON_TZ=UTC * * * * *", "30 ? * * 0"} {
		f.Add(text, "Europe/Berlin", int64(1774659600), int64(3600))
	}
	f.Add("30 2 * * *", "Local", int64(0), int64(-1))
	begin := time.Date(1800, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	end := time.Date(2400, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	f.Fuzz(func(t *testing.T, text, zone string, seconds, nanoseconds int64) {
		if seconds < begin || seconds >= end {
			t.Skip()
		}
		after := time.Unix(seconds, nanoseconds%1e9)
		s, err := parseSchedule(text, zone, time.Unix(1774659607, 0))
		if err != nil {
			var fault *scheduleError
			if !errors.As(err, &fault) || fault.reason == "" || !strings.HasPrefix(fault.message, "spec.") ||
				!strings.Contains(fault.message, `"`) {
				t.Errorf("error %#v: %v", err, err)
			}
			return
		}
		first := s.next(after)
		for range 5 {
			next := s.next(after)
			if !next.After(after) || next.Nanosecond() != 0 || next.Location() != time.UTC {
				t.Fatalf("next after %s is %s", after, next)
			}
			between := after.Add(next.Sub(after) / 2)
			if got := s.next(between); !got.Equal(next) {
				t.Errorf("next after %s is %s, but after %s it is %s", after, next, between, got)
			}
			if got := s.latest(after, next); !got.Equal(next) {
				t.Errorf("latest of %s until %s is %s", after, next, got)
			}
			if got := s.latest(after, next.Add(-1)); !got.IsZero() {
				t.Errorf("latest of %s until before %s is %s", after, next, got)
			}
			after = next
		}
		if got := s.count(first.Add(-1), after, 10); got != 5 {
			t.Errorf("count of %s until %s is %d", first, after, got)
		}
		if got := s.latest(first, after); !got.Equal(after) {
			t.Errorf("latest of %s until %s is %s", first, after, got)
		}
	})
}
