package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// areIsolated shows that two resources of a kind in one namespace have nothing to do with each other: neither selects
// the other's pods, and nothing becomes of one when the other is changed or deleted.
func areIsolated(ctx context.Context, t *trial) error {
	one, err := t.createSample(ctx)
	if err != nil {
		return err
	}
	other, err := t.createSample(ctx)
	if err != nil {
		return err
	}
	if err := t.selectOnlyTheirOwn(ctx, one, other); err != nil {
		return err
	}
	before, err := t.identity(ctx, append(t.ChildrenOf(other), other))
	if err != nil {
		return err
	}

	if err := t.change(ctx, one, func(object client.Object) { t.Resize(object, t.Pods(object)+1) }); err != nil {
		return err
	}
	if err := t.carriedOut(ctx, one); err != nil {
		return err
	}
	if err := t.areAsBefore(ctx, append(t.ChildrenOf(other), other), before, t.called(one)+" was changed"); err != nil {
		return err
	}

	if err := t.Delete(ctx, one); err != nil {
		return fmt.Errorf("deleting %s: %w", t.called(one), err)
	}
	for _, gone := range append(t.ChildrenOf(one), one) {
		if err := t.until(ctx, t.called(gone)+" is gone", "its finalizers and owner references", t.gone(gone)); err != nil {
			return err
		}
	}
	return t.areAsBefore(ctx, append(t.ChildrenOf(other), other), before, t.called(one)+" was deleted")
}

// selectOnlyTheirOwn checks the selectors of each object's children against the pods of the other.
func (t *trial) selectOnlyTheirOwn(ctx context.Context, one, other client.Object) error {
	for _, pair := range [][2]client.Object{{one, other}, {other, one}} {
		pods := t.deployment(pair[1])
		if err := t.Get(ctx, client.ObjectKeyFromObject(pods), pods); err != nil {
			return err
		}
		for _, child := range t.ChildrenOf(pair[0]) {
			if err := t.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
				return err
			}
			selector, err := selectorOf(child)
			if err != nil {
				return err
			}
			if selector.Matches(labels.Set(pods.Spec.Template.Labels)) {
				return failed("%s has to select pods of %s only, and its selector %q selects those of %s too; look at the labels "+
					"that the operator gives to pods",
					t.called(child), t.called(pair[0]), selector, t.called(pair[1]))
			}
		}
	}
	return nil
}

// selectorOf returns which pods a child is about; one that is about none selects nothing.
func selectorOf(child client.Object) (labels.Selector, error) {
	switch child := child.(type) {
	case *appsv1.Deployment:
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

// identity returns of objects which they are and how often what is wanted of them has changed.
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

func (t *trial) areAsBefore(ctx context.Context, objects []client.Object, before map[string]string,
	event string) error {
	after, err := t.identity(ctx, objects)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		return failed("all of this had to stay when %s: %w; look at owner references, and at who else deletes", event, err)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != before[name] {
			return failed("%s had to stay as it was when %s: it had %s and has %s; look at the names and labels that the "+
				"operator gives to children",
				name, event, before[name], after[name])
		}
	}
	return nil
}
