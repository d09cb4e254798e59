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

// Follow tells of every object there is and of every change until the context ends. It keeps nothing, so that it costs
// little beside what is measured. Where a watch ends it lists again, so an object may be told of twice.
func Follow(ctx context.Context, c client.WithWatch, list client.ObjectList, tell func(watch.EventType, client.Object),
	options ...client.ListOption) {
	for ctx.Err() == nil {
		if err := followOnce(ctx, c, list.DeepCopyObject().(client.ObjectList), tell, options); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func followOnce(ctx context.Context, c client.WithWatch, list client.ObjectList, tell func(watch.EventType,
	client.Object), options []client.ListOption) error {
	if err := c.List(ctx, list, options...); err != nil {
		return err
	}
	version := list.GetResourceVersion()
	err := meta.EachListItem(list, func(object runtime.Object) error {
		tell(watch.Added, object.(client.Object))
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
		tell(event.Type, object)
	}
	return nil
}
