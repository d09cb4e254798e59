package main

import (
	"strings"
	"testing"
	"time"
)

// sideOf returns the result of a side whose Jobs all start after the same time, with so many requests for each run.
func sideOf(name string, skew float64, requests int) *result {
	ticks := make([]*tick, 2)
	for i := range ticks {
		ticks[i] = &tick{Skews: []float64{skew, skew}, CPU: 2,
			Requests: map[string]int{createJobs: 2, "update jobs": 2 * (requests - 1)}}
	}
	return &result{Side: name, Ticks: ticks}
}

// Too many requests are an error, a long skew is reported, and with few CronJobs that is not judged.
func TestReport(t *testing.T) {
	for _, test := range []struct {
		count, requests int
		skew            float64
		want            []string
		isError         bool
	}{
		{skewCount, 4, 1, []string{" 0.100 ", " met", "1000.00  1000.00"}, false},
		{skewCount, 4, 1.1, []string{" 0.110 ", "MISSED"}, false},
		{skewCount, 5, 1, []string{" 5.000 ", "MISSED"}, true},
		{2, 4, 9, []string{"not judged", "the bar is for 1000 CronJobs"}, false},
	} {
		results := []*result{sideOf("in-tree", 10, 6), sideOf("ours", test.skew, test.requests)}
		r := &report{Count: test.count, Results: results}
		var out strings.Builder
		if err := r.print(&out); (err != nil) != test.isError {
			t.Errorf("%+v: %v", test, err)
		}
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("there is no %q in\n%s", want, out.String())
			}
		}
	}
}

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
