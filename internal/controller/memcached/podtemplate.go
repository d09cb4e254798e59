package memcached

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/operand"
)

// memcachedUser is the user of the official image. The image has its name and not its number, so runAsNonRoot alone
// would fail.
const memcachedUser = 11211

// containerName is the name of the container that runs memcached.
const containerName = "memcached"

// Seconds.
const (
	drainSeconds       = 5  // between leaving the Service and stopping, for clients to resolve the Service again
	terminationSeconds = 30 // after which a node is killed; memcached itself stops at once
)

// pods is what the builders of both workloads need to know about the cluster and the operator.
type pods struct {
	platform   operand.Platform
	image      string
	agentImage string
}

// podTemplate returns the template of the pods of a Memcached.
//
// A change of anything in it restarts every node of every Memcached, and empties it, when the operator is upgraded: a
// Memcached that sets only spec.size has exactly the template of release 0.2.0.
func podTemplate(mc *cachev1alpha1.Memcached, s settings,
	pods pods) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	given := ptr.Deref(mc.Spec.PodTemplate, cachev1alpha1.PodTemplate{})
	metadata := ptr.Deref(given.Metadata, cachev1alpha1.PodMetadata{})
	spec, err := podSpec(mc, s, pods, ptr.Deref(given.Spec, cachev1alpha1.PodSpec{}))
	if err != nil {
		return nil, fmt.Errorf("building the pod template: %w", err)
	}
	return corev1ac.PodTemplateSpec().
		WithLabels(metadata.Labels).
		WithLabels(selector(mc)).
		WithAnnotations(metadata.Annotations).
		WithSpec(spec), nil
}

func podSpec(mc *cachev1alpha1.Memcached, s settings, pods pods,
	given cachev1alpha1.PodSpec) (*corev1ac.PodSpecApplyConfiguration, error) {
	spec := &corev1ac.PodSpecApplyConfiguration{}
	if err := convert(given, spec); err != nil {
		return nil, err
	}
	if given.TopologySpreadConstraints == nil {
		spec.WithTopologySpreadConstraints(spread(mc, corev1.LabelTopologyZone), spread(mc, corev1.LabelHostname))
	}
	security := pods.platform.PodSecurity(memcachedUser)
	if err := convert(given.SecurityContext, security); err != nil {
		return nil, err
	}
	if given.ServiceAccountName != "" {
		// The API server copies the name to this field, and back from it: removing only the other one has no effect.
		spec.WithDeprecatedServiceAccount(given.ServiceAccountName)
	}
	for _, secret := range mc.Spec.ImagePullSecrets {
		spec.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	addAgent(spec, s, pods.agentImage)
	return spec.
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(security).
		WithTerminationGracePeriodSeconds(terminationSeconds).
		WithContainers(container(mc, s, pods.image)), nil
}

// container returns the container that runs memcached.
func container(mc *cachev1alpha1.Memcached, s settings, image string) *corev1ac.ContainerApplyConfiguration {
	ports := clientPorts(s)
	readiness := probe(ports[0].name, 5, 2)
	if mc.Spec.WorkloadType == cachev1alpha1.StatefulSetWorkload && s.warmup > 0 {
		// Readiness also delays drains, since PodDisruptionBudgets count it, and it paces rollouts where minReadySeconds
		// is ignored for parallel pods (before Kubernetes 1.34, kubernetes#119234).
		readiness.WithInitialDelaySeconds(s.warmup)
	}
	// The liveness probe gives a node a minute, because a restart costs all items. memcached logs to stderr why it ends.
	drain := corev1ac.LifecycleHandler().WithSleep(corev1ac.SleepAction().WithSeconds(drainSeconds))
	container := corev1ac.Container().
		WithName(containerName).
		WithImage(image).
		WithCommand(command(s)...).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(s.resources.Requests).
			WithLimits(s.resources.Limits)).
		WithStartupProbe(probe(ports[0].name, 1, 30)).
		WithReadinessProbe(readiness).
		WithLivenessProbe(probe(ports[0].name, 10, 6)).
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(drain)).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(operand.ContainerSecurity())
	for _, port := range ports {
		container.WithPorts(corev1ac.ContainerPort().
			WithName(port.name).WithContainerPort(port.number).WithProtocol(corev1.ProtocolTCP))
	}
	if s.tls != nil {
		container.WithVolumeMounts(
			corev1ac.VolumeMount().WithName(storeVolume).WithMountPath(storePath).WithReadOnly(true))
	}
	if policy := pullPolicy(mc); policy != "" {
		container.WithImagePullPolicy(policy)
	}
	return container
}

// pullPolicy returns when the image is pulled; "" lets Kubernetes set the default. Kubernetes does not set it again
// when the image changes, so for an image of the spec its rule stands here: always for the tag "latest", or none.
func pullPolicy(mc *cachev1alpha1.Memcached) corev1.PullPolicy {
	if mc.Spec.ImagePullPolicy != "" || mc.Spec.Image == "" {
		return mc.Spec.ImagePullPolicy
	}
	name, _, hasDigest := strings.Cut(mc.Spec.Image, "@")
	_, tag, hasTag := strings.Cut(path.Base(name), ":")
	if tag == "latest" || !hasTag && !hasDigest {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// convert sets the fields of an apply configuration that a value of the corresponding API type has.
func convert(from, to any) error {
	content, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, to)
}

// spread distributes nodes evenly over the domains of a topology, where possible. The pods of a Deployment are compared
// with those of the same revision only; StatefulSets replace one pod at a time in place.
func spread(mc *cachev1alpha1.Memcached, topology string) *corev1ac.TopologySpreadConstraintApplyConfiguration {
	constraint := corev1ac.TopologySpreadConstraint().
		WithTopologyKey(topology).
		WithMaxSkew(1).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(maps.Clone(selector(mc))))
	if mc.Spec.WorkloadType != cachev1alpha1.StatefulSetWorkload {
		constraint.WithMatchLabelKeys(appsv1.DefaultDeploymentUniqueLabelKey)
	}
	return constraint
}

// probe checks every periodSeconds whether a port accepts a connection; failures is the failure threshold.
func probe(port string, periodSeconds, failures int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString(port))).
		WithPeriodSeconds(periodSeconds).
		WithTimeoutSeconds(3).
		WithFailureThreshold(failures)
}
