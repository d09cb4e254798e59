package foo

import (
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/names"
)

// Labels that the pods of a Foo carry and its Deployment selects. A selector cannot be changed, so neither may these.
const (
	labelApp        = "app"
	labelController = "controller"
)

// selector returns the labels that tell the pods of a Foo from all others in the namespace.
func selector(foo *samplev1alpha1.Foo) map[string]string {
	return map[string]string{
		labelApp:        "nginx",
		labelController: names.Label(foo.Name),
	}
}
