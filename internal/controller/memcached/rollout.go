package memcached

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/status"
)

// rollout is the state of the rollout of a workload.
type rollout struct {
	status.Rollout
	problems []status.Problem
	// recheck is when a problem may appear without an event; 0 for never.
	recheck time.Duration
}

// nodes are the pods of a workload, sorted by name.
type nodes struct {
	pods        []corev1.Pod
	terminating []corev1.Pod // being deleted; they are not in pods
	shortage    shortage
	now         time.Time
	warmup      time.Duration
}

// rolloutOf returns the state of the rollout of a workload. It and reportsErrors are the only functions that know
// what Deployments and StatefulSets report.
func rolloutOf(workload workloadObject, nodes nodes) rollout {
	switch workload := workload.(type) {
	case *appsv1.Deployment:
		return rollout{Rollout: status.RolloutOf(workload), problems: status.RolloutProblems(workload)}
	case *appsv1.StatefulSet:
		return rolloutOfStatefulSet(workload, nodes)
	}
	return rollout{}
}

// reportsErrors reports whether the status of a workload has the error of pods that could not be created. Those of
// StatefulSets have not.
func reportsErrors(workload workloadObject) bool {
	_, is := workload.(*appsv1.Deployment)
	return is
}

// rolloutOfStatefulSet derives the problems of a StatefulSet, which has no progress deadline and no conditions, from
// the ages of its pods.
func rolloutOfStatefulSet(set *appsv1.StatefulSet, nodes nodes) rollout {
	desired := ptr.Deref(set.Spec.Replicas, 1)
	found := rollout{Rollout: status.RolloutFrom("StatefulSet", status.Counts{
		IsObserved: set.Status.ObservedGeneration >= set.Generation,
		Desired:    desired,
		Total:      set.Status.Replicas,
		Updated:    set.Status.UpdatedReplicas,
		Available:  set.Status.AvailableReplicas,
	})}
	report := func(after time.Duration, reason, format string, values ...any) {
		if left := after; left > 0 {
			found.recheck = status.Sooner(found.recheck, left)
			return
		}
		found.problems = append(found.problems, status.Problem{Reason: reason, Message: fmt.Sprintf(format, values...)})
	}
	for i := range nodes.terminating {
		pod := &nodes.terminating[i]
		end := pod.DeletionTimestamp.Time // the end of the grace period
		report(end.Add(lostAfter).Sub(nodes.now), cachev1alpha1.ReasonNodeTerminating,
			"node %s should have ended at %s and is not replaced before it does; if its machine %s is lost, run: "+
				"kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
			pod.Name, end.UTC().Format(time.RFC3339), pod.Spec.NodeName, pod.Spec.NodeName)
	}
	if missing := desired - int32(len(nodes.pods)+len(nodes.terminating)); missing > 0 && nodes.shortage.isKnown() {
		found.recheck = status.Sooner(found.recheck, shortageAfter) // no event shows that its cause has changed
		report(shortageAfter-nodes.shortage.lasts(nodes.now), cachev1alpha1.ReasonRolloutStuck,
			"StatefulSet %s: %d of %d pods could not be created: %s", set.Name, missing, desired, nodes.shortage.cause(set))
	}
	for i := range nodes.pods {
		pod := &nodes.pods[i]
		if isReady(pod) || pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision {
			continue
		}
		limit := progressSeconds*time.Second + nodes.warmup
		report(pod.CreationTimestamp.Add(limit).Sub(nodes.now), cachev1alpha1.ReasonRolloutStuck,
			"StatefulSet %s: node %s has not become ready within %s", set.Name, pod.Name, limit)
	}
	return found
}

const (
	// lostAfter is how long after the end of its grace period a terminating pod is reported.
	lostAfter = time.Minute
	// shortageAfter is how long pods may be missing before that is reported.
	shortageAfter = time.Minute
)
