package foo

import (
	"unique"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/status"
)

// Slim is a transform for the cache: a Foo with all that is read of it, in less memory.
func Slim(in any) (any, error) {
	if foo, ok := in.(*samplev1alpha1.Foo); ok {
		foo.ManagedFields = nil
		foo.Kind, foo.APIVersion, foo.Namespace = once(foo.Kind), once(foo.APIVersion), once(foo.Namespace)
		if foo.Spec.DeploymentName == foo.Name {
			foo.Spec.DeploymentName = foo.Name // the same text, in one place
		}
		foo.Status.Conditions = status.Slim(foo.Status.Conditions)
	}
	return in, nil
}

// once returns a text that is kept once, in whatever object it is.
func once(text string) string {
	return unique.Make(text).Value()
}
