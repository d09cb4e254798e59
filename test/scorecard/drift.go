package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// driftIsRepaired shows that a child that somebody has changed is put right in place, and that one that somebody has deleted
// is made again.
func driftIsRepaired(ctx context.Context, t *trial) error {
	object, err := t.createSample(ctx)
	if err != nil {
		return err
	}
	for _, child := range t.children(object) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
			return err
		}
		right := child.DeepCopyObject().(client.Object)
		if err := t.change(ctx, child, disturb); err != nil {
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

// disturb changes what a child is to be.
func disturb(child client.Object) {
	labels := child.GetLabels()
	for label := range labels {
		labels[label] = "somebody-else"
	}
	child.SetLabels(labels)
	switch child := child.(type) {
	case *appsv1.Deployment:
		child.Spec.Replicas = ptr.To(ptr.Deref(child.Spec.Replicas, 1) + 1)
		// Not the image: a manager that has begun to lead a moment ago leaves what serves with the one it has.
		child.Spec.Template.Spec.AutomountServiceAccountToken = ptr.To(true)
	case *corev1.Service:
		child.Spec.Selector["somebody"] = "else"
	case *policyv1.PodDisruptionBudget:
		child.Spec.MaxUnavailable, child.Spec.MinAvailable = ptr.To(intstr.FromInt32(5)), nil
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
		if !equality.Semantic.DeepEqual(spec(child), spec(right)) {
			return fmt.Sprintf("the spec of %s is not as the operator had made it", t.called(child)), nil
		}
		return "", nil
	}
}

func spec(child client.Object) any {
	switch child := child.(type) {
	case *appsv1.Deployment:
		return child.Spec
	case *corev1.Service:
		return child.Spec
	case *policyv1.PodDisruptionBudget:
		return child.Spec
	case *batchv1.Job:
		return child.Spec
	}
	return nil
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
