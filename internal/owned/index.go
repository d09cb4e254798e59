package owned

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names of the indexes that [ControllerUID] and [Owner] make.
const (
	ControllerUIDIndex = "metadata.controller.uid"
	OwnerIndex         = "metadata.owner"
)

// ControllerUID is an index function: the UID of an object's controller.
func ControllerUID(object client.Object) []string {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil {
		return nil
	}
	return []string{string(controller.UID)}
}

// Owner is an index function: the beginning of the UID of whom [IsOurs] takes an object for.
func Owner(object client.Object) []string {
	if controller := metav1.GetControllerOfNoCopy(object); controller != nil {
		return []string{beginning(controller.UID)}
	}
	if uid := object.GetAnnotations()[OwnerAnnotation]; uid != "" {
		return []string{beginning(types.UID(uid))}
	}
	return nil
}

// OwnerKey returns what the index of [Owner] finds the objects of an owner by. Objects of some others are among them, which [IsOurs] tells
// apart: it is the beginning of the UID. An entry for each owner would take some 700 bytes, a seventh of what a Foo takes with its
// Deployment; of 50,000 owners some twelve share one of these.
func OwnerKey(owner client.Object) string {
	return beginning(owner.GetUID())
}

func beginning(uid types.UID) string {
	return string(uid[:min(3, len(uid))])
}
