package owned

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ForeignError says that an object of the name of a child exists and is not ours. It has been left alone.
type ForeignError struct {
	Kind   string                 // of the object, such as Deployment
	Name   string                 // of the object
	Holder *metav1.OwnerReference // its controller; nil when it has none
}

func (e *ForeignError) Error() string {
	if e.Holder == nil {
		return fmt.Sprintf("%s %q exists and is not controlled by anything", e.Kind, e.Name)
	}
	return fmt.Sprintf("%s %q exists and is controlled by %s %q", e.Kind, e.Name, e.Holder.Kind, e.Holder.Name)
}

// Resource returns the kind of the object as kubectl takes it.
func (e *ForeignError) Resource() string {
	return strings.ToLower(e.Kind)
}

// WithoutForeign returns what is left of the joined error err without its ForeignErrors. That is worth a retry, while the
// end of a foreign object shows on the watch.
func WithoutForeign(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		left := slices.Clone(joined.Unwrap())
		for i := range left {
			left[i] = WithoutForeign(left[i])
		}
		return errors.Join(left...)
	}
	if errors.As(err, new(*ForeignError)) {
		return nil
	}
	return err
}

// IsStale tells whether a write failed because somebody else has written the object since we read it. The next pass, on
// a newer copy, may find nothing left to do.
func IsStale(err error) bool {
	return apierrors.IsConflict(err)
}

// Behind returns an error that [IsStale] knows: the cache does not show yet what there is under a name.
func Behind(key types.NamespacedName) error {
	return apierrors.NewConflict(schema.GroupResource{}, key.Name, errors.New("the cache is behind"))
}

// IsNamespaceEnding tells whether a write failed because the namespace is being deleted. Nothing can be made in it any more,
// and nothing is needed.
func IsNamespaceEnding(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsRefusal tells whether the API server has looked at a write and said no (quota, admission, validation, permission), as
// against not having been reached, or having been overloaded.
func IsRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// IsPredecessor tells whether an object's controller was an earlier resource of the name and kind of owner. The garbage
// collector is about to end that object.
func IsPredecessor(holder *metav1.OwnerReference, owner client.Object, kind schema.GroupVersionKind) bool {
	return groupOf(holder) == kind.Group && holder.Kind == kind.Kind && holder.Name == owner.GetName() && holder.UID != owner.GetUID()
}
