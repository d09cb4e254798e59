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

// absent is a resource version that no object has: that of an empty store. What is applied with it is created only if
// there is no object of that name.
const absent = "1"

// Pass is one reconciliation of the owner of children.
type Pass struct {
	Owner client.Object
	// HadChildren tells that the owner has had its children before. A missing child is then recreated only after a live
	// read of the owner ([Client.Confirm]).
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
	if mustConfirm(pass, observed) {
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

// mustConfirm reports whether a write needs a live read of the owner, which a pass makes once: to create a child that
// existed before, and to give one back its owner reference, which a deletion of the owner may have taken from it.
func mustConfirm[T any, P Object[T]](pass *Pass, observed P) bool {
	if pass.isConfirmed {
		return false
	}
	if observed == nil {
		return pass.HadChildren
	}
	return metav1.GetControllerOfNoCopy(observed) == nil
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
	patched := recent.Named(observed).(P)
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
	answer := recent.Named(named).(P)
	if err := c.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, content), options...); err != nil {
		return nil, err
	}
	answer.SetManagedFields(nil)
	return answer, nil
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
