package memcached

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The remedies name the field to change, after the error of Kubernetes or memcached that a condition contains. They are
// "" where no field of a Memcached is the likely cause.

// Exit codes of memcached for an option that it does not accept: for most of them 1, for some EX_USAGE.
const (
	failureExitCode = 1
	usageExitCode   = 64
)

// remedyOf returns the remedy for a container that has terminated or cannot start.
func remedyOf(c corev1.ContainerStatus) string {
	switch terminated := terminationOf(c); {
	case terminated != nil:
		return remedyOfTermination(terminated)
	case c.State.Waiting != nil:
		return remedyOfWaiting(c.State.Waiting)
	}
	return ""
}

// remedyOfInit returns the remedy for an init container or sidecar. The agent's image is not a field.
func remedyOfInit(c corev1.ContainerStatus) string {
	isAgent := c.Name == agentName || c.Name == prepareName
	if isAgent && terminationOf(c) == nil && c.State.Waiting != nil && isImageReason(c.State.Waiting.Reason) {
		return "; the administrator of the operator sets the image with RELATED_IMAGE_AGENT"
	}
	return ""
}

// remedyOfTermination returns the remedy for a container that has terminated.
func remedyOfTermination(terminated *corev1.ContainerStateTerminated) string {
	switch {
	case terminated.Reason == "OOMKilled":
		return "; raise spec.resources.limits.memory or lower spec.config.memory"
	case isMissingProgram(terminated.Message):
		return missingProgram
	case terminated.ExitCode == failureExitCode, terminated.ExitCode == usageExitCode:
		return "; change spec.config"
	}
	return ""
}

// remedyOfWaiting returns the remedy for a container that cannot start.
func remedyOfWaiting(waiting *corev1.ContainerStateWaiting) string {
	switch {
	case isMissingProgram(waiting.Message):
		return missingProgram
	case isImageReason(waiting.Reason):
		return "; change spec.image or spec.imagePullSecrets"
	}
	return ""
}

// isImageReason reports whether a container waits for its image: ErrImagePull, ImagePullBackOff, InvalidImageName and
// others.
func isImageReason(reason string) bool { return strings.Contains(reason, "Image") }

const missingProgram = "; change spec.image to one that contains the program memcached"

func isMissingProgram(message string) bool {
	return strings.Contains(message, "executable file not found") || strings.Contains(message, `exec: "memcached"`)
}

// remedyOfCreation returns the remedy for an error of creating pods.
func remedyOfCreation(message string) string {
	for _, known := range []struct{ word, remedy string }{
		{"PriorityClass", "; create it or change spec.podTemplate.spec.priorityClassName"},
		{"RuntimeClass", "; create it or change spec.podTemplate.spec.runtimeClassName"},
		{"service account", "; create it or change spec.podTemplate.spec.serviceAccountName"},
		{"serviceaccount", "; create it or change spec.podTemplate.spec.serviceAccountName"},
		{"exceeded quota", "; raise the quota, or lower spec.size or spec.resources"},
	} {
		if strings.Contains(message, known.word) {
			return known.remedy
		}
	}
	return ""
}
