package memcached

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/names"
	"github.com/example/memcached-operator/internal/operand"
	"github.com/example/memcached-operator/internal/owned"
	"github.com/example/memcached-operator/internal/status"
)

// Reconciler makes Memcacheds true.
type Reconciler struct {
	// Image is the memcached image. Changing it restarts the nodes of every Memcached, one at a time.
	Image operand.Image
	// Platform is what the cluster does by itself.
	Platform operand.Platform

	client      client.Client
	deployments *owned.Children[appsv1.Deployment, *appsv1.Deployment]
	services    *owned.Children[corev1.Service, *corev1.Service]
	budgets     *owned.Children[policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudget]
	status      *status.Writer[cachev1alpha1.Memcached, *cachev1alpha1.Memcached]
	events      events.EventRecorder
}

// Where a cluster enforces permissions on owner references, as OpenShift does, to make an owner wait for its child takes a
// say in the owner's finalizers, and to put an owner reference back takes the right to delete the child.
//
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Indexes by which Memcacheds are found: the names their children have, and the label their pods carry.
const (
	childNameIndex = "child.name"
	podLabelIndex  = "pod.label"
)

// SetupWithManager registers the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	r.client = mgr.GetClient()
	r.deployments = owned.Of[appsv1.Deployment](r.client, mgr.GetAPIReader())
	r.services = owned.Of[corev1.Service](r.client, mgr.GetAPIReader())
	r.budgets = owned.Of[policyv1.PodDisruptionBudget](r.client, mgr.GetAPIReader())
	r.status = status.Of[cachev1alpha1.Memcached](r.client, clock.RealClock{})
	r.events = mgr.GetEventRecorder("memcached-controller")

	byChild := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, child client.Object) []reconcile.Request {
		return r.find(ctx, child.GetNamespace(), childNameIndex, child.GetName())
	})
	byPod := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, pod client.Object) []reconcile.Request {
		return r.find(ctx, pod.GetNamespace(), podLabelIndex, pod.GetLabels()[labelInstance])
	})
	return errors.Join(
		r.index(mgr),
		ctrl.NewControllerManagedBy(mgr).
			For(&cachev1alpha1.Memcached{}).
			Watches(&appsv1.Deployment{}, byChild, builder.WithPredicates(r.deployments.ForgetDeleted())).
			Watches(&corev1.Service{}, byChild, builder.WithPredicates(r.services.ForgetDeleted())).
			Watches(&policyv1.PodDisruptionBudget{}, byChild, builder.WithPredicates(r.budgets.ForgetDeleted())).
			WatchesMetadata(replicaSets(), byPod, builder.WithPredicates(comesOrGoes)).
			Watches(&corev1.Pod{}, byPod, builder.WithPredicates(looksDifferent)).
			WithOptions(options).
			Complete(reconcile.AsReconciler(r.client, r)))
}

// index makes the indexes that lists in this package go by. With them, all caches exist from now on, and a manager is not
// ready before they are filled.
func (r *Reconciler) index(mgr ctrl.Manager) error {
	ctx, indexer := context.Background(), mgr.GetFieldIndexer()
	var errs []error
	for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}} {
		_, err := mgr.GetCache().GetInformer(ctx, child, cache.BlockUntilSynced(false))
		errs = append(errs, err)
	}
	return errors.Join(append(errs,
		indexer.IndexField(ctx, &cachev1alpha1.Memcached{}, childNameIndex, func(mc client.Object) []string {
			return childNames(mc.(*cachev1alpha1.Memcached))
		}),
		indexer.IndexField(ctx, &cachev1alpha1.Memcached{}, podLabelIndex, func(mc client.Object) []string {
			return []string{names.Label(mc.GetName())}
		}),
		indexer.IndexField(ctx, replicaSets(), owned.ControllerUIDIndex, owned.ControllerUID),
		indexer.IndexField(ctx, &corev1.Pod{}, owned.ControllerUIDIndex, owned.ControllerUID),
	)...)
}

// find returns the Memcacheds that an index holds under a value.
func (r *Reconciler) find(ctx context.Context, namespace, index, value string) []reconcile.Request {
	var found cachev1alpha1.MemcachedList
	if err := r.client.List(ctx, &found, client.InNamespace(namespace),
		client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is stopping
	}
	requests := make([]reconcile.Request, len(found.Items))
	for i := range found.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&found.Items[i])
	}
	return requests
}

// Reconcile makes one Memcached true, and tells how it is.
func (r *Reconciler) Reconcile(ctx context.Context, mc *cachev1alpha1.Memcached) (ctrl.Result, error) {
	if !mc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its children go with it
	}
	before := r.status.Latest(mc)
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
	isOutcome := status.IsOutcome(before.Status.Conditions, after.Status.Conditions) && !isPassing(before, err)
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

// sync makes the children of a Memcached and looks at its pods.
func (r *Reconciler) sync(ctx context.Context, mc *cachev1alpha1.Memcached) (seen observed, err error) {
	current, err := r.deployments.Get(ctx, types.NamespacedName{Namespace: mc.Namespace, Name: mc.Name})
	if err != nil {
		return seen, err
	}
	image, wait := r.Image.For(current, containerName, time.Now())
	seen.wait = wait
	seen.deployment, err = r.write(ctx, mc, image)
	seen.isApplied = seen.deployment != nil
	if !seen.isApplied { // what there is may serve all the same
		if current == nil || !owned.IsOurs(current, mc) {
			return seen, err
		}
		seen.deployment = current
	}
	pods, podsErr := r.pods(ctx, mc, seen.deployment)
	seen.pods = pods
	return seen, errors.Join(err, podsErr)
}

// write makes the children of a Memcached, each whether or not another one can be made. It returns the Deployment, or nil if that is not
// as it should be.
func (r *Reconciler) write(ctx context.Context, mc *cachev1alpha1.Memcached, image string) (*appsv1.Deployment, error) {
	pass := &owned.Pass{Owner: mc, Had: len(mc.Status.Conditions) > 0}
	applied, deploymentErr := owned.Apply(ctx, r.deployments, pass, deployment(mc, r.Platform, image))
	if owned.IsNamespaceEnding(deploymentErr) || isPassing(mc, deploymentErr) {
		return nil, deploymentErr // nor can the others, or they would be those of a Memcached that is gone
	}
	_, serviceErr := owned.Apply(ctx, r.services, pass, service(mc))
	_, budgetErr := owned.Apply(ctx, r.budgets, pass, podDisruptionBudget(mc))
	return applied, errors.Join(deploymentErr, serviceErr, budgetErr)
}

// isPassing tells whether an error is that of a name which is taken for a moment only, by a child of an earlier Memcached of
// this name that is yet to be collected. It is worth telling if it stays.
func isPassing(mc *cachev1alpha1.Memcached, err error) bool {
	foreign := (*owned.ForeignError)(nil)
	return errors.As(err, &foreign) && foreign.Holder != nil &&
		owned.IsPredecessor(foreign.Holder, mc, cachev1alpha1.GroupVersion.WithKind("Memcached"))
}

// tell makes an event of a transition that the status stored has made.
func (r *Reconciler) tell(before, after *cachev1alpha1.Memcached) {
	was, is := before.Status.Conditions, after.Status.Conditions
	switch {
	case status.HasBecomeDegraded(was, is):
		degraded := meta.FindStatusCondition(is, cachev1alpha1.ConditionDegraded)
		r.events.Eventf(after, nil, corev1.EventTypeWarning, degraded.Reason, "Sync", "%s", degraded.Message)
	case status.HasBeenSynced(was, is):
		r.events.Eventf(after, nil, corev1.EventTypeNormal, cachev1alpha1.EventSynced, "Sync", "Memcached synced successfully")
	}
}
