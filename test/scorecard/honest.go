package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusIsHonest shows that the status says what the pods and the Deployment really are: with all pods of the sample,
// with one more, and with none. It is the only test that needs pods that are ready.
func statusIsHonest(ctx context.Context, t *trial) {
	object := t.createSample(ctx)
	for _, pods := range []int32{t.Pods(object), t.Pods(object) + 1, 0} {
		if t.Pods(object) != pods {
			t.change(ctx, object, func(object client.Object) { t.Resize(object, pods) })
		}
		t.until(ctx, fmt.Sprintf("%s with %d pods has settled, and its status says what is the case", t.called(object), pods),
			"the pods (have their images been pulled?), and the log of the operator", t.isHonest(object),
			t.says(object, "Available", metav1.ConditionTrue, ""), t.says(object, "Progressing", metav1.ConditionFalse, ""),
			t.says(object, "Degraded", metav1.ConditionFalse, ""))
	}
}

// isHonest is a check that all pods wanted are ready, and that nothing in the status contradicts what can be seen.
func (t *trial) isHonest(object client.Object) check {
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		said := t.kind.Status(object)
		pods, err := t.podsOf(ctx, said.Selector)
		if err != nil {
			return "", err
		}
		if wrong := settled(pods, t.Pods(object)); wrong != "" {
			return wrong, nil
		}
		deployment := t.ChildrenOf(object)[0].(*appsv1.Deployment)
		if err := t.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return "", err
		}
		ready := int32(len(slices.DeleteFunc(slices.Clone(pods), notReady)))
		names := make([]string, 0, len(pods))
		for _, pod := range pods {
			names = append(names, pod.Name)
		}
		slices.Sort(names)
		switch {
		case said.ObservedGeneration != object.GetGeneration():
			return fmt.Sprintf("status.observedGeneration is %d, and the generation %d", said.ObservedGeneration,
				object.GetGeneration()), nil
		case said.Pods != int32(len(pods)):
			return fmt.Sprintf("the status tells of %d pods, and there are %d", said.Pods, len(pods)), nil
		case said.Ready != ready:
			return fmt.Sprintf("the status tells of %d ready pods, and there are %d", said.Ready, ready), nil
		case said.Ready != deployment.Status.AvailableReplicas:
			return fmt.Sprintf("the status tells of %d ready pods, and its Deployment of %d", said.Ready,
				deployment.Status.AvailableReplicas), nil
		case said.Nodes != nil && !slices.Equal(said.Nodes, names):
			return fmt.Sprintf("status.nodes are %v, and the pods %v", said.Nodes, names), nil
		}
		return "", nil
	}
}

// podsOf returns the pods of a selector that have not ended and are not ending.
func (t *trial) podsOf(ctx context.Context, text string) ([]corev1.Pod, error) {
	if text == "" {
		return nil, failed("the status has no selector yet")
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, failed("status.selector %q has to be a label selector: %w", text, err)
	}
	var pods corev1.PodList
	if err := t.List(ctx, &pods, client.InNamespace(t.namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	}), nil
}

// settled tells what pods lack to be as many as are wanted, all ready.
func settled(pods []corev1.Pod, want int32) (wrong string) {
	for _, pod := range pods {
		if notReady(pod) {
			return fmt.Sprintf("pod %s is not ready%s", pod.Name, waitsFor(pod))
		}
	}
	if int32(len(pods)) != want {
		return fmt.Sprintf("there are %d pods of %d", len(pods), want)
	}
	return ""
}

func notReady(pod corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// waitsFor returns why the containers of a pod do not run, as the kubelet says.
func waitsFor(pod corev1.Pod) string {
	var reasons []string
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			reasons = append(reasons, strings.TrimSpace(waiting.Reason+" "+waiting.Message))
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return ": " + strings.Join(reasons, "; ")
}
