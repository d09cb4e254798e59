package testenv

import (
	"slices"
	"strings"
)

// defects mark log lines of a panic, a data race, or a write to a cached object.
var defects = []string{"panic", "DATA RACE", "fatal error:", "mutated"}

// Defects returns the lines of a manager's log that report a defect under all circumstances. Only a program with the
// race detector reports data races.
func Defects(log string) []string {
	var found []string
	for line := range strings.Lines(log) {
		if slices.ContainsFunc(defects, func(defect string) bool { return strings.Contains(line, defect) }) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
