package owned

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// Slim returns what the cache keeps of an object of a kind that we have children of: all but managedFields of what carries our
// annotation or is controlled by a resource of one of our API groups, and of a stranger just enough to know it by, because
// all it is read for is whether a name is taken, and by whom. It is a transform for cache.ByObject; objects of other types
// pass unchanged.
func Slim[T any, P Object[T]](groups ...string) toolscache.TransformFunc {
	return func(in any) (any, error) {
		object, ok := in.(P)
		if !ok {
			return in, nil
		}
		controller := metav1.GetControllerOf(object)
		if object.GetAnnotations()[OwnerAnnotation] != "" || controller != nil && slices.Contains(groups, groupOf(controller)) {
			object.SetManagedFields(nil)
			return object, nil
		}
		slim := P(new(T))
		slim.SetNamespace(object.GetNamespace())
		slim.SetName(object.GetName())
		slim.SetUID(object.GetUID())
		slim.SetResourceVersion(object.GetResourceVersion())
		slim.SetDeletionTimestamp(object.GetDeletionTimestamp())
		if controller != nil {
			slim.SetOwnerReferences([]metav1.OwnerReference{*controller})
		}
		return slim, nil
	}
}

func groupOf(owner *metav1.OwnerReference) string {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return group
}
