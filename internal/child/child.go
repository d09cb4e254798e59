// Package child reads and writes children: the objects that the operator creates for a resource. No other package
// writes them.
//
// Children are written by server-side apply. A builder sets only the fields that the operator manages: fields that
// other writers add stay, and fields that the operator no longer sets are removed. A child that already has all fields
// costs no request. An object of that name that the owner does not control is not written.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/example/memcached-operator/internal/diff"
	"github.com/example/memcached-operator/internal/recent"
)

// FieldOwner names the operator in metadata.managedFields. It must never change: fields applied under another name
// would stay behind forever.
const FieldOwner = client.FieldOwner("memcached-operator")

// WriteTimeout is how long the writes of one pass may take in all. It leaves time to report a failure: a pass ends
// after 30 s, and a webhook that does not answer delays one write by up to that long.
const WriteTimeout = 20 * time.Second

// Annotations that every child carries.
const (
	// OwnerAnnotation holds the UID of the resource that the child was created for. A child that has lost its owner
	// reference (backup tools drop them) is recognized by it and gets the reference back.
	OwnerAnnotation = "memcached-operator.example.com/owner-uid"
	// FieldsAnnotation holds a hash of the names of all applied fields. The cache does not keep managedFields: if the hash
	// differs, a field that is no longer applied may have to be removed.
	FieldsAnnotation = "memcached-operator.example.com/applied-fields"
)

// The names of the indexes with the functions [IndexController] and [IndexOwner].
const (
	ControllerIndex = "metadata.controller.uid"
	OwnerIndex      = "metadata.owner"
)

// Client reads and writes the children of one controller. It is safe for concurrent use.
type Client struct {
	client      client.Client
	live        client.Reader
	recent      *recent.Objects
	alterations alterations
}

// Object is the pointer to an API type T.
type Object[T any] interface {
	*T
	client.Object
}

// New returns a client that reads from c's cache, or returns the client's own last write where the cache is behind, and
// that writes through c. Live reads without a cache; it is used where the cache may be too old.
func New(c client.Client, live client.Reader, clock clock.PassiveClock) *Client {
	diff.Load()
	return &Client{client: c, live: live, recent: recent.New(clock), alterations: alterations{clock: clock}}
}

// Get returns the object of that name, whatever controls it, or nil if there is none. It must not be changed. If the
// object is a write that the cache does not show, the pass, unless it is nil, has another one follow when that write is
// no longer trusted.
func Get[T any, P Object[T]](ctx context.Context, c *Client, pass *Pass, namespace, name string) (P, error) {
	cached := P(new(T))
	cached.SetNamespace(namespace)
	cached.SetName(name)
	err := c.client.Get(ctx, client.ObjectKeyFromObject(cached), cached)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", c.kindOf(cached), namespace, name, err)
	}
	if err != nil { // a read that finds nothing may leave the object empty
		cached.SetNamespace(namespace)
		cached.SetName(name)
	}
	object, isFound := c.recent.Newest(cached, err == nil)
	if !isFound {
		return nil, nil
	}
	if pass != nil {
		pass.retry(c.recent.Expiry(object))
	}
	return object.(P), nil
}

// List returns the objects in the owner's namespace that the owner controls, found by the index [OwnerIndex], without
// those that are known to be deleted. They must not be changed. The list is an empty one of their type.
func List[T any, P Object[T]](ctx context.Context, c *Client, owner client.Object,
	list client.ObjectList) ([]P, error) {
	if err := c.client.List(ctx, list, client.InNamespace(owner.GetNamespace()),
		client.MatchingFields{OwnerIndex: OwnerKey(owner)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the objects that %s %s controls: %w",
			c.kindOf(owner), client.ObjectKeyFromObject(owner), err)
	}
	var controlled []P
	err := meta.EachListItem(list, func(item runtime.Object) error {
		newest, _ := c.recent.Newest(item.(P), true)
		isDeleted := newest.GetDeletionTimestamp() == nil && c.recent.IsDeleted(newest.GetUID())
		if !isDeleted && IsControlled(newest, owner) {
			controlled = append(controlled, newest.(P))
		}
		return nil
	})
	return controlled, err
}

// Confirm reads the owner of children live and returns a [*recent.BehindError] unless it has the observed UID and
// generation. The cache of the owners can be older than that of the children. An owner whose change, or whose deletion
// and recreation, is not in the cache would get back a child that it no longer needs, lose one that it does, or see one
// changed back to an earlier spec.
func (c *Client) Confirm(ctx context.Context, owner client.Object) error {
	found, err := recent.Live(ctx, c.client, c.live, owner)
	if err != nil {
		return err
	}
	if found == nil || found.UID != owner.GetUID() || found.Generation != owner.GetGeneration() {
		return recent.Behind(c.client, owner)
	}
	return nil
}

// Live returns the metadata of a child as the API server has it now, or nil if there is no object of that name and UID.
// In that case, a remembered write of the child is dropped.
func (c *Client) Live(ctx context.Context, child client.Object) (*metav1.PartialObjectMetadata, error) {
	found, err := recent.Live(ctx, c.client, c.live, child)
	if err != nil {
		return nil, err
	}
	if found == nil || found.UID != child.GetUID() {
		c.recent.Forget(child)
		return nil, nil
	}
	return found, nil
}

// AheadFor returns how long ago this client wrote a child whose written version the cache does not show; 0 for any
// other child.
func (c *Client) AheadFor(child client.Object) time.Duration {
	return c.recent.Age(child)
}

// Create creates a child that is never changed afterwards, and returns it as the API server has it. If the owner
// already controls a child of that name, that is success, whatever its content. An object is used once: Create adds the
// owner reference and [OwnerAnnotation].
//
// An object that the owner does not control is not written; the error is then a [*NotControlledError]. If the child
// exists and the cache does not show it yet, the error is a [*recent.BehindError], and the metadata of the child is
// returned.
func Create[T any, P Object[T]](ctx context.Context, c *Client, owner client.Object, want P) (P, error) {
	observed, err := Get[T, P](ctx, c, nil, want.GetNamespace(), want.GetName())
	switch {
	case err != nil:
		return nil, err
	case observed != nil && !IsControlled(observed, owner):
		return nil, c.notControlled(want, observed)
	case observed != nil:
		return observed, nil
	}
	if err := controllerutil.SetControllerReference(owner, want, c.client.Scheme()); err != nil {
		return nil, fmt.Errorf("setting the owner reference: %w", err)
	}
	annotations := map[string]string{}
	maps.Copy(annotations, want.GetAnnotations())
	annotations[OwnerAnnotation] = string(owner.GetUID())
	want.SetAnnotations(annotations)
	err = c.client.Create(ctx, want)
	if apierrors.IsAlreadyExists(err) {
		observed, err = existing(ctx, c, owner, want, err)
	}
	if err != nil {
		return observed, fmt.Errorf("creating %s %s: %w", c.kindOf(want), client.ObjectKeyFromObject(want), err)
	}
	want.SetManagedFields(nil)
	c.recent.Remember(want)
	return want, nil
}

// existing returns the metadata of a child that exists although the cache does not show it. It always returns an error.
func existing[T any, P Object[T]](ctx context.Context, c *Client, owner client.Object, want P, err error) (P, error) {
	found, readErr := recent.Live(ctx, c.client, c.live, want)
	switch {
	case readErr != nil || found == nil:
		return nil, errors.Join(err, readErr)
	case !IsControlled(found, owner):
		return nil, c.notControlled(want, found)
	}
	child := P(new(T))
	child.SetNamespace(found.Namespace)
	child.SetName(found.Name)
	child.SetUID(found.UID)
	return child, recent.Behind(c.client, child)
}

// Adopt restores the owner reference of a child that has lost its controller, and returns the child as the API server
// has it; the given one is not changed. For a child that has a controller, no request is sent.
//
// The owner is read live first: an owner that is being deleted may have orphaned the child on purpose, and the garbage
// collector would delete the child once it has the reference again. The error is a [*recent.BehindError] if the API
// server has another version of the owner's spec, or of the child, than was observed.
func Adopt[T any, P Object[T]](ctx context.Context, c *Client, owner client.Object, child P) (P, error) {
	if metav1.GetControllerOfNoCopy(child) != nil {
		return child, nil
	}
	if !IsControlled(child, owner) {
		return nil, c.notControlled(child, child)
	}
	if err := c.Confirm(ctx, owner); err != nil {
		return nil, err
	}
	adopted := child.DeepCopyObject().(P)
	if err := controllerutil.SetControllerReference(owner, adopted, c.client.Scheme()); err != nil {
		return nil, fmt.Errorf("setting the owner reference: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": child.GetUID(), "resourceVersion": child.GetResourceVersion(),
		"ownerReferences": adopted.GetOwnerReferences(),
	}})
	if err != nil {
		return nil, err
	}
	answer := recent.Named(child).(P)
	err = c.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch))
	if err := recent.ExplainConflict(ctx, c.client, c.live, child, err); err != nil {
		return nil, fmt.Errorf("restoring the owner reference of %s %s: %w", c.kindOf(child),
			client.ObjectKeyFromObject(child), err)
	}
	answer.SetManagedFields(nil)
	c.recent.Remember(answer)
	return answer, nil
}

// Delete deletes a child of the owner, by UID: if another object has the name now, it is not deleted, and the error is
// a [*recent.BehindError]. If the child is deleted already, that is success.
func (c *Client) Delete(ctx context.Context, owner, child client.Object) error {
	if !IsControlled(child, owner) {
		return c.notControlled(child, child)
	}
	uid := child.GetUID()
	err := c.client.Delete(ctx, child, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsConflict(err) {
		found, readErr := recent.Live(ctx, c.client, c.live, child)
		if readErr == nil && (found == nil || found.UID != uid) {
			err = recent.Behind(c.client, child)
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", c.kindOf(child), client.ObjectKeyFromObject(child), err)
	}
	c.recent.Forget(child)
	return nil
}

// IsDeleted reports whether the object of that UID was deleted a short while ago, so that the cache may still show it.
// One that waits for finalizers counts as deleted, too.
func (c *Client) IsDeleted(uid types.UID) bool {
	return c.recent.IsDeleted(uid)
}

// ForgetDeleted is a predicate for the watches of children. It accepts every event. When the watch shows a deletion, it
// drops the remembered write of that object, so that the object no longer counts as existing.
func (c *Client) ForgetDeleted() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		c.recent.Forget(e.Object)
		c.alterations.forget(e.Object)
		return true
	}}
}

// IsControlled reports whether owner controls a child: as its controller or, if the child has none, by
// [OwnerAnnotation].
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

// OwnerKey returns the key of an owner in the index of [IndexOwner]: a prefix of the UID. Other owners may share it;
// [IsControlled] distinguishes them. An entry for each owner would take about 700 bytes, a seventh of the memory for a
// Foo and its Deployment; of 50,000 owners about twelve share a prefix.
func OwnerKey(owner client.Object) string {
	return prefix(owner.GetUID())
}

func prefix(uid types.UID) string {
	return string(uid[:min(3, len(uid))])
}

func (c *Client) kindOf(object client.Object) string {
	return recent.KindOf(c.client, object)
}

// notControlled returns the error for an object that has the type and name of named.
func (c *Client) notControlled(named, found client.Object) error {
	return &NotControlledError{Kind: c.kindOf(named), Name: named.GetName(), Controller: metav1.GetControllerOf(found)}
}
