package memcached

import (
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/names"
)

// Labels that the pods of a Memcached carry and its Deployment selects. A selector cannot be changed, so neither may
// these.
const (
	labelApp      = "app"
	labelInstance = "memcached_cr"
)

// Name and number of the port that nodes listen on. The name is part of the SRV record that clients look up.
const (
	portName   = "memcached"
	portNumber = 11211
)

// selector returns the labels that the pods of a Memcached carry. Other pods may carry them, too: pods.go finds pods by
// their controllers.
func selector(mc *cachev1alpha1.Memcached) map[string]string {
	return map[string]string{
		labelApp:      "memcached",
		labelInstance: names.Label(mc.Name),
	}
}

// childNames returns the names that the children of a Memcached have.
func childNames(mc *cachev1alpha1.Memcached) []string {
	if service := names.Service(mc.Name); service != mc.Name {
		return []string{mc.Name, service}
	}
	return []string{mc.Name}
}
