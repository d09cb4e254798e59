package status

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// Rollout is the progress of a Deployment.
type Rollout struct {
	Desired   int32  // pods of the spec
	Total     int32  // pods that exist, ready or not, of any revision
	Available int32  // pods that serve
	IsOver    bool   // all pods are up to date and available, and no others are left
	Progress  string // for people to read
}

// RolloutOf returns the progress of a Deployment. Until the Deployment controller has observed the latest spec, the
// rollout is not over.
func RolloutOf(deployment *appsv1.Deployment) Rollout {
	status := &deployment.Status
	rollout := Rollout{
		Desired:   ptr.Deref(deployment.Spec.Replicas, 1),
		Total:     status.Replicas,
		Available: status.AvailableReplicas,
	}
	switch {
	case !isObserved(deployment):
		rollout.Progress = "waiting for the Deployment controller to take up the change"
	case status.UpdatedReplicas < rollout.Desired:
		rollout.Progress = fmt.Sprintf("%d of %d pods are up to date", status.UpdatedReplicas, rollout.Desired)
	case rollout.Total > rollout.Desired:
		rollout.Progress = fmt.Sprintf("%d pods more than wanted are being stopped", rollout.Total-rollout.Desired)
	default:
		rollout.Progress = fmt.Sprintf("%d of %d pods are available", rollout.Available, rollout.Desired)
	}
	rollout.IsOver = isObserved(deployment) && status.UpdatedReplicas == rollout.Desired &&
		rollout.Total == rollout.Desired && rollout.Available == rollout.Desired
	return rollout
}
