package cronjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/recent"
	"github.com/example/memcached-operator/internal/status"
)

// Reconciler reconciles CronJob objects.
type Reconciler struct {
	// Clock is the source of the time; nil for the real clock.
	Clock clock.WithTicker

	client client.Client
	live   client.Reader
	memory memory
	stalls *stallDetector
	jobs   *child.Client
	status *status.Writer
	events events.EventRecorder
}

// The finalizers subresource is needed where the cluster enforces permissions on owner references, as OpenShift does:
// to set blockOwnerDeletion. Patch gives a Job that has lost its owner reference the reference back.
//
// +kubebuilder:rbac:groups=batch.tutorial.kubebuilder.io,resources=cronjobs,verbs=list;watch
// +kubebuilder:rbac:groups=batch.tutorial.kubebuilder.io,resources=cronjobs/status,verbs=patch
// +kubebuilder:rbac:groups=batch.tutorial.kubebuilder.io,resources=cronjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Children has one empty object of each type of child. These types are watched and cached.
var Children = []client.Object{&batchv1.Job{}}

// SetupWithManager registers the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	r.client, r.live = mgr.GetClient(), mgr.GetAPIReader()
	r.jobs = child.New(r.client, r.live, r.Clock)
	r.status = status.NewWriter("CronJob", r.client, r.live, r.Clock, observedGeneration)
	r.events = mgr.GetEventRecorder("cronjob-controller")
	r.stalls = newStallDetector(r.Clock)

	return errors.Join(
		mgr.Add(r.stalls),
		mgr.GetFieldIndexer().IndexField(context.Background(), &tutorialv1.CronJob{}, scheduledIndex, isScheduled),
		mgr.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, child.OwnerIndex, child.IndexOwner),
		ctrl.NewControllerManagedBy(mgr).
			For(&tutorialv1.CronJob{}, builder.WithPredicates(r.forgetDeleted())).
			Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(mapJobToCronJobs),
				builder.WithPredicates(r.jobs.ForgetDeleted())).
			WatchesMetadata(builtIn(), &handler.EnqueueRequestForObject{}).
			WatchesRawSource(source.Channel(r.stalls.stalls, handler.EnqueueRequestsFromMapFunc(r.mapStallToCronJobs))).
			WithOptions(options).
			Complete(reconcile.AsReconciler(r.client, r)))
}

// scheduledIndex finds the CronJobs that have a next time.
const scheduledIndex = "status.isScheduled"

// isScheduled is the function of that index.
func isScheduled(object client.Object) []string {
	if object.(*tutorialv1.CronJob).Status.NextScheduleTime == nil {
		return nil
	}
	return []string{"true"}
}

// mapStallToCronJobs returns all CronJobs that have a next time: after a stall their timers are late. If a CronJob is
// not due, its pass sends no request.
func (r *Reconciler) mapStallToCronJobs(ctx context.Context, _ client.Object) []reconcile.Request {
	var scheduled tutorialv1.CronJobList
	if err := r.client.List(ctx, &scheduled, client.MatchingFields{scheduledIndex: "true"},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is stopping
	}
	requests := make([]reconcile.Request, len(scheduled.Items))
	for i := range scheduled.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&scheduled.Items[i])
	}
	return requests
}

// forgetDeleted is a predicate for the watch of CronJobs. It accepts every event, and drops what is remembered of a
// deleted CronJob.
func (r *Reconciler) forgetDeleted() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		r.memory.forget(e.Object.GetUID())
		return true
	}}
}

// builtIn returns an empty batch/v1 CronJob, of which only the metadata is read.
func builtIn() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("CronJob"))
	return object
}

// mapJobToCronJobs returns the CronJobs that a Job may affect: its controller, and the CronJob whose Jobs have such a
// name, which may need the name or have lost the owner reference.
func mapJobToCronJobs(_ context.Context, job client.Object) []reconcile.Request {
	var requests []reconcile.Request
	add := func(name string) {
		request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: job.GetNamespace(), Name: name}}
		if !slices.Contains(requests, request) {
			requests = append(requests, request)
		}
	}
	if c := metav1.GetControllerOfNoCopy(job); c != nil && c.Kind == "CronJob" {
		add(c.Name)
	}
	if dash := strings.LastIndexByte(job.GetName(), '-'); dash > 0 {
		add(job.GetName()[:dash])
	}
	return requests
}

// observedGeneration returns the generation that the status of a CronJob refers to.
func observedGeneration(object client.Object) int64 {
	return object.(*tutorialv1.CronJob).Status.ObservedGeneration
}

// Reconcile reconciles one CronJob: observe, decide, apply, report.
func (r *Reconciler) Reconcile(ctx context.Context, cj *tutorialv1.CronJob) (ctrl.Result, error) {
	if !cj.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector deletes its Jobs
	}
	before, _ := status.Latest(r.status, cj)
	known := r.memory.of(cj)
	syncCtx, cancel := context.WithTimeout(ctx, child.WriteTimeout)
	defer cancel()
	seen, err := r.sync(syncCtx, before, known)
	switch {
	case child.IsNamespaceTerminating(err):
		return ctrl.Result{}, nil
	case recent.IsBehind(err):
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case err == nil && seen.mayReportLater:
		// The created Job triggers the pass that reports it. Until then, other CronJobs that are due create their Jobs.
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}

	after := before.DeepCopy()
	seen.now = r.Clock.Now()
	after.Status = statusOf(before, seen, err)
	stored, _, statusErr := status.Patch(ctx, r.status, before, after, true)
	if recent.IsBehind(statusErr) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if statusErr == nil && seen.isObserved {
		r.recordMissed(after, seen.known)
		r.memory.noteStatus(cj.UID)
	}
	if stored != nil {
		r.recordEvents(before, stored)
	}
	if note := r.status.UnwrittenNote(before, statusErr); note != "" {
		r.events.Eventf(before, nil, corev1.EventTypeWarning, tutorialv1.EventStatusNotWritten, "Sync", "%s", note)
	}
	if err := errors.Join(child.ToRetry(err), statusErr); err != nil {
		return ctrl.Result{}, err
	}
	wake := seen.wake()
	if wake.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(wake.Sub(r.Clock.Now()), time.Millisecond)}, nil
}

// sync deletes the Jobs that exceed the history limits, restores lost owner references, and creates the Job that is
// due.
func (r *Reconciler) sync(ctx context.Context, cj *tutorialv1.CronJob, known remembered) (seen observed, err error) {
	seen.now, seen.known = r.Clock.Now(), known
	if err := r.observe(ctx, cj, &seen); err != nil {
		return seen, err
	}
	past := pastOf(cj, seen.jobs, known, r.stalls.aloneSince(r.Clock.Now()), seen.now)
	seen.plan = decide(cj, seen.jobs, past, seen.now)
	if seen.plan.needsConfirmation() {
		if err := r.confirm(ctx, cj); err != nil {
			return seen, err
		}
	}
	seen.known = r.memory.noteDecision(cj, known, seen.plan)

	pruneErr := r.delete(ctx, cj, &seen, seen.plan.prune) // first: a quota may have no room for another Job
	adoptErr := r.adopt(ctx, cj, seen.jobs)
	if seen.plan.run.IsZero() {
		return seen, errors.Join(pruneErr, adoptErr)
	}
	if err := r.delete(ctx, cj, &seen, seen.plan.replace); err != nil {
		return seen, errors.Join(pruneErr, adoptErr, err)
	}
	// What only this manager knows is reported in this pass, so a CronJob that is due in every pass is reported as
	// well.
	seen.mayReportLater = !seen.known.isUnrecorded && seen.plan.missed.count == 0
	created, err := child.Create(ctx, r.jobs, cj, job(cj, seen.plan.run))
	if created != nil {
		seen.known = r.memory.noteRun(cj.UID, seen.plan, reference(created))
	}
	if err != nil {
		return seen, errors.Join(pruneErr, adoptErr, err)
	}
	seen.jobs, seen.isAhead = append(seen.jobs, created), true
	seen.plan = decide(cj, seen.jobs, pastOf(cj, seen.jobs, seen.known, past.aloneSince, seen.now), seen.now)
	return seen, errors.Join(pruneErr, adoptErr)
}

// observe reads the Jobs of a CronJob: those that the cache lists, and known ones that it does not list yet. The error
// is a [*recent.BehindError] if only the API server has one of them.
func (r *Reconciler) observe(ctx context.Context, cj *tutorialv1.CronJob, seen *observed) error {
	jobs, err := child.List[batchv1.Job](ctx, r.jobs, cj, &batchv1.JobList{})
	if err != nil {
		return err
	}
	for _, reference := range unlisted(cj, seen.known, jobs) {
		job, err := r.find(ctx, cj, reference)
		if err != nil {
			return err
		}
		if job != nil {
			jobs, seen.isAhead = append(jobs, job), true
		}
	}
	err = r.client.Get(ctx, client.ObjectKeyFromObject(cj), builtIn())
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the batch/v1 CronJob %s: %w", cj.Name, err)
	}
	seen.jobs, seen.isNameShared, seen.isObserved = jobs, err == nil, true
	return nil
}

// find returns a Job that the cache did not list, or nil if it was deleted or the CronJob does not control it any more.
// A Job that was just created is assumed to exist for a second, in which the watch should show it; then it is read
// live.
func (r *Reconciler) find(ctx context.Context, cj *tutorialv1.CronJob,
	reference corev1.ObjectReference) (*batchv1.Job, error) {
	job, err := child.Get[batchv1.Job](ctx, r.jobs, nil, cj.Namespace, reference.Name)
	switch {
	case err != nil || r.jobs.IsDeleted(reference.UID):
		return nil, err
	case job != nil && (job.UID != reference.UID || !child.IsControlled(job, cj)):
		return nil, nil // another Job has the name, or it has another controller now
	case job != nil && r.jobs.AheadFor(job) < confirmAfter:
		return job, nil
	}
	named := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: cj.Namespace, Name: reference.Name, UID: reference.UID}}
	found, err := r.jobs.Live(ctx, named)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading Job %s of CronJob %s: %w", reference.Name, client.ObjectKeyFromObject(cj), err)
	case found == nil || !child.IsControlled(found, cj):
		return nil, nil
	case job == nil:
		return nil, recent.Behind(r.client, named)
	}
	return job, nil
}

// confirm returns a [*recent.BehindError] unless a CronJob is the version that the API server has: another manager may
// have recorded a run since. A run that is not recorded yet cannot be repeated, because the name of its Job is taken.
func (r *Reconciler) confirm(ctx context.Context, cj *tutorialv1.CronJob) error {
	key := client.ObjectKeyFromObject(cj)
	var live tutorialv1.CronJobList
	if err := r.live.List(ctx, &live, client.InNamespace(cj.Namespace),
		client.MatchingFields{metav1.ObjectNameField: cj.Name}); err != nil {
		return fmt.Errorf("reading CronJob %s: %w", key, err)
	}
	if len(live.Items) != 1 || live.Items[0].UID != cj.UID || live.Items[0].ResourceVersion != cj.ResourceVersion {
		return recent.Behind(r.client, cj)
	}
	return nil
}

// adopt restores lost owner references of Jobs: backup tools drop them, and without them Jobs would outlive the
// CronJob. In jobs, it replaces each adopted Job by the response.
func (r *Reconciler) adopt(ctx context.Context, cj *tutorialv1.CronJob, jobs []*batchv1.Job) error {
	var errs []error
	for i, job := range jobs {
		if isTerminating(job) {
			continue
		}
		adopted, err := child.Adopt(ctx, r.jobs, cj, job)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		jobs[i] = adopted
	}
	return errors.Join(errs...)
}

// delete deletes Jobs, and removes them from seen.
func (r *Reconciler) delete(ctx context.Context, cj *tutorialv1.CronJob, seen *observed, jobs []*batchv1.Job) error {
	var errs []error
	for _, job := range jobs {
		// A conflict is an error, too: it does not prove that the Job is deleted, so the Job may still be running.
		if err := r.jobs.Delete(ctx, cj, job); err != nil {
			errs = append(errs, err)
			continue
		}
		seen.jobs = slices.DeleteFunc(seen.jobs, func(other *batchv1.Job) bool { return other.UID == job.UID })
	}
	return errors.Join(errs...)
}

// recordMissed records an event for missed times that no event has reported yet.
func (r *Reconciler) recordMissed(cj *tutorialv1.CronJob, known remembered) {
	if message := known.missed.message(known.ran); message != "" {
		r.events.Eventf(cj, nil, corev1.EventTypeWarning, tutorialv1.EventMissedSchedule, "Sync", "%s", message)
	}
}

// recordEvents records an event for a transition between two stored statuses.
func (r *Reconciler) recordEvents(before, after *tutorialv1.CronJob) {
	was, is := before.Status.Conditions, after.Status.Conditions
	switch {
	case status.HasBecomeDegraded(was, is):
		degraded := meta.FindStatusCondition(is, tutorialv1.ConditionDegraded)
		r.events.Eventf(after, nil, corev1.EventTypeWarning, degraded.Reason, "Sync", "%s", degraded.Message)
	case status.HasBeenSynced(was, is):
		r.events.Eventf(after, nil, corev1.EventTypeNormal, tutorialv1.EventSynced, "Sync", "CronJob synced successfully")
	}
}
