package oracle

import (
	"fmt"
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

// degraded finds a status that reports a problem when there was none, neither in the cluster state nor with a request.
// The reason is that of the worst problem; of the others, which the message lists, a taken name is recognized by its
// words. No scenario has anything for the reasons that are not here.
func (p *past) degraded() []string {
	said := history.As[history.Reported](p.self.Object)
	if !said.Is("Degraded", metav1.ConditionTrue) {
		return nil
	}
	var lies []string
	reason := said.Condition("Degraded").Reason
	if !p.hadProblem(reason) {
		lies = append(lies,
			fmt.Sprintf("says that it is degraded, for the reason %s, and nothing of that sort has been", reason))
	}
	if reason != samplev1alpha1.ReasonNameTaken && listsNameTaken(said) && !p.isNameTaken() {
		lies = append(lies, "lists a name that is taken among its problems, and none was")
	}
	return lies
}

// hadProblem reports whether there was a problem of a reason, with the resource or with a request.
func (p *past) hadProblem(reason string) (has bool) {
	switch reason { // all kinds have the same names for what is the same
	case samplev1alpha1.ReasonRefused:
		has = p.hadRequest(func(r *proxy.Request) bool { return hasFailed(r) && isRefused(r) })
	case samplev1alpha1.ReasonError:
		has = p.hadRequest(func(r *proxy.Request) bool { return hasFailed(r) && !isRefused(r) })
	case samplev1alpha1.ReasonNameTaken:
		has = p.isNameTaken()
	case samplev1alpha1.ReasonRolloutStuck:
		has = lately(p, history.Deployments, isStuck)
	case cachev1alpha1.ReasonNodeCrashing:
		has = p.hadNode(hasCrashed)
	case cachev1alpha1.ReasonNodeNotStarting:
		has = p.hadNode(cannotStart)
	case cachev1alpha1.ReasonNodeUnschedulable:
		has = p.hadNode(isUnschedulable)
	case tutorialv1.ReasonLastRunFailed:
		has = some(p, history.Jobs, func(job *batchv1.Job) bool { return !failedAt(job).IsZero() })
	}
	return has
}

// listsNameTaken reports whether the message of Degraded, which lists every problem, has one of a name that is taken.
func listsNameTaken(said *history.Reported) bool {
	return said.Is("Degraded", metav1.ConditionTrue) &&
		strings.Contains(said.Condition("Degraded").Message, "; delete it (kubectl -n ")
}

// hadRequest tells whether there was a request about the resource, or about what it needs or has, for which that holds,
// since it has last said that nothing was wrong with it.
func (p *past) hadRequest(holds func(*proxy.Request) bool) bool {
	since := p.lastWell().Add(-slack)
	return slices.ContainsFunc(p.run.Requests, func(r proxy.Request) bool {
		return r.At.After(since) && r.At.Before(p.self.At) && p.isAbout(&r) && holds(&r)
	})
}

// isAbout tells whether a request is about the resource, or about what it needs, or has had before or since.
func (p *past) isAbout(r *proxy.Request) bool {
	key := history.Key{Resource: r.Resource, Name: r.Name}
	self := map[string]bool{string(p.self.Object.GetUID()): true}
	return key == p.self.Key || p.needs(key) || slices.ContainsFunc(p.run.Versions, func(version history.Version) bool {
		return version.Key == key && belongs(version.Object, self)
	})
}

// isRefused tells whether the API server has looked at a request and said no, or the proxy in its place.
func isRefused(r *proxy.Request) bool {
	if r.Fault != nil {
		return r.Fault.Kind == proxy.Refuse && r.Fault.Code == http.StatusForbidden
	}
	return r.Status == http.StatusForbidden
}

// slack is how much later than it was written a version may have been recorded.
const slack = 2 * time.Second

// lastWell returns when the resource has last said that nothing was wrong with it; zero if it never has.
func (p *past) lastWell() time.Time {
	var last time.Time
	var before any // the status
	for _, version := range p.versions {
		if version.Object.GetUID() != p.self.Object.GetUID() {
			continue
		}
		status := version.Object.Object["status"]
		if !equality.Semantic.DeepEqual(status, before) && history.As[history.Reported](version.Object).Is("Degraded",
			metav1.ConditionFalse) {
			last = version.At
		}
		before = status
	}
	return last
}

// hadNode tells whether one of a Memcached's pods was such that this holds, when the world was what the status was
// computed from.
func (p *past) hadNode(holds func(*corev1.Pod) bool) bool {
	nodes, _ := p.nodes()
	return p.had(func(version *history.Version) bool {
		return version.Resource == history.Pods && nodes[version.Name] && holds(history.As[corev1.Pod](version.Object))
	})
}

// hasFailed reports whether a request of a pass has failed, other than the status write. That an object is not there,
// or has changed, is no failure; a conflict that the proxy makes up is one, as the object has not changed.
func hasFailed(r *proxy.Request) bool {
	switch {
	case !isOfPass(r), r.Resource == eventResource, strings.HasSuffix(r.Resource, "/status"):
		return false
	case r.Fault == nil:
		return r.Status == 0 || r.Status == http.StatusForbidden || r.Status == http.StatusTooManyRequests ||
			r.Status >= http.StatusInternalServerError
	}
	switch r.Fault.Kind {
	case proxy.Refuse, proxy.Disown, proxy.DropAnswer, proxy.Hang, proxy.Freeze, proxy.CutOff, proxy.ServerAway,
		proxy.ServerAwayAfter, proxy.EtcdAway:
		return true
	}
	return false
}

// isNameTaken tells whether there has been an object of somebody else under a name that the resource needs.
func (p *past) isNameTaken() bool {
	self := map[string]bool{string(p.self.Object.GetUID()): true}
	return p.had(func(version *history.Version) bool {
		return !version.IsGone && p.needs(version.Key) && !belongs(version.Object, self)
	})
}

// needs tells whether a resource makes an object of that name.
func (p *past) needs(key history.Key) bool {
	kind := history.KindOf(p.self.Resource)
	resource := p.observed()
	for _, child := range kind.Children {
		switch {
		case history.Name(child.GroupVersionResource) != key.Resource:
		case child.Name == nil:
			return strings.HasPrefix(key.Name, p.self.Name+"-")
		default:
			return resource == nil || child.Name(typed(kind, resource)) == key.Name
		}
	}
	return false
}

// isStuck tells whether a Deployment says of itself that its pods cannot be made, or do not come up.
func isStuck(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
	})
}

// hasCrashed tells whether a container of a pod has come to an end.
func hasCrashed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

// cannotStart tells whether a container of a pod waits for something other than that it is being started.
func cannotStart(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"},
			c.State.Waiting.Reason)
	})
}

// isUnschedulable tells whether there is no room for a pod.
func isUnschedulable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}
