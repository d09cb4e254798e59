package memcached

import (
	"fmt"
	"slices"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/names"
)

// Labels that the pods of a Memcached carry and its workload selects. A selector cannot be changed, so neither may
// these.
const (
	labelApp      = "app"
	labelInstance = "memcached_cr"
)

// Names of the ports of nodes. Those of clients are part of the SRV records that clients look up.
const (
	portName        = "memcached"
	tlsPortName     = "memcached-tls"
	metricsPortName = "metrics"
)

// Ports that nodes listen on besides those of clients; no field may use them.
const (
	metricsPort = 9150
	// agentPort is without TLS on the loopback interface of a node with TLS. Only the agent uses it.
	agentPort = 11210
)

// port is a port of a node for clients.
type port struct {
	name   string
	number int32
}

// clientPorts returns the ports for clients. The first one is checked by probes.
func clientPorts(s settings) []port {
	var ports []port
	if s.hasPlaintext() {
		ports = append(ports, port{portName, s.port})
	}
	if s.tls != nil {
		ports = append(ports, port{tlsPortName, s.tls.port})
	}
	return ports
}

// selector returns the labels that the pods of a Memcached carry. Other pods may carry them, too: pods.go finds pods by
// their controllers.
func selector(mc *cachev1alpha1.Memcached) map[string]string {
	return map[string]string{
		labelApp:      "memcached",
		labelInstance: names.Label(mc.Name),
	}
}

// nodesServiceName returns the name of the Service that gives the nodes of a StatefulSet their DNS names.
func nodesServiceName(mc *cachev1alpha1.Memcached) string {
	return names.Service(mc.Name + "-nodes")
}

// serviceNames returns the names of the Services of a Memcached.
func serviceNames(mc *cachev1alpha1.Memcached) []string {
	if mc.Spec.WorkloadType == cachev1alpha1.StatefulSetWorkload {
		return []string{names.Service(mc.Name), nodesServiceName(mc)}
	}
	return []string{names.Service(mc.Name)}
}

// childNames returns the names that the children of a Memcached have, each once.
func childNames(mc *cachev1alpha1.Memcached) []string {
	all := append(serviceNames(mc), mc.Name)
	slices.Sort(all)
	return slices.Compact(all)
}

// servers returns the DNS names and ports of the nodes in the order of their numbers; nil for a Deployment, whose pods
// have no DNS names.
func servers(mc *cachev1alpha1.Memcached, s settings) []string {
	if mc.Spec.WorkloadType != cachev1alpha1.StatefulSetWorkload {
		return nil
	}
	all := make([]string, mc.Spec.Size)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d.%s.%s.svc:%d", mc.Name, i, nodesServiceName(mc), mc.Namespace, clientPorts(s)[0].number)
	}
	return all
}
