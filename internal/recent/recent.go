// Package recent remembers the manager's own writes until the cache shows them, and recognizes a cache that is behind.
//
// A cache is always a little behind. A pass that reads it right after a write would observe the state before that write
// and repeat it: harmless, but a wasted request, and a status computed from outdated state. Responses carry a resource
// version, and the resource versions of one resource are ordered, so the newer of two copies is known.
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

// keep is how long a response is preferred to a cache that does not show it. Usually caches are behind by milliseconds.
// The limit is for objects that a cache never shows: those created and deleted while its watch was interrupted. During
// an outage a cache may be behind for longer: a controller that must not use older state even then keeps its own
// record.
const keep = 30 * time.Second

// BehindError reports that the cache does not show the current state of an object yet. It is neither a failure to
// report nor a reason to back off: with a newer copy, the next pass may have nothing to do.
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

// Objects remembers the API server's responses to writes, and for a while which objects were deleted. It is safe for
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

// Remember keeps the response to a write, unless the object is known to be deleted. The caller must not change it
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

// sweep drops expired entries, at most once in the time keep.
func (o *Objects) sweep(now time.Time) {
	if now.Sub(o.swept) < keep {
		return
	}
	o.swept = now
	maps.DeleteFunc(o.byKey, func(_ key, answer answer) bool { return now.Sub(answer.at) > keep })
	maps.DeleteFunc(o.deleted, func(_ types.UID, at time.Time) bool { return now.Sub(at) > keep })
}

// Newest returns the cached copy or the remembered response, whichever is newer. If the cache has no copy, found is
// false, and cached has only the name of the object; isFound then reports whether there is a response. The result must
// not be changed.
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

// Age returns how long ago the response was received that is remembered for an object; 0 if there is none.
func (o *Objects) Age(object client.Object) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.byKey[keyOf(object)]
	if !ok || known.object.GetUID() != object.GetUID() {
		return 0
	}
	return o.clock.Since(known.at)
}

// Forget drops the response for an object that is deleted, and has later ones ignored.
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

// isOlder reports whether a is an older version than b. If resource versions are not ordered numbers (no such server is
// known), it returns false, which prefers the cache.
func isOlder(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

// Live returns the metadata of the object that has the type, namespace and name of the given one as the API server has
// it now, or nil if there is none. It sends a list request, because a get would need one more permission.
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
// given one. Any other error, such as a conflict that a webhook returns, is returned unchanged.
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

// Behind returns the error for an object whose current state the cache does not show.
func Behind(c client.Client, object client.Object) *BehindError {
	return &BehindError{Kind: KindOf(c, object), Key: client.ObjectKeyFromObject(object)}
}

// KindOf returns the kind of an object, for use in messages.
func KindOf(c client.Client, object client.Object) string {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return gvk.Kind
}
