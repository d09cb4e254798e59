// Package recent bridges the time until the cache shows our own writes, and recognizes a cache that is behind.
//
// A cache is always a little behind. A pass that reads it right after a write would see the state before that write
// and do the same thing again: harmless, but a wasted request, and a status computed from the past. Answers carry a
// resource version, and the resource versions of one resource are ordered, so the newer of two copies is known.
package recent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// keep is how long an answer is preferred to a cache that does not show it. Caches are behind by milliseconds as a
// rule; the bound is for the one thing a cache never shows, an object that was created and deleted while its watch was
// down. During an outage a cache may be behind for longer: a controller that must not go back even then keeps its own
// record.
const keep = 30 * time.Second

// BehindError reports that the cache does not show the current state of an object yet. The next pass, on a newer copy,
// may find nothing left to do: it is neither a failure to report nor a reason to back off.
type BehindError struct {
	Kind string
	Key  types.NamespacedName
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("the cache does not show the current state of %s %s yet", e.Kind, e.Key)
}

// IsBehind reports whether a pass failed because the cache is behind.
func IsBehind(err error) bool {
	return errors.As(err, new(*BehindError))
}

// Objects remembers the API server's answers to writes, and for a while which objects were deleted. It is safe for
// concurrent use.
type Objects struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	byKey   map[key]answer
	deleted map[types.UID]time.Time // objects whose deletion the watch has shown or the API server has confirmed
	swept   time.Time
}

// key names an object of any type.
type key struct {
	objectType reflect.Type
	types.NamespacedName
}

func keyOf(object client.Object) key {
	return key{reflect.TypeOf(object), client.ObjectKeyFromObject(object)}
}

type answer struct {
	object client.Object
	at     time.Time
}

// New returns an empty record.
func New(clock clock.PassiveClock) *Objects {
	return &Objects{clock: clock, byKey: map[key]answer{}, deleted: map[types.UID]time.Time{}}
}

// Remember keeps the answer to a write, unless the object is known to be deleted. The caller must not change it
// afterwards.
func (o *Objects) Remember(object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	o.sweep(now)
	if _, isDeleted := o.deleted[object.GetUID()]; !isDeleted {
		o.byKey[keyOf(object)] = answer{object, now}
	}
}

// sweep drops, from time to time, what no pass has asked for again.
func (o *Objects) sweep(now time.Time) {
	if now.Sub(o.swept) < keep {
		return
	}
	o.swept = now
	maps.DeleteFunc(o.byKey, func(_ key, answer answer) bool { return now.Sub(answer.at) > keep })
	maps.DeleteFunc(o.deleted, func(_ types.UID, at time.Time) bool { return now.Sub(at) > keep })
}

// Newest returns the newer one of the cached copy and the remembered answer. If the cache has none, cached only names
// the object and found is false; the answer then counts, and isFound reports whether there is one. The result must not
// be changed.
func (o *Objects) Newest(cached client.Object, found bool) (newest client.Object, isFound bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	answer, ok := o.byKey[keyOf(cached)]
	if !ok {
		return cached, found
	}
	if o.clock.Since(answer.at) > keep || found && !isOlder(cached, answer.object) {
		delete(o.byKey, keyOf(cached))
		return cached, found
	}
	return answer.object, true
}

// Age returns how long ago the remembered answer came that is the given object; 0 if it is none.
func (o *Objects) Age(object client.Object) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.byKey[keyOf(object)]
	if !ok || known.object.GetUID() != object.GetUID() {
		return 0
	}
	return o.clock.Since(known.at)
}

// Forget drops the answer for an object that is deleted, and those that are still to come.
func (o *Objects) Forget(object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	o.sweep(now)
	if known, ok := o.byKey[keyOf(object)]; ok && known.object.GetUID() == object.GetUID() {
		delete(o.byKey, keyOf(object))
	}
	o.deleted[object.GetUID()] = now
}

// IsDeleted reports whether an object was deleted a short while ago, so that a cache may still show it.
func (o *Objects) IsDeleted(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, isDeleted := o.deleted[uid]
	return isDeleted && o.clock.Since(at) <= keep
}

// isOlder reports whether a was read before b. A server whose resource versions are not ordered numbers (none is known)
// makes it false: the cache is preferred.
func isOlder(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

// Live returns the metadata of the object that has the type, namespace and name of the given one as the API server has
// it now, or nil if there is none. It is a list and not a get, which would need one more permission.
func Live(ctx context.Context, c client.Client, live client.Reader,
	named client.Object) (*metav1.PartialObjectMetadata, error) {
	gvk, err := apiutil.GVKForObject(named, c.Scheme())
	if err != nil {
		return nil, err
	}
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = live.List(ctx, found, client.InNamespace(named.GetNamespace()),
		client.MatchingFields{metav1.ObjectNameField: named.GetName()})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", gvk.Kind, client.ObjectKeyFromObject(named), err)
	}
	if len(found.Items) == 0 {
		return nil, nil
	}
	return &found.Items[0], nil
}

// ExplainConflict returns a [*BehindError] for a conflict if the API server has another version of the object than the
// given one. Any other error, such as the conflict that a webhook answers, is returned as it is.
func ExplainConflict(ctx context.Context, c client.Client, live client.Reader, object client.Object, err error) error {
	if !apierrors.IsConflict(err) {
		return err
	}
	found, readErr := Live(ctx, c, live, object)
	switch {
	case readErr != nil:
		return errors.Join(err, readErr)
	case found == nil || found.UID != object.GetUID() || found.ResourceVersion != object.GetResourceVersion():
		return Behind(c, object)
	}
	return err
}

// Named returns an empty object of the type, namespace and name of the given one.
func Named(object client.Object) client.Object {
	named := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	named.SetNamespace(object.GetNamespace())
	named.SetName(object.GetName())
	return named
}

// Behind returns the error for an object that the cache does not show as it is.
func Behind(c client.Client, object client.Object) *BehindError {
	return &BehindError{Kind: KindOf(c, object), Key: client.ObjectKeyFromObject(object)}
}

// KindOf returns the kind of an object, for people to read.
func KindOf(c client.Client, object client.Object) string {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return gvk.Kind
}
