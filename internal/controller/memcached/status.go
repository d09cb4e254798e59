package memcached

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/names"
	"github.com/example/memcached-operator/internal/owned"
	"github.com/example/memcached-operator/internal/status"
)

// observed is what one pass has seen.
type observed struct {
	// deployment is the Deployment as the API server has it; nil when it could not be had, and then an error says why.
	deployment *appsv1.Deployment
	// isApplied tells whether the Deployment is as it should be, and not one that could not be changed.
	isApplied bool
	// pods are the pods of that Deployment, sorted by name.
	pods []corev1.Pod
	// wait is how long the Deployment keeps an image that it should not have for ever; 0 if it has the right one.
	wait time.Duration
}

func (seen observed) ready() int32 {
	var ready int32
	for i := range seen.pods {
		if isReady(&seen.pods[i]) {
			ready++
		}
	}
	return ready
}

// statusOf returns the status of a Memcached: what was seen, and what went wrong.
func statusOf(mc *cachev1alpha1.Memcached, seen observed, err error) cachev1alpha1.MemcachedStatus {
	told := *mc.Status.DeepCopy()
	told.ObservedGeneration = mc.Generation
	told.Nodes = make([]string, len(seen.pods))
	for i, pod := range seen.pods {
		told.Nodes[i] = pod.Name
	}
	told.Size = int32(len(seen.pods))
	told.ReadyNodes = seen.ready()
	told.ServiceName = names.Service(mc.Name)
	told.Selector = labels.Set(selector(mc)).String()
	status.Conditions(&told.Conditions, mc.Generation, available(mc, seen), progressing(mc, seen), degraded(mc, seen, err))
	return told
}

func available(mc *cachev1alpha1.Memcached, seen observed) status.Verdict {
	ready := seen.ready()
	message := fmt.Sprintf("%d of %d nodes are ready", ready, mc.Spec.Size)
	switch {
	case seen.deployment == nil:
		return status.Verdict{Status: metav1.ConditionUnknown, Reason: cachev1alpha1.ReasonNotObserved,
			Message: "the nodes could not be looked at; see condition Degraded"}
	case mc.Spec.Size == 0:
		return status.Verdict{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonScaledToZero, Message: "no node is wanted"}
	case ready >= mc.Spec.Size:
		return status.Verdict{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonAllNodesReady, Message: message}
	case ready > 0:
		return status.Verdict{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonSomeNodesReady, Message: message}
	default:
		return status.Verdict{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonNoNodesReady, Message: message}
	}
}

func progressing(mc *cachev1alpha1.Memcached, seen observed) status.Verdict {
	if !seen.isApplied {
		return status.Verdict{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonBlocked, Message: "see condition Degraded"}
	}
	// The pods come by another watch than the Deployment: it is over when both say so.
	rollout := status.RolloutOf(seen.deployment)
	if !rollout.IsOver || int32(len(seen.pods)) != mc.Spec.Size || seen.ready() != mc.Spec.Size {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonRollingOut, Message: rollout.Progress}
	}
	return status.Verdict{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonRolloutComplete, Message: rollout.Progress}
}

func degraded(mc *cachev1alpha1.Memcached, seen observed, err error) status.Verdict {
	if foreign := (*owned.ForeignError)(nil); errors.As(err, &foreign) {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonNameTaken,
			Message: fmt.Sprintf("%v; delete it (kubectl -n %s delete %s %s) or give the Memcached another name",
				foreign, mc.Namespace, foreign.Resource(), foreign.Name)}
	}
	if owned.IsRefusal(err) {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonRefused, Message: err.Error()}
	}
	if err != nil {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonError, Message: err.Error()}
	}
	if altered := status.AlteredCount(seen.deployment, mc.Spec.Size); altered != "" {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonRefused, Message: altered}
	}
	if trouble := troubleOf(seen.pods); trouble != nil {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: trouble.reason, Message: trouble.message}
	}
	if trouble := status.RolloutOf(seen.deployment).Trouble; trouble != "" {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonRolloutStuck,
			Message: fmt.Sprintf("Deployment %s: %s", seen.deployment.Name, trouble)}
	}
	return status.Verdict{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonAsExpected, Message: "nothing is wrong"}
}
