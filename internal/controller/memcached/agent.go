package memcached

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/example/memcached-operator/internal/operand"
)

// Names of the containers that run the agent (cmd/agent): the init container that waits for a certificate, and the
// sidecar.
const (
	prepareName = "prepare"
	agentName   = "agent"
)

// Where the agent finds what it needs, which are its defaults, and where it writes the files for memcached.
const (
	certificateVolume, certificatePath = "certificate", "/etc/memcached-agent/certificate"
	caVolume, caPath                   = "client-ca", "/etc/memcached-agent/ca"
	storeVolume, storePath             = "certificates", "/run/memcached-certificates"
	pairFile, caFile                   = "pair.pem", "ca.pem"
)

// hasAgent reports whether nodes have a sidecar.
func hasAgent(s settings) bool { return s.tls != nil || s.hasMetrics }

// addAgent adds the agent to the pods of a Memcached with TLS or metrics. It is a native sidecar, which starts before
// memcached, ends after it, and does not delay the end of the pod.
func addAgent(spec *corev1ac.PodSpecApplyConfiguration, s settings, image string) {
	if !hasAgent(s) {
		return
	}
	if s.tls != nil {
		// It ends with an error that the condition Degraded contains, if the certificate cannot be used.
		spec.WithInitContainers(agentContainer(prepareName, image).
			WithArgs(append([]string{"prepare"}, sourceArguments(s)...)...).
			WithVolumeMounts(sourceMounts(s)...))
		addVolumes(spec, s)
	}
	node := s.port
	if s.tls != nil {
		node = agentPort
	}
	args := []string{fmt.Sprintf("--node=127.0.0.1:%d", node)}
	sidecar := agentContainer(agentName, image).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways)
	if s.tls != nil {
		args = append(args, fmt.Sprintf("--node-tls=127.0.0.1:%d", s.tls.port))
		args = append(args, sourceArguments(s)...)
		sidecar.WithVolumeMounts(sourceMounts(s)...)
	}
	if s.hasMetrics {
		args = append(args, fmt.Sprintf("--metrics=:%d", metricsPort))
		sidecar.WithPorts(corev1ac.ContainerPort().
			WithName(metricsPortName).WithContainerPort(metricsPort).WithProtocol(corev1.ProtocolTCP))
	}
	spec.WithInitContainers(sidecar.WithArgs(args...))
}

// agentContainer returns a container with the image of the agent. docs/memcached-tls.md has the measurements that its
// resources are based on.
func agentContainer(name, image string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(name).
		WithImage(image).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("5m"),
				corev1.ResourceMemory: resource.MustParse("16Mi"),
			}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")})).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(operand.ContainerSecurity())
}

// sourceArguments returns the arguments that name the mounted objects, for messages.
func sourceArguments(s settings) []string {
	args := []string{"--secret=" + s.tls.secret}
	switch {
	case s.tls.caSecret != "":
		args = append(args, "--ca=Secret "+s.tls.caSecret)
	case s.tls.caMap != "":
		args = append(args, "--ca=ConfigMap "+s.tls.caMap)
	}
	return args
}

func sourceMounts(s settings) []*corev1ac.VolumeMountApplyConfiguration {
	mount := func(name, path string) *corev1ac.VolumeMountApplyConfiguration {
		return corev1ac.VolumeMount().WithName(name).WithMountPath(path)
	}
	mounts := []*corev1ac.VolumeMountApplyConfiguration{
		mount(certificateVolume, certificatePath).WithReadOnly(true), mount(storeVolume, storePath)}
	if s.tls.clients != "" {
		mounts = append(mounts, mount(caVolume, caPath).WithReadOnly(true))
	}
	return mounts
}

// addVolumes adds the volumes for TLS. Missing objects are mounted as empty directories, so that the agent can report
// what is missing: a pod whose volumes cannot be mounted reports that only in an event.
func addVolumes(spec *corev1ac.PodSpecApplyConfiguration, s settings) {
	const mode = 0o644 // readable for the user of the pods, whichever the cluster assigns
	spec.WithVolumes(
		corev1ac.Volume().WithName(certificateVolume).WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(s.tls.secret).WithOptional(true).WithDefaultMode(mode)),
		corev1ac.Volume().WithName(storeVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).WithSizeLimit(resource.MustParse("1Mi"))))
	switch {
	case s.tls.caSecret != "":
		spec.WithVolumes(corev1ac.Volume().WithName(caVolume).WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(s.tls.caSecret).WithOptional(true).WithDefaultMode(mode)))
	case s.tls.caMap != "":
		spec.WithVolumes(corev1ac.Volume().WithName(caVolume).WithConfigMap(corev1ac.ConfigMapVolumeSource().
			WithName(s.tls.caMap).WithOptional(true).WithDefaultMode(mode)))
	}
}
