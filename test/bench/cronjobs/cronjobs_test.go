package main

import (
	"strings"
	"testing"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
)

// Too many requests are an error, a long skew is reported, and with few CronJobs that is not judged.
func TestReport(t *testing.T) {
	for _, test := range []struct {
		count          int
		skew, requests float64
		want           []string
		isError        bool
	}{
		{skewCount, 1, 4, []string{" 0.1 ", " met"}, false},
		{skewCount, 1.1, 4, []string{" 0.11 ", "MISSED"}, false},
		{skewCount, 1, 4.01, []string{" 4.01 ", "MISSED"}, true},
		{2, 9, 4, []string{"not judged", "the bar is for 1000 CronJobs"}, false},
	} {
		var samples measure.Samples
		for range 2 {
			samples = append(samples,
				&measure.Sample{Program: inTreeName, Count: test.count, Numbers: map[string]float64{skewP99: 10}},
				&measure.Sample{Program: ownName, Count: test.count,
					Numbers: map[string]float64{skewP99: test.skew, requestsPerRun: test.requests}})
		}
		var out strings.Builder
		if err := report(&out, test.count, samples); (err != nil) != test.isError {
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
