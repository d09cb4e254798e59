package memcached

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/operand"
)

// podDisruptionBudget returns the budget that allows the eviction of one node at a time when machines are drained.
// Nodes that are not ready never block a drain.
func podDisruptionBudget(mc *cachev1alpha1.Memcached) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	pods := selector(mc)
	return policyv1ac.PodDisruptionBudget(mc.Name, mc.Namespace).
		WithLabels(pods).
		WithLabels(operand.Labels("memcached", mc.Name)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(pods)).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow))
}
