package kinds

import (
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Child describes a resource that the operator creates for an object.
type Child struct {
	schema.GroupVersionResource
	Kind string
	New  func() client.Object
	// Name returns the name of the child of an object; nil if it depends on more than the object.
	Name func(owner client.Object) string
	// Damage changes the spec in ways that the operator reverts. A test makes the changes one after the other: if the
	// template and the replicas change together and are reverted at once, the rollout may never complete in Kubernetes
	// 1.36 (kubernetes/kubernetes#138840).
	Damage []func(child client.Object)
}

func deployment(name func(owner client.Object) string) Child {
	return Child{
		GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment",
		New: func() client.Object { return &appsv1.Deployment{} }, Name: name, Damage: damageToWorkload,
	}
}

func statefulSet(name func(owner client.Object) string) Child {
	return Child{
		GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("statefulsets"), Kind: "StatefulSet",
		New: func() client.Object { return &appsv1.StatefulSet{} }, Name: name, Damage: damageToWorkload,
	}
}

var damageToWorkload = []func(client.Object){
	func(child client.Object) {
		replicas, _ := Workload(child)
		*replicas = ptr.To(ptr.Deref(*replicas, 1) + 1)
	},
	// Not the image: during the image hold-off, the manager does not revert it.
	func(child client.Object) {
		_, template := Workload(child)
		template.Spec.AutomountServiceAccountToken = ptr.To(true)
		template.Spec.SecurityContext.RunAsNonRoot = ptr.To(false)
	},
}

// Workload returns the replicas and the pod template of a Deployment or StatefulSet.
func Workload(object client.Object) (replicas **int32, template *corev1.PodTemplateSpec) {
	if set, ok := object.(*appsv1.StatefulSet); ok {
		return &set.Spec.Replicas, &set.Spec.Template
	}
	deployment := object.(*appsv1.Deployment)
	return &deployment.Spec.Replicas, &deployment.Spec.Template
}

// AvailableReplicas returns the number of available pods that the status of a Deployment or StatefulSet reports.
func AvailableReplicas(object client.Object) int32 {
	if set, ok := object.(*appsv1.StatefulSet); ok {
		return set.Status.AvailableReplicas
	}
	return object.(*appsv1.Deployment).Status.AvailableReplicas
}

func service(name func(owner client.Object) string) Child {
	return Child{
		GroupVersionResource: corev1.SchemeGroupVersion.WithResource("services"), Kind: "Service",
		New: func() client.Object { return &corev1.Service{} }, Name: name,
		Damage: []func(client.Object){
			func(child client.Object) { child.(*corev1.Service).Spec.Selector["another"] = "client" },
		},
	}
}

func podDisruptionBudget(name func(owner client.Object) string) Child {
	return Child{
		GroupVersionResource: policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), Kind: "PodDisruptionBudget",
		New: func() client.Object { return &policyv1.PodDisruptionBudget{} }, Name: name,
		Damage: []func(client.Object){
			func(child client.Object) {
				spec := &child.(*policyv1.PodDisruptionBudget).Spec
				spec.MaxUnavailable, spec.MinAvailable = ptr.To(intstr.FromInt32(5)), nil
			},
		},
	}
}

// job describes Jobs, which the operator creates once and does not change afterwards.
func job() Child {
	return Child{
		GroupVersionResource: batchv1.SchemeGroupVersion.WithResource("jobs"), Kind: "Job",
		New: func() client.Object { return &batchv1.Job{} },
	}
}

// Spec returns the spec of an object as a map, to be compared.
func Spec(object client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(err) // all types of Kubernetes and the operator can be converted
	}
	spec, _ := content["spec"].(map[string]any)
	return spec
}

// Desired returns what the operator applies of a child: labels, annotations except for Kubernetes' own, and the spec.
func Desired(child client.Object) []any {
	annotations := maps.Clone(child.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.Contains(key, "kubernetes.io/") })
	return []any{child.GetLabels(), annotations, Spec(child)}
}

// Unmanaged returns an object of the type of the first child that the operator does not control, and that runs no pods.
func (k Kind) Unmanaged(namespace, name string) client.Object {
	switch k.Children[0].Kind {
	case "Deployment":
		return NewDeployment(namespace, name, 0)
	case "StatefulSet":
		deployment := NewDeployment(namespace, name, 0)
		return &appsv1.StatefulSet{ObjectMeta: deployment.ObjectMeta, Spec: appsv1.StatefulSetSpec{
			Replicas: deployment.Spec.Replicas, Selector: deployment.Spec.Selector, Template: deployment.Spec.Template}}
	}
	return NewJob(namespace, name)
}

// NewDeployment returns a Deployment that the operator does not control.
func NewDeployment(namespace, name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"another": "client"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "it", Image: "it"}}},
			},
		},
	}
}

// NewJob returns a suspended Job that the operator does not control. A namespace that enforces Pod Security
// "restricted" admits its pods.
func NewJob(namespace, name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			Suspend:      ptr.To(true),
			BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot:   ptr.To(true),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{{Name: "it", Image: "it", SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
			}},
		},
	}
}
