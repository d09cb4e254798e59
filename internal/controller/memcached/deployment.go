package memcached

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/operand"
)

// deployment returns the Deployment that runs the nodes of a Memcached.
func deployment(mc *cachev1alpha1.Memcached, s settings,
	template *corev1ac.PodTemplateSpecApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
	spec := appsv1ac.DeploymentSpec().
		WithReplicas(mc.Spec.Size).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(mc))).
		WithStrategy(appsv1ac.DeploymentStrategy().
			WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
				// One node's items are lost at a time, and clients never see more than spec.size nodes: a surge
				// would move keys to the new node and move them again when the old node stops.
				WithMaxUnavailable(intstr.FromInt32(1)).
				WithMaxSurge(intstr.FromInt32(0)))).
		WithTemplate(template)
	if s.warmup > 0 {
		spec.WithMinReadySeconds(s.warmup).WithProgressDeadlineSeconds(s.warmup + progressSeconds)
	}
	return appsv1ac.Deployment(mc.Name, mc.Namespace).
		WithLabels(selector(mc)).
		WithLabels(operand.Labels("memcached", mc.Name)).
		WithSpec(spec)
}

// progressSeconds is how long a new pod may take to become ready before the rollout counts as stuck. It is the default
// of Deployments.
const progressSeconds = 600
