package oracle

import (
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// judgeDegraded finds a Degraded condition without a cause: neither an object's state nor a failed request explains it.
// The reason is that of the worst problem; the message lists all of them. Of the others, only a taken name is checked,
// because its message contains a fixed text.
func (w *statusWrite) judgeDegraded() {
	if w.said.Is("Degraded", metav1.ConditionTrue) {
		reason := w.said.Condition("Degraded").Reason
		w.addIf(!w.hadProblem(reason), "reports that it is degraded for the reason %s, without such a problem", reason)
		w.addIf(reason != samplev1alpha1.ReasonNameTaken && listsNameTaken(w.said) && !w.wasNameTaken(),
			"lists a name that is taken, but no name was")
	}
}

// hadProblem reports whether there was a problem with this reason. A reason that several kinds have is the same string
// in each API package. Reasons that no scenario causes are missing here, so reporting one is a violation.
func (w *statusWrite) hadProblem(reason string) bool {
	switch reason {
	case samplev1alpha1.ReasonRefused:
		return w.hadRequest(func(r *proxy.Request) bool { return hasFailed(r) && isRefused(r) })
	case samplev1alpha1.ReasonError:
		return w.hadRequest(func(r *proxy.Request) bool { return hasFailed(r) && !isRefused(r) })
	case samplev1alpha1.ReasonNameTaken:
		return w.wasNameTaken()
	case samplev1alpha1.ReasonRolloutStuck:
		return recently(w, history.Deployments, isStuck) || recently(w, history.StatefulSets, lacksPods)
	case cachev1alpha1.ReasonInvalidSpec:
		return w.observed == nil || lacksMemory(history.As[cachev1alpha1.Memcached](w.observed))
	case cachev1alpha1.ReasonNodeTerminating:
		return w.hadNode(func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	case cachev1alpha1.ReasonNodeCrashing:
		return w.hadNode(hasCrashed)
	case cachev1alpha1.ReasonNodeNotStarting:
		return w.hadNode(cannotStart)
	case cachev1alpha1.ReasonNodeUnschedulable:
		return w.hadNode(func(pod *corev1.Pod) bool {
			return hasCondition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)
		})
	case tutorialv1.ReasonLastRunFailed:
		return ever(w.versions, w, history.Jobs, func(job *batchv1.Job) bool { return !failedAt(job).IsZero() })
	}
	return false
}

// listsNameTaken reports whether the message of Degraded lists a taken name: such messages advise the user to delete
// the object that has it.
func listsNameTaken(said *history.Reported) bool {
	return said.Is("Degraded", metav1.ConditionTrue) &&
		strings.Contains(said.Condition("Degraded").Message, "; delete it (kubectl -n ")
}

// slack is the maximum delay between a status write and the recording of its watch event.
const slack = 2 * time.Second

// hadRequest reports whether a request for the resource, for a child that it needs, or for an object that it owned at
// any time in the run matches a predicate. Requests before the last status without a problem do not count.
func (w *statusWrite) hadRequest(matches func(*proxy.Request) bool) bool {
	since := w.lastFine().Add(-slack)
	return slices.ContainsFunc(w.run.Requests, func(r proxy.Request) bool {
		key := history.Key{Resource: r.Resource, Name: r.Name}
		isOwned := func(v history.Version) bool {
			return v.Key == key && ownerOf(v.Object) == w.self.Object.GetUID()
		}
		return r.At.After(since) && r.At.Before(w.self.At) && matches(&r) &&
			(key == w.self.Key || w.needs(key) || slices.ContainsFunc(w.run.Versions, isOwned))
	})
}

// lastFine returns when the last status write that reported no problem was recorded; zero if there is none. A version
// with an unchanged status, such as that of a spec update, only repeats an earlier report.
func (w *statusWrite) lastFine() time.Time {
	var last time.Time
	var previous any
	for _, version := range w.versions {
		if version.Object.GetUID() != w.self.Object.GetUID() {
			continue
		}
		status := version.Object.Object["status"]
		if !equality.Semantic.DeepEqual(status, previous) &&
			history.As[history.Reported](version.Object).Is("Degraded", metav1.ConditionFalse) {
			last = version.At
		}
		previous = status
	}
	return last
}

// isRefused reports whether a request was answered with 403 Forbidden, by the API server or by an injected fault.
func isRefused(r *proxy.Request) bool {
	return r.Fault == nil && r.Status == http.StatusForbidden ||
		hasFault(r, proxy.Refuse) && r.Fault.Code == http.StatusForbidden
}

// hasFailed reports whether a request of a reconcile pass, other than a status write or an event, failed. A 404 or 409
// from the API server is not a failure, but an injected 409 is: the object has not changed.
func hasFailed(r *proxy.Request) bool {
	switch {
	case !isOfPass(r), r.Resource == eventResource, strings.HasSuffix(r.Resource, "/status"):
		return false
	case r.Fault == nil:
		return isServerFailure(r) || r.Status == http.StatusTooManyRequests
	}
	return hasFault(r, proxy.Refuse, proxy.Disown, proxy.DropAnswer, proxy.Hang, proxy.Freeze, proxy.CutOff,
		proxy.ServerAway, proxy.ServerAwayAfter, proxy.EtcdAway)
}

// wasNameTaken reports whether an object that the resource does not own had the name of a child that it needs.
func (w *statusWrite) wasNameTaken() bool {
	return w.had(func(version *history.Version) bool {
		return !version.IsGone && w.needs(version.Key) && ownerOf(version.Object) != w.self.Object.GetUID()
	})
}

// needs reports whether the observed spec requires a child with this key. If that spec was not recorded, any name will
// do. Of the names of Jobs, which depend on the time, only the prefix is checked.
func (w *statusWrite) needs(key history.Key) bool {
	for _, child := range w.kind.Children {
		switch {
		case history.Name(child.GroupVersionResource) != key.Resource: // try the next child
		case w.observed == nil,
			child.Name == nil && strings.HasPrefix(key.Name, w.self.Name+"-"),
			child.Name != nil && child.Name(typed(w.kind, w.observed)) == key.Name:
			return true
		}
	}
	return false
}

// isStuck reports whether a Deployment reports that pods cannot be created, or that its rollout does not progress.
func isStuck(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
	})
}

// lacksPods reports whether a StatefulSet has fewer ready pods than it wants. How long it must have had so few is not
// checked.
func lacksPods(s *appsv1.StatefulSet) bool {
	return s.Status.ReadyReplicas < ptr.Deref(s.Spec.Replicas, 1)
}

// hadNode reports whether one of the Memcached's nodes, which are its pods, matched a predicate.
func (w *statusWrite) hadNode(matches func(*corev1.Pod) bool) bool {
	nodes := w.nodes().all
	return w.had(func(version *history.Version) bool {
		return version.Resource == history.Pods && nodes.Has(version.Name) && matches(history.As[corev1.Pod](version.Object))
	})
}

// hasCrashed reports whether a container has terminated. A node is expected to run forever, so any exit code counts.
func hasCrashed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

// cannotStart reports whether a container is waiting for a reason other than a normal start.
func cannotStart(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"},
			c.State.Waiting.Reason)
	})
}

// lacksMemory reports whether a node would have less memory than its items.
func lacksMemory(mc *cachev1alpha1.Memcached) bool {
	if mc.Spec.Config == nil || mc.Spec.Config.Memory == nil || mc.Spec.Resources == nil {
		return false
	}
	limit, isLimited := mc.Spec.Resources.Limits[corev1.ResourceMemory]
	return isLimited && limit.Cmp(*mc.Spec.Config.Memory) < 0
}

// hasCondition reports whether a pod's condition has this status and one of the reasons; if none is given, any will do.
func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason ...string) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == status && (len(reason) == 0 || slices.Contains(reason, c.Reason))
	})
}
