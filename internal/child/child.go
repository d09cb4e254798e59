// Package child reads and writes children: the objects that our resources consist of. No other package writes them.
//
// Children are written by server-side apply: a builder states everything that we have an opinion on and nothing else,
// so what other writers add stays, and what we no longer state is removed. A child that already has everything stated
// costs no request. An object of that name that the owner does not control is left alone.
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
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
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

// absent is a resource version that no object has: that of an empty store. What is applied with it is created only if
// there is no object of that name.
const absent = "1"

// Client reads and writes the children of one controller. It is safe for concurrent use.
type Client struct {
	client      client.Client
	live        client.Reader
	recent      *recent.Objects
	alterations alterations
}

// Pass is one reconciliation of the owner of children.
type Pass struct {
	Owner client.Object
	// HadChildren tells that the owner has had its children before. A missing child is then recreated only after one
	// live read of the owner ([Client.Confirm]).
	HadChildren bool

	isConfirmed bool
	retryAfter  time.Duration
}

// RetryAfter is when to make another pass for a child that a webhook or policy altered; 0 if none was.
func (p *Pass) RetryAfter() time.Duration {
	return p.retryAfter
}

func (p *Pass) retry(after time.Duration) {
	if p.retryAfter == 0 || after < p.retryAfter {
		p.retryAfter = after
	}
}

// Object is the pointer to an API type T.
type Object[T any] interface {
	*T
	client.Object
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

// New returns a client that reads from c's cache, or our own last write where the cache is behind, and writes through
// c. Live reads without a cache; it is used where only that can decide.
func New(c client.Client, live client.Reader, clock clock.PassiveClock) *Client {
	diff.Load()
	return &Client{client: c, live: live, recent: recent.New(clock), alterations: alterations{clock: clock}}
}

// Get returns the object of that name, whoever controls it, or nil if there is none. It must not be changed.
func Get[T any, P Object[T]](ctx context.Context, c *Client, namespace, name string) (P, error) {
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
	return object.(P), nil
}

// List returns the objects in the owner's namespace that the owner controls, found by the index [OwnerIndex], without
// those that are known to be deleted. They must not be changed. The list is an empty one of their type.
func List[T any, P Object[T]](ctx context.Context, c *Client, owner client.Object,
	list client.ObjectList) ([]P, error) {
	if err := c.client.List(ctx, list, client.InNamespace(owner.GetNamespace()),
		client.MatchingFields{OwnerIndex: OwnerKey(owner)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing what %s %s controls: %w", c.kindOf(owner), client.ObjectKeyFromObject(owner), err)
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

// Apply has the API server store what want states and returns the child as the API server has it, which must not be
// changed. Observed is the object of that name as the pass has read it, nil if there is none. Nothing is sent if
// observed already has everything. A configuration is used once: Apply adds the owner reference and our annotations.
//
// An object that the owner does not control is not written; the error is then a [*NotControlledError]. It is a
// [*recent.BehindError] if the API server has another object than was observed.
func Apply[T any, P Object[T], C Config[C]](ctx context.Context, c *Client, pass *Pass, observed P, want C) (P, error) {
	named := P(new(T))
	named.SetNamespace(*want.GetNamespace())
	named.SetName(*want.GetName())
	if observed != nil && !IsControlled(observed, pass.Owner) {
		return nil, c.notControlled(named, observed)
	}
	want, err := complete(c, pass.Owner, named, want)
	if err != nil {
		return nil, err
	}
	if observed != nil {
		isCovered, err := diff.Covers(want, observed)
		if err != nil || isCovered {
			return observed, err
		}
		if retryAfter := c.alterations.retryAfter(want, observed); retryAfter > 0 {
			pass.retry(retryAfter)
			return observed, nil
		}
	}
	if observed == nil && pass.HadChildren && !pass.isConfirmed {
		if err := c.Confirm(ctx, pass.Owner); err != nil {
			return nil, err
		}
		pass.isConfirmed = true
	}
	answer, err := write(ctx, c, pass.Owner, named, observed, want)
	if err != nil {
		return nil, fmt.Errorf("applying %s %s: %w", c.kindOf(named), client.ObjectKeyFromObject(named), err)
	}
	isCovered, err := diff.Covers(want, answer)
	if err != nil {
		return nil, err
	}
	if isCovered {
		c.alterations.forget(answer)
	} else {
		pass.retry(c.alterations.note(want, answer))
	}
	c.recent.Remember(answer)
	return answer, nil
}

// complete adds to a configuration what every child has.
func complete[C Config[C]](c *Client, owner, named client.Object, want C) (C, error) {
	reference, err := referenceTo(owner, c.client.Scheme())
	if err != nil {
		return want, err
	}
	want = want.WithOwnerReferences(reference).WithAnnotations(map[string]string{OwnerAnnotation: string(owner.GetUID())})
	hash, err := diff.FieldsHash(want, named)
	if err != nil {
		return want, err
	}
	return want.WithAnnotations(map[string]string{FieldsAnnotation: hash}), nil
}

// write applies want over the child that was observed, or creates it.
func write[T any, P Object[T], C Config[C]](
	ctx context.Context, c *Client, owner client.Object, named, observed P, want C,
) (P, error) {
	// Force takes back fields that another writer has changed on our child, and only on that one: the UID makes the
	// request fail if another object has taken the name since. Without an observed child nothing may be overwritten, least
	// of all a child of another resource of ours: its fields are applied by the same field owner, so no conflict of fields
	// would protect them.
	var options []client.PatchOption
	if observed != nil {
		want = want.WithUID(observed.GetUID())
		options = append(options, client.ForceOwnership)
	} else {
		want = want.WithResourceVersion(absent)
	}
	answer, err := send(ctx, c, named, want, options...)
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) { // as they are if the cache is behind
		found, readErr := recent.Live(ctx, c.client, c.live, named)
		switch {
		case readErr != nil:
			err = errors.Join(err, readErr)
		case observed == nil && found == nil && apierrors.IsConflict(err):
			answer, err = send(ctx, c, named, want) // the object that had the name has been deleted meanwhile
		default:
			err = explain(c, owner, named, observed, found, err)
		}
	}
	if observed == nil || !apierrors.IsInvalid(err) {
		return answer, err
	}
	patch, patchErr := alternatives(want, observed)
	if patch == nil {
		return answer, errors.Join(err, patchErr)
	}
	patched := P(new(T))
	patched.SetNamespace(observed.GetNamespace())
	patched.SetName(observed.GetName())
	if err := c.client.Patch(ctx, patched, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return nil, recent.ExplainConflict(ctx, c.client, c.live, observed, err)
	}
	answer, err = send(ctx, c, named, want.WithResourceVersion(patched.GetResourceVersion()), options...)
	return answer, recent.ExplainConflict(ctx, c.client, c.live, patched, err)
}

// explain returns the error of a write in the light of what the API server has under the name: a [*NotControlledError],
// a [*recent.BehindError], or the error itself, such as the conflict that a webhook answers.
func explain[T any, P Object[T]](
	c *Client, owner client.Object, named, observed P, found *metav1.PartialObjectMetadata, err error,
) error {
	switch {
	case found != nil && !IsControlled(found, owner):
		return c.notControlled(named, found)
	case observed == nil && found == nil:
		return err
	case observed == nil || found == nil || found.UID != observed.GetUID():
		return recent.Behind(c.client, named)
	case apierrors.IsConflict(err) && found.ResourceVersion != observed.GetResourceVersion():
		return recent.Behind(c.client, named)
	}
	return err
}

// alternatives returns a patch if the API server may have refused want because another writer has replaced one of
// several alternative fields of our child by another. It applies to the version that was observed only.
func alternatives(want runtime.ApplyConfiguration, observed client.Object) ([]byte, error) {
	patch, err := diff.Alternatives(want, observed)
	if patch == nil || err != nil {
		return nil, err
	}
	patch["metadata"] = map[string]any{"uid": observed.GetUID(), "resourceVersion": observed.GetResourceVersion()}
	return json.Marshal(patch)
}

// send applies want and returns the answer.
func send[T any, P Object[T]](ctx context.Context, c *Client, named P, want any,
	options ...client.PatchOption) (P, error) {
	content, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	// Not the client's Apply: it decodes the answer over the configuration, which mixes its lists with those sent.
	answer := P(new(T))
	answer.SetNamespace(named.GetNamespace())
	answer.SetName(named.GetName())
	if err := c.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, content), options...); err != nil {
		return nil, err
	}
	answer.SetManagedFields(nil)
	return answer, nil
}

// Confirm reads the owner of children live and returns a [*recent.BehindError] unless it is as it was observed. The
// owner's cache can be older than its children's: a resource that has long been changed, or deleted and created anew,
// would get back a child that it no longer wants, or lose one that serves.
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

// Live returns the metadata of the object that has the type, namespace and name of the given one as the API server has
// it now, whoever controls it, or nil if there is none.
func (c *Client) Live(ctx context.Context, named client.Object) (*metav1.PartialObjectMetadata, error) {
	return recent.Live(ctx, c.client, c.live, named)
}

// Create creates a child that is never changed afterwards, and returns it as the API server has it. A child of the
// owner that exists already is success, whatever its content. An object is used once: Create adds the owner reference
// and our annotation.
//
// An object that the owner does not control is not touched; the error is then a [*NotControlledError]. If the child
// exists and the cache does not show it yet, the error is a [*recent.BehindError], and the metadata of the child is
// returned.
func Create[T any, P Object[T]](ctx context.Context, c *Client, owner client.Object, want P) (P, error) {
	observed, err := Get[T, P](ctx, c, want.GetNamespace(), want.GetName())
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

// existing returns the metadata of the child that exists although the cache does not show it, and always an error.
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

// Delete deletes a child of the owner, and only the very object given: one that has taken its name since stays, and the
// error is then a [*recent.BehindError]. A child that is deleted already is success.
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

// ForgetDeleted is a predicate for the watches of children. It lets every event pass, and sees to it that an object
// whose deletion the watch has shown is not taken to exist because we have just written it.
func (c *Client) ForgetDeleted() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		c.recent.Forget(e.Object)
		c.alterations.forget(e.Object)
		return true
	}}
}

func (c *Client) kindOf(object client.Object) string {
	return recent.KindOf(c.client, object)
}

// notControlled returns the error for an object that has the type and name of named.
func (c *Client) notControlled(named, found client.Object) error {
	return &NotControlledError{Kind: c.kindOf(named), Name: named.GetName(), Controller: metav1.GetControllerOf(found)}
}
