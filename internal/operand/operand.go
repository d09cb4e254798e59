// Package operand holds what the pods of all our kinds have in common: how they are labelled and confined.
package operand

import (
	"context"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"

	"github.com/example/memcached-operator/internal/names"
)

// Platform is what the cluster we run on does by itself.
type Platform struct {
	// AssignsUsers is true where the cluster gives each namespace a range of users and refuses pods that
	// name one (OpenShift).
	AssignsUsers bool
}

// Labels returns the recommended Kubernetes labels of a child: what it runs and for which resource.
// They are for people and tools; nothing selects by them.
func Labels(application, instance string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       application,
		"app.kubernetes.io/instance":   names.Label(instance),
		"app.kubernetes.io/managed-by": "memcached-operator",
	}
}

// PodSecurity confines a pod as the Pod Security Standard "restricted" asks. User is the number of the user that the
// image is made for: an image that names its user in words, or none, cannot be checked not to run as root.
func (p Platform) PodSecurity(user int64) *corev1ac.PodSecurityContextApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if !p.AssignsUsers {
		security.WithRunAsUser(user).WithRunAsGroup(user).WithFSGroup(user)
	}
	return security
}

// ContainerSecurity confines a container as the Pod Security Standard "restricted" asks, and makes its files read-only.
func ContainerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

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
