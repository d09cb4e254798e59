package cronjob

import (
	"context"
	"sync"
	"time"
)

// vigil is since when a manager has been at work without a break. One that stood still, or whose machine did, may have
// lost the lead without noticing, and its caches do not show yet what another one has done. It is safe for concurrent
// use; the zero value is ready.
type vigil struct {
	mu       sync.Mutex
	begun    time.Time
	unbroken time.Time // the end of the last break
	last     time.Time
}

const (
	// heartbeat is how often a vigil looks at the clock.
	heartbeat = time.Second
	// longestBreak is how long it may not have looked. A manager that cannot renew its lease gives up after 10 s, and
	// others wait for 15 s: to stand still for 5 s may be enough to lose the lead.
	longestBreak = 4 * time.Second
)

// Start keeps the vigil. The manager calls it when it begins to lead; see
// [sigs.k8s.io/controller-runtime/pkg/manager.Runnable].
func (v *vigil) Start(ctx context.Context) error {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for v.note(time.Now()); ; v.note(time.Now()) {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (v *vigil) note(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.look(now.Round(0)) // the monotonic clock stands still with the machine
}

func (v *vigil) look(now time.Time) {
	if v.begun.IsZero() {
		v.begun = now
	}
	if now.Sub(v.last) > longestBreak {
		v.unbroken = now
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
