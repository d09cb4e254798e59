// Package owned writes children: the objects that our resources are made of. No other code does.
//
// Children are written by server-side apply, so that a builder says everything we have an opinion on and nothing
// else: what others add stays, and what we stop saying goes. A child that already says all that is wanted
// costs no request; an object of that name that is not ours is left alone.
package owned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/example/memcached-operator/internal/recent"
)

// FieldOwner names us in metadata.managedFields. It must never change: fields applied under
// another name would stay behind for ever.
const FieldOwner = client.FieldOwner("memcached-operator")

// Patience is how long the writes of one pass may take, all in all. It leaves time to tell of a failure: a pass ends after
// 30 s, and a webhook that does not answer holds up one write for up to that long.
const Patience = 20 * time.Second

// absent is a resource version that no object has: it is that of a store in which there is nothing yet. What is applied with it is made only
// where there is nothing of that name.
const absent = "1"

// Annotations that every child carries.
const (
	// OwnerAnnotation holds the UID of the resource the child was made for. A child that has lost its owner
	// reference (backup tools drop them) is known by it and gets the reference back; anything else without
	// a controller is a stranger's.
	OwnerAnnotation = "memcached-operator.example.com/owner-uid"
	// FieldsAnnotation holds a hash of the names of all fields that were applied. A field that is no longer
	// applied changes it, which is how a cached child, whose managedFields are not kept, shows that
	// something has to be taken back.
	FieldsAnnotation = "memcached-operator.example.com/applied-fields"
)

// Children reads and writes the children of one kind.
type Children[T any, P Object[T]] struct {
	client  client.Client
	live    client.Reader
	recent  recent.Objects[P]
	altered alterations
}

// Object is the pointer to an API type T.
type Object[T any] interface {
	*T
	client.Object
}

// Pass is a pass of a resource that children are made for.
type Pass struct {
	Owner client.Object
	// Had tells that the owner has had its children before. If one is not there, it gets that again only when it is confirmed ([Children.Confirm]),
	// which it is once.
	Had bool

	isConfirmed bool
}

// Config is the apply configuration C of a child.
type Config[C any] interface {
	runtime.ApplyConfiguration
	GetName() *string
	GetNamespace() *string
	WithAnnotations(map[string]string) C
	WithOwnerReferences(...*metav1ac.OwnerReferenceApplyConfiguration) C
	WithUID(types.UID) C
	WithResourceVersion(string) C
}

// Of returns the children of kind T, read and written through c: reads come from its cache, with our own last
// write added where the cache is behind. Live reads without a cache; it is asked where only that can tell.
func Of[T any, P Object[T]](c client.Client, live client.Reader) *Children[T, P] {
	return &Children[T, P]{client: c, live: live}
}

// Get returns the object of that name, ours or not, or nil when there is none. It must not be changed.
func (c *Children[T, P]) Get(ctx context.Context, key types.NamespacedName) (P, error) {
	cached := P(new(T))
	err := c.client.Get(ctx, key, cached)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading %s %s: %w", c.kind(), key, err)
	}
	object, found := c.recent.Newest(key, cached, err == nil)
	if !found {
		return nil, nil
	}
	return object, nil
}

// Apply makes the cluster hold what want says and returns the child as the API server has it, which must not be
// changed. It sends nothing when the child already says it. A want is used once: Apply completes it with the
// owner reference and our annotations.
//
// An object that is not owner's is not touched; the error is then a [*ForeignError].
func Apply[T any, P Object[T], C Config[C]](ctx context.Context, c *Children[T, P], pass *Pass, want C) (P, error) {
	seen, err := c.Get(ctx, keyOf(want))
	if err != nil {
		return nil, err
	}
	return apply(ctx, c, pass, seen, want)
}

// Keep is Apply for a child that is there. One that is gone is not made again; the child is nil then.
func Keep[T any, P Object[T], C Config[C]](ctx context.Context, c *Children[T, P], pass *Pass, want C) (P, error) {
	seen, err := c.Get(ctx, keyOf(want))
	if err != nil || seen == nil {
		return nil, err
	}
	return apply(ctx, c, pass, seen, want)
}

// apply applies want over what was seen of that name; nil if there was nothing.
func apply[T any, P Object[T], C Config[C]](ctx context.Context, c *Children[T, P], pass *Pass, seen P, want C) (P, error) {
	owner, key := pass.Owner, keyOf(want)
	if seen != nil && !IsOurs(seen, owner) {
		return nil, &ForeignError{Kind: c.kind(), Name: key.Name, Holder: metav1.GetControllerOf(seen)}
	}
	reference, err := by(owner, c.client.Scheme())
	if err != nil {
		return nil, err
	}
	want = want.WithOwnerReferences(reference).WithAnnotations(map[string]string{OwnerAnnotation: string(owner.GetUID())})
	want = want.WithAnnotations(map[string]string{FieldsAnnotation: fieldsHash(want)})
	if seen != nil && covers(want, seen) {
		return seen, nil
	}
	if seen != nil && c.altered.isKnown(key, want, seen) {
		return seen, nil
	}
	if seen == nil && pass.Had && !pass.isConfirmed {
		if err := c.Confirm(ctx, owner); err != nil {
			return nil, err
		}
		pass.isConfirmed = true
	}
	answer, err := write(ctx, c, owner, seen, want)
	if err != nil {
		return nil, fmt.Errorf("applying %s %s: %w", c.kind(), key, err)
	}
	if covers(want, answer) {
		c.altered.forget(answer)
	} else {
		c.altered.note(key, want, answer)
	}
	c.recent.Remember(answer)
	return answer, nil
}

// keyOf returns the namespace and name that an apply configuration is for.
func keyOf[C Config[C]](want C) types.NamespacedName {
	return types.NamespacedName{Namespace: *want.GetNamespace(), Name: *want.GetName()}
}

// write applies want over the child that was seen, or creates it.
func write[T any, P Object[T], C Config[C]](ctx context.Context, c *Children[T, P], owner client.Object, seen P, want C) (P, error) {
	// Force takes back fields that somebody else has changed on our child. It is for that child only: the UID makes the
	// request fail if another object has taken the name since. Nor is what should not be there written over: least of all a child of
	// another resource of ours, which no conflict of fields protects, as we have applied that, too.
	var options []client.PatchOption
	if seen != nil {
		want = want.WithUID(seen.GetUID())
		options = append(options, client.ForceOwnership)
	} else {
		want = want.WithResourceVersion(absent)
	}
	answer, err := send(ctx, c, want, options...)
	if apierrors.IsInvalid(err) || apierrors.IsConflict(err) { // as it is if the cache does not show what is there now
		err = errors.Join(c.compare(ctx, keyOf(want), owner, seen), err)
	}
	if patch := replaced(want, seen, err); patch != nil {
		patched := P(new(T))
		patched.SetNamespace(seen.GetNamespace())
		patched.SetName(seen.GetName())
		if err = c.client.Patch(ctx, patched, client.RawPatch(types.StrategicMergePatchType, patch)); err == nil {
			answer, err = send(ctx, c, want.WithResourceVersion(patched.GetResourceVersion()), options...)
		}
	}
	return answer, err
}

// replaced returns a patch if the reason for which the API server has refused want may be that somebody has replaced a member of
// a one-of of our child by another. It is for the very version that was seen.
func replaced[P client.Object](want any, seen P, err error) []byte {
	if !apierrors.IsInvalid(err) || errors.As(err, new(*ForeignError)) {
		return nil
	}
	patch := members(reflect.ValueOf(want), reflect.ValueOf(seen))
	if patch == nil {
		return nil
	}
	patch["metadata"] = map[string]any{"uid": seen.GetUID(), "resourceVersion": seen.GetResourceVersion()}
	content, err := json.Marshal(patch)
	if err != nil {
		return nil
	}
	return content
}

// compare looks at what the API server has under a name. It returns a [*ForeignError] for an object that is not owner's and a
// conflict for another one than was seen.
func (c *Children[T, P]) compare(ctx context.Context, key types.NamespacedName, owner client.Object, seen P) error {
	found, err := c.liveOf(ctx, key, owner)
	if err != nil || found == nil {
		return err
	}
	if seen == nil || seen.GetUID() != found.UID {
		return Behind(key)
	}
	return nil
}

// Live returns the metadata of the object of that name as the API server has it now, ours or not, or nil when there is none.
func (c *Children[T, P]) Live(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	gvk, err := apiutil.GVKForObject(P(new(T)), c.client.Scheme())
	if err != nil {
		return nil, err
	}
	return metadataOf(ctx, c.live, gvk, key)
}

// metadataOf returns the metadata of an object as the API server has it now, or nil when there is none. It is a list and not a get, so as to need
// no further permission.
func metadataOf(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := live.List(ctx, found, client.InNamespace(key.Namespace), client.MatchingFields{metav1.ObjectNameField: key.Name})
	if err != nil || len(found.Items) == 0 {
		return nil, err
	}
	return &found.Items[0], nil
}

// Confirm makes sure that a resource that these children are made for is still as it was seen. Its cache can be older than theirs, so that a
// resource which has long been changed, or deleted and made anew, would get back a child that it is not to have any more, or lose one that serves. The
// error is a stale one ([IsStale]) if the API server has another one, or none.
func (c *Children[T, P]) Confirm(ctx context.Context, owner client.Object) error {
	key := client.ObjectKeyFromObject(owner)
	gvk, err := apiutil.GVKForObject(owner, c.client.Scheme())
	if err != nil {
		return err
	}
	is, err := metadataOf(ctx, c.live, gvk, key)
	if err != nil {
		return fmt.Errorf("looking whether %s %s has changed: %w", gvk.Kind, key, err)
	}
	if is == nil || is.UID != owner.GetUID() || is.Generation != owner.GetGeneration() {
		return Behind(key)
	}
	return nil
}

// liveOf is [Children.Live] with a [*ForeignError] for an object that is not owner's.
func (c *Children[T, P]) liveOf(ctx context.Context, key types.NamespacedName, owner client.Object) (*metav1.PartialObjectMetadata, error) {
	found, err := c.Live(ctx, key)
	if err != nil || found == nil || IsOurs(found, owner) {
		return found, err
	}
	return nil, &ForeignError{Kind: c.kind(), Name: key.Name, Holder: metav1.GetControllerOf(found)}
}

// send applies want and returns the answer.
func send[T any, P Object[T], C Config[C]](ctx context.Context, c *Children[T, P], want C, options ...client.PatchOption) (P, error) {
	content, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	// A typed patch: the client's Apply would have the answer decoded over the configuration, which mixes its lists with those that were sent.
	answer := P(new(T))
	answer.SetNamespace(*want.GetNamespace())
	answer.SetName(*want.GetName())
	if err := c.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, content), options...); err != nil {
		return nil, err
	}
	answer.SetManagedFields(nil)
	return answer, nil
}

// Create makes a child that is made once and never changed, and returns it as the API server has it. A child of owner's that is there
// already is success, whatever it says. A want is used once: Create completes it with the owner reference and our annotation.
//
// An object that is not owner's is not touched; the error is then a [*ForeignError]. If the child is there and the cache does not show
// it yet, the error is a stale one ([IsStale]), and what is returned has the child's metadata only.
func (c *Children[T, P]) Create(ctx context.Context, owner client.Object, want P) (P, error) {
	key := client.ObjectKeyFromObject(want)
	seen, err := c.Get(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case seen != nil && !IsOurs(seen, owner):
		return nil, &ForeignError{Kind: c.kind(), Name: key.Name, Holder: metav1.GetControllerOf(seen)}
	case seen != nil:
		return seen, nil
	}
	if err := controllerutil.SetControllerReference(owner, want, c.client.Scheme()); err != nil {
		return nil, fmt.Errorf("naming the owner: %w", err)
	}
	annotations := maps.Clone(want.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[OwnerAnnotation] = string(owner.GetUID())
	want.SetAnnotations(annotations)
	err = c.client.Create(ctx, want)
	if apierrors.IsAlreadyExists(err) {
		seen, err = c.hidden(ctx, key, owner)
	}
	if err != nil {
		return seen, fmt.Errorf("creating %s %s: %w", c.kind(), key, err)
	}
	want.SetManagedFields(nil)
	c.recent.Remember(want)
	return want, nil
}

// hidden returns the metadata of the child of that name which is there although the cache does not show it, nil if it has gone in
// between, and always an error.
func (c *Children[T, P]) hidden(ctx context.Context, key types.NamespacedName, owner client.Object) (P, error) {
	found, err := c.liveOf(ctx, key, owner)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, Behind(key)
	}
	child := P(new(T))
	child.SetNamespace(found.Namespace)
	child.SetName(found.Name)
	child.SetUID(found.UID)
	return child, Behind(key)
}

// Delete deletes a child of owner, and only the very object given: one that has taken its name since stays.
// A child that is gone already is success.
func (c *Children[T, P]) Delete(ctx context.Context, owner client.Object, child P) error {
	if !IsOurs(child, owner) {
		return &ForeignError{Kind: c.kind(), Name: child.GetName(), Holder: metav1.GetControllerOf(child)}
	}
	uid := child.GetUID()
	err := c.client.Delete(ctx, child, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", c.kind(), client.ObjectKeyFromObject(child), err)
	}
	c.recent.Forget(child)
	return nil
}

// IsGone tells of a copy from the cache whether its object has been deleted since, by us or as the watch has shown. One that waits for
// finalizers is not gone.
func (c *Children[T, P]) IsGone(cached P) bool {
	return cached.GetDeletionTimestamp() == nil && c.recent.IsGone(cached.GetUID())
}

// HasEnded tells whether the object of that UID has been deleted a short while ago, by us or as the watch has shown.
func (c *Children[T, P]) HasEnded(uid types.UID) bool {
	return c.recent.IsGone(uid)
}

// ForgetDeleted is a predicate for the watch of this kind. It lets everything pass, and sees to it that an object whose
// end the watch has shown is not believed to be there because we have just written it.
func (c *Children[T, P]) ForgetDeleted() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		c.recent.Forget(e.Object)
		c.altered.forget(e.Object)
		return true
	}}
}

// IsOurs tells whether a child belongs to owner: by its controller or, where it has none, by our annotation.
func IsOurs(child, owner client.Object) bool {
	if controller := metav1.GetControllerOfNoCopy(child); controller != nil {
		return controller.UID == owner.GetUID()
	}
	return child.GetAnnotations()[OwnerAnnotation] == string(owner.GetUID())
}

func (c *Children[T, P]) kind() string {
	gvk, err := apiutil.GVKForObject(P(new(T)), c.client.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", *new(T))
	}
	return gvk.Kind
}

// by returns the owner reference that makes owner the controller. Owners being deleted in the foreground wait for the child.
func by(owner client.Object, scheme *runtime.Scheme) (*metav1ac.OwnerReferenceApplyConfiguration, error) {
	gvk, err := apiutil.GVKForObject(owner, scheme)
	if err != nil {
		return nil, fmt.Errorf("naming the owner: %w", err)
	}
	return metav1ac.OwnerReference().
		WithAPIVersion(gvk.GroupVersion().String()).
		WithKind(gvk.Kind).
		WithName(owner.GetName()).
		WithUID(owner.GetUID()).
		WithController(true).
		WithBlockOwnerDeletion(true), nil
}
