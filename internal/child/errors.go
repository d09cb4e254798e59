package child

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NotControlledError reports that an object with the name of a child already exists, and the child's owner does not
// control it. The object was left unchanged.
type NotControlledError struct {
	Kind       string                 // of the object, such as Deployment
	Name       string                 // of the object
	Controller *metav1.OwnerReference // of the object; nil if it has none
}

func (e *NotControlledError) Error() string {
	if e.Controller == nil {
		return fmt.Sprintf("%s %q exists and is not controlled by anything", e.Kind, e.Name)
	}
	return fmt.Sprintf("%s %q exists and is controlled by %s %q", e.Kind, e.Name, e.Controller.Kind, e.Controller.Name)
}

// Resource returns the kind in lower case, such as deployment, which kubectl accepts.
func (e *NotControlledError) Resource() string {
	return strings.ToLower(e.Kind)
}

// AsNotControlled returns the [*NotControlledError] in an error; nil if there is none.
func AsNotControlled(err error) *NotControlledError {
	var notControlled *NotControlledError
	errors.As(err, &notControlled)
	return notControlled
}

// Flatten expands joined errors recursively, in order. Any other error is returned as the only element.
func Flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, err := range joined.Unwrap() {
		all = append(all, Flatten(err)...)
	}
	return all
}

// ToRetry returns the errors joined in err that are worth a retry. No retry is needed for a [*NotControlledError]: any
// change of that object triggers a pass, because children are also watched by name.
func ToRetry(err error) error {
	var retry []error
	for _, err := range Flatten(err) {
		if AsNotControlled(err) == nil {
			retry = append(retry, err)
		}
	}
	return errors.Join(retry...)
}

// IsNamespaceTerminating reports whether a write failed because the namespace is being deleted. Nothing can be created
// in it anymore, and nothing needs to be.
func IsNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsRefusal reports whether the API server rejected a request for its content (quota, admission, validation,
// permission), as opposed to a conflict, a request that did not reach it, or one that an overloaded server did not
// process. An error that [IsNamespaceTerminating] recognizes counts as well. Of joined errors, one is enough, such as
// that of the read that follows a conflict.
func IsRefusal(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), IsRefusal)
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		return IsRefusal(wrapped)
	}
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// IsPredecessor reports whether the controller of an object has the name and kind of owner and another UID: usually a
// resource that was deleted and created again, whose child the garbage collector has not deleted yet.
func IsPredecessor(controller *metav1.OwnerReference, owner client.Object, kind schema.GroupVersionKind) bool {
	return controller != nil &&
		schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() == kind.GroupKind() &&
		controller.Name == owner.GetName() && controller.UID != owner.GetUID()
}
