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

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// judgeDegraded finds a condition Degraded that reports a problem that did not exist, neither in the cluster state nor
// with a request. The reason is that of the worst problem. Of the other problems, which the message lists, only a taken
// name is recognized, by its wording.
func (w *statusWrite) judgeDegraded() {
	if w.said.Is("Degraded", metav1.ConditionTrue) {
		reason := w.said.Condition("Degraded").Reason
		w.addIf(!w.hadProblem(reason), "reports that it is degraded for the reason %s, without such a problem", reason)
		w.addIf(reason != samplev1alpha1.ReasonNameTaken && listsNameTaken(w.said) && !w.wasNameTaken(),
			"lists a name that is taken among its problems, but none was")
	}
}

// hadProblem reports whether there was a problem with this reason. All kinds share the names of reasons. Reasons that
// no scenario causes are not listed.
func (w *statusWrite) hadProblem(reason string) bool {
	switch reason {
	case samplev1alpha1.ReasonRefused:
		return w.hadRequest(func(r *proxy.Request) bool { return hasFailed(r) && isRefused(r) })
	case samplev1alpha1.ReasonError:
		return w.hadRequest(func(r *proxy.Request) bool { return hasFailed(r) && !isRefused(r) })
	case samplev1alpha1.ReasonNameTaken:
		return w.wasNameTaken()
	case samplev1alpha1.ReasonRolloutStuck:
		return recently(w, history.Deployments, isStuck)
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

// listsNameTaken reports whether the message of Degraded, which lists every problem, has one of a name that is taken.
func listsNameTaken(said *history.Reported) bool {
	return said.Is("Degraded", metav1.ConditionTrue) &&
		strings.Contains(said.Condition("Degraded").Message, "; delete it (kubectl -n ")
}

// slack is the maximum delay between a write and its recording.
const slack = 2 * time.Second

// hadRequest reports whether a request for the resource, or for an object that it ever needed or owned, matches a
// predicate. It considers requests since the resource last reported no problem.
func (w *statusWrite) hadRequest(holds func(*proxy.Request) bool) bool {
	since := w.lastFine().Add(-slack)
	return slices.ContainsFunc(w.run.Requests, func(r proxy.Request) bool {
		key := history.Key{Resource: r.Resource, Name: r.Name}
		isOwned := func(v history.Version) bool {
			return v.Key == key && ownerOf(v.Object) == w.self.Object.GetUID()
		}
		return r.At.After(since) && r.At.Before(w.self.At) && holds(&r) &&
			(key == w.self.Key || w.needs(key) || slices.ContainsFunc(w.run.Versions, isOwned))
	})
}

// lastFine returns when the resource last reported no problem; zero if it never has.
func (w *statusWrite) lastFine() time.Time {
	var last time.Time
	var before any // the status
	for _, version := range w.versions {
		if version.Object.GetUID() != w.self.Object.GetUID() {
			continue
		}
		status := version.Object.Object["status"]
		if !equality.Semantic.DeepEqual(status, before) &&
			history.As[history.Reported](version.Object).Is("Degraded", metav1.ConditionFalse) {
			last = version.At
		}
		before = status
	}
	return last
}

// isRefused reports whether the API server, or the proxy in its place, denied a request.
func isRefused(r *proxy.Request) bool {
	return r.Fault == nil && r.Status == http.StatusForbidden ||
		hasFault(r, proxy.Refuse) && r.Fault.Code == http.StatusForbidden
}

// hasFailed reports whether a request of a pass has failed, other than the status write. An object that does not exist,
// or has changed, is no failure; a conflict that the proxy makes up is one, as the object has not changed.
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

// wasNameTaken reports whether an object that the resource does not own had a name that it needs.
func (w *statusWrite) wasNameTaken() bool {
	return w.had(func(version *history.Version) bool {
		return !version.IsGone && w.needs(version.Key) && ownerOf(version.Object) != w.self.Object.GetUID()
	})
}

// needs reports whether the resource has a child of that name.
func (w *statusWrite) needs(key history.Key) bool {
	for _, child := range w.kind.Children {
		switch {
		case history.Name(child.GroupVersionResource) != key.Resource:
		case child.Name == nil:
			return strings.HasPrefix(key.Name, w.self.Name+"-")
		default:
			return w.observed == nil || child.Name(typed(w.kind, w.observed)) == key.Name
		}
	}
	return false
}

// isStuck reports whether a Deployment reports that its pods cannot be created, or do not become available.
func isStuck(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
	})
}

// hadNode reports whether one of the Memcached's pods was such that it holds.
func (w *statusWrite) hadNode(holds func(*corev1.Pod) bool) bool {
	nodes, _ := w.nodes()
	return w.had(func(version *history.Version) bool {
		return version.Resource == history.Pods && nodes.Has(version.Name) && holds(history.As[corev1.Pod](version.Object))
	})
}

func hasCrashed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

// cannotStart reports whether a container waits for anything but its ordinary start.
func cannotStart(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"},
			c.State.Waiting.Reason)
	})
}

// hasCondition reports whether a pod has a condition with a status and, if one is given, a reason.
func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason ...string) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == status && (len(reason) == 0 || slices.Contains(reason, c.Reason))
	})
}
