package memcached

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
)

// workloadObject is a Deployment or StatefulSet.
type workloadObject = client.Object

// workload reads and writes one type of workload. Everything else in this package treats all types alike, except for
// the builders and rolloutOf.
type workload struct {
	// get returns the object of that name, whatever controls it, or nil if there is none; see [child.Get].
	get func(ctx context.Context, c *child.Client, pass *child.Pass, namespace, name string) (workloadObject, error)
	// apply writes the workload of a Memcached; see [child.Apply].
	apply func(ctx context.Context, c *child.Client, pass *child.Pass, observed workloadObject,
		mc *cachev1alpha1.Memcached, s settings, template *corev1ac.PodTemplateSpecApplyConfiguration) (workloadObject, error)
}

// workloadOf returns how to read and write the workload of a Memcached. An empty type, in an object that was stored
// before the field existed, means a Deployment.
func workloadOf(mc *cachev1alpha1.Memcached) workload {
	if mc.Spec.WorkloadType == cachev1alpha1.StatefulSetWorkload {
		return workload{get: get[appsv1.StatefulSet], apply: applyStatefulSet}
	}
	return workload{get: get[appsv1.Deployment], apply: applyDeployment}
}

func get[T any, P child.Object[T]](ctx context.Context, c *child.Client, pass *child.Pass,
	namespace, name string) (workloadObject, error) {
	object, err := child.Get[T, P](ctx, c, pass, namespace, name)
	if object == nil {
		return nil, err
	}
	return object, err
}

func applyDeployment(ctx context.Context, c *child.Client, pass *child.Pass, observed workloadObject,
	mc *cachev1alpha1.Memcached, s settings,
	template *corev1ac.PodTemplateSpecApplyConfiguration) (workloadObject, error) {
	has, _ := observed.(*appsv1.Deployment)
	return child.Apply(ctx, c, pass, has, deployment(mc, s, template))
}

func applyStatefulSet(ctx context.Context, c *child.Client, pass *child.Pass, observed workloadObject,
	mc *cachev1alpha1.Memcached, _ settings,
	template *corev1ac.PodTemplateSpecApplyConfiguration) (workloadObject, error) {
	has, _ := observed.(*appsv1.StatefulSet)
	return child.Apply(ctx, c, pass, has, statefulSet(mc, template))
}

// isAvailable reports whether a workload, which may be nil, has available pods.
func isAvailable(object workloadObject) bool {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return object.Status.AvailableReplicas > 0
	case *appsv1.StatefulSet:
		return object.Status.AvailableReplicas > 0
	}
	return false
}

// podSpecOf returns the pod spec of a workload; nil for none.
func podSpecOf(object workloadObject) *corev1.PodSpec {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &object.Spec.Template.Spec
	}
	return nil
}
