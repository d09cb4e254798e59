package foo

import (
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/slim"
)

// Slim is a transform for the cache: a Foo with all that is read of it, in less memory.
func Slim(in any) (any, error) {
	if foo, ok := in.(*samplev1alpha1.Foo); ok {
		foo.ManagedFields = nil
		foo.Kind, foo.APIVersion, foo.Namespace = slim.Text(foo.Kind), slim.Text(foo.APIVersion), slim.Text(foo.Namespace)
		if foo.Spec.DeploymentName == foo.Name {
			foo.Spec.DeploymentName = foo.Name // the same text, in one place
		}
		foo.Status.Conditions = slim.Conditions(foo.Status.Conditions)
	}
	return in, nil
}
