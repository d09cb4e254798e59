package foo

import (
	"context"
	"errors"
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
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/operand"
	"github.com/example/memcached-operator/internal/recent"
	"github.com/example/memcached-operator/internal/status"
)

// Reconciler reconciles Foo objects.
type Reconciler struct {
	// Image is the nginx image. Changing it restarts the pods of every Foo.
	Image operand.Image
	// Platform describes how the cluster treats pods.
	Platform operand.Platform
	// Clock is the source of the time.
	Clock clock.PassiveClock

	client   client.Client
	children *child.Client
	status   *status.Writer
	events   events.EventRecorder
}

// The finalizers subresource and the right to delete Deployments are needed where the cluster enforces permissions on
// owner references, as OpenShift does: the one to set blockOwnerDeletion, the other to restore a lost reference.
//
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=foos,verbs=list;watch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=foos/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=foos/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Children has one empty object of each type of child. These types are watched and cached.
var Children = []client.Object{&appsv1.Deployment{}}

// nameIndex finds Foos by spec.deploymentName, except those whose rollout is complete; see [indexName].
const nameIndex = "spec.deploymentName"

// indexName is the function of that index. To save memory, a Foo whose rollout is complete is left out: the owner
// reference of its Deployment names it. When such a Foo loses its Deployment, the Deployment's event triggers a pass.
// The status written by that pass puts the Foo into the index and triggers another pass, so no event in between is
// lost.
func indexName(object client.Object) []string {
	foo := object.(*samplev1alpha1.Foo)
	progressing := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionProgressing)
	if progressing != nil && progressing.Reason == samplev1alpha1.ReasonRolloutComplete &&
		progressing.ObservedGeneration == foo.Generation {
		return nil
	}
	return []string{foo.Spec.DeploymentName}
}

// SetupWithManager registers the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	r.client = mgr.GetClient()
	r.children = child.New(r.client, mgr.GetAPIReader(), r.Clock)
	r.status = status.NewWriter("Foo", r.client, mgr.GetAPIReader(), r.Clock, observedGeneration)
	r.events = mgr.GetEventRecorder("foo-controller")

	indexer := mgr.GetFieldIndexer()
	builder := ctrl.NewControllerManagedBy(mgr).For(&samplev1alpha1.Foo{}).WithOptions(options)
	errs := []error{indexer.IndexField(context.Background(), &samplev1alpha1.Foo{}, nameIndex, indexName)}
	for _, object := range Children {
		errs = append(errs, indexer.IndexField(context.Background(), object, child.OwnerIndex, child.IndexOwner))
		builder.Watches(object, handler.EnqueueRequestsFromMapFunc(r.mapDeploymentToFoos), forgetDeleted(r.children))
	}
	return errors.Join(append(errs, builder.Complete(reconcile.AsReconciler(r.client, r)))...)
}

func forgetDeleted(children *child.Client) builder.Predicates {
	return builder.WithPredicates(children.ForgetDeleted())
}

// mapDeploymentToFoos returns the Foo that controls a Deployment, and the Foos in [nameIndex] that specify its name.
func (r *Reconciler) mapDeploymentToFoos(ctx context.Context, deployment client.Object) []reconcile.Request {
	var requests []reconcile.Request
	if c := metav1.GetControllerOfNoCopy(deployment); c != nil && c.Kind == "Foo" {
		name := types.NamespacedName{Namespace: deployment.GetNamespace(), Name: c.Name}
		requests = append(requests, reconcile.Request{NamespacedName: name})
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

// observedGeneration returns the generation that the status of a Foo refers to.
func observedGeneration(object client.Object) int64 {
	return object.(*samplev1alpha1.Foo).Status.ObservedGeneration
}

// Reconcile reconciles one Foo: observe, decide, apply, report.
func (r *Reconciler) Reconcile(ctx context.Context, foo *samplev1alpha1.Foo) (ctrl.Result, error) {
	if !foo.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes its Deployment
	}
	before, isNew := status.Latest(r.status, foo)
	pass := &child.Pass{Owner: before, HadChildren: !isNew}
	writeCtx, cancel := context.WithTimeout(ctx, child.WriteTimeout)
	defer cancel()
	done := r.sync(writeCtx, pass, before)
	switch {
	case child.IsNamespaceTerminating(done.err):
		return ctrl.Result{}, nil
	case recent.IsBehind(done.err):
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}

	after := before.DeepCopy()
	after.Status = statusOf(before, done)
	isOutcome := status.IsOutcome(before.Status.Conditions, after.Status.Conditions) && !isPassing(before, done.claims)
	stored, wait, statusErr := status.Patch(ctx, r.status, before, after, isOutcome)
	if recent.IsBehind(statusErr) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if stored != nil {
		r.recordEvents(before, stored)
	}
	if note := r.status.UnwrittenNote(before, statusErr); note != "" {
		r.events.Eventf(before, nil, corev1.EventTypeWarning, samplev1alpha1.EventStatusNotWritten, "Sync", "%s", note)
	}
	if err := errors.Join(child.ToRetry(done.err), statusErr); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: status.Sooner(wait, done.wait, pass.RetryAfter())}, nil
}

// sync applies the Deployment of a Foo. If that succeeds, it deletes the Deployments under former names; if not, it
// keeps them.
func (r *Reconciler) sync(ctx context.Context, pass *child.Pass, foo *samplev1alpha1.Foo) result {
	observed, err := r.observe(ctx, pass, foo)
	if err != nil {
		return result{err: err}
	}
	image := r.Image.For(podSpecOf(observed.current), isAvailable(observed.current), containerName)
	pass.IsTentative = image.IsTentative
	done := result{deployment: observed.serving(foo), wait: image.Wait}

	want := deployment(foo, foo.Spec.DeploymentName, observed.current, r.Platform, image.Name)
	applied, err := child.Apply(ctx, r.children, pass, observed.current, want)
	if err == nil {
		done.deployment, done.isApplied = applied, true
		done.err = r.deleteFormer(ctx, foo, observed.former(foo))
		return done
	}
	done.err = err
	if recent.IsBehind(err) {
		return done
	}
	done.claims = r.observeClaims(ctx, pass, foo, child.AsNotControlled(err))
	if isSwap(foo, done.claims) && len(observed.owned) > 0 {
		if err := r.deleteFormer(ctx, foo, observed.former(foo)); err != nil {
			done.err = err
		}
		return done
	}
	r.keepFormer(ctx, pass, foo, observed.former(foo), &done)
	return done
}

// observe reads the Deployment named spec.deploymentName, and the Deployments that the Foo controls.
func (r *Reconciler) observe(ctx context.Context, pass *child.Pass,
	foo *samplev1alpha1.Foo) (observed observed, err error) {
	observed.owned, err = child.List[appsv1.Deployment](ctx, r.children, foo, &appsv1.DeploymentList{})
	if err != nil {
		return observed, err
	}
	observed.current, err = child.Get[appsv1.Deployment](ctx, r.children, pass, foo.Namespace, foo.Spec.DeploymentName)
	return observed, err
}

// observeClaims follows a chain of claims: from a name that is taken to the Foo that controls the Deployment of that
// name, to the spec.deploymentName of that Foo, and so on. The chain ends at a name that is free, that no Foo controls,
// or that occurred before.
func (r *Reconciler) observeClaims(ctx context.Context, pass *child.Pass, foo *samplev1alpha1.Foo,
	taken *child.NotControlledError) []claim {
	if taken == nil {
		return nil
	}
	var claims []claim
	name, controller, isVisited := taken.Name, taken.Controller, map[string]bool{}
	for !isVisited[name] {
		isVisited[name] = true
		holder := r.fooOf(ctx, foo.Namespace, controller)
		claims = append(claims, claim{name: name, controller: controller, holder: holder})
		if holder == nil {
			break
		}
		name = holder.Spec.DeploymentName
		deployment, err := child.Get[appsv1.Deployment](ctx, r.children, pass, foo.Namespace, name)
		if err != nil || deployment == nil {
			break
		}
		controller = metav1.GetControllerOf(deployment)
	}
	return claims
}

// fooOf returns the Foo that a controller reference names; nil if there is none.
func (r *Reconciler) fooOf(ctx context.Context, namespace string,
	controller *metav1.OwnerReference) *samplev1alpha1.Foo {
	if controller == nil {
		return nil
	}
	var foo samplev1alpha1.Foo
	err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: controller.Name}, &foo)
	if err != nil || foo.UID != controller.UID {
		return nil
	}
	return &foo
}

// deleteFormer deletes the Deployments of a Foo that have other names than spec.deploymentName.
func (r *Reconciler) deleteFormer(ctx context.Context, foo *samplev1alpha1.Foo, former []*appsv1.Deployment) error {
	if len(former) == 0 {
		return nil
	}
	if err := r.children.Confirm(ctx, foo); err != nil {
		return err
	}
	var errs []error
	for _, deployment := range former {
		errs = append(errs, r.children.Delete(ctx, foo, deployment))
	}
	return errors.Join(errs...)
}

// keepFormer applies the spec of a Foo to its Deployments of other names: they stay in service while
// spec.deploymentName is taken.
func (r *Reconciler) keepFormer(
	ctx context.Context, pass *child.Pass, foo *samplev1alpha1.Foo, former []*appsv1.Deployment, done *result,
) {
	for _, has := range former {
		image := r.Image.For(podSpecOf(has), isAvailable(has), containerName)
		pass.IsTentative = image.IsTentative
		done.wait = status.Sooner(done.wait, image.Wait)
		kept, err := child.Apply(ctx, r.children, pass, has, deployment(foo, has.Name, has, r.Platform, image.Name))
		done.err = errors.Join(done.err, err)
		if kept != nil && kept.UID == done.deployment.UID {
			done.deployment = kept
		}
	}
}

// recordEvents records an event for a transition between two stored statuses.
func (r *Reconciler) recordEvents(before, after *samplev1alpha1.Foo) {
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
