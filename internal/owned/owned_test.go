package owned

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestIsOurs(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "ours"}}
	for _, test := range []struct {
		name       string
		references []metav1.OwnerReference
		annotation string
		want       bool
	}{
		{"nobody's", nil, "", false},
		{"we control it", []metav1.OwnerReference{{UID: "ours", Controller: ptr.To(true)}}, "", true},
		{"we own it and do not control it", []metav1.OwnerReference{{UID: "ours"}}, "", false},
		{"somebody else controls it", []metav1.OwnerReference{{UID: "theirs", Controller: ptr.To(true)}}, "", false},
		{"it has lost its reference", nil, "ours", true},
		{"it was made for an earlier owner of the same name", nil, "theirs", false},
		{"somebody else has taken it over", []metav1.OwnerReference{{UID: "theirs", Controller: ptr.To(true)}}, "ours", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			child := &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.references, Annotations: map[string]string{OwnerAnnotation: test.annotation}}}
			if got := IsOurs(child, owner); got != test.want {
				t.Errorf("IsOurs = %t", got)
			}
		})
	}
}

func TestForgetDeleted(t *testing.T) {
	children := Of[corev1.Service](nil, nil)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "it", ResourceVersion: "7"}}
	children.recent.Remember(service)
	if !children.ForgetDeleted().Delete(event.DeleteEvent{Object: service}) {
		t.Error("the end of a child wakes nobody")
	}
	if _, found := children.recent.Newest(client.ObjectKeyFromObject(service), nil, false); found {
		t.Error("a child whose end the watch has shown is believed to be there")
	}
}

func TestSlim(t *testing.T) {
	controller := metav1.OwnerReference{UID: "theirs", Controller: ptr.To(true)}
	full := func(annotation string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "it", UID: "1", ResourceVersion: "2", Labels: map[string]string{"a": "b"},
				Annotations: map[string]string{OwnerAnnotation: annotation}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
				OwnerReferences: []metav1.OwnerReference{{UID: "other"}, controller}},
			Spec: corev1.ServiceSpec{ClusterIP: "None"},
		}
	}
	ours, err := Slim[corev1.Service]()(full("ours"))
	if kept := ours.(*corev1.Service); err != nil || kept.Spec.ClusterIP != "None" || kept.Labels["a"] != "b" || kept.ManagedFields != nil {
		t.Errorf("of ours is kept: %+v, %v", ours, err)
	}
	controller.APIVersion = "cache.example.com/v1"
	stripped, err := Slim[corev1.Service]("cache.example.com")(full(""))
	if kept := stripped.(*corev1.Service); err != nil || kept.Spec.ClusterIP != "None" {
		t.Errorf("of a child that has lost our annotation is kept: %+v, %v", kept, err)
	}
	theirs, err := Slim[corev1.Service]("example.com")(full(""))
	kept := theirs.(*corev1.Service)
	if err != nil || kept.Spec.ClusterIP != "" || kept.Labels != nil || kept.Name != "it" || kept.UID != "1" || kept.ResourceVersion != "2" ||
		len(kept.OwnerReferences) != 1 || kept.OwnerReferences[0].UID != "theirs" {
		t.Errorf("of a stranger is kept: %+v, %v", kept, err)
	}
	if other, err := Slim[corev1.Service]()("tombstone"); other != "tombstone" || err != nil {
		t.Errorf("something else: %v, %v", other, err)
	}
}

func TestWithoutForeign(t *testing.T) {
	other, foreign := errors.New("other"), fmt.Errorf("applying: %w", &ForeignError{Kind: "Service", Name: "it"})
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"nothing", nil, ""},
		{"a foreign object", foreign, ""},
		{"something else", other, "other"},
		{"both", errors.Join(foreign, other), "other"},
		{"nested", errors.Join(errors.Join(other, foreign), foreign), "other"},
		{"foreign ones only", errors.Join(foreign, errors.Join(foreign)), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := WithoutForeign(test.err); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
