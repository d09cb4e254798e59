// Package status computes conditions and writes the statuses of custom resources. No other package writes them.
//
// A reconciler computes the whole status from what it has observed and calls [Patch] at the end of every pass, even one
// that failed. A status that has changed is written: at once for an outcome, rate-limited for mere progress.
package status

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/recent"
)

// The first progress update is written firstWait after the first change, and each further one after twice the wait of
// the one before, up to longestWait. So a rollout that completes within firstWait costs one write, and one that takes
// the time t costs about log2(t/firstWait) + 2, however many pods it replaces. A change of the spec begins anew, so
// that status.observedGeneration follows within firstWait.
const (
	firstWait   = time.Second
	longestWait = time.Minute
)

// Writer writes the status of the resources of one controller. It is safe for concurrent use.
type Writer struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	recent *recent.Objects

	observedGeneration func(client.Object) int64
	delays             prometheus.Observer

	mu       sync.Mutex
	paces    map[types.UID]pace
	changes  map[types.UID]change
	rejected map[types.UID]time.Time // when UnwrittenNote returned a note
	swept    time.Time
}

// change is a generation of a resource that the status in the cache does not refer to yet.
type change struct {
	generation  int64
	since, seen time.Time // its first and latest pass
	isStored    bool      // the stored status refers to it
}

// pace is when the next progress update of a resource is due, and how long the one after it has to wait, as long as the
// resource has the generation.
type pace struct {
	generation int64
	due        time.Time
	wait       time.Duration
}

// delays is the time from when a writer first gets a generation of a resource until the status refers to it.
var delays = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "memcached_operator_status_delay_seconds",
	Help:    "Time from the first reconcile of a changed resource until its status refers to the change.",
	Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300},
}, []string{"kind"})

func init() { metrics.Registry.MustRegister(delays) }

// NewWriter returns a writer for a kind that writes through c. Live reads without a cache; it is used after a conflict.
// ObservedGeneration returns the generation that the status of a resource refers to.
func NewWriter(kind string, c client.Client, live client.Reader, clock clock.PassiveClock,
	observedGeneration func(client.Object) int64) *Writer {
	return &Writer{client: c, live: live, clock: clock, recent: recent.New(clock), paces: map[types.UID]pace{},
		observedGeneration: observedGeneration, delays: delays.WithLabelValues(kind), changes: map[types.UID]change{},
		rejected: map[types.UID]time.Time{}}
}

// Latest returns a copy of the cached resource or of the response to this writer's last status write, whichever is
// newer. A status computed from an older copy would undo or repeat that write. IsNew reports whether this is the first
// pass for the resource: it has no status, and this writer has not noted it before.
func Latest[P client.Object](w *Writer, cached P) (latest P, isNew bool) {
	newest, _ := w.recent.Newest(cached, true)
	if newest.GetUID() != cached.GetUID() {
		newest = cached // the response is for an earlier resource of that name
	}
	isNew = w.noteChange(cached, newest)
	return newest.DeepCopyObject().(P), isNew
}

// noteChange notes since when the status of a resource does not refer to its generation, until the cache shows a status
// that does. It reports whether the resource is new: the status refers to no generation, and no change was noted.
func (w *Writer) noteChange(cached, newest client.Object) (isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, uid, generation := w.clock.Now(), newest.GetUID(), newest.GetGeneration()
	noted, isNoted := w.changes[uid]
	switch {
	case w.observedGeneration(cached) == generation:
		delete(w.changes, uid)
	case noted.generation != generation:
		w.changes[uid] = change{generation: generation, since: now, seen: now}
	default:
		noted.seen = now
		w.changes[uid] = noted
	}
	return w.observedGeneration(newest) == 0 && !isNoted
}

// noteStored observes the delay of a change when the status refers to it.
func (w *Writer) noteStored(object client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := object.GetUID()
	delete(w.rejected, uid)
	if noted, ok := w.changes[uid]; ok && !noted.isStored && w.observedGeneration(object) >= noted.generation {
		w.delays.Observe(w.clock.Since(noted.since).Seconds())
		noted.isStored = true
		w.changes[uid] = noted
	}
}

// Patch writes the status of after, a copy of before with a new status, if the two differ, and returns the resource as
// stored. The patch carries the resourceVersion of before. If the API server has another version, the error is a
// [*recent.BehindError], and the pass that observes the newer version computes the status from that. So neither a late
// request nor a manager that has lost the lead without noticing reverts a status. Any other conflict, such as one that
// a webhook returns, is an error.
//
// If a progress update has to wait, stored is nil, as it is for a status that has not changed, and wait is the time
// until the next pass.
func Patch[P client.Object](ctx context.Context, w *Writer, before, after P, isOutcome bool) (stored P,
	wait time.Duration, err error) {
	isNew := !equality.Semantic.DeepEqual(before, after)
	if isNew && !isOutcome {
		if wait := w.untilDue(after); wait > 0 {
			return stored, wait, nil
		}
	}
	if isNew {
		answer, err := w.send(ctx, before, after)
		if err != nil {
			return stored, 0, client.IgnoreNotFound(err)
		}
		stored = answer.(P)
		w.recent.Remember(answer.DeepCopyObject().(client.Object))
		w.noteStored(stored)
	}
	if isOutcome {
		w.forget(after.GetUID())
	}
	return stored, 0, nil
}

// UnwrittenNote returns the note of an event that reports why the API server rejects the status of a resource. It is ""
// for no error, for one that a retry may resolve, and for an hour after such an event, unless the status was written.
func (w *Writer) UnwrittenNote(object client.Object, err error) string {
	// The API server passes on what etcd says, as an internal error.
	isTooLarge := err != nil && strings.Contains(err.Error(), "etcdserver: request is too large")
	if !isTooLarge && !child.IsRefusal(err) {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, uid := w.clock.Now(), object.GetUID()
	w.sweep(now)
	if last, ok := w.rejected[uid]; ok && now.Sub(last) <= time.Hour {
		return ""
	}
	w.rejected[uid] = now
	note := "the status is not up to date: "
	if isTooLarge {
		note += "make the resource smaller: "
	}
	return shorten(note + err.Error())
}

// send patches the status by the difference between two copies of one version, and returns the response.
func (w *Writer) send(ctx context.Context, before, after client.Object) (client.Object, error) {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	content, err := patch.Data(after)
	if err != nil {
		return nil, err
	}
	answer := recent.Named(after) // decoding into after itself would keep fields that the response omits
	err = w.client.Status().Patch(ctx, answer, client.RawPatch(patch.Type(), content))
	if err := recent.ExplainConflict(ctx, w.client, w.live, before, err); err != nil {
		return nil, fmt.Errorf("writing the status of %s: %w", client.ObjectKeyFromObject(after), err)
	}
	answer.SetManagedFields(nil)
	return answer, nil
}

// untilDue returns how long a progress update has to wait. If it returns 0, the update counts as written.
func (w *Writer) untilDue(object client.Object) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, uid, generation := w.clock.Now(), object.GetUID(), object.GetGeneration()
	current, ok := w.paces[uid]
	if !ok {
		w.sweep(now)
	}
	if !ok || current.generation != generation {
		first := now.Add(firstWait)
		if ok && current.due.Before(first) {
			first = current.due // a spec that changes all the time does not postpone it
		}
		current = pace{generation: generation, due: first, wait: 2 * firstWait}
	}
	if wait := current.due.Sub(now); wait > 0 {
		w.paces[uid] = current
		return wait
	}
	w.paces[uid] = pace{generation: generation, due: now.Add(current.wait), wait: min(2*current.wait, longestWait)}
	return 0
}

// forget ends a series of progress updates.
func (w *Writer) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.paces, uid)
}

// sweep drops series that never ended because their resources were deleted.
func (w *Writer) sweep(now time.Time) {
	if now.Sub(w.swept) < longestWait {
		return
	}
	w.swept = now
	for uid, pace := range w.paces {
		if now.Sub(pace.due) > 2*longestWait {
			delete(w.paces, uid)
		}
	}
	for uid, change := range w.changes {
		if now.Sub(change.seen) > time.Hour {
			delete(w.changes, uid)
		}
	}
	for uid, last := range w.rejected {
		if now.Sub(last) > time.Hour {
			delete(w.rejected, uid)
		}
	}
}

// Sooner returns the shortest of some waits. A wait of 0 means no wait and is ignored.
func Sooner(waits ...time.Duration) time.Duration {
	var shortest time.Duration
	for _, wait := range waits {
		if shortest == 0 || wait != 0 && wait < shortest {
			shortest = wait
		}
	}
	return shortest
}
