// Package slim reduces the memory that cached objects take: transforms that the caches apply, and sharing of texts.
package slim

import (
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/internal/child"
)

// Child returns the cache transform for a type of children. An object that carries [child.OwnerAnnotation], or that is
// controlled by a resource of one of the given API groups, only loses its managedFields. Any other object is reduced to
// its identity, resource version, deletion timestamp and controller, which show that its name is taken, and by what; it
// must not be written back. Values that are no objects, such as [toolscache.DeletedFinalStateUnknown], are not changed.
func Child(objectType client.Object, groups ...string) toolscache.TransformFunc {
	empty := objectType.DeepCopyObject()
	return func(in any) (any, error) {
		object, ok := in.(client.Object)
		if !ok {
			return in, nil
		}
		controller := metav1.GetControllerOf(object)
		if object.GetAnnotations()[child.OwnerAnnotation] != "" ||
			controller != nil && slices.Contains(groups, groupOf(controller)) {
			object.SetManagedFields(nil)
			return object, nil
		}
		slim := empty.DeepCopyObject().(client.Object)
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

func groupOf(controller *metav1.OwnerReference) string {
	return schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).Group
}

// Conditions returns a copy of conditions whose texts are shared with other resources: very many have the same ones.
func Conditions(conditions []metav1.Condition) []metav1.Condition {
	slim := slices.Clone(conditions)
	for i := range slim {
		c := &slim[i]
		c.Type, c.Status, c.Reason, c.Message = Text(c.Type), Text(c.Status), Text(c.Reason), Text(c.Message)
	}
	return slices.Clip(slim)
}

// Text returns a copy of a text that objects share. Copies made after a garbage collection may be new ones, so there
// may be a few copies of a text, but not one per object.
func Text[T ~string](text T) T {
	return unique.Make(text).Value()
}
