package cronjob

import (
	"archive/zip"
	"errors"
	"flag"
	"fmt"
	"go/build"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

var (
	minTicks = flag.Int("ticks", 10_000_000, "how many ticks the simulation compares at least")
	simSeed  = flag.Uint64("seed", 20260701, "what the simulation draws its schedules and windows from")
)

const (
	firstYear, lastYear = 2000, 2040
	minutesOfDay        = 24 * 60
)

// TestSimulation compares random schedules with a scanner that reads local time minute by minute: around every
// change of the clocks in every zone from 2000 to 2040, and around random times. The scanner, the fields and the
// calendar below have nothing in common with schedule.go and robfig but the tables of the zones.
func TestSimulation(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 20 s, and minutes with the race detector")
	}
	sim := &simulation{T: t, rand: rand.New(rand.NewPCG(*simSeed, 0)), calendar: newCalendar()}
	names := zoneNames(t)
	zones := make([]*time.Location, len(names))
	transitions := 0
	for i, name := range names {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		zones[i] = zone
		changes := changesOf(zone)
		transitions += len(changes)
		for _, change := range changes {
			sim.window(name, zone, change, 4)
		}
	}
	for sim.ticks < *minTicks && !t.Failed() {
		i := sim.rand.IntN(len(names))
		begin, end := yearBegin(firstYear), yearBegin(lastYear+1)
		sim.window(names[i], zones[i], begin+sim.rand.Int64N((end-begin)/60)*60, 8)
	}
	fmt.Printf("simulation: %d ticks, %d zones, %d transitions, %d schedules (%d that never fire), %d windows of latest "+
		"and count; "+
		"%d missed, %d duplicate, %d surplus; seed %d\n", sim.ticks, len(names), transitions, sim.schedules, sim.never,
		sim.asked,
		sim.missed, sim.duplicate, sim.surplus, *simSeed)
	if len(names) < 400 || transitions < 10_000 || sim.ticks < *minTicks {
		t.Error("too little was compared")
	}
}

type simulation struct {
	*testing.T
	rand     *rand.Rand
	calendar []date

	ticks, schedules, never, asked int
	missed, duplicate, surplus     int
}

// window compares random schedules in a zone, in some 30 hours before and after an instant.
func (sim *simulation) window(name string, zone *time.Location, around int64, schedules int) {
	from := around - 60*(30*60+sim.rand.Int64N(minutesOfDay))
	minutes := 60*60 + sim.rand.IntN(2*minutesOfDay)
	seen := sim.scan(zone, from, minutes)
	for range schedules {
		spec := randomSpec(sim.rand)
		s, err := parseSchedule(spec.text, name, time.Time{})
		if fault := (*scheduleError)(nil); errors.As(err, &fault) && fault.reason == tutorialv1.ReasonNeverFires &&
			!spec.fires() {
			sim.never++
			continue
		}
		if err != nil || !spec.fires() {
			sim.Fatalf("%s in %s: error %v; does it fire? %t", spec.text, name, err, spec.fires())
		}
		want := spec.ticks(seen)
		sim.schedules++
		sim.ticks += len(want)
		sim.compareAll(s, spec.text, name, seen, want)
		sim.compareSome(s, spec.text, name, seen, want)
	}
}

// compareAll walks from tick to tick.
func (sim *simulation) compareAll(s schedule, text, zone string, seen scan, want []int64) {
	begin, end := seen.instant(0), seen.instant(len(seen.shown)-1)
	rest := want
	for at := time.Unix(begin, 0); ; {
		tick := s.next(at)
		if !tick.After(at) {
			sim.duplicate++
			sim.Fatalf("%s in %s: %s comes after %s (seed %d)", text, zone, tick, at, *simSeed)
		}
		if tick.Unix() > end {
			break
		}
		for len(rest) > 0 && rest[0] < tick.Unix() {
			sim.missed++
			sim.Errorf("%s in %s: missed %s", text, zone, time.Unix(rest[0], 0).UTC())
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0] > tick.Unix() || tick.Nanosecond() != 0 {
			sim.surplus++
			sim.Errorf("%s in %s: surplus %s", text, zone, tick)
		} else {
			rest = rest[1:]
		}
		at = tick
	}
	sim.missed += len(rest)
	if len(rest) > 0 {
		sim.Errorf("%s in %s: missed %d ticks from %s on", text, zone, len(rest), time.Unix(rest[0], 0).UTC())
	}
	if sim.missed+sim.surplus > 100 {
		sim.Fatalf("stopped after %d ticks, seed %d", sim.ticks, *simSeed)
	}
}

// compareSome compares next, latest and count for random intervals.
func (sim *simulation) compareSome(s schedule, text, zone string, seen scan, want []int64) {
	begin, end := seen.instant(0), seen.instant(len(seen.shown)-1)
	for i := range 4 {
		sim.asked++
		after := time.Unix(begin+sim.rand.Int64N(end-begin), sim.rand.Int64N(2)*sim.rand.Int64N(1e9))
		now := after.Add(time.Duration(sim.rand.Int64N(end-after.Unix()+1)) * time.Second)
		if len(want) > 0 && i%2 == 0 { // right at a tick
			now = time.Unix(want[sim.rand.IntN(len(want))], 0)
		}
		first, _ := slices.BinarySearchFunc(want, after, func(tick int64, after time.Time) int {
			if time.Unix(tick, 0).After(after) {
				return 1
			}
			return -1
		})
		last, _ := slices.BinarySearch(want, now.Unix()+1)
		if next := s.next(after); first < len(want) && next.Unix() != want[first] || first == len(want) &&
			next.Unix() <= end {
			sim.Errorf("%s in %s: next after %s is %s", text, zone, after.UTC(), next)
		}
		latest := s.latest(after, now)
		if last > first && latest.Unix() != want[last-1] || last <= first && !latest.IsZero() {
			sim.Errorf("%s in %s: latest of %s until %s is %s", text, zone, after.UTC(), now.UTC(), latest)
		}
		if i > 0 {
			continue // counting takes as long as all the rest
		}
		if count := s.count(after, now, len(want)+1); count != max(0, last-first) {
			sim.Errorf("%s in %s: count of %s until %s is %d, want %d", text, zone, after.UTC(), now.UTC(), count, last-first)
		}
	}
}

// scan is what the clocks of a zone show from a minute on.
type scan struct {
	from  int64 // the instant of the first
	shown []minute
	// skipped are the minutes that the clocks have left out before showing the one of that index.
	skipped map[int][]minute
}

type minute struct {
	date
	hour, minute uint8
	again        bool // the clocks have shown it before
	late         bool // the clocks have skipped some before it
}

func (s scan) instant(index int) int64 { return s.from + int64(index)*60 }

// scan reads the clocks. It begins more than a day earlier, to know what they have shown before.
func (sim *simulation) scan(zone *time.Location, from int64, minutes int) scan {
	const before = 27 * 60
	result := scan{from: from, shown: make([]minute, 0, minutes), skipped: map[int][]minute{}}
	earliest := from/60 - before - minutesOfDay
	seen := make([]bool, minutes+before+2*minutesOfDay)
	last := int64(0)
	for i := -before; i < minutes; i++ {
		instant := result.instant(i)
		_, offset := time.Unix(instant, 0).In(zone).Zone()
		if offset%60 != 0 {
			sim.Fatalf("%s has an offset of %d seconds; the scanner knows minutes only", zone, offset)
		}
		civil := (instant + int64(offset)) / 60
		for left := last + 1; last != 0 && left < civil; left++ {
			if i >= 0 && !seen[left-earliest] {
				result.skipped[i] = append(result.skipped[i], sim.minute(left))
			}
			seen[left-earliest] = true
		}
		if i >= 0 {
			shown := sim.minute(civil)
			shown.again, shown.late = seen[civil-earliest], len(result.skipped[i]) > 0
			result.shown = append(result.shown, shown)
		}
		seen[civil-earliest] = true
		last = civil
	}
	return result
}

// minute returns a civil time, which is given in minutes.
func (sim *simulation) minute(civil int64) minute {
	return minute{date: sim.calendar[civil/minutesOfDay-calendarBegin], hour: uint8(civil / 60 % 24),
		minute: uint8(civil % 60)}
}

// calendarBegin is 1999-01-01, in days since 1970 of which seven were in leap years.
const calendarBegin = 29*365 + 7

type date struct{ day, month, weekday uint8 }

// newCalendar returns the days from the year before the first to the one after the last.
func newCalendar() []date {
	var days []date
	weekday := uint8(5) // 1999-01-01 was a Friday
	for year := firstYear - 1; year <= lastYear+1; year++ {
		for month := uint8(1); month <= 12; month++ {
			for day := uint8(1); day <= longest(month, year%4 == 0); day++ {
				days = append(days, date{day, month, weekday})
				weekday = (weekday + 1) % 7
			}
		}
	}
	return days
}

func longest(month uint8, leap bool) uint8 {
	switch {
	case month == 2 && leap:
		return 29
	case month == 2:
		return 28
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	}
	return 31
}

func yearBegin(year int) int64 { return time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC).Unix() }

// spec is a schedule as the scanner evaluates it.
type spec struct {
	text                              string
	minute, hour, day, month, weekday field
}

// field is a set of values, and whether it was written as a star.
type field struct {
	text   string
	values uint64
	star   bool
}

func (f field) has(value uint8) bool { return f.values>>value&1 != 0 }

// names reports whether a schedule names a date: both a day of the month and a day of the week narrow it down if one of
// them is a star, and either is enough if none is.
func (s spec) names(d date) bool {
	if !s.month.has(d.month) {
		return false
	}
	if s.day.star || s.weekday.star {
		return s.day.has(d.day) && s.weekday.has(d.weekday)
	}
	return s.day.has(d.day) || s.weekday.has(d.weekday)
}

func (s spec) namesMinute(m minute) bool {
	return s.minute.has(m.minute) && s.hour.has(m.hour) && s.names(m.date)
}

// fires reports whether the schedule names any date of a leap year.
func (s spec) fires() bool {
	for month := uint8(1); month <= 12; month++ {
		for day := uint8(1); day <= longest(month, true); day++ {
			for weekday := range uint8(7) {
				if s.names(date{day, month, weekday}) {
					return true
				}
			}
		}
	}
	return false
}

// ticks returns the instants in a scan, but its first, at which a schedule is due.
func (s spec) ticks(seen scan) []int64 {
	var ticks []int64
	for i, shown := range seen.shown {
		due := s.namesMinute(shown) && (!shown.again || s.hour.star) ||
			shown.late && !s.hour.star && slices.ContainsFunc(seen.skipped[i], s.namesMinute)
		if due && i > 0 {
			ticks = append(ticks, seen.instant(i))
		}
	}
	return ticks
}

func randomSpec(r *rand.Rand) spec {
	s := spec{
		minute: randomField(r, 8, 0, 59, nil),
		hour:   randomField(r, 30, 0, 23, nil),
		day:    randomField(r, 65, 1, 31, nil),
		month: randomField(r, 80, 1, 12,
			[]string{"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}),
		weekday: randomField(r, 65, 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}),
	}
	if r.IntN(3) == 0 { // most clocks are changed early in the day
		s.hour = randomElement(r, 0, 3, nil)
		if strings.Contains(s.hour.text, "/") {
			s.hour = field{text: "0-3", values: 0b1111}
		}
	}
	space := []string{" ", "  ", "\t"}[r.IntN(3)]
	s.text = strings.Join([]string{s.minute.text, s.hour.text, s.day.text, s.month.text, s.weekday.text}, space)
	return s
}

// randomField returns a star in so many cases of 100, else a list of one to four elements.
func randomField(r *rand.Rand, stars, low, high int, names []string) field {
	if r.IntN(100) < stars {
		f := field{text: []string{"*", "?", "*/1", fmt.Sprintf("%d,*", low)}[max(0, r.IntN(20)-16)], star: true}
		for value := low; value <= high; value++ {
			f.values |= 1 << value
		}
		return f
	}
	f := randomElement(r, low, high, names)
	for r.IntN(3) == 0 && strings.Count(f.text, ",") < 3 {
		other := randomElement(r, low, high, names)
		f.text += "," + other.text
		f.values |= other.values
	}
	return f
}

// randomElement returns one element of a list that is not a star.
func randomElement(r *rand.Rand, low, high int, names []string) field {
	name := func(value int) string {
		if names == nil || r.IntN(2) == 0 {
			return []string{"", "0"}[r.IntN(2)] + strconv.Itoa(value)
		}
		return []string{names[value], strings.ToUpper(names[value])}[r.IntN(2)]
	}
	begin := low + r.IntN(high-low+1)
	end, step := begin, 1
	var text string
	switch kind := r.IntN(10); {
	case kind < 4:
		text = name(begin)
	case kind < 6:
		end = begin + r.IntN(high-begin+1)
		text = name(begin) + "-" + name(end)
	case kind < 7:
		end, step = begin+r.IntN(high-begin+1), 1+r.IntN(high+2)
		text = fmt.Sprintf("%s-%s/%d", name(begin), name(end), step)
	case kind < 8:
		end, step = high, 1+r.IntN(high+2)
		text = fmt.Sprintf("%s/%d", name(begin), step)
	default:
		begin, end, step = low, high, 2+r.IntN(high+2)
		text = fmt.Sprintf("%s/%d", []string{"*", "?"}[r.IntN(2)], step)
	}
	f := field{text: text}
	for value := begin; value <= end; value += step {
		f.values |= 1 << value
	}
	return f
}

// zoneNames returns the names of all zones that Go knows.
func zoneNames(t *testing.T) []string {
	t.Helper()
	archive, err := zip.OpenReader(filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	var names []string
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, "/") {
			names = append(names, file.Name)
		}
	}
	return names
}

// changesOf returns the instants from the first year to the last at which the clocks of a zone are changed.
func changesOf(zone *time.Location) []int64 {
	offset := func(instant int64) int {
		_, seconds := time.Unix(instant, 0).In(zone).Zone()
		return seconds
	}
	const step = 6 * 60 * 60
	var changes []int64
	for before := yearBegin(firstYear); before < yearBegin(lastYear+1); before += step {
		low, high := before, before+step
		if offset(low) == offset(high) {
			continue
		}
		for high-low > 1 {
			if middle := (low + high) / 2; offset(middle) == offset(low) {
				low = middle
			} else {
				high = middle
			}
		}
		changes = append(changes, high)
	}
	return changes
}
