package memcached

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/names"
	"github.com/example/memcached-operator/internal/status"
)

// observed is the state that a pass has read: objects of the names of the children, whoever controls them, nil where
// there are none; and the pods of the Memcached, sorted by name.
type observed struct {
	deployment *appsv1.Deployment
	service    *corev1.Service
	budget     *policyv1.PodDisruptionBudget
	pods       []corev1.Pod
}

// result is what a pass has observed and done.
type result struct {
	// deployment is the Deployment as the API server has it; nil if there is none of the Memcached, and then err says why.
	deployment *appsv1.Deployment
	// isApplied tells whether everything in it has been applied.
	isApplied bool
	// pods are the pods of that Deployment, sorted by name.
	pods []corev1.Pod
	// wait is how long the image hold-off keeps another image; 0 if the image is the operator's.
	wait time.Duration
	err  error
}

func (done result) readyNodes() int32 {
	var ready int32
	for i := range done.pods {
		if isReady(&done.pods[i]) {
			ready++
		}
	}
	return ready
}

// isPassing reports whether an error is that of a name which is taken for a moment only, by a child of an earlier
// Memcached of this name that is yet to be collected. It is a problem to report only if it stays.
func isPassing(mc *cachev1alpha1.Memcached, err error) bool {
	taken := child.AsNotControlled(err)
	return taken != nil && child.IsPredecessor(taken.Controller, mc, cachev1alpha1.GroupVersion.WithKind("Memcached"))
}

// statusOf returns the status of a Memcached after a pass.
func statusOf(mc *cachev1alpha1.Memcached, done result) cachev1alpha1.MemcachedStatus {
	after := *mc.Status.DeepCopy()
	after.ObservedGeneration = mc.Generation
	after.Nodes = make([]string, len(done.pods))
	for i, pod := range done.pods {
		after.Nodes[i] = pod.Name
	}
	after.Size = int32(len(done.pods))
	after.ReadyNodes = done.readyNodes()
	after.ServiceName = names.Service(mc.Name)
	after.Selector = labels.Set(selector(mc)).String()
	status.SetConditions(&after.Conditions, mc.Generation, available(mc, done), progressing(mc, done),
		status.Degraded(problems(mc, done)))
	return after
}

func available(mc *cachev1alpha1.Memcached, done result) status.Condition {
	ready := done.readyNodes()
	message := fmt.Sprintf("%d of %d nodes are ready", ready, mc.Spec.Size)
	switch {
	case done.deployment == nil:
		return status.Condition{Status: metav1.ConditionUnknown, Reason: cachev1alpha1.ReasonNotObserved,
			Message: "the nodes could not be looked at; see condition Degraded"}
	case mc.Spec.Size == 0:
		return status.Condition{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonScaledToZero,
			Message: "no node is wanted"}
	case ready >= mc.Spec.Size:
		return status.Condition{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonAllNodesReady, Message: message}
	case ready > 0:
		return status.Condition{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonSomeNodesReady, Message: message}
	default:
		return status.Condition{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonNoNodesReady, Message: message}
	}
}

func progressing(mc *cachev1alpha1.Memcached, done result) status.Condition {
	if !done.isApplied {
		return status.Condition{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonBlocked,
			Message: "see condition Degraded"}
	}
	// The pods come by another watch than the Deployment: it is over when both say so.
	rollout := status.RolloutOf(done.deployment)
	if !rollout.IsOver || int32(len(done.pods)) != mc.Spec.Size || done.readyNodes() != mc.Spec.Size {
		return status.Condition{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonRollingOut,
			Message: rollout.Progress}
	}
	return status.Condition{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonRolloutComplete,
		Message: rollout.Progress}
}

// problems returns everything that is wrong with a Memcached, the worst first.
func problems(mc *cachev1alpha1.Memcached, done result) []status.Problem {
	all := status.ChildProblems(done.err, mc.Namespace, " or give the Memcached another name")
	if done.isApplied {
		all = append(all, status.AlteredProblems(done.deployment, mc.Spec.Size)...)
	}
	all = append(all, podProblems(done.pods)...)
	return append(all, status.RolloutProblems(done.deployment)...)
}
