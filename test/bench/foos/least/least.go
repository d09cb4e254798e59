// Package least has the least that must be written for a Foo to be true.
package least

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// Deployment returns the least Deployment that a Foo may have.
func Deployment(foo *samplev1alpha1.Foo) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": foo.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       foo.Namespace,
			Name:            foo.Spec.DeploymentName,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, samplev1alpha1.GroupVersion.WithKind("Foo"))},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: foo.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
}

// Status returns a patch of the status of a Foo whose Deployment has so many pods that serve.
func Status(available int32) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"replicas":%[1]d,"availableReplicas":%[1]d}}`, available))
}
