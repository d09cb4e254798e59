package memcached

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/names"
	"github.com/example/memcached-operator/internal/operand"
)

// service returns the headless Service by which clients find the nodes: one DNS address and one SRV record for each
// that is ready. It is headless because each key is on one node: clients have to choose the node, not a load balancer.
func service(mc *cachev1alpha1.Memcached) *corev1ac.ServiceApplyConfiguration {
	pods := selector(mc)
	return corev1ac.Service(names.Service(mc.Name), mc.Namespace).
		WithLabels(pods).
		WithLabels(operand.Labels("memcached", mc.Name)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(pods).
			WithPorts(corev1ac.ServicePort().
				WithName(portName).
				WithPort(portNumber).
				WithProtocol(corev1.ProtocolTCP).
				WithTargetPort(intstr.FromString(portName))))
}
