package memcached

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/names"
	"github.com/example/memcached-operator/internal/operand"
	"github.com/example/memcached-operator/internal/recent"
	"github.com/example/memcached-operator/internal/status"
)

// Reconciler reconciles Memcached objects.
type Reconciler struct {
	// Image is the memcached image. Changing it restarts the nodes of every Memcached, one at a time.
	Image operand.Image
	// AgentImage is the image of the agent. Changing it restarts the nodes of every Memcached with TLS or metrics.
	AgentImage operand.Image
	// Platform describes how the cluster treats pods.
	Platform operand.Platform
	// Clock is the source of the time.
	Clock clock.PassiveClock

	client    client.Client
	live      client.Reader
	children  *child.Client
	status    *status.Writer
	events    events.EventRecorder
	shortages shortages
}

// The finalizers subresource and the right to delete children are needed where the cluster enforces permissions on
// owner references, as OpenShift does: the one to set blockOwnerDeletion, the other to restore a lost reference.
//
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds,verbs=list;watch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/status,verbs=patch
// +kubebuilder:rbac:groups=cache.example.com,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// +kubebuilder:rbac:groups="",resources=events,verbs=list

// Children has one empty object of each type of child. These types are watched and cached.
var Children = []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &corev1.Service{},
	&policyv1.PodDisruptionBudget{}}

// Indexes of Memcacheds: by the names of their children, and by the label of their pods.
const (
	childNameIndex = "child.name"
	podLabelIndex  = "pod.label"
)

// SetupWithManager registers the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	r.client, r.live = mgr.GetClient(), mgr.GetAPIReader()
	r.children = child.New(r.client, r.live, r.Clock)
	r.status = status.NewWriter("Memcached", r.client, r.live, r.Clock, observedGeneration)
	r.events = mgr.GetEventRecorder("memcached-controller")

	builder := ctrl.NewControllerManagedBy(mgr).For(&cachev1alpha1.Memcached{}).WithOptions(options)
	errs := []error{r.index(mgr)}
	for _, object := range Children {
		// This starts the informer together with the manager, which is not ready before the informer has synced.
		_, err := mgr.GetCache().GetInformer(context.Background(), object, cache.BlockUntilSynced(false))
		errs = append(errs, err)
		builder.Watches(object, handler.EnqueueRequestsFromMapFunc(r.mapChildToMemcacheds), when(r.children.ForgetDeleted()))
	}
	builder.WatchesMetadata(replicaSets(), handler.EnqueueRequestsFromMapFunc(r.mapPodToMemcacheds),
		when(controllerChanged))
	builder.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.mapPodToMemcacheds), when(podChanged))
	return errors.Join(append(errs, builder.Complete(reconcile.AsReconciler(r.client, r)))...)
}

func when(condition predicate.Predicate) builder.Predicates {
	return builder.WithPredicates(condition)
}

// index creates the indexes that the lists in this package use.
func (r *Reconciler) index(mgr ctrl.Manager) error {
	ctx, indexer := context.Background(), mgr.GetFieldIndexer()
	return errors.Join(
		indexer.IndexField(ctx, &cachev1alpha1.Memcached{}, childNameIndex, func(mc client.Object) []string {
			return childNames(mc.(*cachev1alpha1.Memcached))
		}),
		indexer.IndexField(ctx, &cachev1alpha1.Memcached{}, podLabelIndex, func(mc client.Object) []string {
			return []string{names.Label(mc.GetName())}
		}),
		indexer.IndexField(ctx, replicaSets(), child.ControllerIndex, child.IndexController),
		indexer.IndexField(ctx, &corev1.Pod{}, child.ControllerIndex, child.IndexController),
	)
}

// mapChildToMemcacheds returns the Memcacheds that specify a child of this name.
func (r *Reconciler) mapChildToMemcacheds(ctx context.Context, object client.Object) []reconcile.Request {
	return r.find(ctx, object.GetNamespace(), childNameIndex, object.GetName())
}

// mapPodToMemcacheds returns the Memcacheds whose label a pod or ReplicaSet carries.
func (r *Reconciler) mapPodToMemcacheds(ctx context.Context, object client.Object) []reconcile.Request {
	return r.find(ctx, object.GetNamespace(), podLabelIndex, object.GetLabels()[labelInstance])
}

// find returns the Memcacheds that an index has under a value.
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

// observedGeneration returns the generation that the status of a Memcached refers to.
func observedGeneration(object client.Object) int64 {
	return object.(*cachev1alpha1.Memcached).Status.ObservedGeneration
}

// Reconcile reconciles one Memcached: observe, decide, apply, report.
func (r *Reconciler) Reconcile(ctx context.Context, mc *cachev1alpha1.Memcached) (ctrl.Result, error) {
	if !mc.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes its children
	}
	before, isNew := status.Latest(r.status, mc)
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
	isOutcome := status.IsOutcome(before.Status.Conditions, after.Status.Conditions) && !isPassing(before, done.err)
	stored, wait, statusErr := status.Patch(ctx, r.status, before, after, isOutcome)
	if recent.IsBehind(statusErr) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if stored != nil {
		r.recordEvents(before, stored)
	}
	if note := r.status.UnwrittenNote(before, statusErr); note != "" {
		r.events.Eventf(before, nil, corev1.EventTypeWarning, cachev1alpha1.EventStatusNotWritten, "Sync", "%s", note)
	}
	if err := errors.Join(child.ToRetry(done.err), statusErr); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: status.Sooner(wait, done.wait, pass.RetryAfter(), done.recheck())}, nil
}

// sync observes the children and pods of a Memcached and, unless it is paused or its spec is invalid, writes the
// children.
func (r *Reconciler) sync(ctx context.Context, pass *child.Pass, mc *cachev1alpha1.Memcached) result {
	workload, settings := workloadOf(mc), settingsOf(mc)
	observed, err := r.observe(ctx, pass, mc, workload)
	if err != nil {
		return result{err: err}
	}
	done := result{nodes: observed.nodes, invalid: invalid(mc, settings)}
	done.nodes.warmup = time.Duration(settings.warmup) * time.Second
	if observed.workload != nil && child.IsControlled(observed.workload, mc) {
		done.workload = observed.workload // reported even if applying the spec fails
		done.nodes.shortage = r.observeShortage(ctx, mc, &done)
	}
	if isPaused(mc) || done.invalid != nil {
		return done
	}
	image, agentImage := r.images(mc, observed.workload)
	pass.IsTentative = image.IsTentative || agentImage.IsTentative
	done.wait = status.Sooner(image.Wait, agentImage.Wait)
	template, err := podTemplate(mc, settings, pods{r.Platform, image.Name, agentImage.Name})
	if err != nil {
		return result{err: err}
	}

	applied, err := workload.apply(ctx, r.children, pass, observed.workload, mc, settings, template)
	if err == nil {
		done.workload, done.isApplied = applied, true
	}
	if child.IsNamespaceTerminating(err) || isPassing(mc, err) {
		done.err = err // the others fail too, or belong to an earlier Memcached of that name
		return done
	}
	errs := []error{err}
	for i, want := range services(mc, settings) {
		_, err := child.Apply(ctx, r.children, pass, observed.services[i], want)
		errs = append(errs, err)
	}
	_, err = child.Apply(ctx, r.children, pass, observed.budget, podDisruptionBudget(mc))
	done.err = errors.Join(append(errs, err)...)
	return done
}

// images chooses the images of memcached and its agent.
func (r *Reconciler) images(mc *cachev1alpha1.Memcached, workload workloadObject) (image, agentImage operand.Choice) {
	spec, isAvailable := podSpecOf(workload), isAvailable(workload)
	image = operand.Choice{Name: mc.Spec.Image}
	if image.Name == "" {
		image = r.Image.For(spec, isAvailable, containerName)
	}
	return image, r.AgentImage.For(spec, isAvailable, agentName)
}

// observe reads the children of a Memcached, and the pods of its workload.
func (r *Reconciler) observe(ctx context.Context, pass *child.Pass, mc *cachev1alpha1.Memcached,
	workload workload) (observed observed, err error) {
	if observed.workload, err = workload.get(ctx, r.children, pass, mc.Namespace, mc.Name); err != nil {
		return observed, err
	}
	for _, name := range serviceNames(mc) {
		service, err := child.Get[corev1.Service](ctx, r.children, pass, mc.Namespace, name)
		if err != nil {
			return observed, err
		}
		observed.services = append(observed.services, service)
	}
	observed.budget, err = child.Get[policyv1.PodDisruptionBudget](ctx, r.children, pass, mc.Namespace, mc.Name)
	if err != nil {
		return observed, err
	}
	observed.nodes, err = r.nodes(ctx, mc, observed.workload)
	return observed, err
}

// observeShortage returns since when the workload of a Memcached has had fewer pods than it should have, and why, if
// the workload does not report that itself.
func (r *Reconciler) observeShortage(ctx context.Context, mc *cachev1alpha1.Memcached, done *result) shortage {
	has := int32(len(done.nodes.pods) + len(done.nodes.terminating))
	found, shouldRead := r.shortages.note(done.workload.GetUID(), has < mc.Spec.Size, done.nodes.now)
	if reportsErrors(done.workload) || !shouldRead {
		return found
	}
	return r.shortages.noteCause(done.workload.GetUID(), r.creationError(ctx, done.workload))
}

// recordEvents records an event for a transition between two stored statuses.
func (r *Reconciler) recordEvents(before, after *cachev1alpha1.Memcached) {
	was, is := before.Status.Conditions, after.Status.Conditions
	switch {
	case status.HasBecomeDegraded(was, is):
		degraded := meta.FindStatusCondition(is, cachev1alpha1.ConditionDegraded)
		r.events.Eventf(after, nil, corev1.EventTypeWarning, degraded.Reason, "Sync", "%s", degraded.Message)
	case status.HasBeenSynced(was, is):
		r.events.Eventf(after, nil, corev1.EventTypeNormal, cachev1alpha1.EventSynced, "Sync",
			"Memcached synced successfully")
	}
}
