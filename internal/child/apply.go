package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/example/memcached-operator/internal/diff"
	"github.com/example/memcached-operator/internal/recent"
)

// absent is a resource version that no object has: that of an empty store. An apply with it creates the object if there
// is none of that name, and fails otherwise.
const absent = "1"

// Pass is one reconciliation of the owner of children.
type Pass struct {
	Owner client.Object
	// HadChildren reports whether the owner's children may have been created before. A missing child is then created only
	// after a live read of the owner.
	HadChildren bool
	// IsTentative reports whether what the pass wants of a child depends on the observed status, such as an image that is
	// held back while pods are available.
	IsTentative bool

	isConfirmed bool // confirm was called, and returned confirmErr
	confirmErr  error
	retryAfter  time.Duration
}

// RetryAfter returns when the next pass is due for a child that a webhook or policy altered, or for a write that the
// cache may never show; 0 if there is none.
func (p *Pass) RetryAfter() time.Duration {
	return p.retryAfter
}

// retry makes the next pass due after some time at the latest; 0 changes nothing.
func (p *Pass) retry(after time.Duration) {
	if after > 0 && (p.retryAfter == 0 || after < p.retryAfter) {
		p.retryAfter = after
	}
}

// confirm is [Client.Confirm] for the owner, once in a pass: before a child is changed, or created again. An outdated
// spec would restart pods, and a deleted owner, which may have orphaned its children on purpose, must not get any.
func (p *Pass) confirm(ctx context.Context, c *Client) error {
	if !p.isConfirmed {
		p.isConfirmed, p.confirmErr = true, c.Confirm(ctx, p.Owner)
	}
	return p.confirmErr
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

// Apply applies want and returns the child as the API server has it, which must not be changed. Observed is the object
// of that name as the pass has read it, nil if there is none. If observed already has everything in want, no request is
// sent. A configuration is used once: Apply adds the owner reference and the operator's annotations.
//
// An object that the owner does not control is not written; the error is then a [*NotControlledError]. It is a
// [*recent.BehindError] if the API server has another object, or version of it, than was observed.
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
	if observed != nil || pass.HadChildren {
		if err := pass.confirm(ctx, c); err != nil {
			return nil, err
		}
	}
	answer, err := write(ctx, c, pass, named, observed, want)
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
	pass.retry(c.recent.Expiry(answer))
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
	ctx context.Context, c *Client, pass *Pass, named, observed P, want C,
) (P, error) {
	// ForceOwnership takes back fields that another writer has changed on the observed child, and only there: the UID
	// makes the request fail if the child was deleted or replaced. The resource version makes it fail if it arrives late,
	// after the write of another manager that has a newer spec. Without an observed child, nothing may be overwritten. For
	// the child of another custom resource, there would not even be a conflict: its fields have the same field owner.
	var options []client.PatchOption
	if observed != nil {
		want = want.WithUID(observed.GetUID()).WithResourceVersion(observed.GetResourceVersion())
		options = append(options, client.ForceOwnership)
	} else {
		want = want.WithResourceVersion(absent)
	}
	answer, err := send(ctx, c, named, want, options...)
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) { // possible reason: the cache is behind
		found, readErr := recent.Live(ctx, c.client, c.live, named)
		switch {
		case readErr != nil:
			err = errors.Join(err, readErr)
		case observed == nil && found == nil && apierrors.IsConflict(err):
			answer, err = send(ctx, c, named, want) // the object of that name has been deleted meanwhile
		case apierrors.IsConflict(err) && canRepeat(pass, observed, found):
			answer, err = writeNewer(ctx, c, pass.Owner, named, want.WithResourceVersion(found.ResourceVersion), options)
		default:
			err = explain(c, pass, named, observed, found, err)
		}
	}
	if observed == nil || !apierrors.IsInvalid(err) {
		return answer, err
	}
	patch, patchErr := alternatives(want, observed)
	if patch == nil {
		return answer, errors.Join(err, patchErr)
	}
	patched := recent.Named(observed).(P)
	if err := c.client.Patch(ctx, patched, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		return nil, recent.ExplainConflict(ctx, c.client, c.live, observed, err)
	}
	answer, err = send(ctx, c, named, want.WithResourceVersion(patched.GetResourceVersion()), options...)
	return answer, recent.ExplainConflict(ctx, c.client, c.live, patched, err)
}

// canRepeat reports whether what a pass wants holds for the version of the observed child that the API server has now,
// too. It may not if another writer has changed the spec, such as an autoscaler the number of pods. Services have no
// generation, but what a pass wants of them depends on their owner only.
func canRepeat[T any, P Object[T]](pass *Pass, observed P, found *metav1.PartialObjectMetadata) bool {
	return observed != nil && !pass.IsTentative && !isReplaced(observed, found) && IsControlled(found, pass.Owner) &&
		found.ResourceVersion != observed.GetResourceVersion()
}

// isReplaced reports whether the API server has another object than the observed one, none, or one with another spec.
func isReplaced[T any, P Object[T]](observed P, found *metav1.PartialObjectMetadata) bool {
	return found == nil || found.UID != observed.GetUID() || found.Generation != observed.GetGeneration()
}

// writeNewer applies want over a newer version of a child than was observed. While pods are replaced, the cache may
// always be behind the status of their workload, so waiting for it could take as long as the rollout. The owner is read
// live after that version was: no other manager has written the version for a newer spec.
func writeNewer[T any, P Object[T], C Config[C]](ctx context.Context, c *Client, owner client.Object, named P, want C,
	options []client.PatchOption) (P, error) {
	if err := c.Confirm(ctx, owner); err != nil {
		return nil, err
	}
	answer, err := send(ctx, c, named, want, options...)
	if apierrors.IsConflict(err) {
		err = recent.Behind(c.client, named)
	}
	return answer, err
}

// explain returns a more specific error for a failed write, by the object that the API server has now: a
// [*NotControlledError], a [*recent.BehindError] if the pass has not observed that object or that version, or err
// itself, such as a conflict that a webhook returns.
func explain[T any, P Object[T]](
	c *Client, pass *Pass, named, observed P, found *metav1.PartialObjectMetadata, err error,
) error {
	switch {
	case found != nil && !IsControlled(found, pass.Owner):
		return c.notControlled(named, found)
	case observed == nil && found == nil:
		return err
	case observed == nil || isReplaced(observed, found),
		apierrors.IsConflict(err) && found.ResourceVersion != observed.GetResourceVersion():
		return recent.Behind(c.client, named)
	}
	return err
}

// alternatives returns a patch for the case that the API server refused want because another writer has replaced a
// field by an alternative one, such as one kind of probe by another; nil if there is no such field. It applies to the
// observed version only.
func alternatives(want runtime.ApplyConfiguration, observed client.Object) ([]byte, error) {
	patch, err := diff.Alternatives(want, observed)
	if patch == nil || err != nil {
		return nil, err
	}
	patch["metadata"] = map[string]any{"uid": observed.GetUID(), "resourceVersion": observed.GetResourceVersion()}
	return json.Marshal(patch)
}

// send applies want and returns the response.
func send[T any, P Object[T]](ctx context.Context, c *Client, named P, want any,
	options ...client.PatchOption) (P, error) {
	content, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	// The client's Apply would decode the response into the configuration, and merge its lists with those sent.
	answer := recent.Named(named).(P)
	if err := c.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, content), options...); err != nil {
		return nil, err
	}
	answer.SetManagedFields(nil)
	return answer, nil
}

// referenceTo returns the owner reference that makes owner the controller. On foreground deletion, the owner is deleted
// after the child.
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
