package memcached

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/names"
	"github.com/example/memcached-operator/internal/operand"
)

// services returns the Services of a Memcached, in the order of [serviceNames].
func services(mc *cachev1alpha1.Memcached, s settings) []*corev1ac.ServiceApplyConfiguration {
	if mc.Spec.WorkloadType == cachev1alpha1.StatefulSetWorkload {
		return []*corev1ac.ServiceApplyConfiguration{service(mc, s), nodesService(mc, s)}
	}
	return []*corev1ac.ServiceApplyConfiguration{service(mc, s)}
}

// service returns the headless Service by which clients find the nodes: one DNS address and one SRV record for each
// that is ready. It is headless because each key is on one node: clients have to choose the node, not a load balancer.
func service(mc *cachev1alpha1.Memcached, s settings) *corev1ac.ServiceApplyConfiguration {
	return headless(mc, s, names.Service(mc.Name))
}

// nodesService returns the headless Service that gives the nodes of a StatefulSet their DNS names. It lists nodes that
// are not ready, too: clients that hash by name must not distribute the keys of a node that is restarting.
func nodesService(mc *cachev1alpha1.Memcached, s settings) *corev1ac.ServiceApplyConfiguration {
	service := headless(mc, s, nodesServiceName(mc))
	service.Spec.WithPublishNotReadyAddresses(true)
	return service
}

func headless(mc *cachev1alpha1.Memcached, s settings, name string) *corev1ac.ServiceApplyConfiguration {
	given := ptr.Deref(mc.Spec.Service, cachev1alpha1.ServiceTemplate{})
	metadata := ptr.Deref(given.Metadata, cachev1alpha1.ServiceMetadata{})
	spec := corev1ac.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithClusterIP(corev1.ClusterIPNone).
		WithSelector(selector(mc))
	for _, port := range clientPorts(s) {
		spec.WithPorts(corev1ac.ServicePort().
			WithName(port.name).
			WithPort(port.number).
			WithProtocol(corev1.ProtocolTCP).
			WithTargetPort(intstr.FromString(port.name)))
	}
	return corev1ac.Service(name, mc.Namespace).
		WithLabels(metadata.Labels).
		WithLabels(selector(mc)).
		WithLabels(operand.Labels("memcached", mc.Name)).
		WithAnnotations(metadata.Annotations).
		WithSpec(spec)
}
