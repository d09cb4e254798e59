package testenv

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HoldPods is a label for namespaces whose pods the simulated kubelet ignores.
const HoldPods = "testenv/hold-pods"

// EndPods is a label for namespaces in which the pods of Jobs succeed at once.
const EndPods = "testenv/end-pods"

// Kubelet simulates the nodes: it sets the status of every new pod to running and ready, except in namespaces with the
// label HoldPods; with the label EndPods, the pods of Jobs have succeeded. It returns when the context is canceled.
func (cp *ControlPlane) Kubelet(ctx context.Context) {
	for ctx.Err() == nil {
		pods, err := cp.Client.Watch(ctx, &corev1.PodList{})
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Added && pod.Status.Phase == corev1.PodPending {
				labels := cp.labelsOf(ctx, pod.Namespace)
				_, isHolding := labels[HoldPods]
				_, isEnding := labels[EndPods]
				switch {
				case isHolding:
				case isEnding && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways:
					cp.set(ctx, pod, corev1.PodStatus{Phase: corev1.PodSucceeded})
				default:
					cp.set(ctx, pod, ready())
				}
			}
		}
	}
}

// set sets the status of a pod, unless it is deleted. It retries while the API server is not available.
func (cp *ControlPlane) set(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) {
	_ = until(ctx, "the pod has its status", func(ctx context.Context) (bool, error) {
		return client.IgnoreNotFound(cp.SetPodStatus(ctx, pod, status)) == nil, nil
	})
}

// labelsOf returns the labels of a namespace. It retries while the API server is not available.
func (cp *ControlPlane) labelsOf(ctx context.Context, namespace string) map[string]string {
	var ns corev1.Namespace
	for ctx.Err() == nil {
		err := cp.Client.Get(ctx, client.ObjectKey{Name: namespace}, &ns)
		if client.IgnoreNotFound(err) == nil {
			return ns.Labels
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// SetPodReady sets a pod to running and ready.
func (cp *ControlPlane) SetPodReady(ctx context.Context, pod *corev1.Pod) error {
	return cp.SetPodStatus(ctx, pod, ready())
}

// ready is the status of a pod that is running and ready.
func ready() corev1.PodStatus {
	return corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		},
	}
}

// SetPodStatus sets the status of a pod, as the kubelet and the scheduler would.
func (cp *ControlPlane) SetPodStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	changed := pod.DeepCopy()
	changed.Status = status
	return cp.Client.Status().Patch(ctx, changed, client.MergeFrom(pod))
}
