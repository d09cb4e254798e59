package foo

import (
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/status"
)

// Slim is a transform for the cache: a Foo with all that is read of it, in less memory.
func Slim(in any) (any, error) {
	if foo, ok := in.(*samplev1alpha1.Foo); ok {
		foo.ManagedFields = nil
		foo.Status.Conditions = status.Slim(foo.Status.Conditions)
	}
	return in, nil
}
