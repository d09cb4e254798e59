package main

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
)

// foreignDeploymentIsRefused shows that a Deployment of somebody else, under the name that the sample needs, stays as
// it is; that the resource says so, by condition and event; and that all is well when the name is free.
func foreignDeploymentIsRefused(ctx context.Context, t *trial) error {
	object := t.newObject()
	foreign := t.deployment(object)
	theirs(foreign)
	if err := t.create(ctx, foreign); err != nil {
		return err
	}
	if err := t.create(ctx, object); err != nil {
		return err
	}
	if err := t.until(ctx, t.called(object)+" says that the name is taken", managerLog,
		t.says(object, "Degraded", metav1.ConditionTrue, "NameTaken")); err != nil {
		return err
	}
	if err := t.until(ctx, "an event of "+t.called(object)+" says that the name is taken", managerLog,
		t.hasEvent(object, t.NameTaken)); err != nil {
		return err
	}
	if err := t.isTheirs(ctx, foreign); err != nil {
		return err
	}

	// A write has the operator look again: it must not have changed its mind, nor come to it with a delay.
	if err := t.change(ctx, object, func(object client.Object) { t.Resize(object, t.Pods(object)+1) }); err != nil {
		return err
	}
	if err := t.until(ctx, t.called(object)+" says so of its new spec too", managerLog,
		t.says(object, "Degraded", metav1.ConditionTrue, "NameTaken")); err != nil {
		return err
	}
	if err := t.isTheirs(ctx, foreign); err != nil {
		return err
	}

	if err := t.Delete(ctx, foreign); err != nil {
		return fmt.Errorf("deleting %s of somebody else: %w", t.called(foreign), err)
	}
	t.logf("deleted %s of somebody else", t.called(foreign))
	if err := t.carriedOut(ctx, object); err != nil {
		return err
	}
	return t.until(ctx, t.called(object)+" says that nothing is wrong", managerLog,
		t.says(object, "Degraded", metav1.ConditionFalse, "AsExpected"))
}

// theirs makes a Deployment one that somebody else could have made. It has no pods, so no image is needed.
func theirs(deployment *appsv1.Deployment) {
	labels := map[string]string{"somebody": "else", "name": deployment.Name}
	deployment.Labels = labels
	deployment.Spec = appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "it", Image: "somebody.invalid/else:1"}}},
		},
	}
}

// isTheirs checks that something is as somebody else has made it.
func (t *trial) isTheirs(ctx context.Context, made client.Object) error {
	now := made.DeepCopyObject().(client.Object)
	err := t.Get(ctx, client.ObjectKeyFromObject(made), now)
	const stay = "%s belongs to somebody else and had to stay as it was, and %s; look at how the operator decides what " +
		"is its own"
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil || now.GetUID() != made.GetUID() || now.GetDeletionTimestamp() != nil:
		return failed(stay, t.called(made), "it was deleted")
	case len(now.GetOwnerReferences()) > 0:
		owner := now.GetOwnerReferences()[0]
		return failed(stay, t.called(made), fmt.Sprintf("it has an owner now: %s %s", owner.Kind, owner.Name))
	case !maps.Equal(now.GetLabels(), made.GetLabels()):
		return failed(stay, t.called(made), fmt.Sprintf("its labels are %v now", now.GetLabels()))
	case !equality.Semantic.DeepEqual(kinds.Spec(now), kinds.Spec(made)):
		return failed(stay, t.called(made), "its spec has changed")
	}
	return nil
}

// says is a check of a condition of the latest spec.
func (t *trial) says(object client.Object, condition string, want metav1.ConditionStatus, reason string) check {
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(t.kind.Status(object).Conditions, condition)
		switch {
		case c == nil:
			return "there is no condition " + condition, nil
		case c.ObservedGeneration != object.GetGeneration():
			return fmt.Sprintf("condition %s is of generation %d, not %d", condition, c.ObservedGeneration,
				object.GetGeneration()), nil
		case c.Status != want || c.Reason != reason:
			return fmt.Sprintf("condition %s is %s, reason %s, not %s, reason %s: %s", condition, c.Status, c.Reason, want,
				reason, c.Message), nil
		}
		return "", nil
	}
}

// hasEvent is a check that there is a warning about an object.
func (t *trial) hasEvent(object client.Object, reason string) check {
	return func(ctx context.Context) (string, error) {
		var events eventsv1.EventList
		if err := t.List(ctx, &events, client.InNamespace(t.namespace)); err != nil {
			return "", err
		}
		for _, event := range events.Items {
			if event.Regarding.UID == object.GetUID() && event.Reason == reason && event.Type == corev1.EventTypeWarning {
				return "", nil
			}
		}
		return fmt.Sprintf("no warning with reason %s is about %s", reason, t.called(object)), nil
	}
}
