// Package recent remembers the API server's answers to our own writes until the cache has caught up with them.
//
// A cache is always a little behind. A pass that reads it right after a write would see the world before that write
// and do the same thing again: harmless, but a wasted request, and a status computed from the past. Answers carry a
// resource version, and resource versions of one kind are ordered, so the newer of the two copies is known.
package recent

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keep is how long an answer is believed against a cache that does not show it. Caches are behind by milliseconds as a rule; the bound
// is for the one thing a cache never shows, an object that was created and deleted while its watch was down. When an API server is
// in trouble, a cache may be behind for longer: who must not go back even then remembers it by itself.
const keep = 30 * time.Second

// Objects remembers answers of one kind, and for a while which objects have ended. It is safe for concurrent use.
// The zero value is ready.
type Objects[T client.Object] struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]answer[T]
	gone  map[types.UID]time.Time // objects whose end the watch has shown, and when
	swept time.Time
}

type answer[T client.Object] struct {
	object T
	at     time.Time
}

// Remember keeps the answer to a write, unless the watch has been quicker and shown the object's end. The caller must not
// change it afterwards.
func (o *Objects[T]) Remember(object T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.sweep(now)
	if _, isGone := o.gone[object.GetUID()]; isGone {
		return
	}
	if o.byKey == nil {
		o.byKey = map[types.NamespacedName]answer[T]{}
	}
	o.byKey[client.ObjectKeyFromObject(object)] = answer[T]{object, now}
}

// sweep drops, now and then, what nobody asks for again.
func (o *Objects[T]) sweep(now time.Time) {
	if now.Sub(o.swept) < keep {
		return
	}
	o.swept = now
	maps.DeleteFunc(o.byKey, func(_ types.NamespacedName, answer answer[T]) bool { return now.Sub(answer.at) > keep })
	maps.DeleteFunc(o.gone, func(_ types.UID, at time.Time) bool { return now.Sub(at) > keep })
}

// Newest returns the newer one of the cached copy and the remembered answer. A cached copy that is not there is
// given as found false; then the answer counts, and found tells whether there was one. The answer must not be changed.
func (o *Objects[T]) Newest(key types.NamespacedName, cached T, found bool) (newest T, foundAny bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	answer, ok := o.byKey[key]
	if !ok {
		return cached, found
	}
	if time.Since(answer.at) > keep || found && !older(cached, answer.object) {
		delete(o.byKey, key)
		return cached, found
	}
	return answer.object, true
}

// Forget drops the answer for an object whose end the watch has shown, and those that are still to come.
func (o *Objects[T]) Forget(object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.sweep(now)
	key := client.ObjectKeyFromObject(object)
	if known, ok := o.byKey[key]; ok && known.object.GetUID() == object.GetUID() {
		delete(o.byKey, key)
	}
	if o.gone == nil {
		o.gone = map[types.UID]time.Time{}
	}
	o.gone[object.GetUID()] = now
}

// IsGone tells whether an object has ended a short while ago, so that a cache may still show it.
func (o *Objects[T]) IsGone(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, isGone := o.gone[uid]
	return isGone && time.Since(at) <= keep
}

// older tells whether a was read before b. A server whose resource versions are not ordered numbers
// (none is known) makes it false: the cache is believed.
func older(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
