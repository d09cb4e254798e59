// Package operand has what the pods of all kinds have in common: labels, security contexts and the image hold-off.
package operand

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"

	"github.com/example/memcached-operator/internal/names"
)

// Platform describes properties of the cluster that pods depend on.
type Platform struct {
	// AssignsUsers is true if the cluster assigns each namespace a range of user IDs and refuses pods that set one
	// (OpenShift).
	AssignsUsers bool
}

// Labels returns the recommended Kubernetes labels of a child: the application and the name of the resource.
// They are for people and tools; no selector uses them.
func Labels(application, instance string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       application,
		"app.kubernetes.io/instance":   names.Label(instance),
		"app.kubernetes.io/managed-by": "memcached-operator",
	}
}

// PodSecurity returns a security context that meets the Pod Security Standard "restricted". User is the ID of the user
// that the image is built for: without it, runAsNonRoot rejects an image that has a user name or no user.
func (p Platform) PodSecurity(user int64) *corev1ac.PodSecurityContextApplyConfiguration {
	security := corev1ac.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if !p.AssignsUsers {
		security.WithRunAsUser(user).WithRunAsGroup(user).WithFSGroup(user)
	}
	return security
}

// ContainerSecurity returns a security context that meets the Pod Security Standard "restricted", with a read-only root
// file system.
func ContainerSecurity() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// Image is the image of an operand's pods.
type Image struct {
	Name string
	// Tagged names the same image by its tag, if Name names it by its digest; "" if there is no such name. Workloads that
	// run it keep it, since another name would restart their pods.
	Tagged string
	// HoldOff is the time in which running workloads keep their image.
	HoldOff *HoldOff
}

// HoldOff is the time after winning the election in which a manager keeps the images of running workloads. During an
// upgrade, Operator Lifecycle Manager first starts a manager without the settings of the Subscription (spec.config),
// and one with them when the first is ready: the first must not restart every pod with another image. (OLM v0.46 reads
// the settings from the Subscription whose installedCSV is the new version, and sets that field after it has created
// the Deployment.)
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

// left returns how much of the hold-off is left. A pass may run before Start.
func (h *HoldOff) left() time.Duration {
	if end := h.end.Load(); end != nil {
		return end.Sub(h.Clock.Now())
	}
	return h.Delay
}

// Choice is an image that was chosen for a container.
type Choice struct {
	Name string
	// Wait is how long the hold-off still keeps Name instead of the operator's image; 0 if it does not.
	Wait time.Duration
	// IsTentative reports whether Name would be another image if pods of the workload were available.
	IsTentative bool
}

// For chooses the image for the container of that name in a workload with this pod spec; nil for a workload that does
// not exist. Only available pods are kept from another image.
func (i Image) For(spec *corev1.PodSpec, isAvailable bool, container string) Choice {
	running := i.forRunning(spec, container)
	if isAvailable {
		return running
	}
	return Choice{Name: i.Name, IsTentative: running.Name != i.Name}
}

// forRunning is For a workload with available pods.
func (i Image) forRunning(spec *corev1.PodSpec, container string) Choice {
	wait := i.HoldOff.left()
	if spec == nil {
		return Choice{Name: i.Name}
	}
	for _, c := range slices.Concat(spec.Containers, spec.InitContainers) {
		switch {
		case c.Name != container || c.Image == i.Name:
		case c.Image == i.Tagged:
			return Choice{Name: i.Tagged}
		case wait > 0:
			return Choice{Name: c.Image, Wait: wait}
		}
	}
	return Choice{Name: i.Name}
}
