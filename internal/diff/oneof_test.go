package diff

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"
)

func alternativesOf(t *testing.T, want runtime.ApplyConfiguration, live runtime.Object) map[string]any {
	t.Helper()
	patch, err := Alternatives(want, live)
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// Every type and field in the table exists.
func TestAlternativesAreFields(t *testing.T) {
	deployment, err := TypeOf(&appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	for name, fields := range alternatives {
		definition, ok := deployment.schema.FindNamedType(name)
		if !ok {
			t.Errorf("there is no type %s", name)
			continue
		}
		for _, field := range fields {
			if _, ok := definition.FindField(field); !ok {
				t.Errorf("%s has no field %s", name, field)
			}
		}
	}
}

func TestAlternatives(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*appsv1.Deployment)
		want   string
	}{
		{"no field is replaced", func(*appsv1.Deployment) {}, `null`},
		{"another field is changed", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[1].Image = "other" },
			`null`},
		{"the field of want is removed", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[1].ReadinessProbe.TCPSocket = nil
		}, `null`},
		{"the container of want is removed", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = nil }, `null`},
		{"a probe's handler is replaced", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[1].ReadinessProbe.ProbeHandler =
				corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
		}, `{"spec":{"template":{"spec":{"containers":[{"name":"one","readinessProbe":{"exec":null,"tcpSocket":{"port":"p"}}}]}}}}`},
		{"a volume's source is replaced", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}
		}, `{"spec":{"template":{"spec":{"volumes":[{"configMap":null,"emptyDir":{},"name":"tmp"}]}}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			live := live(t)
			test.change(live)
			got, err := json.Marshal(alternativesOf(t, want(), live))
			if err != nil || string(got) != test.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
			}
		})
	}

	budget := policyv1ac.PodDisruptionBudget("it",
		"default").WithSpec(policyv1ac.PodDisruptionBudgetSpec().WithMaxUnavailable(intstr.FromInt32(1)))
	got, err := json.Marshal(alternativesOf(t, budget, &policyv1.PodDisruptionBudget{
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2))}}))
	if want := `{"spec":{"maxUnavailable":1,"minAvailable":null}}`; err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}
