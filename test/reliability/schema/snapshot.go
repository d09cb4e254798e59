package schema

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/test/reliability/history"
)

// Snapshot returns all that there is of our kinds and of what comes of them in a namespace, as the API server has it, in a form in which
// two namespaces with the same resources are alike. CronJobs in it have never been due.
func (w *World) Snapshot(ctx context.Context, namespace string) (history.Normal, error) {
	world, err := w.recorder.Read(ctx, namespace, history.Resources()...)
	if err != nil {
		return nil, err
	}
	symbols := history.Symbols{}
	for _, cronJob := range world.Of(history.CronJobs) {
		addCalendar(symbols, cronJob)
	}
	return history.Normalize(namespace, world, nil, symbols), nil
}

// Namespace makes a namespace to try things in, and returns its name.
func (w *World) Namespace(ctx context.Context) (string, error) {
	return w.namespace(ctx)
}

// Children returns the children that there are in a namespace.
func (w *World) Children(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	var children []unstructured.Unstructured
	for _, resource := range childResources {
		found, err := w.recorder.List(ctx, resource, namespace)
		if err != nil {
			return nil, err
		}
		children = append(children, found...)
	}
	return children, nil
}
