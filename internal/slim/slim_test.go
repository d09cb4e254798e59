package slim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/memcached-operator/internal/child"
)

func TestChild(t *testing.T) {
	controller := metav1.OwnerReference{UID: "other", Controller: ptr.To(true)}
	full := func(annotation string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "it", UID: "1", ResourceVersion: "2",
				Labels:      map[string]string{"a": "b"},
				Annotations: map[string]string{child.OwnerAnnotation: annotation}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
				OwnerReferences: []metav1.OwnerReference{{UID: "other"}, controller}},
			Spec: corev1.ServiceSpec{ClusterIP: "None"},
		}
	}
	controlled, err := Child(&corev1.Service{})(full("owner"))
	if kept := controlled.(*corev1.Service); err != nil || kept.Spec.ClusterIP != "None" || kept.Labels["a"] != "b" ||
		kept.ManagedFields != nil {
		t.Errorf("kept of a child: %+v, %v", controlled, err)
	}
	controller.APIVersion = "cache.example.com/v1"
	stripped, err := Child(&corev1.Service{}, "cache.example.com")(full(""))
	if kept := stripped.(*corev1.Service); err != nil || kept.Spec.ClusterIP != "None" {
		t.Errorf("kept of a child that has lost its annotation: %+v, %v", kept, err)
	}
	other, err := Child(&corev1.Service{}, "example.com")(full(""))
	kept := other.(*corev1.Service)
	if err != nil || kept.Spec.ClusterIP != "" || kept.Labels != nil || kept.Name != "it" || kept.UID != "1" ||
		kept.ResourceVersion != "2" ||
		len(kept.OwnerReferences) != 1 || kept.OwnerReferences[0].UID != "other" {
		t.Errorf("kept of an uncontrolled object: %+v, %v", kept, err)
	}
	if other, err := Child(&corev1.Service{})("tombstone"); other != "tombstone" || err != nil {
		t.Errorf("another type: %v, %v", other, err)
	}
}
