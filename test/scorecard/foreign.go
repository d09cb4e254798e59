package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
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
	children := t.occupy(ctx, object)
	isTaken := t.hasCondition(object, "Degraded", metav1.ConditionTrue, "NameTaken")
	t.until(ctx, t.called(object)+" reports the taken name", managerLog, isTaken)
	t.until(ctx, "an event of "+t.called(object)+" reports the taken name", managerLog, t.hasWarning(object, t.NameTaken))
	t.areUnmanaged(ctx, children)

	// A write triggers another pass: it must not change the outcome, at once or with a delay.
	t.change(ctx, object, func(object client.Object) {
		t.grow(object)
		if cronJob, ok := object.(*tutorialv1.CronJob); ok { // which grows already
			cronJob.Spec.SuccessfulJobsHistoryLimit = ptr.To(int32(7))
		}
	})
	t.until(ctx, t.called(object)+" reports it for its new spec", managerLog, isTaken)
	t.areUnmanaged(ctx, children)

	hasNewChildren := t.grows(ctx, object)
	for _, child := range children {
		t.delete(ctx, child)
	}
	t.reconciled(ctx, object, hasNewChildren)
	t.until(ctx, t.called(object)+" reports no problem", managerLog,
		t.hasCondition(object, "Degraded", metav1.ConditionFalse, "AsExpected"))
}

// occupy creates an object, and others under the names that its children need.
func (t *trial) occupy(ctx context.Context, object client.Object) []client.Object {
	if t.Deploys {
		workload := unmanaged(t.Unmanaged(t.namespace, t.ChildrenOf(object)[0].GetName()))
		t.create(ctx, workload)
		t.create(ctx, object)
		return []client.Object{workload}
	}
	growRuns(object)
	t.create(ctx, object)
	t.reconciled(ctx, object)
	next := object.(*tutorialv1.CronJob).Status.NextScheduleTime.Time
	var jobs []client.Object
	// Several in a row leave time to observe them. The operator may have been faster with the first.
	for ; len(jobs) < 6; next = next.Add(period) {
		job := unmanaged(kinds.NewJob(t.namespace, jobName(object.GetName(), next)))
		if t.create(ctx, job, apierrors.IsAlreadyExists) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// unmanaged labels an object as one that the operator does not control.
func unmanaged[T client.Object](object T) T {
	object.SetLabels(map[string]string{"another": "client"})
	return object
}

// areUnmanaged checks that objects are as they were created.
func (t *trial) areUnmanaged(ctx context.Context, created []client.Object) {
	for _, object := range created {
		current := object.DeepCopyObject().(client.Object)
		err := t.Get(ctx, client.ObjectKeyFromObject(object), current)
		t.must(client.IgnoreNotFound(err))
		wrong := cmp.Or(differs("its UID", current.GetUID(), object.GetUID()),
			differs("its deletion time", current.GetDeletionTimestamp(), nil),
			differs("its owners", current.GetOwnerReferences(), nil),
			differs("its labels", current.GetLabels(), object.GetLabels()),
			gocmp.Diff(kinds.Spec(object), kinds.Spec(current)))
		if err != nil {
			wrong = "it is deleted"
		}
		if wrong != "" {
			t.must(failed("%s is not controlled by the operator and has to stay as it was created: %s; look at how the "+
				"operator decides what it controls", t.called(object), wrong))
		}
	}
}

// hasCondition is a check of a condition of the latest spec, with any reason if none is given.
func (t *trial) hasCondition(object client.Object, name string, want metav1.ConditionStatus, reason string) check {
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		condition := meta.FindStatusCondition(t.kind.Status(object).Conditions, name)
		if condition == nil {
			return "there is no condition " + name, nil
		}
		called := fmt.Sprintf("condition %s (%s)", name, condition.Message)
		return cmp.Or(differs("the generation of "+called, condition.ObservedGeneration, object.GetGeneration()),
			differs("the status of "+called, condition.Status, want),
			differs("the reason of "+called, condition.Reason, cmp.Or(reason, condition.Reason))), nil
	}
}

// hasWarning is a check that there is a warning about an object.
func (t *trial) hasWarning(object client.Object, reason string) check {
	return func(ctx context.Context) (string, error) {
		var events eventsv1.EventList
		if err := t.List(ctx, &events, client.InNamespace(t.namespace)); err != nil {
			return "", err
		}
		if slices.ContainsFunc(events.Items, func(event eventsv1.Event) bool {
			return event.Regarding.UID == object.GetUID() && event.Reason == reason && event.Type == corev1.EventTypeWarning
		}) {
			return "", nil
		}
		return fmt.Sprintf("no warning with reason %s is about %s", reason, t.called(object)), nil
	}
}
