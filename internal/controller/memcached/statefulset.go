package memcached

import (
	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/operand"
)

// statefulSet returns the StatefulSet that runs the nodes of a Memcached. Its service name, selector and pod management
// policy cannot be changed afterwards.
func statefulSet(mc *cachev1alpha1.Memcached,
	template *corev1ac.PodTemplateSpecApplyConfiguration) *appsv1ac.StatefulSetApplyConfiguration {
	return appsv1ac.StatefulSet(mc.Name, mc.Namespace).
		WithLabels(selector(mc)).
		WithLabels(operand.Labels("memcached", mc.Name)).
		WithSpec(appsv1ac.StatefulSetSpec().
			WithReplicas(mc.Spec.Size).
			WithServiceName(nodesServiceName(mc)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(mc))).
			// All nodes start and stop at once when the size changes; a rollout replaces one at a time, without
			// maxUnavailable, and does not wait for a broken pod of an earlier revision.
			WithPodManagementPolicy(appsv1.ParallelPodManagement).
			WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().WithType(appsv1.RollingUpdateStatefulSetStrategyType)).
			WithTemplate(template))
}
