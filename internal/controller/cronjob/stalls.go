package cronjob

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// stallDetector measures how long this process has run without stalling. A process that was paused, or whose machine
// was suspended, may have lost the lead without noticing. Its caches may not show what another manager has done since,
// and its timers are late, because the monotonic clock stops while the machine is suspended. It is safe for concurrent
// use.
type stallDetector struct {
	clock clock.WithTicker
	// stalls gets an event after each stall.
	stalls chan event.GenericEvent

	mu        sync.Mutex
	begun     time.Time
	lastStall time.Time // when the last stall ended, or the process began
	lastRead  time.Time
	hasStall  bool // no event has been sent for the last stall yet
}

func newStallDetector(clock clock.WithTicker) *stallDetector {
	return &stallDetector{clock: clock, stalls: make(chan event.GenericEvent, 1)}
}

const (
	// heartbeat is how often the stall detector reads the clock.
	heartbeat = time.Second
	// longestPause is the longest time between two reads that does not count as a stall. A manager that cannot renew
	// its lease gives up after 10 s, and others wait for 15 s: a pause of 5 s may be enough to lose the lead.
	longestPause = 4 * time.Second
)

// Start reads the clock until the context ends. The manager calls it when it has won the election; see
// [sigs.k8s.io/controller-runtime/pkg/manager.Runnable].
func (d *stallDetector) Start(ctx context.Context) error {
	ticker := d.clock.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		if d.note(d.clock.Now()) {
			select {
			case d.stalls <- event.GenericEvent{Object: &tutorialv1.CronJob{}}:
			default: // an event is pending already
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// note records a time at which the process ran, and returns whether there was a stall since the last call.
func (d *stallDetector) note(now time.Time) (hasStall bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read(now.Round(0)) // wall clock only: the monotonic clock stops while the machine is suspended
	hasStall, d.hasStall = d.hasStall, false
	return hasStall
}

func (d *stallDetector) read(now time.Time) {
	if d.begun.IsZero() {
		d.begun = now
	}
	if now.Sub(d.lastRead) > longestPause {
		d.lastStall = now
		d.hasStall = !d.lastRead.IsZero()
	}
	d.lastRead = now
}

// aloneSince returns the time since which no other manager can have created a Job, provided that one manager leads at a
// time. It is zero in the first minute after the start, in which a request of the former leader may still be in flight.
func (d *stallDetector) aloneSince(now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now = now.Round(0); now.After(d.lastRead) {
		d.read(now) // the heartbeat may be late
	}
	if d.lastRead.Sub(d.begun) < requestTimeout {
		return time.Time{}
	}
	return d.lastStall
}
