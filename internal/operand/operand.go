// Package operand holds what the pods of all our kinds have in common: how they are labelled and confined.
package operand

import (
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

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
