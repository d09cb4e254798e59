package cronjob

import (
	"context"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// Timers are late by as long as the machine was suspended, so all CronJobs are checked after each stall.
func TestStallsAreReported(t *testing.T) {
	clock := clocktesting.NewFakeClock(moment("11:50"))
	d := newStallDetector(clock)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Start(ctx) }()
	step := func(by time.Duration) {
		t.Helper()
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		before := clock.Now()
		clock.Step(by)
		for isRead := false; !isRead; time.Sleep(time.Millisecond) {
			d.mu.Lock()
			isRead = d.lastRead.After(before)
			d.mu.Unlock()
		}
	}
	for range 10 {
		step(time.Second)
	}
	select {
	case <-d.stalls:
		t.Error("a stall is reported where there was none")
	default:
	}
	step(time.Hour)
	select {
	case <-d.stalls:
	case <-time.After(10 * time.Second):
		t.Error("the stall is not reported")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestStallDetector(t *testing.T) {
	for _, test := range []struct {
		name      string
		watches   [][2]string // intervals in which it reads the clock every second
		from, now string
		want      bool
	}{
		{"a run on time", [][2]string{{"11:50", "12:00"}}, "12:00", "12:00:01", true},
		{"a run that is late because there are so many", [][2]string{{"11:50", "12:02"}}, "12:00", "12:02", true},
		{"it has just begun", nil, "12:00", "12:00:01", false},
		{"it began less than a minute ago", [][2]string{{"11:59:02", "12:00"}}, "12:00", "12:00:01", false},
		{"it began a minute ago", [][2]string{{"11:59:01", "12:00"}}, "12:00", "12:00:01", true},
		{"a run of a time before it began", [][2]string{{"11:50", "12:00"}}, "11:45", "12:00:01", false},
		{"it stalled, and has not read the clock since", [][2]string{{"11:50", "11:59:30"}}, "12:00",
			"12:00:01", false},
		{"it stalled when the time came", [][2]string{{"11:50", "11:59:58"}, {"12:00:03", "12:00:10"}}, "12:00",
			"12:00:10", false},
		{"it stalled for a moment only", [][2]string{{"11:50", "11:59:58"}, {"12:00:02", "12:00:10"}}, "12:00",
			"12:00:10", true},
		{"it stalled before", [][2]string{{"11:50", "11:55"}, {"11:58", "12:00"}}, "12:00", "12:00:01", true},
		{"the clock was put back", [][2]string{{"11:50", "12:10"}, {"12:00", "12:01"}}, "12:01", "12:01", true},
	} {
		d := stallDetector{}
		for _, watch := range test.watches {
			for at := moment(watch[0]); !at.After(moment(watch[1])); at = at.Add(time.Second) {
				d.note(at)
			}
		}
		run := plan{past: past{aloneSince: d.aloneSince(moment(test.now))}, run: moment(test.from)}
		if got := !run.needsConfirmation(); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// A pass that read the clock before a stall does not hide the stall.
func TestStallDetectorOfLatePasses(t *testing.T) {
	d := stallDetector{}
	for at := moment("11:50"); !at.After(moment("12:00")); at = at.Add(time.Second) {
		d.note(at)
	}
	d.note(moment("12:00:30"))
	d.aloneSince(moment("12:00:01"))
	d.note(moment("12:00:31"))
	if since := d.aloneSince(moment("12:00:31")); !since.Equal(moment("12:00:30")) {
		t.Errorf("alone since %s", since)
	}
}

func TestStallDetectorStarts(t *testing.T) {
	d, before := newStallDetector(clock.RealClock{}), time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Start(ctx); err != nil || d.firstRead.Before(before.Round(0)) {
		t.Errorf("%v, first read %s", err, d.firstRead)
	}
}
