package foo

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/names"
)

// Labels that the pods of a Foo carry and its Deployment selects. A selector cannot be changed, so neither may these.
const (
	labelApp        = "app"
	labelController = "controller"
)

// selector returns the labels that distinguish the pods of a Foo from all others in the namespace.
func selector(foo *samplev1alpha1.Foo) map[string]string {
	return map[string]string{
		labelApp:        "nginx",
		labelController: names.Label(foo.Name),
	}
}

// observed is the state that a pass has read.
type observed struct {
	// current is the Deployment named spec.deploymentName, whatever controls it; nil if there is none.
	current *appsv1.Deployment
	// owned are the Deployments that the Foo controls, under any name.
	owned []*appsv1.Deployment
}

// former returns the Foo's Deployments that have other names than spec.deploymentName and are not being deleted yet.
func (o observed) former(foo *samplev1alpha1.Foo) []*appsv1.Deployment {
	return slices.DeleteFunc(slices.Clone(o.owned), func(d *appsv1.Deployment) bool {
		return d.Name == foo.Spec.DeploymentName || !d.DeletionTimestamp.IsZero()
	})
}

// serving returns the Deployment that the status describes until the desired one exists; nil if the Foo has none.
func (o observed) serving(foo *samplev1alpha1.Foo) *appsv1.Deployment {
	switch {
	case o.current != nil && child.IsControlled(o.current, foo):
		return o.current
	case len(o.owned) > 0:
		return o.owned[0]
	}
	return nil
}

// claim is a Deployment whose name a Foo specifies, but which another resource may control.
type claim struct {
	name       string
	controller *metav1.OwnerReference // of the Deployment; nil if it has none
	holder     *samplev1alpha1.Foo    // the Foo that is its controller; nil if none is
}

// isSwap reports whether Foos wait for one another in a cycle: the holder of the desired name specifies another name,
// which is, directly or through further Foos, taken by this Foo. One of them has to delete its Deployment first. The
// first claim is for the name that this Foo specifies, each further one for the name that the previous holder
// specifies.
func isSwap(foo *samplev1alpha1.Foo, claims []claim) bool {
	return slices.ContainsFunc(claims, func(c claim) bool { return c.controller != nil && c.controller.UID == foo.UID })
}

// isPassing reports whether the desired name is taken only temporarily: by a Foo that is moving to another name, or by
// an earlier Foo of the same name whose Deployment the garbage collector has not deleted yet. This is reported only if
// it persists.
func isPassing(foo *samplev1alpha1.Foo, claims []claim) bool {
	if len(claims) == 0 {
		return false
	}
	first := claims[0]
	return child.IsPredecessor(first.controller, foo, samplev1alpha1.GroupVersion.WithKind("Foo")) ||
		first.holder != nil && first.holder.Spec.DeploymentName != first.name
}
