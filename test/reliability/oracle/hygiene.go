package oracle

import (
	"encoding/json"
	"strings"

	"github.com/example/memcached-operator/test/testenv"
)

// hygiene finds what a log must not have: panics and data races at any time, errors while all is at rest, and errors at all where
// nothing has gone wrong. An end that nobody has asked for is one, too.
func hygiene(run *Run, _ *Reference) []string {
	found := run.Ends
	for _, defect := range testenv.Defects(run.Log) {
		found = append(found, "the log has: "+defect)
	}
	quiet := run.RestLog
	if run.isCalm() {
		quiet = run.Log
	}
	for line := range strings.Lines(quiet) {
		if strings.Contains(line, `"level":"ERROR"`) && !isOfEnding(line) {
			found = append(found, "nothing was wrong, and the log has: "+messageOf(line))
		}
	}
	return found
}

// messageOf returns what a line of the log says, without when and where; all of it, if it is none of the operator's.
func messageOf(line string) string {
	var entry struct{ Msg, Err string }
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		return strings.TrimSpace(line)
	}
	return strings.TrimSuffix(entry.Msg+": "+entry.Err, ": ")
}

// isOfEnding tells of an error that it is what a manager says of what it is in the middle of when it is told to end.
func isOfEnding(line string) bool {
	return strings.Contains(line, "error received after stop sequence was engaged") || strings.Contains(line, "context canceled")
}
