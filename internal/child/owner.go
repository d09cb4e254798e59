package child

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Annotations that every child carries.
const (
	// OwnerAnnotation holds the UID of the resource that the child was created for. A child that has lost its owner
	// reference (backup tools drop them) is recognized by it and gets the reference back.
	OwnerAnnotation = "memcached-operator.example.com/owner-uid"
	// FieldsAnnotation holds a hash of the names of all fields that were applied. It changes when a field is no longer
	// applied. So a cached child, whose managedFields are not kept, shows that a field has to be removed.
	FieldsAnnotation = "memcached-operator.example.com/applied-fields"
)

// The names of the indexes that [IndexController] and [IndexOwner] are the functions of.
const (
	ControllerIndex = "metadata.controller.uid"
	OwnerIndex      = "metadata.owner"
)

// IsControlled reports whether owner controls a child: as its controller or, where the child has none, by our
// annotation.
func IsControlled(child, owner client.Object) bool {
	return ownerOf(child) == owner.GetUID()
}

// ownerOf returns the UID of the resource that controls a child; "" if none does.
func ownerOf(child client.Object) types.UID {
	if controller := metav1.GetControllerOfNoCopy(child); controller != nil {
		return controller.UID
	}
	return types.UID(child.GetAnnotations()[OwnerAnnotation])
}

// IndexController is an index function: the UID of an object's controller.
func IndexController(object client.Object) []string {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil {
		return nil
	}
	return []string{string(controller.UID)}
}

// IndexOwner is an index function: the beginning of the UID of the resource that controls a child.
func IndexOwner(child client.Object) []string {
	if uid := ownerOf(child); uid != "" {
		return []string{prefix(uid)}
	}
	return nil
}

// OwnerKey returns the key of an owner in the index of [IndexOwner]. The objects of some other owners have it too,
// which [IsControlled] tells apart: it is a prefix of the UID. An entry for each owner would take about 700 bytes, a
// seventh of what a Foo takes with its Deployment; of 50,000 owners about twelve share a prefix.
func OwnerKey(owner client.Object) string {
	return prefix(owner.GetUID())
}

func prefix(uid types.UID) string {
	return string(uid[:min(3, len(uid))])
}

// referenceTo returns the owner reference that makes owner the controller. Owners that are deleted in the foreground
// wait for the child.
func referenceTo(owner client.Object, scheme *runtime.Scheme) (*metav1ac.OwnerReferenceApplyConfiguration, error) {
	gvk, err := apiutil.GVKForObject(owner, scheme)
	if err != nil {
		return nil, fmt.Errorf("setting the owner reference: %w", err)
	}
	return metav1ac.OwnerReference().
		WithAPIVersion(gvk.GroupVersion().String()).
		WithKind(gvk.Kind).
		WithName(owner.GetName()).
		WithUID(owner.GetUID()).
		WithController(true).
		WithBlockOwnerDeletion(true), nil
}
