// Package managedcache watches the objects that operator-controller applies.
package managedcache

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TrackingCache is a cache of the kinds that users name.
type TrackingCache interface {
	client.Reader
	manager.Runnable
	// Source returns a source of the events of all kinds in the cache.
	Source(handler handler.EventHandler, predicates ...predicate.Predicate) source.Source
	// Watch adds kinds to the cache.
	Watch(ctx context.Context, user client.Object, kinds sets.Set[schema.GroupVersionKind]) error
	// Free would remove the kinds of a user; they stay in the cache.
	Free(ctx context.Context, user client.Object) error
}

type trackingCache struct {
	cache.Cache

	mutex    sync.Mutex
	kinds    sets.Set[schema.GroupVersionKind]
	watchers []func(kind schema.GroupVersionKind) error
}

// NewTrackingCache returns a cache that is empty until its users name kinds.
func NewTrackingCache(_ logr.Logger, config *rest.Config, options cache.Options) (TrackingCache, error) {
	c, err := cache.New(config, options)
	return &trackingCache{Cache: c, kinds: sets.New[schema.GroupVersionKind]()}, err
}

func (c *trackingCache) Source(handler handler.EventHandler, predicates ...predicate.Predicate) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.watchers = append(c.watchers, func(kind schema.GroupVersionKind) error {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			return source.Kind[client.Object](c.Cache, object, handler, predicates...).Start(ctx, queue)
		})
		return nil
	})
}

func (c *trackingCache) Watch(_ context.Context, _ client.Object, kinds sets.Set[schema.GroupVersionKind]) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for kind := range kinds.Difference(c.kinds) {
		for _, watch := range c.watchers {
			if err := watch(kind); err != nil {
				return err
			}
		}
		c.kinds.Insert(kind)
	}
	return nil
}

func (c *trackingCache) Free(context.Context, client.Object) error { return nil }
