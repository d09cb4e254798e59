package main

import (
	"testing"
	"time"
)

func TestWhenItIsDue(t *testing.T) {
	sides := []side{{rate: 20}, {rate: 100, settling: 65 * time.Second}}
	for _, test := range []struct {
		now        string
		side       int
		count      int
		first, gap string
		schedule   string
	}{
		{"2025-11-21T07:00:10Z", 0, 50, "2025-11-21T07:01:00Z", "1m", "1,2 7 * * *"},
		{"2025-11-21T07:00:10Z", 0, 1000, "2025-11-21T07:02:00Z", "6m", "2,8 7 * * *"},
		{"2025-11-21T07:00:10Z", 1, 1000, "2025-11-21T07:02:00Z", "2m", "2,4 7 * * *"},
		{"2025-11-21T23:55:50Z", 0, 1000, "2025-11-21T23:57:00Z", "6m", "57,3 23,0 * * *"},
		{"2025-11-21T07:20:00Z", 0, maxCount, "2025-11-21T07:23:00Z", "26m", "23,49 7 * * *"},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		due := dueTimes(now, sides[test.side], test.count)
		first, gap := due[0].Format(time.RFC3339), due[1].Sub(due[0])
		if first != test.first || gap.String() != test.gap+"0s" {
			t.Errorf("%d at %s: due at %s and %s later, want %s and %s", test.count, test.now, first, gap, test.first, test.gap)
		}
		if got := schedule(due); got != test.schedule {
			t.Errorf("%v: %q, want %q", due, got, test.schedule)
		}
	}
}
