package foo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/operand"
	"github.com/example/memcached-operator/internal/owned"
	"github.com/example/memcached-operator/internal/status"
)

// Reconciler makes Foos true.
type Reconciler struct {
	// Image is the nginx image. Changing it restarts the pods of every Foo.
	Image operand.Image
	// Platform is what the cluster does by itself.
	Platform operand.Platform

	client      client.Client
	deployments *owned.Children[appsv1.Deployment, *appsv1.Deployment]
	status      *status.Writer[samplev1alpha1.Foo, *samplev1alpha1.Foo]
	events      events.EventRecorder
}

// Where a cluster enforces permissions on owner references, as OpenShift does, to make an owner wait for its child takes a
// say in the owner's finalizers, and to put an owner reference back takes the right to delete the child.
//
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=foos,verbs=list;watch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=foos/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=foos/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// nameIndex finds Foos by the Deployment that they want and may not have.
const nameIndex = "spec.deploymentName"

// missing is the function of that index. A Foo whose status says that all is done has its Deployment, which names it: it need not be found
// by a name, and of very many Foos nearly all are so. One that loses its Deployment is told so by that Deployment; and as the status that
// it writes then comes back to it and wakes it once more, nothing is missed of what happened before the index had it again.
func missing(object client.Object) []string {
	foo := object.(*samplev1alpha1.Foo)
	progress := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionProgressing)
	if progress != nil && progress.Reason == samplev1alpha1.ReasonRolloutComplete && progress.ObservedGeneration == foo.Generation {
		return nil
	}
	return []string{foo.Spec.DeploymentName}
}

// SetupWithManager registers the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	r.client = mgr.GetClient()
	r.deployments = owned.Of[appsv1.Deployment](r.client, mgr.GetAPIReader())
	r.status = status.Of[samplev1alpha1.Foo](r.client, clock.RealClock{})
	r.events = mgr.GetEventRecorder("foo-controller")

	indexer := mgr.GetFieldIndexer()
	return errors.Join(
		indexer.IndexField(context.Background(), &samplev1alpha1.Foo{}, nameIndex, missing),
		indexer.IndexField(context.Background(), &appsv1.Deployment{}, owned.OwnerIndex, owned.Owner),
		ctrl.NewControllerManagedBy(mgr).
			For(&samplev1alpha1.Foo{}).
			Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(r.concerned),
				builder.WithPredicates(r.deployments.ForgetDeleted())).
			WithOptions(options).
			Complete(reconcile.AsReconciler(r.client, r)))
}

// concerned returns the Foos that a Deployment matters to: the one it belongs to and those that want its name and may not have it.
func (r *Reconciler) concerned(ctx context.Context, deployment client.Object) []reconcile.Request {
	var requests []reconcile.Request
	if c := metav1.GetControllerOf(deployment); c != nil && c.Kind == "Foo" {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: deployment.GetNamespace(), Name: c.Name}})
	}
	var foos samplev1alpha1.FooList
	if err := r.client.List(ctx, &foos, client.InNamespace(deployment.GetNamespace()),
		client.MatchingFields{nameIndex: deployment.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return requests // the cache is stopping
	}
	for i := range foos.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&foos.Items[i])})
	}
	return requests
}

// Reconcile makes one Foo true, and tells how it is.
func (r *Reconciler) Reconcile(ctx context.Context, foo *samplev1alpha1.Foo) (ctrl.Result, error) {
	if !foo.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its Deployment goes with it
	}
	before := r.status.Latest(foo)
	syncCtx, cancel := context.WithTimeout(ctx, owned.Patience)
	defer cancel()
	seen, err := r.sync(syncCtx, before)
	switch {
	case owned.IsNamespaceEnding(err):
		return ctrl.Result{}, nil
	case owned.IsStale(err):
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}

	after := before.DeepCopy()
	after.Status = statusOf(before, seen, err)
	isOutcome := status.IsOutcome(before.Status.Conditions, after.Status.Conditions) && !r.isPassing(ctx, before, err)
	stored, wait, statusErr := r.status.Patch(ctx, before, after, isOutcome)
	if owned.IsStale(statusErr) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if stored != nil {
		r.tell(before, stored)
	}
	if err := errors.Join(owned.WithoutForeign(err), statusErr); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: status.Sooner(wait, seen.wait)}, nil
}

// sync makes the Deployment of a Foo and deletes those under names it had before, or keeps these if it cannot have the one.
func (r *Reconciler) sync(ctx context.Context, foo *samplev1alpha1.Foo) (seen observed, err error) {
	held, err := r.held(ctx, foo)
	if err != nil {
		return seen, err
	}
	current, err := r.deployments.Get(ctx, types.NamespacedName{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName})
	if err != nil {
		return seen, err
	}
	if current != nil && owned.IsOurs(current, foo) {
		seen.deployment = current
	} else if len(held) > 0 {
		seen.deployment = &held[0] // it serves until the new one is there
	}

	image, wait := r.Image.For(current, containerName, time.Now())
	seen.wait = wait
	pass := &owned.Pass{Owner: foo, Had: len(foo.Status.Conditions) > 0}
	applied, err := owned.Apply(ctx, r.deployments, pass, deployment(foo, foo.Spec.DeploymentName, current, r.Platform, image))
	switch {
	case err == nil:
		seen.deployment = applied
		return seen, r.delete(ctx, foo, held)
	case owned.IsStale(err):
		return seen, err
	case errors.As(err, new(*owned.ForeignError)) && len(held) > 0 && r.isSwap(ctx, foo):
		return seen, cmp.Or(r.delete(ctx, foo, held), err)
	}
	return seen, errors.Join(err, r.keep(ctx, pass, foo, held, &seen))
}

// keep keeps the Deployments that a Foo has under other names than it wants as the Foo says: they serve as long as it cannot have that one.
func (r *Reconciler) keep(ctx context.Context, pass *owned.Pass, foo *samplev1alpha1.Foo, held []appsv1.Deployment, seen *observed) error {
	others := former(foo, held)
	errs := make([]error, 0, len(others))
	for _, had := range others {
		image, wait := r.Image.For(&had, containerName, time.Now())
		seen.wait = status.Sooner(seen.wait, wait)
		kept, err := owned.Keep(ctx, r.deployments, pass, deployment(foo, had.Name, &had, r.Platform, image))
		errs = append(errs, err)
		if kept != nil && kept.UID == seen.deployment.UID {
			seen.deployment = kept
		}
	}
	return errors.Join(errs...)
}

// held returns the Deployments that are the Foo's.
func (r *Reconciler) held(ctx context.Context, foo *samplev1alpha1.Foo) ([]appsv1.Deployment, error) {
	var deployments appsv1.DeploymentList
	if err := r.client.List(ctx, &deployments, client.InNamespace(foo.Namespace),
		client.MatchingFields{owned.OwnerIndex: owned.OwnerKey(foo)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Deployments of Foo %s: %w", client.ObjectKeyFromObject(foo), err)
	}
	return slices.DeleteFunc(deployments.Items, func(d appsv1.Deployment) bool { return !owned.IsOurs(&d, foo) }), nil
}

// former returns those of a Foo's Deployments that have other names than it wants, and that nobody deletes yet.
func former(foo *samplev1alpha1.Foo, held []appsv1.Deployment) []appsv1.Deployment {
	return slices.DeleteFunc(slices.Clone(held), func(d appsv1.Deployment) bool {
		return d.Name == foo.Spec.DeploymentName || !d.DeletionTimestamp.IsZero()
	})
}

// delete deletes the Deployments of a Foo under other names than it wants.
func (r *Reconciler) delete(ctx context.Context, foo *samplev1alpha1.Foo, held []appsv1.Deployment) error {
	others := former(foo, held)
	if len(others) == 0 {
		return nil
	}
	if err := r.deployments.Confirm(ctx, foo); err != nil {
		return err
	}
	var errs []error
	for i := range others {
		errs = append(errs, r.deployments.Delete(ctx, foo, &others[i]))
	}
	return errors.Join(errs...)
}

// isSwap tells whether the name a Foo wants is held by a Foo that wants to leave it and cannot, because the name that one
// wants is, directly or by way of others, held by the first. Somebody has to let go then.
func (r *Reconciler) isSwap(ctx context.Context, foo *samplev1alpha1.Foo) bool {
	name, asked := foo.Spec.DeploymentName, map[string]bool{}
	for !asked[name] {
		asked[name] = true
		deployment, err := r.deployments.Get(ctx, types.NamespacedName{Namespace: foo.Namespace, Name: name})
		if err != nil || deployment == nil {
			return false
		}
		holder := metav1.GetControllerOf(deployment)
		if holder != nil && holder.UID == foo.UID {
			return true
		}
		other := r.fooOf(ctx, foo.Namespace, holder)
		if other == nil {
			return false
		}
		name = other.Spec.DeploymentName
	}
	return false
}

// isPassing tells whether an error is that of a name which is taken for a moment only: by a Foo that wants another name, or by
// an earlier Foo of this name whose Deployment is yet to be collected. It is worth telling if it stays.
func (r *Reconciler) isPassing(ctx context.Context, foo *samplev1alpha1.Foo, err error) bool {
	foreign := (*owned.ForeignError)(nil)
	if !errors.As(err, &foreign) || foreign.Holder == nil {
		return false
	}
	if owned.IsPredecessor(foreign.Holder, foo, samplev1alpha1.GroupVersion.WithKind("Foo")) {
		return true
	}
	other := r.fooOf(ctx, foo.Namespace, foreign.Holder)
	return other != nil && other.Spec.DeploymentName != foreign.Name
}

// fooOf returns the Foo that a controller reference names, or nil.
func (r *Reconciler) fooOf(ctx context.Context, namespace string, holder *metav1.OwnerReference) *samplev1alpha1.Foo {
	var foo samplev1alpha1.Foo
	if holder == nil || r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: holder.Name}, &foo) != nil || foo.UID != holder.UID {
		return nil
	}
	return &foo
}

// tell makes an event of a transition that the status stored has made.
func (r *Reconciler) tell(before, after *samplev1alpha1.Foo) {
	was, is := before.Status.Conditions, after.Status.Conditions
	degraded := meta.FindStatusCondition(is, samplev1alpha1.ConditionDegraded)
	switch {
	case !status.HasBecomeDegraded(was, is):
		if status.HasBeenSynced(was, is) {
			r.events.Eventf(after, nil, corev1.EventTypeNormal, samplev1alpha1.EventSynced, "Sync", "Foo synced successfully")
		}
	case degraded.Reason == samplev1alpha1.ReasonNameTaken:
		r.events.Eventf(after, nil, corev1.EventTypeWarning, samplev1alpha1.EventErrResourceExists, "Sync",
			"Resource %q already exists and is not managed by Foo", after.Spec.DeploymentName)
	default:
		r.events.Eventf(after, nil, corev1.EventTypeWarning, degraded.Reason, "Sync", "%s", degraded.Message)
	}
}
