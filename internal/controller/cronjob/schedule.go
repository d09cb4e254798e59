package cronjob

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // the image has no time zone database

	"github.com/robfig/cron/v3"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// scheduleError reports which field of the spec prevents runs, why, and what to write instead.
type scheduleError struct {
	reason  string // of the conditions
	message string
}

func (e *scheduleError) Error() string { return e.message }

// invalid returns the error for a schedule that cannot be parsed.
func invalid(text, why string) error {
	return &scheduleError{tutorialv1.ReasonInvalidSchedule,
		fmt.Sprintf("spec.schedule %.256q is not valid: %s", text, why)}
}

const (
	// longestSchedule is the maximum length of spec.schedule in bytes.
	longestSchedule = 256

	howToWriteFields = `write minute (0-59), hour (0-23), day of month (1-31), month (1-12 or jan-dec) and day of week ` +
		`(0-6 or sun-sat), as in "30 2 * * mon-fri"`
	howToWriteDescriptors = `write one of @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly, or an ` +
		`interval as in "@every 1h30m"`
	howToWriteEvery = `write an interval in whole hours, minutes and seconds, one second or more, as in "@every 1h30m"`
)

const (
	secondsOfDay = 24 * 60 * 60
	// longestOverlap is the longest time for which clocks repeat what they have shown before, in seconds, with a margin.
	// When a country moves across the date line, they repeat a day.
	longestOverlap = secondsOfDay + secondsOfDay/2
)

var (
	// fieldForm is the documented form of a field. robfig accepts more than it documents, such as "*-5", "," and "+5".
	fieldForm = regexp.MustCompile(`^` + element + `(?:,` + element + `)*$`)
	// everyForm is the interval of @every. robfig would round 1.5s, and round 500ms up to a second.
	everyForm = regexp.MustCompile(`^(?:[0-9]+[hms])+$`)
)

const element = `(?:[*?]|[0-9A-Za-z]+(?:-[0-9A-Za-z]+)?)(?:/[0-9]+)?`

// schedule is a set of scheduled times (ticks), which are whole seconds. The zero value has none.
type schedule struct {
	// fields are evaluated for civil times only, as if they were UTC: robfig handles clock changes incorrectly. Nil for
	// @every.
	fields *cron.SpecSchedule
	zone   *time.Location
	// everyHour is whether the hour field is *, ? or */1: a run is due once per elapsed hour, whatever the clocks show.
	everyHour bool
	// The ticks of @every are anchor + n*period, n >= 1. The anchor is in seconds since 1970, the period in seconds.
	// Both are 0 if fields is set.
	anchor, period int64
}

// parseSchedule returns the ticks of a spec.schedule in a spec.timeZone, "" being UTC. The anchor is what @every counts
// from. An error is a *scheduleError.
func parseSchedule(text, zone string, anchor time.Time) (schedule, error) {
	if len(text) > longestSchedule {
		return schedule{}, invalid(text, fmt.Sprintf("it has %d bytes; the limit is %d", len(text), longestSchedule))
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
	parsed := schedule{anchor: anchor.Unix()}
	var err error
	if len(words) > 0 && words[0] == "@every" {
		parsed.period, err = parseEvery(text, words[1:])
	} else {
		parsed.fields, err = parseFields(text, words)
	}
	if err != nil {
		return schedule{}, err
	}
	if parsed.zone, err = parseZone(zone); err != nil {
		return schedule{}, err
	}
	if parsed.fields == nil {
		return parsed, nil
	}
	const star = 1 << 63 // how robfig represents a star
	parsed.everyHour = parsed.fields.Hour&star != 0
	if _, ok := parsed.civilAfter(0); !ok {
		return schedule{}, &scheduleError{tutorialv1.ReasonNeverFires,
			fmt.Sprintf("spec.schedule %q never fires: no month in it has such a day; "+
				"correct the day of month or the month", text)}
	}
	return parsed, nil
}

// parseEvery returns the interval of an @every in seconds.
func parseEvery(text string, arguments []string) (int64, error) {
	if len(arguments) != 1 || !everyForm.MatchString(arguments[0]) {
		return 0, invalid(text, howToWriteEvery)
	}
	period, err := time.ParseDuration(arguments[0])
	if err != nil {
		return 0, invalid(text, "the interval is too long; "+howToWriteEvery)
	}
	if period < time.Second {
		return 0, invalid(text, "the interval is too short; "+howToWriteEvery)
	}
	return int64(period / time.Second), nil
}

// parseFields returns the fields of a schedule, for civil times. The words are those of text.
func parseFields(text string, words []string) (fields *cron.SpecSchedule, err error) {
	defer func() {
		// robfig has panicked on unexpected input (kubernetes#41655). Without this, a manager would panic again after each
		// restart.
		if cause := recover(); cause != nil {
			fields, err = nil, invalid(text, fmt.Sprintf("%v; %s", cause, howToWriteFields))
		}
	}()
	howToWrite := howToWriteFields
	switch {
	case len(words) == 0:
		return nil, invalid(text, "it is empty; "+howToWrite)
	case strings.HasPrefix(words[0], "TZ=") || strings.HasPrefix(words[0], "CRON_TZ="):
		return nil, invalid(text, "it must not contain a time zone; set spec.timeZone instead")
	case strings.HasPrefix(words[0], "@"):
		howToWrite = howToWriteDescriptors
	default:
		for _, word := range words {
			if !fieldForm.MatchString(word) {
				return nil, invalid(text, fmt.Sprintf("%q is not a field; %s", word, howToWrite))
			}
		}
	}
	parsed, err := cron.ParseStandard(strings.Join(words, " "))
	if err != nil {
		return nil, invalid(text, fmt.Sprintf("%v; %s", err, howToWrite))
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, invalid(text, howToWrite)
	}
	fields.Location = time.UTC // instead of the machine's time zone
	return fields, nil
}

// parseZone returns a time zone of the IANA database.
func parseZone(name string) (*time.Location, error) {
	unknown := func(what string) error {
		return &scheduleError{tutorialv1.ReasonUnknownTimeZone,
			fmt.Sprintf(`spec.timeZone %.256q is %s; write a name of the IANA database such `+
				`as "Europe/Berlin", or remove the field for UTC`, name, what)}
	}
	for _, local := range []string{"Local", "localtime", "posixrules"} {
		if strings.EqualFold(name, local) {
			return nil, unknown("a different zone on each machine")
		}
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknown("not a known time zone")
	}
	return zone, nil
}

// next returns the first tick after a time, in UTC; the zero time if there is none.
//
// If the schedule names hours, a local time runs when the clocks first show it or a later one: a time skipped by a
// clock change runs at the end of the gap, and a time that occurs twice runs the first time. If the hour is *, a run is
// due once per elapsed hour: a time runs whenever the clocks show it, so a time that occurs twice runs twice, and a
// skipped time does not run.
func (s schedule) next(t time.Time) time.Time {
	second := t.Unix() // rounded down, and no tick is between
	if s.period > 0 {
		passed := max(0, (second-s.anchor)/s.period)
		return time.Unix(s.anchor+(passed+1)*s.period, 0).UTC()
	}
	if s.fields == nil {
		return time.Time{}
	}
	civil, ok := s.civilAfter(s.latestShown(second))
	for ok {
		offset, end := s.stretch(second)
		if tick := civil - offset; tick < end {
			return time.Unix(max(tick, second), 0).UTC() // second, if the tick is in the gap that has just ended
		}
		second = end
		if !s.everyHour {
			continue
		}
		offset, _ = s.stretch(end)
		civil, ok = s.civilAfter(end + offset - 1)
	}
	return time.Time{}
}

// latest returns the last tick after a time and not after now, in UTC; the zero time if there is none.
func (s schedule) latest(after, now time.Time) time.Time {
	tick := s.next(after)
	if tick.IsZero() || tick.After(now) {
		return time.Time{}
	}
	// This is a binary search. Extrapolating from the distance of two ticks would miss the last one if they are
	// unevenly spaced.
	for bound := now.Unix(); tick.Unix() < bound; { // no tick is between the bound and now
		middle := tick.Unix() + (bound-tick.Unix())/2
		if later := s.next(time.Unix(middle, 0)); later.IsZero() || later.After(now) {
			bound = middle
		} else {
			tick = later
		}
	}
	return tick
}

// count returns how many ticks there are after a time and not after another, or limit if there are more.
func (s schedule) count(after, until time.Time, limit int) int {
	for n := range limit {
		after = s.next(after)
		if after.IsZero() || after.After(until) {
			return n
		}
	}
	return limit
}

// In the functions below, an instant is in seconds since 1970, and a civil time is what clocks show then: instant plus
// offset.

// civilAfter returns the first civil time after another that matches the fields; false if there is none.
func (s schedule) civilAfter(civil int64) (int64, bool) {
	// Only full minutes match. robfig searches second by second, so the search starts at the last second of this
	// minute.
	t := time.Unix(civil, 0).UTC().Truncate(time.Minute).Add(time.Minute - time.Second)
	tick := s.fields.Next(t)
	if tick.IsZero() {
		// robfig searches until the end of the fifth year. Around 2100, eight years pass between two 29 Februaries.
		tick = s.fields.Next(time.Date(t.Year()+6, time.January, 1, 0, 0, -1, 0, time.UTC))
	}
	return tick.Unix(), !tick.IsZero()
}

// latestShown returns the latest civil time that clocks have shown at an instant or before. After clocks were set back,
// it is ahead of what they show then; with everyHour, only the current offset counts.
func (s schedule) latestShown(instant int64) int64 {
	at, latest := instant, int64(math.MinInt64)
	if !s.everyHour {
		at -= longestOverlap
	}
	for {
		offset, end := s.stretch(at)
		if end > instant {
			return max(latest, instant+offset)
		}
		latest = max(latest, end+offset-1)
		at = end
	}
}

// stretch returns the offset from UTC at an instant, and an instant after it until which the offset does not change.
func (s schedule) stretch(instant int64) (offset, end int64) {
	t := time.Unix(instant, 0).In(s.zone)
	_, seconds := t.Zone()
	_, bound := t.ZoneBounds()
	switch {
	case bound.IsZero():
		end = math.MaxInt64
	case bound.Unix() > instant:
		end = bound.Unix()
	default:
		// For zones with rules that have no end, package time assumes 365 days in every year, so on the last day of a leap
		// year the bound is in the past.
		end = instant - instant%secondsOfDay + secondsOfDay
	}
	return int64(seconds), end
}
