package diff

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/yaml"
)

// want is a configuration with every kind of field that the comparison distinguishes.
func want() *appsv1ac.DeploymentApplyConfiguration {
	pods := map[string]string{"app": "it"}
	return appsv1ac.Deployment("it", "default").
		WithLabels(map[string]string{"app": "it"}).
		WithAnnotations(map[string]string{"ours": "yes"}).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("K").WithName("n").WithUID("u").
			WithController(true)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(2).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(pods)).
			WithStrategy(appsv1ac.DeploymentStrategy().
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().WithMaxSurge(intstr.FromInt32(0)))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(pods).
				WithSpec(corev1ac.PodSpec().
					WithNodeSelector(map[string]string{"disk": "ssd"}).
					WithSecurityContext(corev1ac.PodSecurityContext().WithRunAsNonRoot(true).
						WithSysctls(corev1ac.Sysctl().WithName("s").WithValue("0"))).
					WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().
						WithTopologyKey("zone").WithWhenUnsatisfiable(corev1.ScheduleAnyway).WithMaxSkew(1)).
					WithVolumes(corev1ac.Volume().WithName("tmp").WithEmptyDir(corev1ac.EmptyDirVolumeSource())).
					WithContainers(
						corev1ac.Container().WithName("one").WithImage("one:1").
							WithCommand("one", "-v").
							WithEnv(corev1ac.EnvVar().WithName("A").WithValue("a")).
							WithPorts(corev1ac.ContainerPort().WithName("p").WithContainerPort(80).WithProtocol(corev1.ProtocolTCP)).
							WithVolumeMounts(corev1ac.VolumeMount().WithName("tmp").WithMountPath("/tmp")).
							WithReadinessProbe(corev1ac.Probe().WithPeriodSeconds(5).
								WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString("p")))).
							WithResources(corev1ac.ResourceRequirements().
								WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")})),
						corev1ac.Container().WithName("two").WithImage("two:1")))))
}

// live is want as the API server stores it, with defaults and with fields of other writers.
func live(t testing.TB) *appsv1.Deployment {
	t.Helper()
	content, err := json.Marshal(want())
	if err != nil {
		t.Fatal(err)
	}
	var live appsv1.Deployment
	if err := json.Unmarshal(content, &live); err != nil {
		t.Fatal(err)
	}
	live.UID, live.ResourceVersion, live.Generation = "1", "2", 3
	live.Labels["theirs"], live.Annotations["theirs"] = "yes", "yes"
	live.OwnerReferences = append(live.OwnerReferences, live.OwnerReferences[0])
	live.OwnerReferences[0].UID, live.OwnerReferences[0].Controller = "theirs", nil
	live.Spec.MinReadySeconds = 7
	live.Spec.Template.Annotations = map[string]string{"restarted": "today"}
	pod := &live.Spec.Template.Spec
	pod.RestartPolicy = corev1.RestartPolicyAlways
	pod.Containers = append([]corev1.Container{{Name: "sidecar"}}, pod.Containers...)
	pod.Volumes = append([]corev1.Volume{{Name: "theirs"}}, pod.Volumes...)
	container := &pod.Containers[1]
	container.ImagePullPolicy = corev1.PullAlways
	container.Env = append(container.Env, corev1.EnvVar{Name: "THEIRS"})
	container.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
	container.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1024Mi") // the same quantity
	return &live
}

func TestCovers(t *testing.T) {
	container := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[1] }
	for _, test := range []struct {
		name   string
		change func(*appsv1.Deployment)
		covers bool
	}{
		{"defaults, and fields of other writers", func(*appsv1.Deployment) {}, true},
		{"a status", func(d *appsv1.Deployment) { d.Status.Replicas = 9 }, true},
		{"a label was changed", func(d *appsv1.Deployment) { d.Labels["app"] = "other" }, false},
		{"a label was removed", func(d *appsv1.Deployment) { delete(d.Labels, "app") }, false},
		{"all labels were removed", func(d *appsv1.Deployment) { d.Labels = nil }, false},
		{"the owner reference was removed", func(d *appsv1.Deployment) { d.OwnerReferences = d.OwnerReferences[:1] }, false},
		{"the owner reference is not of a controller", func(d *appsv1.Deployment) {
			d.OwnerReferences[1].Controller = nil
		}, false},
		{"a number was changed", func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 }, false},
		{"a number was removed", func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, false},
		{"a key was added to an atomic selector", func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchLabels["x"] = "y"
		}, false},
		{"an expression was added to an atomic selector", func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x",
				Operator: metav1.LabelSelectorOpExists}}
		}, false},
		{"a key was added to an atomic node selector",
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector["x"] = "y" }, false},
		{"a pointer was made nil", func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate = nil }, false},
		{"a number became a string", func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate.MaxSurge = &intstr.IntOrString{Type: intstr.String, StrVal: "0"}
		}, false},
		{"a container was removed", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = d.Spec.Template.Spec.Containers[:2]
		}, false},
		{"an image was changed", func(d *appsv1.Deployment) { container(d).Image = "other" }, false},
		{"an argument was added", func(d *appsv1.Deployment) {
			container(d).Command = append(container(d).Command, "-x")
		}, false},
		{"an environment variable was changed", func(d *appsv1.Deployment) { container(d).Env[0].Value = "b" }, false},
		{"a port was changed", func(d *appsv1.Deployment) { container(d).Ports[0].ContainerPort = 81 }, false},
		{"a mount was changed", func(d *appsv1.Deployment) { container(d).VolumeMounts[0].Name = "theirs" }, false},
		{"a probe was removed", func(d *appsv1.Deployment) { container(d).ReadinessProbe = nil }, false},
		{"a limit was changed", func(d *appsv1.Deployment) {
			container(d).Resources.Limits[corev1.ResourceMemory] = resource.MustParse("2Gi")
		}, false},
		{"a sysctl was added to an atomic list", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.SecurityContext.Sysctls = append(d.Spec.Template.Spec.SecurityContext.Sysctls,
				corev1.Sysctl{Name: "x"})
		}, false},
		{"a spread was changed", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.TopologySpreadConstraints[0].MaxSkew = 2
		}, false},
		{"a volume's source was changed", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Volumes[1].EmptyDir = nil
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			live := live(t)
			test.change(live)
			if got, err := Covers(want(), live); err != nil || got != test.covers {
				t.Errorf("Covers = %t, %v", got, err)
			}
		})
	}
}

func hashOf(t *testing.T, want *appsv1ac.DeploymentApplyConfiguration) string {
	t.Helper()
	hash, err := FieldsHash(want, &appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestFieldsHash(t *testing.T) {
	same := want()
	same.Spec.WithReplicas(9)
	same.Spec.Template.Spec.Containers[0].WithImage("other")
	same.Labels["app"] = "other"
	if hashOf(t, same) != hashOf(t, want()) {
		t.Error("other values change the hash")
	}
	for name, change := range map[string]func(*appsv1ac.DeploymentApplyConfiguration){
		"a field less": func(w *appsv1ac.DeploymentApplyConfiguration) { w.Spec.Replicas = nil },
		"a field more": func(w *appsv1ac.DeploymentApplyConfiguration) { w.Spec.WithPaused(false) },
		"a nested field less": func(w *appsv1ac.DeploymentApplyConfiguration) {
			w.Spec.Template.Spec.Containers[0].ReadinessProbe = nil
		},
		"a label less": func(w *appsv1ac.DeploymentApplyConfiguration) { delete(w.Labels, "app") },
		"a container less": func(w *appsv1ac.DeploymentApplyConfiguration) {
			w.Spec.Template.Spec.Containers = w.Spec.Template.Spec.Containers[:1]
		},
		"a container renamed": func(w *appsv1ac.DeploymentApplyConfiguration) {
			w.Spec.Template.Spec.Containers[1].WithName("three")
		},
		"a volume of another sort": func(w *appsv1ac.DeploymentApplyConfiguration) {
			w.Spec.Template.Spec.Volumes[0].EmptyDir = nil
			w.Spec.Template.Spec.Volumes[0].WithHostPath(corev1ac.HostPathVolumeSource())
		},
	} {
		changed := want()
		change(changed)
		if hashOf(t, changed) == hashOf(t, want()) {
			t.Errorf("%s: the same hash", name)
		}
	}
	addressed := want()
	addressed.WithResourceVersion("7")
	if hashOf(t, addressed) != hashOf(t, want()) {
		t.Error("a precondition changes the hash")
	}
}

// Live objects have carried these hashes since release 0.1.0. With other hashes, every object would be written once
// more.
func TestFieldsHashIsStable(t *testing.T) {
	content, err := os.ReadFile("../controller/memcached/testdata/minimal.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deployment, service := &appsv1ac.DeploymentApplyConfiguration{}, &corev1ac.ServiceApplyConfiguration{}
	budget := &policyv1ac.PodDisruptionBudgetApplyConfiguration{}
	for i, want := range []any{service, budget, deployment} {
		if err := yaml.UnmarshalStrict(bytes.Split(content, []byte("---\n"))[i], want); err != nil {
			t.Fatal(err)
		}
	}
	owner := metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("K").WithName("n").WithUID("u").WithController(true).
		WithBlockOwnerDeletion(true)
	annotations := map[string]string{"memcached-operator.example.com/owner-uid": "u"}
	for _, test := range []struct {
		want runtime.ApplyConfiguration
		live runtime.Object
		hash string
	}{
		{deployment.WithOwnerReferences(owner).WithAnnotations(annotations), &appsv1.Deployment{}, "2m652zvdramtv"},
		{service.WithOwnerReferences(owner).WithAnnotations(annotations), &corev1.Service{}, "15hxytts9x9ra"},
		{budget.WithOwnerReferences(owner).WithAnnotations(annotations), &policyv1.PodDisruptionBudget{}, "153zqaectrnui"},
	} {
		if hash, err := FieldsHash(test.want, test.live); err != nil || hash != test.hash {
			t.Errorf("the hash of a %T is %s, %v; in release 0.1.0 it was %s", test.live, hash, err, test.hash)
		}
	}
}

func TestUnknownTypes(t *testing.T) {
	if _, err := Covers(want(), &unknown{}); err == nil {
		t.Error("a type that Kubernetes does not have is accepted")
	}
}

// unknown is an object of a type that is not Kubernetes' own.
type unknown struct{ appsv1.Deployment }

func BenchmarkCovers(b *testing.B) {
	want, live := want(), live(b)
	for b.Loop() {
		if covers, err := Covers(want, live); err != nil || !covers {
			b.Fatal(covers, err)
		}
	}
}

// BenchmarkStructuredMergeDiff measures the same with the library: convert, merge and compare.
func BenchmarkStructuredMergeDiff(b *testing.B) {
	want, live := want(), live(b)
	for b.Loop() {
		if !mergesUnchanged(b, want, live) {
			b.Fatal("it differs")
		}
	}
}
