package main

import (
	"context"
	"fmt"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
)

// areIsolated shows that two resources of a kind in one namespace are independent: neither selects the other's pods,
// and nothing happens to the children of one when the other is changed or deleted.
func areIsolated(ctx context.Context, t *trial) {
	one, other := t.createSettled(ctx), t.createSettled(ctx)
	if t.Deploys {
		t.selectOnlyTheirOwn(ctx, one, other)
		t.selectOnlyTheirOwn(ctx, other, one)
	}
	family := t.family(ctx, other)
	before, err := t.identity(ctx, family)
	t.must(err)

	hasGrown := t.grows(ctx, one)
	t.change(ctx, one, t.grow)
	t.reconciled(ctx, one, hasGrown)
	t.areAsBefore(ctx, family, before, t.called(one)+" was changed")

	deleted := t.family(ctx, one)
	t.delete(ctx, one)
	for _, object := range deleted {
		t.until(ctx, t.called(object)+" is deleted", "its finalizers and owner references", t.deleted(object))
	}
	t.areAsBefore(ctx, family, before, t.called(one)+" was deleted")
}

// createSettled creates an object that has children and gets no others by itself.
func (t *trial) createSettled(ctx context.Context) client.Object {
	if t.Deploys {
		return t.createSample(ctx)
	}
	object := t.createRunning(ctx)
	t.change(ctx, object, calm)
	t.reconciled(ctx, object, t.reportsActive(object))
	return object
}

// family returns an object and its children.
func (t *trial) family(ctx context.Context, object client.Object) []client.Object {
	family := append(t.ChildrenOf(object), object)
	if !t.Deploys {
		for _, job := range t.jobs(ctx, object) {
			family = append(family, &job)
		}
	}
	return family
}

// grows is a check that an object has more active Jobs than now. Other children replace each other.
func (t *trial) grows(ctx context.Context, object client.Object) check {
	if t.Deploys {
		return func(context.Context) (string, error) { return "", nil }
	}
	return t.hasActive(object, len(t.jobs(ctx, object, isUnfinished))+1)
}

// selectOnlyTheirOwn checks the selectors of an object's children against the pods of another.
func (t *trial) selectOnlyTheirOwn(ctx context.Context, one, other client.Object) {
	workload := t.ChildrenOf(other)[0]
	t.get(ctx, workload)
	_, pods := kinds.Workload(workload)
	for _, child := range t.ChildrenOf(one) {
		t.get(ctx, child)
		selector, err := selectorOf(child)
		t.must(err)
		if selector.Matches(labels.Set(pods.Labels)) {
			t.must(failed("%s has to select pods of %s only, and its selector %q selects those of %s too; look at the labels "+
				"that the operator gives to pods", t.called(child), t.called(one), selector, t.called(other)))
		}
	}
}

// selectorOf returns the selector of the pods of a child; without one it selects nothing.
func selectorOf(child client.Object) (labels.Selector, error) {
	switch child := child.(type) {
	case *appsv1.Deployment:
		return metav1.LabelSelectorAsSelector(child.Spec.Selector)
	case *appsv1.StatefulSet:
		return metav1.LabelSelectorAsSelector(child.Spec.Selector)
	case *policyv1.PodDisruptionBudget:
		return metav1.LabelSelectorAsSelector(child.Spec.Selector)
	case *corev1.Service:
		if len(child.Spec.Selector) > 0 {
			return labels.SelectorFromSet(child.Spec.Selector), nil
		}
	}
	return labels.Nothing(), nil
}

// identity returns the UIDs and generations of objects.
func (t *trial) identity(ctx context.Context, objects []client.Object) (map[string]string, error) {
	identity := map[string]string{}
	for _, object := range objects {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return nil, err
		}
		identity[t.called(object)] = fmt.Sprintf("UID %s, generation %d", object.GetUID(), object.GetGeneration())
	}
	return identity, nil
}

// areAsBefore checks that objects have the identity that they had.
func (t *trial) areAsBefore(ctx context.Context, objects []client.Object, before map[string]string, event string) {
	after, err := t.identity(ctx, objects)
	if apierrors.IsNotFound(err) {
		err = failed("all of this had to stay when %s: %w; look at owner references, and at what else deletes", event, err)
	}
	t.must(err)
	if diff := gocmp.Diff(before, after); diff != "" {
		t.must(failed("all of this had to stay as it was when %s; look at the names and labels that the operator gives to "+
			"children (-before +after):\n%s", event, diff))
	}
}
