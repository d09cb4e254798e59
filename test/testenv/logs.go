package testenv

import (
	"slices"
	"strings"
)

// defects are what lines of a log have that tell of a panic, of a data race, or of an object of the cache that was
// written to.
var defects = []string{"panic", "DATA RACE", "fatal error:", "mutated"}

// Defects returns the lines of a manager's log that no log may have, whatever has gone wrong around the manager. Data
// races are in it only if the program was built with the race detector.
func Defects(log string) []string {
	var found []string
	for line := range strings.Lines(log) {
		if slices.ContainsFunc(defects, func(defect string) bool { return strings.Contains(line, defect) }) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
