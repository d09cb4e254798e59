// Package status writes the status of our resources. No other code does.
//
// A reconciler computes the whole status from what it has seen and hands it over at the end of every pass, also of one
// that failed. It is sent if it says something new, at once if that is an outcome, and spaced out if it is only
// progress.
package status

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/internal/recent"
)

// Progress reports wait firstWait after the first thing there was to say, then twice as long after each one, up to
// longestWait. So a change that is done within firstWait costs one write, and one that takes a time t costs
// about log2(t/firstWait) + 2, however many pods it moves.
const (
	firstWait   = time.Second
	longestWait = time.Minute
)

// Writer writes the status of one kind. It is safe for concurrent use.
type Writer[P Object[P]] struct {
	client client.Client
	clock  clock.PassiveClock
	recent recent.Objects[P]

	mu    sync.Mutex
	paces map[types.UID]pace
	swept time.Time
}

// Object is a resource whose status is written, as a pointer P.
type Object[P any] interface {
	client.Object
	DeepCopy() P
}

// pace is when the next progress report of a resource is due, and how long the one after it has to wait.
type pace struct {
	due  time.Time
	wait time.Duration
}

// Of returns the writer of the statuses of one kind, written through c.
func Of[P Object[P]](c client.Client, clock clock.PassiveClock) *Writer[P] {
	return &Writer[P]{client: c, clock: clock, paces: map[types.UID]pace{}}
}

// Latest returns the newer of the copy from the cache and the answer to our own last status write, for the caller to
// work on. Computing from an older copy would undo or repeat that write.
func (w *Writer[P]) Latest(cached P) P {
	newest, _ := w.recent.Newest(client.ObjectKeyFromObject(cached), cached, true)
	if newest.GetUID() != cached.GetUID() {
		return cached.DeepCopy() // the one that was answered about is gone
	}
	return newest.DeepCopy()
}

// Patch stores the status of after, which is before with another status, if it says anything new. It sends only what
// differs, so a concurrent change of the spec is no conflict. After then is the object as stored.
//
// A report of mere progress may have to wait: then stored is false and wait says when to pass again.
func (w *Writer[P]) Patch(ctx context.Context, before, after P, isOutcome bool) (stored bool, wait time.Duration, err error) {
	if equality.Semantic.DeepEqual(before, after) {
		if isOutcome {
			w.forget(after.GetUID())
		}
		return false, 0, nil
	}
	if !isOutcome {
		if wait := w.untilDue(after.GetUID()); wait > 0 {
			return false, wait, nil
		}
	}
	if err := w.client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return false, 0, client.IgnoreNotFound(wrap(err, after))
	}
	after.SetManagedFields(nil)
	w.recent.Remember(after.DeepCopy())
	if isOutcome {
		w.forget(after.GetUID())
	}
	return true, 0, nil
}

func wrap(err error, object client.Object) error {
	return fmt.Errorf("writing the status of %s: %w", client.ObjectKeyFromObject(object), err)
}

// untilDue returns how long a progress report has to wait, and notes that it is made when it need not.
func (w *Writer[P]) untilDue(uid types.UID) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	current, ok := w.paces[uid]
	if !ok {
		w.sweep(now)
		w.paces[uid] = pace{due: now.Add(firstWait), wait: 2 * firstWait}
		return firstWait
	}
	if wait := current.due.Sub(now); wait > 0 {
		return wait
	}
	w.paces[uid] = pace{due: now.Add(current.wait), wait: min(2*current.wait, longestWait)}
	return 0
}

// forget ends a series of progress reports.
func (w *Writer[P]) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.paces, uid)
}

// sweep drops series that nobody has ended, those of resources that were deleted on the way.
func (w *Writer[P]) sweep(now time.Time) {
	if now.Sub(w.swept) < longestWait {
		return
	}
	w.swept = now
	for uid, pace := range w.paces {
		if now.Sub(pace.due) > 2*longestWait {
			delete(w.paces, uid)
		}
	}
}
