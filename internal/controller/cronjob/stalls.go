package cronjob

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// stallDetector records when this process last stalled: it was paused, or its machine was suspended. Such a process may
// have lost leadership without noticing, and its caches may not show what another manager has done since. After a
// suspension its timers are late, too, because the monotonic clock stops meanwhile. It is safe for concurrent use.
type stallDetector struct {
	clock clock.WithTicker
	// stalls gets an event after a stall; stalls that follow each other closely may share one.
	stalls chan event.GenericEvent

	mu           sync.Mutex
	firstRead    time.Time
	lastRead     time.Time
	lastStall    time.Time // when the last stall ended, or the time of the first read
	stallPending bool      // no event has been sent for the last stall yet
}

func newStallDetector(clock clock.WithTicker) *stallDetector {
	return &stallDetector{clock: clock, stalls: make(chan event.GenericEvent, 1)}
}

const (
	// heartbeat is how often the stall detector reads the clock.
	heartbeat = time.Second
	// longestPause is the longest time between two reads that does not count as a stall. A leader may go 10 s without
	// renewing its lease (RenewDeadline) before it gives up; with a pause of 5 s in addition, the lease has expired after
	// 15 s (LeaseDuration), and another manager leads.
	longestPause = 4 * time.Second
)

// Start reads the clock, and sends an event after a stall, until the context ends. The manager calls it when it has won
// the election; see [sigs.k8s.io/controller-runtime/pkg/manager.Runnable].
func (d *stallDetector) Start(ctx context.Context) error {
	ticker := d.clock.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		if d.note(d.clock.Now()) {
			select {
			case d.stalls <- event.GenericEvent{Object: &tutorialv1.CronJob{}}: // mapStallToCronJobs ignores the object
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
	d.record(now.Round(0)) // wall clock only: the monotonic clock stops while the machine is suspended
	hasStall, d.stallPending = d.stallPending, false
	return hasStall
}

// record records a time at which the process ran. The caller holds the lock.
func (d *stallDetector) record(now time.Time) {
	if d.firstRead.IsZero() {
		d.firstRead = now
	}
	if now.Sub(d.lastRead) > longestPause {
		d.lastStall = now
		d.stallPending = !d.lastRead.IsZero()
	}
	d.lastRead = now
}

// aloneSince returns the time since which no other manager has been able to lead, and so to create a Job: the end of
// the last stall, or the first read. It returns the zero time, meaning unknown, until requestTimeout after the first
// read: a request of the previous leader may still be in flight.
func (d *stallDetector) aloneSince(now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now = now.Round(0); now.After(d.lastRead) {
		d.record(now) // the heartbeat may be late
	}
	if d.lastRead.Sub(d.firstRead) < requestTimeout {
		return time.Time{}
	}
	return d.lastStall
}
