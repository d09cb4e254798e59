package memcached

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/operand"
)

// memcachedUser is the user of the official image. The image has its name and not its number, so runAsNonRoot alone
// would fail.
const memcachedUser = 11211

// command runs memcached with 64 MB of items. It has --memory-limit=64 because memcached parses -m=64 as 0 and exits.
var command = []string{"memcached", "--memory-limit=64", "-o", "modern", "-v"}

// memory is the most that a node with 64 MB of items needs: 64 MB of items, 7 % of that for the hash table, the first
// 1 MiB page of each of about 40 slab classes, 32 MiB for the program, 1 MiB for each of 4 threads, 8 KiB for each of
// 1024 connections, 32 KiB for each of the quarter of them that is busy, and a margin of 5 %. Every cache fills up, so
// the request equals the limit.
var memory = resource.MustParse("168Mi")

// containerName is the name of the one container.
const containerName = "memcached"

// Seconds.
const (
	drainSeconds       = 5  // between leaving the Service and stopping, for clients to resolve the Service again
	terminationSeconds = 30 // after which a node is killed; memcached itself stops at once
)

// deployment returns the Deployment of a Memcached.
//
// A change of anything in the pod template restarts every node of every Memcached, and empties it, when the operator
// is upgraded.
func deployment(mc *cachev1alpha1.Memcached, platform operand.Platform,
	image string) *appsv1ac.DeploymentApplyConfiguration {
	pods := selector(mc)
	return appsv1ac.Deployment(mc.Name, mc.Namespace).
		WithLabels(pods).
		WithLabels(operand.Labels("memcached", mc.Name)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(mc.Spec.Size).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(pods)).
			WithStrategy(appsv1ac.DeploymentStrategy().
				WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
					// One node's items are lost at a time, and clients never see more than spec.size nodes: a surge
					// would move keys to the new node and move them again when the old node stops.
					WithMaxUnavailable(intstr.FromInt32(1)).
					WithMaxSurge(intstr.FromInt32(0)))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(pods).
				WithSpec(podSpec(pods, platform, image))))
}

func podSpec(pods map[string]string, platform operand.Platform, image string) *corev1ac.PodSpecApplyConfiguration {
	return corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithSecurityContext(platform.PodSecurity(memcachedUser)).
		WithTerminationGracePeriodSeconds(terminationSeconds).
		WithTopologySpreadConstraints(
			spread(corev1.LabelTopologyZone, pods),
			spread(corev1.LabelHostname, pods)).
		WithContainers(corev1ac.Container().
			WithName(containerName).
			WithImage(image).
			WithCommand(command...).
			WithPorts(corev1ac.ContainerPort().WithName(portName).WithContainerPort(portNumber).
				WithProtocol(corev1.ProtocolTCP)).
			WithResources(corev1ac.ResourceRequirements().
				WithRequests(corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("50m"), // no limit: throttling shows as latency
					corev1.ResourceMemory: memory,
				}).
				WithLimits(corev1.ResourceList{corev1.ResourceMemory: memory})).
			WithStartupProbe(probe(1, 30)).
			WithReadinessProbe(probe(5, 2)).
			WithLivenessProbe(probe(10, 6)). // a minute: a restart costs all items
			WithLifecycle(corev1ac.Lifecycle().
													WithPreStop(corev1ac.LifecycleHandler().WithSleep(corev1ac.SleepAction().WithSeconds(drainSeconds)))).
			WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError). // memcached logs the cause to stderr
			WithSecurityContext(operand.ContainerSecurity()))
}

// spread distributes nodes evenly over the domains of a topology, where possible.
func spread(topology string, pods map[string]string) *corev1ac.TopologySpreadConstraintApplyConfiguration {
	return corev1ac.TopologySpreadConstraint().
		WithTopologyKey(topology).
		WithMaxSkew(1).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(pods)).
		WithMatchLabelKeys(appsv1.DefaultDeploymentUniqueLabelKey)
}

// probe checks every periodSeconds whether the port accepts a connection; failures is the failure threshold.
func probe(periodSeconds, failures int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString(portName))).
		WithPeriodSeconds(periodSeconds).
		WithTimeoutSeconds(3).
		WithFailureThreshold(failures)
}
