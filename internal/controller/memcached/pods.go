package memcached

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// Caches returns what the cache has to keep of the pods and ReplicaSets in the cluster: those with our label that have not
// ended, and of those only what is read.
func Caches() map[client.Object]cache.ByObject {
	labelled, err := labels.NewRequirement(labelInstance, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	ours := labels.NewSelector().Add(*labelled)
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}: {
			Label: ours,
			Field: fields.AndSelectors(
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))),
			Transform: slimPod,
		},
		replicaSets(): {Label: ours},
	}
}

// replicaSets names ReplicaSets, of which only the metadata is read.
func replicaSets() *metav1.PartialObjectMetadata {
	sets := &metav1.PartialObjectMetadata{}
	sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return sets
}

// slimPod is what the cache keeps of a pod: who it is, whose it is, and what is wrong with it.
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

// pods returns the pods of a Deployment, sorted by name: those whose controller is a ReplicaSet whose controller it is.
// Pods that are being stopped are left out.
func (r *Reconciler) pods(ctx context.Context, mc *cachev1alpha1.Memcached, deployment *appsv1.Deployment) ([]corev1.Pod, error) {
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
		client.MatchingFields{owned.ControllerUIDIndex: string(controller.GetUID())}, client.UnsafeDisableDeepCopy)
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// trouble is what is wrong with a pod, as a reason of the condition Degraded and in words.
type trouble struct{ reason, message string }

// troubleOf finds the first pod that does not come up, and why: it has crashed, cannot start, or has nowhere to run. It
// returns nil while all that is to be done is wait.
func troubleOf(pods []corev1.Pod) *trouble {
	for i := range pods {
		pod := &pods[i]
		if isReady(pod) {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses {
			if ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated); ended != nil {
				return &trouble{cachev1alpha1.ReasonNodeCrashing, fmt.Sprintf("node %s ended (%s, exit code %d): %s",
					pod.Name, cmp.Or(ended.Reason, "Error"), ended.ExitCode, cmp.Or(lastWords(ended.Message), "it said nothing"))}
			}
			if waiting := c.State.Waiting; waiting != nil && !isStarting(waiting.Reason) {
				return &trouble{cachev1alpha1.ReasonNodeNotStarting, fmt.Sprintf("node %s cannot start (%s): %s",
					pod.Name, waiting.Reason, waiting.Message)}
			}
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return &trouble{cachev1alpha1.ReasonNodeUnschedulable, fmt.Sprintf("node %s: %s", pod.Name, c.Message)}
			}
		}
	}
	return nil
}

// lastWords returns the end of what a container has said, where the reason is.
func lastWords(message string) string {
	const most = 700
	message = strings.TrimSpace(message)
	if cut := len(message) - most; cut > 0 {
		message = "…" + strings.ToValidUTF8(message[cut:], "")
	}
	return message
}

// isStarting tells whether a container that waits does so because it is being started.
func isStarting(reason string) bool {
	return reason == "" || reason == "ContainerCreating" || reason == "PodInitializing"
}
