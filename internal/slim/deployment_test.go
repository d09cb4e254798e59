package slim

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/example/memcached-operator/internal/child"
)

// deploymentOf returns the Deployment of an owner, with a container of a name and an image.
func deploymentOf(owner, container, image string) *appsv1.Deployment {
	labels := map[string]string{"app": container, "controller": owner}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: owner + "-web", UID: types.UID(owner + "-uid"), Labels: labels,
			Annotations: map[string]string{child.OwnerAnnotation: owner, child.FieldsAnnotation: "hash"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: owner,
				UID: types.UID(owner), Controller: ptr.To(true)}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": container, "controller": owner}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": container, "controller": owner}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: image}}},
			},
		},
		Status: appsv1.DeploymentStatus{AvailableReplicas: 3, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue},
		}},
	}
}

func TestSharingKeepsContent(t *testing.T) {
	slim := Deployment("samplecontroller.k8s.io")
	for round := range 2 { // in the second round every spec is known
		for _, want := range []*appsv1.Deployment{
			deploymentOf("a", "nginx", "nginx:1"), deploymentOf("b", "nginx", "nginx:1"), deploymentOf("c", "nginx", "nginx:2"),
			deploymentOf("d", "memcached", "memcached"),
		} {
			given := want.DeepCopy()
			want.Status.Conditions = nil
			out, err := slim(given)
			if err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(out, want) {
				t.Errorf("round %d: %v became %v", round, want, out)
			}
			again, err := slim(out)
			if err != nil || !equality.Semantic.DeepEqual(again, want) {
				t.Errorf("round %d: a slim object became %v, %v", round, again, err)
			}
		}
	}
}

func TestDeploymentsShareTemplates(t *testing.T) {
	slim := Deployment("samplecontroller.k8s.io")
	var all []*appsv1.Deployment
	for _, given := range []*appsv1.Deployment{
		deploymentOf("a", "nginx", "nginx:1"), deploymentOf("b", "memcached", "memcached"),
		deploymentOf("c", "nginx", "nginx:1"), deploymentOf("d", "nginx", "nginx:2"),
	} {
		out, err := slim(given)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out.(*appsv1.Deployment))
	}
	isShared := func(a, b int) bool {
		return &all[a].Spec.Template.Spec.Containers[0] == &all[b].Spec.Template.Spec.Containers[0]
	}
	if !isShared(0, 2) || isShared(0, 1) || isShared(0, 3) {
		t.Error("only Deployments with the same pod template must share it, whatever comes in between")
	}
	*all[0].Spec.Replicas = 7
	if *all[2].Spec.Replicas != 3 {
		t.Error("two Deployments share their replicas")
	}
}

func TestProblemsAreKept(t *testing.T) {
	given := deploymentOf("a", "nginx", "nginx:1")
	given.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"},
		{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate"},
	}
	want := given.DeepCopy().Status.Conditions
	out, err := Deployment("samplecontroller.k8s.io")(given)
	if err != nil || !equality.Semantic.DeepEqual(out.(*appsv1.Deployment).Status.Conditions, want) {
		t.Errorf("kept %v of %v, %v", out.(*appsv1.Deployment).Status.Conditions, want, err)
	}
}

func TestUncontrolledDeploymentIsReduced(t *testing.T) {
	uncontrolled := deploymentOf("a", "nginx", "nginx:1")
	uncontrolled.Annotations, uncontrolled.OwnerReferences = nil, nil
	out, err := Deployment("samplecontroller.k8s.io")(uncontrolled)
	if err != nil || out.(*appsv1.Deployment).Spec.Selector != nil || out.(*appsv1.Deployment).Labels != nil {
		t.Errorf("kept of an uncontrolled Deployment: %v, %v", out, err)
	}
	other, err := Deployment("samplecontroller.k8s.io")(nil)
	if err != nil || other != nil {
		t.Errorf("nil became %v, %v", other, err)
	}
}

// Memcacheds of the same configuration share a spec although their spread constraints select different pods; one with a
// template of its own does not displace the common one.
func TestSpreadDeploymentsShareTheirTemplate(t *testing.T) {
	slim := Deployment("samplecontroller.k8s.io")
	spread := func(owner, image string) *appsv1.Deployment {
		d := deploymentOf(owner, "memcached", image)
		for _, key := range []string{"zone", "host"} {
			d.Spec.Template.Spec.TopologySpreadConstraints = append(d.Spec.Template.Spec.TopologySpreadConstraints,
				corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: 1, LabelSelector: d.Spec.Selector.DeepCopy()})
		}
		return d
	}
	var first *appsv1.Deployment
	for i := range 100 {
		for _, image := range []string{"common", fmt.Sprintf("own:%d", i)} {
			want := spread(fmt.Sprintf("%s-%d", image, i), image)
			out, err := slim(want.DeepCopy())
			want.Status.Conditions = nil
			if err != nil || !equality.Semantic.DeepEqual(out, want) {
				t.Fatalf("%v became %v, %v", want, out, err)
			}
			got := out.(*appsv1.Deployment)
			if first == nil {
				first = got
			}
			isShared := &got.Spec.Template.Spec.Containers[0] == &first.Spec.Template.Spec.Containers[0]
			if isShared != (image == "common") {
				t.Errorf("%s shares the template of the common image: %t", got.Name, isShared)
			}
			if got.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector != got.Spec.Selector {
				t.Error("the selector is kept more than once")
			}
		}
	}
}
