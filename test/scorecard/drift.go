package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
)

// driftIsRepaired shows that a child that somebody has changed is put right in place, and that one that somebody has
// deleted is made again.
func driftIsRepaired(ctx context.Context, t *trial) error {
	object, err := t.createSample(ctx)
	if err != nil {
		return err
	}
	for i, child := range t.ChildrenOf(object) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
			return err
		}
		right := child.DeepCopyObject().(client.Object)
		if err := t.change(ctx, child, disturb(t.Children[i])); err != nil {
			return err
		}
		if err := t.until(ctx, t.called(child)+" is put right", managerLog, t.isRight(child, right)); err != nil {
			return err
		}

		if err := t.Delete(ctx, child); err != nil {
			return fmt.Errorf("deleting %s: %w", t.called(child), err)
		}
		t.logf("deleted %s", t.called(child))
		if err := t.until(ctx, t.called(child)+" is made again", managerLog, t.isAnother(object, child)); err != nil {
			return err
		}
	}
	return t.carriedOut(ctx, object)
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

// isAnother is a check that an object has a new child in the place of one that was deleted.
func (t *trial) isAnother(object, deleted client.Object) check {
	return func(ctx context.Context) (string, error) {
		child := deleted.DeepCopyObject().(client.Object)
		err := t.Get(ctx, client.ObjectKeyFromObject(deleted), child)
		switch {
		case apierrors.IsNotFound(err):
			return "there is no " + t.called(deleted), nil
		case err != nil:
			return "", err
		case child.GetUID() == deleted.GetUID():
			return t.called(deleted) + " has not gone yet", nil
		case !metav1.IsControlledBy(child, object):
			return fmt.Sprintf("%s is not controlled by %s", t.called(child), t.called(object)), nil
		}
		return "", nil
	}
}
