package foo

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/status"
)

// result is what a pass has observed and done.
type result struct {
	// deployment is the Foo's Deployment as the API server has it; nil if it has none, and then err is the reason.
	deployment *appsv1.Deployment
	// isApplied reports whether deployment is the one in the spec and everything in it has been applied.
	isApplied bool
	// claims are set if the desired name is taken; see [claim].
	claims []claim
	// wait is how long the image hold-off still keeps the old image; 0 if the Deployment has the configured one.
	wait time.Duration
	err  error
}

// statusOf returns the status of a Foo after a pass.
func statusOf(foo *samplev1alpha1.Foo, done result) samplev1alpha1.FooStatus {
	after := *foo.Status.DeepCopy()
	after.ObservedGeneration = foo.Generation
	after.Selector = labels.Set(selector(foo)).String()
	after.Replicas, after.AvailableReplicas = 0, 0
	if done.deployment != nil {
		after.Replicas = done.deployment.Status.Replicas
		after.AvailableReplicas = done.deployment.Status.AvailableReplicas
	}
	status.SetConditions(&after.Conditions, foo.Generation, available(done), progressing(done),
		status.Degraded(problems(foo, done)))
	return after
}

func available(done result) status.Condition {
	if done.deployment == nil {
		return status.Condition{Status: metav1.ConditionUnknown, Reason: samplev1alpha1.ReasonNotObserved,
			Message: "the Deployment could not be observed; see condition Degraded"}
	}
	rollout := status.RolloutOf(done.deployment)
	message := fmt.Sprintf("%d of %d pods are available", rollout.Available, rollout.Desired)
	switch {
	case rollout.Desired == 0:
		return status.Condition{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonScaledToZero,
			Message: "the desired number of pods is 0"}
	case rollout.Available >= rollout.Desired:
		return status.Condition{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonAllReplicasAvailable,
			Message: message}
	case rollout.Available > 0:
		return status.Condition{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonSomeReplicasAvailable,
			Message: message}
	default:
		return status.Condition{Status: metav1.ConditionFalse, Reason: samplev1alpha1.ReasonNoReplicasAvailable,
			Message: message}
	}
}

func progressing(done result) status.Condition {
	if done.err != nil {
		return status.Condition{Status: metav1.ConditionFalse, Reason: samplev1alpha1.ReasonBlocked,
			Message: "see condition Degraded"}
	}
	rollout := status.RolloutOf(done.deployment)
	if !rollout.IsOver {
		return status.Condition{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonRollingOut,
			Message: rollout.Progress}
	}
	return status.Condition{Status: metav1.ConditionFalse, Reason: samplev1alpha1.ReasonRolloutComplete,
		Message: rollout.Progress}
}

// problems returns the problems of a Foo, the worst first.
func problems(foo *samplev1alpha1.Foo, done result) []status.Problem {
	all := status.ChildProblems(done.err, foo.Namespace, " or choose another spec.deploymentName")
	if done.isApplied && foo.Spec.Replicas != nil {
		all = append(all, status.AlteredProblems("Deployment "+done.deployment.Name, status.RolloutOf(done.deployment),
			*foo.Spec.Replicas)...)
	}
	return append(all, status.RolloutProblems(done.deployment)...)
}
