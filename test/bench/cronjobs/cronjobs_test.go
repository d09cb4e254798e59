package main

import (
	"strings"
	"testing"
	"time"
)

// samples returns both runs of a side whose Jobs all start after the same time, with so many requests for each.
func samples(skew float64, requests int) [][]*sample {
	s := &sample{Skews: []float64{skew, skew}, CPU: 2,
		Requests: map[string]int{createJobs: 2, "update jobs": 2 * (requests - 1)}}
	return [][]*sample{{s, s}}
}

// Too many requests are an error, a long skew is reported, and with few CronJobs that is not judged.
func TestReport(t *testing.T) {
	for _, test := range []struct {
		count, requests int
		skew            float64
		want            []string
		isError         bool
	}{
		{skewCount, 4, 1, []string{" 0.1 ", " met", "1000 "}, false},
		{skewCount, 4, 1.1, []string{" 0.11 ", "MISSED"}, false},
		{skewCount, 5, 1, []string{" 5 ", "MISSED"}, true},
		{2, 4, 9, []string{"not judged", "the bar is for 1000 CronJobs"}, false},
	} {
		r := &report{Count: test.count, Pairs: [2][][]*sample{samples(10, 6), samples(test.skew, test.requests)}}
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

func TestSchedule(t *testing.T) {
	for _, test := range []struct {
		now   string
		lead  time.Duration
		count int
		first string
		gap   time.Duration
		want  string
	}{
		{"2025-11-21T07:00:10Z", 0, 20, "07:01", time.Minute, "1,2 7 * * *"},
		{"2025-11-21T07:00:10Z", 65 * time.Second, 20, "07:02", time.Minute, "2,3 7 * * *"},
		{"2025-11-21T23:55:50Z", 0, 1000, "23:57", 6 * time.Minute, "57,3 23,0 * * *"},
		{"2025-11-21T07:20:00Z", 0, maxCount, "07:23", 26 * time.Minute, "23,49 7 * * *"},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		due := dueTimes(now, test.lead, test.count)
		if first, gap := due[0].Format("15:04"), due[1].Sub(due[0]); first != test.first || gap != test.gap {
			t.Errorf("%d at %s: due at %s and %s later", test.count, test.now, first, gap)
		}
		if got := schedule(due); got != test.want {
			t.Errorf("%v: %q, want %q", due, got, test.want)
		}
	}
}
