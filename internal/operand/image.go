package operand

import (
	"context"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// Image is the image of an operand's pods.
type Image struct {
	Name string
	// Settling is the time in which Deployments that serve keep the image they have, whichever it is.
	Settling *Settling
}

// Settling is the first time of a manager's lead. Operator Lifecycle Manager starts a manager without the settings of the
// Subscription (spec.config) first, and one that has them when the first is ready: the first must not restart every pod with
// another image. (OLM v0.46 looks for them in the Subscription whose installedCSV is the new version, and writes that down after
// it has made the Deployment.)
type Settling struct {
	Delay time.Duration
	end   atomic.Pointer[time.Time]
}

// Start begins it. The manager calls it when it begins to lead; see [sigs.k8s.io/controller-runtime/pkg/manager.Runnable].
func (s *Settling) Start(context.Context) error {
	s.start(time.Now())
	return nil
}

func (s *Settling) start(now time.Time) {
	end := now.Add(s.Delay)
	s.end.Store(&end)
}

// left returns how much of it is left. A pass may be quicker than Start.
func (s *Settling) left(now time.Time) time.Duration {
	if end := s.end.Load(); end != nil {
		return end.Sub(now)
	}
	return s.Delay
}

// For returns the image for a Deployment (nil: there is none yet) with a container of that name. If that is another one than
// the operator wants, because it is too early, wait is how long to wait until it is not.
func (i Image) For(deployment *appsv1.Deployment, container string, now time.Time) (name string, wait time.Duration) {
	wait = i.Settling.left(now)
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
