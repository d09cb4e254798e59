package memcached

import (
	"testing"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/golden"
	"github.com/example/memcached-operator/internal/operand"
)

func TestGoldenChildren(t *testing.T) {
	for _, test := range []struct {
		name, file string
		platform   operand.Platform
		golden     string
	}{
		{"of the tutorial's sample", "minimal", operand.Platform{}, "minimal"},
		{"with a name that is too long for a label and a Service", "long", operand.Platform{}, "long"},
		{"where the cluster assigns users", "minimal", operand.Platform{AssignsUsers: true}, "openshift"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var mc cachev1alpha1.Memcached
			golden.Read(t, test.file, &mc)
			golden.Check(t, test.golden, service(&mc), podDisruptionBudget(&mc),
				deployment(&mc, test.platform, "memcached:1.6.45-alpine"))
		})
	}
}
