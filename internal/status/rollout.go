package status

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Rollout is how far a Deployment is, in numbers of pods and in words.
type Rollout struct {
	Desired   int32 // pods wanted
	Total     int32 // pods there are, ready or not, of any revision
	Available int32 // pods that serve
	IsOver    bool  // the Deployment is as wanted: all pods are up to date and serve, and no others are left
	Progress  string
	// Trouble is what the Deployment itself reports as wrong, in the words of Kubernetes; empty when nothing is.
	Trouble string
}

// RolloutOf tells how far a Deployment is. Until the Deployment controller has seen the latest spec, the rollout is not over, and
// what it complained of before counts no more.
func RolloutOf(deployment *appsv1.Deployment) Rollout {
	status := &deployment.Status
	rollout := Rollout{
		Desired:   ptr.Deref(deployment.Spec.Replicas, 1),
		Total:     status.Replicas,
		Available: status.AvailableReplicas,
	}
	isSeen := status.ObservedGeneration >= deployment.Generation
	if isSeen {
		rollout.Trouble = troubleOf(status.Conditions)
	}
	switch {
	case !isSeen:
		rollout.Progress = "waiting for the Deployment controller to take up the change"
	case status.UpdatedReplicas < rollout.Desired:
		rollout.Progress = fmt.Sprintf("%d of %d pods are up to date", status.UpdatedReplicas, rollout.Desired)
	case rollout.Total > rollout.Desired:
		rollout.Progress = fmt.Sprintf("%d pods more than wanted are being stopped", rollout.Total-rollout.Desired)
	default:
		rollout.Progress = fmt.Sprintf("%d of %d pods are available", rollout.Available, rollout.Desired)
	}
	rollout.IsOver = isSeen && status.UpdatedReplicas == rollout.Desired &&
		rollout.Total == rollout.Desired && rollout.Available == rollout.Desired
	return rollout
}

// AlteredCount tells of a Deployment that was given a number of pods and has another, because a policy or webhook changes it on
// the way; nothing if it has what it was given.
func AlteredCount(deployment *appsv1.Deployment, wanted int32) string {
	if has := ptr.Deref(deployment.Spec.Replicas, 1); has != wanted {
		return fmt.Sprintf("Deployment %s was given %d replicas and has %d: a policy or webhook of the cluster changes what is applied",
			deployment.Name, wanted, has)
	}
	return ""
}

// troubleOf finds what a Deployment complains of: pods that cannot be created, or that do not come up in time.
func troubleOf(conditions []appsv1.DeploymentCondition) string {
	for _, c := range conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason != "DeploymentPaused" {
			return fmt.Sprintf("%s: %s", c.Reason, c.Message)
		}
	}
	return ""
}
