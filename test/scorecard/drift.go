package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
)

// driftIsRepaired shows that a child that somebody has changed is put right in place, and that one that somebody has
// deleted is made again.
func driftIsRepaired(ctx context.Context, t *trial) {
	object := t.createSample(ctx)
	for i, child := range t.ChildrenOf(object) {
		t.get(ctx, child)
		right := child.DeepCopyObject().(client.Object)
		t.change(ctx, child, disturb(t.Children[i]))
		t.until(ctx, t.called(child)+" is put right", managerLog, t.isRight(child, right))
		t.delete(ctx, child)
		t.until(ctx, t.called(child)+" is made again", managerLog, t.isAnother(object, child))
	}
	t.carriedOut(ctx, object)
}

// disturb returns what changes the labels of a child, and what it is to be, in every way that is known of it.
func disturb(child kinds.Child) func(client.Object) {
	return func(object client.Object) {
		labels := object.GetLabels()
		for label := range labels {
			labels[label] = "somebody-else"
		}
		object.SetLabels(labels)
		for _, damage := range child.Damage {
			damage(object)
		}
	}
}

// isRight is a check that a child is the same object as before and wants the same.
func (t *trial) isRight(child, right client.Object) check {
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
			return "", err
		}
		if child.GetUID() != right.GetUID() {
			return t.called(child) + " was replaced by another", nil
		}
		for label, want := range right.GetLabels() {
			if got := child.GetLabels()[label]; got != want {
				return fmt.Sprintf("%s has the label %s=%s, not %s", t.called(child), label, got, want), nil
			}
		}
		if !equality.Semantic.DeepEqual(kinds.Spec(child), kinds.Spec(right)) {
			return fmt.Sprintf("the spec of %s is not as the operator had made it", t.called(child)), nil
		}
		return "", nil
	}
}

// isAnother is a check that an object has a new child in the place of a deleted one.
func (t *trial) isAnother(object, deleted client.Object) check {
	return func(ctx context.Context) (string, error) {
		child := deleted.DeepCopyObject().(client.Object)
		wrong, err := t.isOwn(ctx, object, child)
		if wrong == "" && err == nil && child.GetUID() == deleted.GetUID() {
			wrong = t.called(deleted) + " has not gone yet"
		}
		return wrong, err
	}
}
