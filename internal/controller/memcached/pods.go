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
	"k8s.io/apimachinery/pkg/types"
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

// slimPod keeps of a pod its identity, its controller, its revision and age, where it runs, and why it is not ready.
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
		CreationTimestamp: pod.CreationTimestamp,
		DeletionTimestamp: pod.DeletionTimestamp,
		Labels:            map[string]string{labelInstance: pod.Labels[labelInstance]},
	}}
	if revision, ok := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; ok {
		slim.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
		slim.Spec.NodeName = pod.Spec.NodeName
	}
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
		slim.Status.InitContainerStatuses = slimStatuses(pod.Status.InitContainerStatuses)
		slim.Status.ContainerStatuses = slimStatuses(pod.Status.ContainerStatuses)
	}
	return slim, nil
}

func slimStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(all) == 0 {
		return nil
	}
	slim := make([]corev1.ContainerStatus, len(all))
	for i, c := range all {
		slim[i] = corev1.ContainerStatus{Name: c.Name, State: c.State, LastTerminationState: c.LastTerminationState}
	}
	return slim
}

// nodes returns the pods of a Memcached's workload, sorted by name: those that the workload controls, or a ReplicaSet
// that it controls. Pods that are being deleted are apart, even those that remain because their machine is lost.
func (r *Reconciler) nodes(ctx context.Context, mc *cachev1alpha1.Memcached, workload client.Object) (nodes, error) {
	found := nodes{now: r.Clock.Now()}
	if workload == nil || !child.IsControlled(workload, mc) {
		return found, nil
	}
	sets := &metav1.PartialObjectMetadataList{}
	sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
	if err := r.listControlledBy(ctx, sets, workload.GetUID(), mc.Namespace); err != nil {
		return found, fmt.Errorf("listing the ReplicaSets of Memcached %s: %w", client.ObjectKeyFromObject(mc), err)
	}
	controllers := []types.UID{workload.GetUID()}
	for i := range sets.Items {
		controllers = append(controllers, sets.Items[i].UID)
	}
	var all []corev1.Pod
	for _, controller := range controllers {
		var some corev1.PodList
		if err := r.listControlledBy(ctx, &some, controller, mc.Namespace); err != nil {
			return found, fmt.Errorf("listing the pods of Memcached %s: %w", client.ObjectKeyFromObject(mc), err)
		}
		all = append(all, some.Items...)
	}
	slices.SortFunc(all, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		if all[i].DeletionTimestamp.IsZero() {
			found.pods = append(found.pods, all[i])
		} else {
			found.terminating = append(found.terminating, all[i])
		}
	}
	return found, nil
}

// creationError returns what the latest event says about a pod that a workload could not create; "" if there is none.
// It reads live, because events are not cached.
func (r *Reconciler) creationError(ctx context.Context, workload client.Object) string {
	var events corev1.EventList
	if err := r.live.List(ctx, &events, client.InNamespace(workload.GetNamespace()), client.MatchingFields{
		"involvedObject.uid": string(workload.GetUID()), "reason": "FailedCreate"}); err != nil {
		return "" // the condition then has the command that shows the events
	}
	latest := corev1.Event{}
	for _, event := range events.Items {
		if event.LastTimestamp.After(latest.LastTimestamp.Time) {
			latest = event
		}
	}
	return latest.Message
}

func (r *Reconciler) listControlledBy(ctx context.Context, list client.ObjectList, controller types.UID,
	namespace string) error {
	return r.client.List(ctx, list, client.InNamespace(namespace),
		client.MatchingFields{child.ControllerIndex: string(controller)}, client.UnsafeDisableDeepCopy)
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
