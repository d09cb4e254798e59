// Package status writes the status of our resources. No other code does.
//
// A reconciler computes the whole status from what it has seen and hands it over at the end of every pass, also of one
// that failed. It is sent if it says something new, at once if that is an outcome, and spaced out if it is only
// progress.
package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
type Writer[T any, P Object[T, P]] struct {
	client client.Client
	clock  clock.PassiveClock
	recent recent.Objects[P]

	mu    sync.Mutex
	paces map[types.UID]pace
	swept time.Time
}

// Object is the pointer P to a resource of type T.
type Object[T, P any] interface {
	*T
	client.Object
	DeepCopy() P
}

// pace is when the next progress report of a resource is due, and how long the one after it has to wait.
type pace struct {
	due  time.Time
	wait time.Duration
}

// Of returns the writer of the statuses of one kind, written through c.
func Of[T any, P Object[T, P]](c client.Client, clock clock.PassiveClock) *Writer[T, P] {
	return &Writer[T, P]{client: c, clock: clock, paces: map[types.UID]pace{}}
}

// Latest returns the newer of the copy from the cache and the answer to our own last status write, for the caller to
// work on. Computing from an older copy would undo or repeat that write.
func (w *Writer[T, P]) Latest(cached P) P {
	newest, _ := w.recent.Newest(client.ObjectKeyFromObject(cached), cached, true)
	if newest.GetUID() != cached.GetUID() {
		return cached.DeepCopy() // the one that was answered about is gone
	}
	return newest.DeepCopy()
}

// Patch stores the status of after, which is before with another status, if it says anything new, and returns the resource as
// it is then. The status is stored only over the very version that it was computed from; else the error is a conflict, and the pass that
// sees the newer version says what is true of that. So an answer that was late, or a manager that has lost the lead and does not know yet,
// sets nothing back.
//
// A report of mere progress may have to wait: then stored is nil, as it is when there is nothing to say, and wait says when to
// pass again.
func (w *Writer[T, P]) Patch(ctx context.Context, before, after P, isOutcome bool) (stored P, wait time.Duration, err error) {
	isNew := !equality.Semantic.DeepEqual(before, after)
	if isNew && !isOutcome {
		if wait := w.untilDue(after.GetUID()); wait > 0 {
			return nil, wait, nil
		}
	}
	if isNew {
		if stored, err = w.send(ctx, after); err != nil {
			return nil, 0, client.IgnoreNotFound(fmt.Errorf("writing the status of %s: %w", client.ObjectKeyFromObject(after), err))
		}
		w.recent.Remember(stored.DeepCopy())
	}
	if isOutcome {
		w.forget(after.GetUID())
	}
	return stored, 0, nil
}

// send replaces the status and returns the answer.
func (w *Writer[T, P]) send(ctx context.Context, after P) (P, error) {
	status := reflect.ValueOf(after).Elem().FieldByName("Status").Interface()
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": after.GetUID()},
		{"op": "test", "path": "/metadata/resourceVersion", "value": after.GetResourceVersion()},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return nil, err
	}
	answer := P(new(T)) // not over after: what the answer leaves out would stay
	answer.SetNamespace(after.GetNamespace())
	answer.SetName(after.GetName())
	err = w.client.Status().Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case hasTestFailed(err):
		return nil, apierrors.NewConflict(schema.GroupResource{}, after.GetName(), errors.New("it has changed since it was looked at"))
	case err != nil:
		return nil, err
	}
	answer.SetManagedFields(nil)
	return answer, nil
}

// hasTestFailed tells whether a JSON patch was refused for its test. The answer then has no details; that of a status which
// does not fit its schema names the fields, and that of a webhook says so.
func hasTestFailed(err error) bool {
	var refusal apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &refusal) {
		return false
	}
	answer := refusal.Status()
	return (answer.Details == nil || len(answer.Details.Causes) == 0) && !strings.Contains(answer.Message, "admission webhook")
}

// untilDue returns how long a progress report has to wait, and notes that it is made when it need not.
func (w *Writer[T, P]) untilDue(uid types.UID) time.Duration {
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
func (w *Writer[T, P]) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.paces, uid)
}

// sweep drops series that nobody has ended, those of resources that were deleted on the way.
func (w *Writer[T, P]) sweep(now time.Time) {
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

// Sooner returns the shorter of two waits, of which 0 is none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
