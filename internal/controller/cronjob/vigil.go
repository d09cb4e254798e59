package cronjob

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// vigil is the stall detector: it knows how long this process has run without stalling. A process that stood still, or
// whose machine was suspended, may have lost the lead without noticing, its caches do not show yet what another manager
// has done, and its timers are late: they use the monotonic clock, which stands still with the machine. It is safe for
// concurrent use.
type vigil struct {
	clock clock.WithTicker
	// stalls gets an event after each stall.
	stalls chan event.GenericEvent

	mu       sync.Mutex
	begun    time.Time
	unbroken time.Time // the end of the last stall
	last     time.Time
	hasStall bool // a stall that no event has been sent for
}

func newVigil(clock clock.WithTicker) *vigil {
	return &vigil{clock: clock, stalls: make(chan event.GenericEvent, 1)}
}

const (
	// heartbeat is how often the stall detector reads the clock.
	heartbeat = time.Second
	// longestBreak is how long it may not have read the clock. A manager that cannot renew its lease gives up after 10 s,
	// and others wait for 15 s: to stand still for 5 s may be enough to lose the lead.
	longestBreak = 4 * time.Second
)

// Start reads the clock until the context ends. The manager calls it when it has won the election; see
// [sigs.k8s.io/controller-runtime/pkg/manager.Runnable].
func (v *vigil) Start(ctx context.Context) error {
	ticker := v.clock.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		if v.note(v.clock.Now()) {
			select {
			case v.stalls <- event.GenericEvent{Object: &tutorialv1.CronJob{}}:
			default: // one is waiting
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
func (v *vigil) note(now time.Time) (hasStall bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.look(now.Round(0)) // the monotonic clock stands still with the machine
	hasStall, v.hasStall = v.hasStall, false
	return hasStall
}

func (v *vigil) look(now time.Time) {
	if v.begun.IsZero() {
		v.begun = now
	}
	if now.Sub(v.last) > longestBreak {
		v.unbroken = now
		v.hasStall = !v.last.IsZero()
	}
	v.last = now
}

// covers tells whether nobody but this manager can have run the times of a schedule from one to now, provided that one
// manager at a time leads. For a minute after it has begun, a request of the manager that led before may still be on
// its way.
func (v *vigil) covers(from, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now = now.Round(0); now.After(v.last) {
		v.look(now) // the heartbeat may be late
	}
	return v.last.Sub(v.begun) >= fence && !v.unbroken.After(from)
}
