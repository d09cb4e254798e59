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
	// current is the Deployment of the name that the Foo wants, whoever controls it; nil if there is none.
	current *appsv1.Deployment
	// owned are the Deployments that the Foo controls, under whatever names.
	owned []*appsv1.Deployment
}

// former returns the Deployments that a Foo has under other names than it wants, and that are not being deleted yet.
func (o observed) former(foo *samplev1alpha1.Foo) []*appsv1.Deployment {
	return slices.DeleteFunc(slices.Clone(o.owned), func(d *appsv1.Deployment) bool {
		return d.Name == foo.Spec.DeploymentName || !d.DeletionTimestamp.IsZero()
	})
}

// serving returns the Deployment that serves for a Foo until the one that it wants is there; nil if it has none.
func (o observed) serving(foo *samplev1alpha1.Foo) *appsv1.Deployment {
	switch {
	case o.current != nil && child.IsControlled(o.current, foo):
		return o.current
	case len(o.owned) > 0:
		return o.owned[0]
	}
	return nil
}

// claim is a Deployment whose name a Foo wants and another object has.
type claim struct {
	name       string
	controller *metav1.OwnerReference // of the Deployment; nil if it has none
	holder     *samplev1alpha1.Foo    // the Foo that is its controller; nil if none is
}

// isSwap reports whether the Foo that has the wanted name wants to leave it and cannot, because the name that one wants
// is, directly or by way of others, taken by this Foo. One of them has to let go then. The claims begin with the name
// that this Foo wants; each is for the name that the holder of the one before wants.
func isSwap(foo *samplev1alpha1.Foo, claims []claim) bool {
	return slices.ContainsFunc(claims, func(c claim) bool { return c.controller != nil && c.controller.UID == foo.UID })
}

// isPassing reports whether the wanted name is taken for a moment only: by a Foo that wants another name, or by an
// earlier Foo of this name whose Deployment is yet to be collected. It is a problem to report only if it stays.
func isPassing(foo *samplev1alpha1.Foo, claims []claim) bool {
	if len(claims) == 0 {
		return false
	}
	first := claims[0]
	return child.IsPredecessor(first.controller, foo, samplev1alpha1.GroupVersion.WithKind("Foo")) ||
		first.holder != nil && first.holder.Spec.DeploymentName != first.name
}
