package memcached

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
)

// Caches returns the cache options for pods and ReplicaSets: only those that carry the label of a Memcached, without
// terminated pods, and only the fields that this package reads.
func Caches() map[client.Object]cache.ByObject {
	labelled, err := labels.NewRequirement(labelInstance, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	selector := labels.NewSelector().Add(*labelled)
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}: {
			Label: selector,
			Field: fields.AndSelectors(
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))),
			Transform: slimPod,
		},
		replicaSets(): {Label: selector},
	}
}

// replicaSets names ReplicaSets, of which only the metadata is read.
func replicaSets() *metav1.PartialObjectMetadata {
	sets := &metav1.PartialObjectMetadata{}
	sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return sets
}

// slimPod keeps of a pod its identity, its controller, and why it is not ready.
func slimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil
	}
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:         pod.Namespace,
		Name:              pod.Name,
		UID:               pod.UID,
		ResourceVersion:   pod.ResourceVersion,
		DeletionTimestamp: pod.DeletionTimestamp,
		Labels:            map[string]string{labelInstance: pod.Labels[labelInstance]},
	}}
	if controller := metav1.GetControllerOf(pod); controller != nil {
		slim.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			slim.Status.Conditions = append(slim.Status.Conditions,
				corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	if !isReady(pod) {
		for _, c := range pod.Status.ContainerStatuses {
			slim.Status.ContainerStatuses = append(slim.Status.ContainerStatuses,
				corev1.ContainerStatus{Name: c.Name, State: c.State, LastTerminationState: c.LastTerminationState})
		}
	}
	return slim, nil
}

// pods returns the pods of a Memcached's Deployment, sorted by name: those controlled by a ReplicaSet that the
// Deployment controls. Pods that are being deleted are left out, even those that remain because their machine is lost.
func (r *Reconciler) pods(ctx context.Context, mc *cachev1alpha1.Memcached,
	deployment *appsv1.Deployment) ([]corev1.Pod, error) {
	if deployment == nil || !child.IsControlled(deployment, mc) {
		return nil, nil
	}
	sets := &metav1.PartialObjectMetadataList{}
	sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := r.listControlledBy(ctx, sets, deployment); err != nil {
		return nil, fmt.Errorf("listing the ReplicaSets of Memcached %s: %w", client.ObjectKeyFromObject(mc), err)
	}
	var pods []corev1.Pod
	for i := range sets.Items {
		var some corev1.PodList
		if err := r.listControlledBy(ctx, &some, &sets.Items[i]); err != nil {
			return nil, fmt.Errorf("listing the pods of Memcached %s: %w", client.ObjectKeyFromObject(mc), err)
		}
		pods = append(pods, some.Items...)
	}
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
}

func (r *Reconciler) listControlledBy(ctx context.Context, list client.ObjectList, controller client.Object) error {
	return r.client.List(ctx, list, client.InNamespace(controller.GetNamespace()),
		client.MatchingFields{child.ControllerIndex: string(controller.GetUID())}, client.UnsafeDisableDeepCopy)
}

// controllerChanged accepts creations, deletions and changes of the controller.
var controllerChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := metav1.GetControllerOfNoCopy(e.ObjectOld), metav1.GetControllerOfNoCopy(e.ObjectNew)
	return !equality.Semantic.DeepEqual(was, is)
}}

// podChanged accepts creations, deletions and changes of the fields that the cache keeps.
var podChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
	return was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(was.OwnerReferences, is.OwnerReferences) ||
		!equality.Semantic.DeepEqual(was.Labels, is.Labels) ||
		!equality.Semantic.DeepEqual(was.Status, is.Status)
}}
