package operand

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// Image is the image of an operand's pods.
type Image struct {
	Name string
	// KeepUntil is the time before which Deployments keep the image they have, whichever it is. Operator Lifecycle Manager
	// starts a manager without the settings of the Subscription (spec.config) first, and a moment later one that has them:
	// the first must not restart every pod with another image. (OLM v0.46 looks for them in the Subscription whose
	// installedCSV is the new version, and writes that down after it has made the Deployment.)
	KeepUntil time.Time
}

// For returns the image for a Deployment (nil: there is none yet) with a container of that name. If that is another one than
// the operator wants, because it is too early, wait is how long to wait until it is not.
func (i Image) For(deployment *appsv1.Deployment, container string, now time.Time) (name string, wait time.Duration) {
	if wait = i.KeepUntil.Sub(now); deployment == nil || wait <= 0 {
		return i.Name, 0
	}
	for _, c := range deployment.Spec.Template.Spec.Containers {
		if c.Name == container && c.Image != i.Name {
			return c.Image, wait
		}
	}
	return i.Name, 0
}
