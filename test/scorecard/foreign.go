package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/kinds"
)

// foreignChildIsRefused shows that objects that the resource does not control, under the names that it needs, stay as
// they are; that the resource reports it, by condition and event; and that it recovers when the names are free.
func foreignChildIsRefused(ctx context.Context, t *trial) {
	object := t.newObject()
	foreign := t.occupy(ctx, object)
	isTaken := t.says(object, "Degraded", metav1.ConditionTrue, "NameTaken")
	t.until(ctx, t.called(object)+" says that the name is taken", managerLog, isTaken)
	t.until(ctx, "an event of "+t.called(object)+" says that the name is taken", managerLog,
		t.hasEvent(object, t.NameTaken))
	t.areTheirs(ctx, foreign)

	// A write triggers another pass: it must not change the outcome, at once or with a delay.
	t.change(ctx, object, func(object client.Object) {
		t.grow(object)
		if cronJob, ok := object.(*tutorialv1.CronJob); ok { // which is to grow already
			cronJob.Spec.SuccessfulJobsHistoryLimit = ptr.To(int32(7))
		}
	})
	t.until(ctx, t.called(object)+" says so of its new spec too", managerLog, isTaken)
	t.areTheirs(ctx, foreign)

	hasNewChildren := t.grows(ctx, object)
	for _, child := range foreign {
		t.delete(ctx, child)
	}
	t.carriedOut(ctx, object, hasNewChildren)
	t.until(ctx, t.called(object)+" says that nothing is wrong", managerLog,
		t.says(object, "Degraded", metav1.ConditionFalse, "AsExpected"))
}

// occupy creates an object, and others under the names that its children need.
func (t *trial) occupy(ctx context.Context, object client.Object) []client.Object {
	var foreign []client.Object
	if t.Deploys {
		foreign = append(foreign, unmanaged(kinds.NewDeployment(t.namespace, t.ChildrenOf(object)[0].GetName(), 0)))
		t.create(ctx, foreign[0])
		t.create(ctx, object)
		return foreign
	}
	growRuns(object)
	t.create(ctx, object)
	t.carriedOut(ctx, object)
	next := object.(*tutorialv1.CronJob).Status.NextScheduleTime.Time
	// Several in a row leave time to observe them. The operator may have been faster with the first.
	for ; len(foreign) < 6; next = next.Add(period) {
		job := unmanaged(kinds.NewJob(t.namespace, jobName(object.GetName(), next)))
		if t.create(ctx, job, apierrors.IsAlreadyExists) {
			foreign = append(foreign, job)
		}
	}
	return foreign
}

// unmanaged labels an object as one that the operator does not control.
func unmanaged[T client.Object](object T) T {
	object.SetLabels(map[string]string{"somebody": "else"})
	return object
}

// areTheirs checks that objects are as their creator has made them.
func (t *trial) areTheirs(ctx context.Context, made []client.Object) {
	for _, object := range made {
		t.must(t.isTheirs(ctx, object))
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

// says is a check of a condition of the latest spec, with any reason if none is given.
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
		case c.Status != want || reason != "" && c.Reason != reason:
			return fmt.Sprintf("condition %s is %s/%s, not %s/%s: %s", condition, c.Status, c.Reason, want,
				cmp.Or(reason, "any"), c.Message), nil
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
