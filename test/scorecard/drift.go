package main

import (
	"cmp"
	"context"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
)

// driftIsRepaired shows that a changed child is reverted in place, and that a deleted one is recreated.
func driftIsRepaired(ctx context.Context, t *trial) {
	object := t.createSample(ctx)
	for i, child := range t.ChildrenOf(object) {
		t.get(ctx, child)
		right := child.DeepCopyObject().(client.Object)
		t.change(ctx, child, func(child client.Object) {
			labels := child.GetLabels()
			for label := range labels {
				labels[label] = "another-client"
			}
			child.SetLabels(labels)
			for _, damage := range t.Children[i].Damage {
				damage(child)
			}
		})
		t.until(ctx, t.called(child)+" is reverted", managerLog, func(ctx context.Context) (string, error) {
			err := t.Get(ctx, client.ObjectKeyFromObject(child), child)
			labels := map[string]string{} // others may add some
			for label := range right.GetLabels() {
				labels[label] = child.GetLabels()[label]
			}
			return cmp.Or(differs("the UID", child.GetUID(), right.GetUID()),
				differs("the labels", labels, right.GetLabels()),
				gocmp.Diff(kinds.Spec(right), kinds.Spec(child))), err
		})
		t.delete(ctx, child)
		t.until(ctx, t.called(child)+" is recreated", managerLog, func(ctx context.Context) (string, error) {
			again := child.DeepCopyObject().(client.Object)
			wrong, err := t.isControlled(ctx, object, again)
			if wrong == "" && err == nil && again.GetUID() == child.GetUID() {
				wrong = t.called(child) + " is not deleted yet"
			}
			return wrong, err
		})
	}
	t.reconciled(ctx, object)
}
