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

// addAgent adds the agent to the pods of a Memcached with TLS or metrics. It is a native sidecar, which starts before
// memcached, ends after it, and does not delay the end of the pod.
func addAgent(spec *corev1ac.PodSpecApplyConfiguration, s settings, image string) {
	if s.tls == nil && !s.hasMetrics {
		return
	}
	sidecar := agentContainer(agentName, image).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways)
	if s.tls != nil {
		addVolumes(spec, s)
		// It ends with an error that the condition Degraded contains, if the certificate cannot be used.
		spec.WithInitContainers(agentContainer(prepareName, image).
			WithArgs("prepare").
			WithArgs(sourceArguments(s)...).
			WithVolumeMounts(sourceMounts(s)...))
		sidecar.
			WithArgs(fmt.Sprintf("--node=127.0.0.1:%d", agentPort), fmt.Sprintf("--node-tls=127.0.0.1:%d", s.tls.port)).
			WithArgs(sourceArguments(s)...).
			WithVolumeMounts(sourceMounts(s)...)
	} else {
		sidecar.WithArgs(fmt.Sprintf("--node=127.0.0.1:%d", s.port))
	}
	if s.hasMetrics {
		sidecar.
			WithArgs(fmt.Sprintf("--metrics=:%d", metricsPort)).
			WithPorts(corev1ac.ContainerPort().
				WithName(metricsPortName).WithContainerPort(metricsPort).WithProtocol(corev1.ProtocolTCP))
	}
	spec.WithInitContainers(sidecar)
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
	secret := func(volume, name string) *corev1ac.VolumeApplyConfiguration {
		return corev1ac.Volume().WithName(volume).WithSecret(corev1ac.SecretVolumeSource().
			WithSecretName(name).WithOptional(true).WithDefaultMode(mode))
	}
	spec.WithVolumes(
		secret(certificateVolume, s.tls.secret),
		corev1ac.Volume().WithName(storeVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource().
			WithMedium(corev1.StorageMediumMemory).WithSizeLimit(resource.MustParse("1Mi"))))
	switch {
	case s.tls.caSecret != "":
		spec.WithVolumes(secret(caVolume, s.tls.caSecret))
	case s.tls.caMap != "":
		spec.WithVolumes(corev1ac.Volume().WithName(caVolume).WithConfigMap(corev1ac.ConfigMapVolumeSource().
			WithName(s.tls.caMap).WithOptional(true).WithDefaultMode(mode)))
	}
}
