package oracle

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

// judgeWorkload finds what is wrong in the status of a resource whose kind has a Deployment or StatefulSet.
func (w *statusWrite) judgeWorkload() {
	status, available := w.kind.Status(typed(w.kind, w.self.Object)), w.said.Condition("Available")
	w.addIf(available.Status == metav1.ConditionTrue && available.Reason != samplev1alpha1.ReasonScaledToZero &&
		status.Ready == 0, "reports that it is available, and no available pods")
	w.addIf(available.Status == metav1.ConditionFalse && status.Ready > 0,
		"reports that it is not available, and available pods")
	if w.kind.Name == kinds.Memcached.Name {
		w.judgeNodes(&status)
	} else {
		w.addIf((status.Pods != 0 || status.Ready != 0) && !recently(w, history.Deployments,
			func(d *appsv1.Deployment) bool {
				return d.Status.Replicas == status.Pods && d.Status.AvailableReplicas == status.Ready
			}), "reports %d pods, %d of them available; its Deployment did not", status.Pods, status.Ready)
	}
	if w.observed == nil || !w.said.Is("Progressing", metav1.ConditionFalse) ||
		!w.said.Is("Degraded", metav1.ConditionFalse) {
		return
	}
	if w.said.Condition("Progressing").Reason == cachev1alpha1.ReasonPaused {
		isPaused, _, _ := unstructured.NestedBool(w.observed.Object, "spec", "paused")
		w.addIf(!isPaused, "reports that it is paused; it was not")
		return
	}
	w.addIf(!w.matchesSpec(&status), "reports that it matches its spec; it did not")
}

// matchesSpec reports whether the workload of a resource was rolled out, with all nodes that a status lists.
func (w *statusWrite) matchesSpec(status *kinds.Status) bool {
	resource := typed(w.kind, w.observed)
	wanted, name := w.kind.Pods(resource), w.kind.ChildrenOf(resource)[0].GetName()
	foo, isFoo := resource.(*samplev1alpha1.Foo)
	othersScale := isFoo && foo.Spec.Replicas == nil
	isRolledOut := recently(w, history.Deployments, func(d *appsv1.Deployment) bool {
		if othersScale {
			return d.Name == name && history.IsRolledOut(d, ptr.Deref(d.Spec.Replicas, 1))
		}
		return d.Name == name && history.IsRolledOut(d, wanted)
	}) ||
		recently(w, history.StatefulSets,
			func(s *appsv1.StatefulSet) bool { return s.Name == name && history.IsSetRolledOut(s, wanted) })
	return isRolledOut && (status.Ready == wanted || status.Nodes == nil)
}

// typed converts an object to its kind.
func typed(kind *kinds.Kind, object *unstructured.Unstructured) client.Object {
	as := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, as); err != nil {
		panic(err) // the API server has validated it
	}
	return as
}

// judgeNodes finds what is wrong in the list of nodes in a status.
func (w *statusWrite) judgeNodes(status *kinds.Status) {
	nodes, listed := w.nodes(), sets.New(status.Nodes...)
	for node := range nodes.steady.Difference(listed) {
		w.addIf(true, "does not list the node %s, which had been ready", node)
	}
	for node := range listed.Difference(nodes.all) {
		w.addIf(true, "lists the node %s, which was no pod of its workload", node)
	}
	w.addIf(!slices.IsSorted(status.Nodes) || int(status.Pods) != len(status.Nodes),
		"lists the nodes %v, and reports %d", status.Nodes, status.Pods)
	isReady := listed.Intersection(nodes.ready)
	w.addIf(int(status.Ready) > len(isReady), "reports %d ready nodes; of those it lists, %d were", status.Ready,
		len(isReady))
}

// nodes are the names of the pods of a Memcached's workload that a status may be computed from, and of those that were
// ready, once or all the time.
type nodes struct{ all, ready, steady sets.Set[string] }

// nodes returns the nodes that the status may be computed from.
func (w *statusWrite) nodes() nodes {
	found := nodes{sets.New[string](), sets.New[string](), sets.New[string]()}
	owners, gone := sets.New(w.self.Object.GetUID()), sets.New[types.UID]()
	listed, uids := sets.New[string](), map[history.Key]types.UID{}
	if !w.since.IsZero() {
		listed.Insert(w.kind.Status(typed(w.kind, w.previous)).Nodes...)
	}
	for _, resource := range []string{history.Deployments, history.StatefulSets, history.ReplicaSets, history.Pods} {
		for i, version := range w.versions {
			owner := controllerOf(version.Object)
			if version.Resource != resource || !owners.Has(owner) {
				continue
			}
			owners.Insert(version.Object.GetUID())
			if uid, isKnown := uids[version.Key]; isKnown && uid != version.Object.GetUID() {
				listed.Delete(version.Name) // the status may have listed an earlier pod of that name
			}
			uids[version.Key] = version.Object.GetUID()
			switch isLeft := gone.Has(owner); { // its workload was deleted
			case resource == history.Pods:
				since := w.since
				if listed.Has(version.Name) && w.previousAt.After(since) {
					since = w.previousAt // the operator knew it then, and its knowledge does not go back
				}
				found.add(version, since, w.isRecent(i), isLeft)
			case version.IsGone || isLeft:
				gone.Insert(version.Object.GetUID())
			}
		}
	}
	return found
}

// add adds a version of a pod.
func (n nodes) add(version history.Version, since time.Time, isRecent, isLeft bool) {
	pod := history.As[corev1.Pod](version.Object)
	isReady := !version.IsGone && hasCondition(pod, corev1.PodReady, corev1.ConditionTrue)
	switch {
	case !isReady || isLeft || pod.DeletionTimestamp != nil:
		n.steady.Delete(version.Name)
	case version.At.Before(since):
		n.steady.Insert(version.Name)
	}
	if isRecent && !version.IsGone {
		n.all.Insert(version.Name)
	}
	if isRecent && isReady {
		n.ready.Insert(version.Name)
	}
}

// judgeCronJob finds what is wrong in the status of a CronJob.
func (w *statusWrite) judgeCronJob() {
	status := &history.As[tutorialv1.CronJob](w.self.Object).Status
	previous := &history.As[tutorialv1.CronJob](w.previous).Status
	for what, times := range map[string][2]*metav1.Time{
		"lastScheduleTime":   {previous.LastScheduleTime, status.LastScheduleTime},
		"lastMissedTime":     {previous.LastMissedTime, status.LastMissedTime},
		"lastSuccessfulTime": {previous.LastSuccessfulTime, status.LastSuccessfulTime},
		"lastFailedTime":     {previous.LastFailedTime, status.LastFailedTime},
	} {
		w.addIf(times[0] != nil && (times[1] == nil || times[1].Before(times[0])), "has %s go back", what)
	}
	w.judgeActive(status)
	w.judgeTimes(previous, status)
	if w.observed != nil {
		w.judgeConditions(&history.As[tutorialv1.CronJob](w.observed).Spec, status)
	}
}

// judgeActive finds what is wrong in the list of active Jobs.
func (w *statusWrite) judgeActive(status *tutorialv1.CronJobStatus) {
	uids := sets.New[types.UID]()
	for _, active := range status.Active {
		w.addIf(uids.Has(active.UID), "lists the Job %s as active twice", active.Name)
		uids.Insert(active.UID)
		w.addIf(!recently(w, history.Jobs, func(job *batchv1.Job) bool {
			return job.UID == active.UID && job.Name == active.Name && !jobstate.IsFinished(job)
		}), "lists the Job %s, which was no active Job of its own", active.Name)
	}
	w.addIf(int(status.ActiveJobs) != len(status.Active), "lists %d Jobs as active, and reports %d", len(status.Active),
		status.ActiveJobs)
}

// judgeTimes finds wrong times of runs, of missed runs, of the next run, and of finished Jobs.
func (w *statusWrite) judgeTimes(previous, status *tutorialv1.CronJobStatus) {
	ran, missed, next := status.LastScheduleTime, status.LastMissedTime, status.NextScheduleTime
	w.addIf(ran != nil && !ran.Equal(previous.LastScheduleTime) && !w.hasRun(w.versions, ran),
		"reports a run at %s, for which there was no Job", ran)
	if missed != nil && !missed.Equal(previous.LastMissedTime) {
		w.addIf(!w.isScheduled(missed) || missed.After(w.self.At), "reports a missed run at %s, which was not due", missed)
		w.addIf(w.hasRun(w.run.Versions, missed), "reports a missed run at %s, for which there is a Job", missed)
	}
	w.addIf(next != nil && (!w.isScheduled(next) || !next.After(w.self.At)),
		"reports %s as the next time, which is no scheduled time in the future", next)
	succeeded, failed := status.LastSuccessfulTime, status.LastFailedTime
	w.addIf(succeeded != nil && !ever(w.versions, w, history.Jobs,
		func(job *batchv1.Job) bool { return succeeded.Equal(job.Status.CompletionTime) }),
		"reports that a Job completed at %s; none did", succeeded)
	w.addIf(failed != nil && !ever(w.versions, w, history.Jobs,
		func(job *batchv1.Job) bool { return failed.Time.Equal(failedAt(job)) }),
		"reports that a Job failed at %s; none did", failed)
}

// wasTime reports whether a scheduled time may have passed while the status was computed.
func (w *statusWrite) wasTime() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(w.run.Symbols)),
		func(t time.Time) bool { return t.After(w.since) && !t.After(w.self.At) })
}

// isScheduled reports whether a time is in the schedule: all times that can be due in a scenario have a symbol.
func (w *statusWrite) isScheduled(t *metav1.Time) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(w.run.Symbols)), t.Time.Equal)
}

// hasRun reports whether the CronJob had a Job for a scheduled time.
func (w *statusWrite) hasRun(versions []history.Version, t *metav1.Time) bool {
	return ever(versions, w, history.Jobs, func(job *batchv1.Job) bool {
		return jobstate.ScheduledAt(job) == t.UTC().Format(time.RFC3339)
	})
}

// failedAt returns when a Job failed; zero if it has not.
func failedAt(job *batchv1.Job) time.Time {
	return ptr.Deref(jobstate.Condition(job, batchv1.JobFailed), batchv1.JobCondition{}).LastTransitionTime.Time
}

// judgeConditions finds conditions of a CronJob that contradict the rest of its status, or the observed spec.
func (w *statusWrite) judgeConditions(spec *tutorialv1.CronJobSpec, status *tutorialv1.CronJobStatus) {
	available, progressing, degraded := w.said.Condition("Available"), w.said.Condition("Progressing"),
		w.said.Condition("Degraded")
	isSuspended, isDegraded := ptr.Deref(spec.Suspend, false), degraded.Status == metav1.ConditionTrue
	isWaiting := progressing.Reason == tutorialv1.ReasonWaitingForJob
	isForbidden := spec.ConcurrencyPolicy == tutorialv1.ForbidConcurrent
	failed, succeeded := status.LastFailedTime, status.LastSuccessfulTime
	hasFailed := failed != nil && (succeeded == nil || failed.After(succeeded.Time)) // the last Job
	isAvailable, hasNext, hasActive := available.Status == metav1.ConditionTrue, status.NextScheduleTime != nil,
		status.ActiveJobs > 0
	for contradiction, is := range map[string]struct{ reported, denied bool }{
		"is available and suspended":                  {isAvailable, isSuspended},
		"is available and has no next time":           {isAvailable, !hasNext && !w.wasTime()},
		"is suspended and has a next time":            {available.Status == metav1.ConditionFalse && isSuspended, hasNext},
		"reports that it is suspended, but is not":    {available.Reason == tutorialv1.ReasonSuspended, !isSuspended},
		"cannot list its Jobs, but is not degraded":   {available.Reason == tutorialv1.ReasonNotObserved, !isDegraded},
		"is blocked, but not degraded":                {progressing.Reason == tutorialv1.ReasonBlocked, !isDegraded},
		"reports running Jobs, but none is active":    {progressing.Reason == tutorialv1.ReasonJobsRunning, !hasActive},
		"is idle, but has active Jobs":                {progressing.Reason == tutorialv1.ReasonIdle, hasActive},
		"waits for a Job, but has none to wait for":   {isWaiting, !hasActive || !isForbidden},
		"reports a failed last Job, but no problem":   {hasFailed, !isDegraded},
		"reports a failed last Job, but not its time": {degraded.Reason == tutorialv1.ReasonLastRunFailed, !hasFailed},
	} {
		w.addIf(is.reported && is.denied, "%s", contradiction)
	}
}
