package memcached

import (
	"cmp"
	"testing"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/golden"
	"github.com/example/memcached-operator/internal/operand"
)

// children returns the children of a Memcached, as the reconciler applies them.
func children(t *testing.T, mc *cachev1alpha1.Memcached, pods pods) []any {
	t.Helper()
	settings := settingsOf(mc)
	template, err := podTemplate(mc, settings, pods)
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, service := range services(mc, settings) {
		all = append(all, service)
	}
	all = append(all, podDisruptionBudget(mc))
	if mc.Spec.WorkloadType == cachev1alpha1.StatefulSetWorkload {
		return append(all, statefulSet(mc, template))
	}
	return append(all, deployment(mc, settings, template))
}

func TestGoldenChildren(t *testing.T) {
	for _, test := range []struct {
		name, file string
		platform   operand.Platform
		golden     string
	}{
		{"of the tutorial's sample", "minimal", operand.Platform{}, "minimal"},
		{"with a name that is too long for a label and a Service", "long", operand.Platform{}, "long"},
		{"where the cluster assigns users", "minimal", operand.Platform{AssignsUsers: true}, "openshift"},
		{"with all fields", "full", operand.Platform{}, "full"},
		{"of a StatefulSet", "statefulset", operand.Platform{}, "statefulset"},
		{"with TLS and metrics", "tls", operand.Platform{}, "tls"},
		{"with TLS, where the cluster assigns users", "tls", operand.Platform{AssignsUsers: true}, "tls-openshift"},
		{"with TLS, while clients move to it", "moving", operand.Platform{}, "moving"},
		{"with metrics", "metrics", operand.Platform{}, "metrics"},
		{"with memory derived from its limit, and without constraints", "derived", operand.Platform{}, "derived"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var mc cachev1alpha1.Memcached
			golden.Read(t, test.file, &mc)
			image := cmp.Or(mc.Spec.Image, "memcached:1.6.45-alpine")
			golden.Check(t, test.golden, children(t, &mc, pods{test.platform, image, "memcached-operator-agent:v0.1.0"})...)
		})
	}
}
