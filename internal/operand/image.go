package operand

import (
	"context"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/clock"
)

// Image is the image of an operand's pods.
type Image struct {
	Name string
	// HoldOff is the time in which running Deployments keep the image they have, whichever it is.
	HoldOff *HoldOff
}

// HoldOff is the time after a manager has won the election. During an upgrade Operator Lifecycle Manager starts a
// manager without the settings of the Subscription (spec.config) first, and one that has them when the first is ready:
// the first must not restart every pod with another image. (OLM v0.46 looks for them in the Subscription whose
// installedCSV is the new version, and records that after it has created the Deployment.)
type HoldOff struct {
	Delay time.Duration
	Clock clock.PassiveClock

	end atomic.Pointer[time.Time]
}

// Start begins the hold-off. The manager calls it when it has won the election; see
// [sigs.k8s.io/controller-runtime/pkg/manager.Runnable].
func (h *HoldOff) Start(context.Context) error {
	end := h.Clock.Now().Add(h.Delay)
	h.end.Store(&end)
	return nil
}

// left returns how much of the hold-off is left. A pass may be earlier than Start.
func (h *HoldOff) left() time.Duration {
	if end := h.end.Load(); end != nil {
		return end.Sub(h.Clock.Now())
	}
	return h.Delay
}

// For returns the image for a Deployment (nil if there is none yet) with a container of that name. If the hold-off
// keeps another one than the operator's, wait is how long it still does.
func (i Image) For(deployment *appsv1.Deployment, container string) (name string, wait time.Duration) {
	wait = i.HoldOff.left()
	if wait <= 0 || deployment == nil || deployment.Status.AvailableReplicas == 0 {
		return i.Name, 0
	}
	for _, c := range deployment.Spec.Template.Spec.Containers {
		if c.Name == container && c.Image != i.Name {
			return c.Image, wait
		}
	}
	return i.Name, 0
}
