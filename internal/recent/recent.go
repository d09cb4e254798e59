// Package recent remembers the manager's own writes until the cache shows them, and recognizes a cache that is behind.
//
// A cache is always a little behind. A pass that reads it right after a write would observe the state before that
// write, repeat the write, and compute the status from outdated state. Responses carry a resource version, and the
// resource versions of one resource are ordered, so of two copies the newer one is known.
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
// an outage a cache may be behind for longer. The CronJob controller, which must never forget a run, therefore keeps
// its own record.
const keep = 30 * time.Second

// BehindError reports that the cache does not show the current state of an object yet. It is not logged, not set in a
// status, and causes no backoff: once the cache has caught up, the next pass may have nothing to do.
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

// Objects remembers, for a limited time, the API server's responses to writes and which objects were deleted. It is
// safe for concurrent use.
type Objects struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	byKey   map[key]response
	deleted map[types.UID]time.Time // objects whose deletion the watch has shown or the API server has confirmed
	swept   time.Time
}

// key identifies an object by its Go type, namespace and name.
type key struct {
	objectType reflect.Type
	types.NamespacedName
}

func keyOf(object client.Object) key {
	return key{reflect.TypeOf(object), client.ObjectKeyFromObject(object)}
}

type response struct {
	object client.Object
	at     time.Time
}

// New returns an Objects that remembers nothing yet.
func New(clock clock.PassiveClock) *Objects {
	return &Objects{clock: clock, byKey: map[key]response{}, deleted: map[types.UID]time.Time{}}
}

// Remember keeps the response to a write, unless the object is known to be deleted. It replaces the response before:
// one object is never written concurrently. The caller must not change the response afterwards.
func (o *Objects) Remember(object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	o.sweep(now)
	if _, isDeleted := o.deleted[object.GetUID()]; !isDeleted {
		o.byKey[keyOf(object)] = response{object, now}
	}
}

// sweep drops expired entries, at most once per keep interval.
func (o *Objects) sweep(now time.Time) {
	if now.Sub(o.swept) < keep {
		return
	}
	o.swept = now
	maps.DeleteFunc(o.byKey, func(_ key, r response) bool { return now.Sub(r.at) > keep })
	maps.DeleteFunc(o.deleted, func(_ types.UID, at time.Time) bool { return now.Sub(at) > keep })
}

// Newest returns the cached copy or the remembered response, whichever is newer. If the cache has no copy, inCache is
// false, and only type, namespace and name of cached are used; isFound then reports whether there is a response that
// has not expired. The result must not be changed.
func (o *Objects) Newest(cached client.Object, inCache bool) (newest client.Object, isFound bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.byKey[keyOf(cached)]
	if !ok {
		return cached, inCache
	}
	if o.clock.Since(known.at) > keep || inCache && !isOlder(cached, known.object) {
		delete(o.byKey, keyOf(cached))
		return cached, inCache
	}
	return known.object, true
}

// Age returns how long ago the remembered response for an object was received; 0 if none is remembered for its UID.
func (o *Objects) Age(object client.Object) time.Duration {
	age, _ := o.age(object)
	return age
}

// Expiry returns when another pass is needed for an object whose remembered response the cache does not show: a second
// after [Objects.Newest] stops preferring the response. No event may come by then, if the object was created and
// deleted while its watch was interrupted. It is 0 if no response is remembered for its UID.
func (o *Objects) Expiry(object client.Object) time.Duration {
	age, isRemembered := o.age(object)
	if !isRemembered {
		return 0
	}
	return max(0, keep-age) + time.Second
}

func (o *Objects) age(object client.Object) (age time.Duration, isRemembered bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.byKey[keyOf(object)]
	if !ok || known.object.GetUID() != object.GetUID() {
		return 0, false
	}
	return o.clock.Since(known.at), true
}

// Forget drops the response for a deleted object, and makes [Objects.Remember] ignore later ones for it.
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

// IsDeleted reports whether an object was deleted recently. A cache may still show it.
func (o *Objects) IsDeleted(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, isDeleted := o.deleted[uid]
	return isDeleted && o.clock.Since(at) <= keep
}

// isOlder reports whether a is an older version than b. If their resource versions cannot be compared, it returns
// false, which prefers the cache.
func isOlder(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

// Live returns the metadata of the object that has the type, namespace and name of the given one as the API server has
// it now, or nil if there is none. It reads through live, which must not be a cache, and sends a list request, because
// a get would need one more permission.
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

// ExplainConflict returns a [*BehindError] for a conflict if on the API server the object is missing, has another UID,
// or has another resource version than the given one. Any other error, such as a conflict that a webhook returns, is
// returned unchanged. If reading the object fails, both errors are returned.
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
