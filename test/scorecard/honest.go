package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
)

// statusIsHonest shows that the status reports the pods and the Deployment as they are: with all pods of the sample,
// with one more, and with none. It is the only test that needs pods that become ready.
func statusIsHonest(ctx context.Context, t *trial) {
	object := t.createSample(ctx)
	for _, pods := range []int32{t.Pods(object), t.Pods(object) + 1, 0} {
		if t.Pods(object) != pods {
			t.change(ctx, object, func(object client.Object) { t.Resize(object, pods) })
		}
		t.until(ctx, fmt.Sprintf("%s with %d pods has settled, and its status reports them", t.called(object), pods),
			"the pods (have their images been pulled?), and the log of the operator", t.isHonest(object),
			t.hasCondition(object, "Available", metav1.ConditionTrue, ""),
			t.hasCondition(object, "Progressing", metav1.ConditionFalse, ""),
			t.hasCondition(object, "Degraded", metav1.ConditionFalse, ""))
	}
}

// isHonest is a check that all pods are ready, and that the status does not contradict them or the Deployment.
func (t *trial) isHonest(object client.Object) check {
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		status := t.kind.Status(object)
		pods, err := t.podsOf(ctx, status.Selector)
		if err != nil {
			return "", err
		}
		names := make([]string, 0, len(pods))
		for _, pod := range pods {
			if !isReady(pod) {
				return fmt.Sprintf("pod %s is not ready%s", pod.Name, waitsFor(pod)), nil
			}
			names = append(names, pod.Name)
		}
		slices.Sort(names)
		nodes := status.Nodes
		if nodes == nil {
			nodes = names
		}
		workload := t.ChildrenOf(object)[0]
		if err := t.Get(ctx, client.ObjectKeyFromObject(workload), workload); err != nil {
			return "", err
		}
		return cmp.Or(differs("the number of pods", int32(len(pods)), t.Pods(object)),
			differs("status.observedGeneration", status.ObservedGeneration, object.GetGeneration()),
			differs("the number of pods in the status", status.Pods, t.Pods(object)),
			differs("the number of ready pods in the status", status.Ready, t.Pods(object)),
			differs("the number of available replicas of "+t.called(workload), kinds.AvailableReplicas(workload), status.Ready),
			differs("status.nodes", nodes, names)), nil
	}
}

// podsOf returns the pods of a selector that run and are not being deleted.
func (t *trial) podsOf(ctx context.Context, text string) ([]corev1.Pod, error) {
	if text == "" {
		return nil, failed("the status has no selector yet")
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, failed("status.selector %q has to be a label selector: %w", text, err)
	}
	var pods corev1.PodList
	err = t.List(ctx, &pods, client.InNamespace(t.namespace), client.MatchingLabelsSelector{Selector: selector})
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	}), err
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// waitsFor returns why the containers of a pod do not run, as the kubelet reports it.
func waitsFor(pod corev1.Pod) (reasons string) {
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			reasons += ": " + strings.TrimSpace(waiting.Reason+" "+waiting.Message)
		}
	}
	return reasons
}
