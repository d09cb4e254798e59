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

// memcachedUser is the user of the official image, which names it in words, so that Kubernetes cannot tell it from
// root.
const memcachedUser = 11211

// command is what a node runs: 64 MB of items. It is --memory-limit=64 and not -m=64, which memcached reads as 0 and
// ends.
var command = []string{"memcached", "--memory-limit=64", "-o", "modern", "-v"}

// memory is what a node with 64 MB of items may need at most, in all: 64 MB of items and 7 % of hash table, the first
// 1 MiB page of each of about 40 slab classes, 32 MiB of program, 1 MiB for each of 4 threads, and for 1024
// connections 8 KiB each and 32 KiB for a quarter of them that are busy; and 5 % to spare. A cache is always
// full in the end, so it is requested as well.
var memory = resource.MustParse("168Mi")

// containerName is the name of the one container.
const containerName = "memcached"

// Seconds.
const (
	drainSeconds       = 5  // between leaving the Service and stopping, for clients to look the Service up again
	terminationSeconds = 30 // after which a node is killed; memcached itself ends at once
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
					// One node's items are lost at a time, and clients never see more nodes than there are to be:
					// a surge would move keys to the new node and, when the old one ends, once more.
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
			WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError). // memcached says on stderr why it ends
			WithSecurityContext(operand.ContainerSecurity()))
}

// spread asks for nodes to be spread evenly over the domains of a topology, where that can be had.
func spread(topology string, pods map[string]string) *corev1ac.TopologySpreadConstraintApplyConfiguration {
	return corev1ac.TopologySpreadConstraint().
		WithTopologyKey(topology).
		WithMaxSkew(1).
		WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(pods)).
		WithMatchLabelKeys(appsv1.DefaultDeploymentUniqueLabelKey)
}

// probe asks every so many seconds whether the port accepts a connection, and gives up after that many failures.
func probe(periodSeconds, failures int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString(portName))).
		WithPeriodSeconds(periodSeconds).
		WithTimeoutSeconds(3).
		WithFailureThreshold(failures)
}
