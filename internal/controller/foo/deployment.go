package foo

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/operand"
)

// containerName is the name of the one container.
const containerName = "nginx"

// nginxUser is the user nginx of the official image, which itself starts as root.
const nginxUser = 101

// writablePaths are where the official image writes. Everything else is read-only.
var writablePaths = []struct{ volume, path string }{
	{"cache", "/var/cache/nginx"},
	{"run", "/run"},
	{"tmp", "/tmp"},
}

// deployment returns the Deployment of a Foo under a name. Observed is the one that exists; nil if there is none.
//
// A change of anything in the pod template restarts every nginx of every Foo when the operator is upgraded.
func deployment(foo *samplev1alpha1.Foo, name string, observed *appsv1.Deployment, platform operand.Platform,
	image string) *appsv1ac.DeploymentApplyConfiguration {
	pods := selector(foo)
	want := appsv1ac.Deployment(name, foo.Namespace).
		WithLabels(pods).
		WithLabels(operand.Labels("nginx", foo.Name)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(pods)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(pods).
				WithSpec(podSpec(platform, image))))

	switch {
	case foo.Spec.Replicas != nil:
		want.Spec.WithReplicas(*foo.Spec.Replicas)
	case observed != nil && observed.Spec.Replicas != nil:
		// If an apply that set the count is followed by one without it, the API server resets it to 1. So the observed
		// count is applied; child.Apply fails if it was scaled meanwhile.
		want.Spec.WithReplicas(*observed.Spec.Replicas)
	default:
		want.Spec.WithReplicas(1)
	}
	return want
}

func podSpec(platform operand.Platform, image string) *corev1ac.PodSpecApplyConfiguration {
	container := corev1ac.Container().
		WithName(containerName).
		WithImage(image).
		WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(80).WithProtocol(corev1.ProtocolTCP)).
		WithSecurityContext(operand.ContainerSecurity())
	pod := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(platform.PodSecurity(nginxUser).
			// port 80 without root
			WithSysctls(corev1ac.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0")))
	for _, writable := range writablePaths {
		container.WithVolumeMounts(corev1ac.VolumeMount().WithName(writable.volume).WithMountPath(writable.path))
		pod.WithVolumes(corev1ac.Volume().WithName(writable.volume).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	}
	return pod.WithContainers(container)
}

// podSpecOf returns the pod spec of a Deployment; nil for none.
func podSpecOf(deployment *appsv1.Deployment) *corev1.PodSpec {
	if deployment == nil {
		return nil
	}
	return &deployment.Spec.Template.Spec
}

// isAvailable reports whether a Deployment, which may be nil, has available pods.
func isAvailable(deployment *appsv1.Deployment) bool {
	return deployment != nil && deployment.Status.AvailableReplicas > 0
}
