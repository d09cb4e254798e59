package measure

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Follow calls handle for every object and for every change until the context ends. It has no cache, so that it costs
// little beside what is measured. When a watch ends it lists again, so handle may be called twice for an object.
func Follow(ctx context.Context, c client.WithWatch, list client.ObjectList,
	handle func(watch.EventType, client.Object), options ...client.ListOption) {
	for ctx.Err() == nil {
		if err := followOnce(ctx, c, list.DeepCopyObject().(client.ObjectList), handle, options); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func followOnce(ctx context.Context, c client.WithWatch, list client.ObjectList,
	handle func(watch.EventType, client.Object), options []client.ListOption) error {
	if err := c.List(ctx, list, options...); err != nil {
		return err
	}
	version := list.GetResourceVersion()
	err := meta.EachListItem(list, func(object runtime.Object) error {
		handle(watch.Added, object.(client.Object))
		return nil
	})
	if err != nil {
		return err
	}
	changes, err := c.Watch(ctx, list, append(options,
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})...)
	if err != nil {
		return err
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok { // the version is too old
			return nil
		}
		handle(event.Type, object)
	}
	return nil
}
