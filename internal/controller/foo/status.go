package foo

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
	"github.com/example/memcached-operator/internal/status"
)

// observed is what one pass has seen.
type observed struct {
	// deployment is the Foo's Deployment as the API server has it; nil when it could not be had, and then an error says why.
	deployment *appsv1.Deployment
	// wait is how long the Deployment keeps an image that it should not have for ever; 0 if it has the right one.
	wait time.Duration
}

// statusOf returns the status of a Foo: what was seen, and what went wrong.
func statusOf(foo *samplev1alpha1.Foo, seen observed, err error) samplev1alpha1.FooStatus {
	told := *foo.Status.DeepCopy()
	told.ObservedGeneration = foo.Generation
	told.Selector = labels.Set(selector(foo)).String()
	told.Replicas, told.AvailableReplicas = 0, 0
	if seen.deployment != nil {
		told.Replicas = seen.deployment.Status.Replicas
		told.AvailableReplicas = seen.deployment.Status.AvailableReplicas
	}
	status.Conditions(&told.Conditions, foo.Generation, available(seen), progressing(seen, err), degraded(foo, seen, err))
	return told
}

func available(seen observed) status.Verdict {
	if seen.deployment == nil {
		return status.Verdict{Status: metav1.ConditionUnknown, Reason: samplev1alpha1.ReasonNotObserved,
			Message: "the Deployment could not be looked at; see condition Degraded"}
	}
	rollout := status.RolloutOf(seen.deployment)
	message := fmt.Sprintf("%d of %d pods are available", rollout.Available, rollout.Desired)
	switch {
	case rollout.Desired == 0:
		return status.Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonScaledToZero, Message: "no pod is wanted"}
	case rollout.Available >= rollout.Desired:
		return status.Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonAllReplicasAvailable, Message: message}
	case rollout.Available > 0:
		return status.Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonSomeReplicasAvailable, Message: message}
	default:
		return status.Verdict{Status: metav1.ConditionFalse, Reason: samplev1alpha1.ReasonNoReplicasAvailable, Message: message}
	}
}

func progressing(seen observed, err error) status.Verdict {
	if err != nil {
		return status.Verdict{Status: metav1.ConditionFalse, Reason: samplev1alpha1.ReasonBlocked, Message: "see condition Degraded"}
	}
	rollout := status.RolloutOf(seen.deployment)
	if !rollout.IsOver {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonRollingOut, Message: rollout.Progress}
	}
	return status.Verdict{Status: metav1.ConditionFalse, Reason: samplev1alpha1.ReasonRolloutComplete, Message: rollout.Progress}
}

func degraded(foo *samplev1alpha1.Foo, seen observed, err error) status.Verdict {
	if foreign := (*owned.ForeignError)(nil); errors.As(err, &foreign) {
		message := fmt.Sprintf("%v; delete it (kubectl -n %s delete deployment %s) or choose another spec.deploymentName", foreign, foo.Namespace, foreign.Name)
		if other := owned.WithoutForeign(err); other != nil {
			message += "; " + other.Error()
		}
		return status.Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonNameTaken, Message: message}
	}
	if owned.IsRefusal(err) {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonRefused, Message: err.Error()}
	}
	if err != nil {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonError, Message: err.Error()}
	}
	if altered := status.AlteredCount(seen.deployment, ptr.Deref(foo.Spec.Replicas, ptr.Deref(seen.deployment.Spec.Replicas, 1))); altered != "" {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonRefused, Message: altered}
	}
	if trouble := status.RolloutOf(seen.deployment).Trouble; trouble != "" {
		return status.Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonRolloutStuck,
			Message: fmt.Sprintf("Deployment %s: %s", seen.deployment.Name, trouble)}
	}
	return status.Verdict{Status: metav1.ConditionFalse, Reason: samplev1alpha1.ReasonAsExpected, Message: "nothing is wrong"}
}
