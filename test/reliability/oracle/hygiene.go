package oracle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/testenv"
)

// hygiene finds what a log must not have: panics and data races at any time, errors while all is at rest, and errors at
// all where nothing has gone wrong. An end that nobody has asked for is one, too.
func hygiene(run *Run, _ *Reference) []string {
	found := slices.Clone(run.Ends)
	for _, defect := range testenv.Defects(run.Log) {
		found = append(found, "the log has: "+defect)
	}
	quiet := run.RestLog
	if run.isCalm() {
		quiet = run.Log
	}
	ends := endings(quiet)
	for line := range strings.Lines(quiet) {
		if entry := read(line); entry.Level == "ERROR" && !entry.isOf(ends) {
			found = append(found, "nothing was wrong, and the log has: "+entry.String())
		}
	}
	return found
}

// entry is a line of a log.
type entry struct {
	Time            time.Time
	Level, Msg, Err string
}

// read returns what a line says; one that is none of the operator's says nothing.
func read(line string) entry {
	var e entry
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return entry{}
	}
	return e
}

// String says what it says, without when and where.
func (e entry) String() string {
	return strings.TrimSuffix(e.Msg+": "+e.Err, ": ")
}

// endings returns when managers have begun to end, by their logs.
func endings(logs string) []time.Time {
	var ends []time.Time
	for line := range strings.Lines(logs) {
		if e := read(line); strings.HasPrefix(e.Msg, "Stopping and waiting for ") {
			ends = append(ends, e.Time)
		}
	}
	return ends
}

// ending is how long before it says so a manager may begin to end, and how long that may take.
const ending = 5 * time.Second

// isOf tells of an error whether it is what a manager says of what it is in the middle of when it ends.
func (e entry) isOf(ends []time.Time) bool {
	isEnding := func(end time.Time) bool { return e.Time.Sub(end).Abs() <= ending }
	return strings.Contains(e.Msg, "error received after stop sequence was engaged") ||
		strings.Contains(e.Err, "context canceled") && slices.ContainsFunc(ends, isEnding)
}
