package memcached

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/status"
)

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podProblems evaluates the pods that do not become ready, the worst problem first: a container has crashed, cannot
// start, or the pod cannot be scheduled. Of several pods with the same problem the first is reported.
func podProblems(pods []corev1.Pod) []status.Problem {
	var problems []status.Problem
	for i := range pods {
		problem := podProblem(&pods[i])
		isKnown := slices.ContainsFunc(problems, func(p status.Problem) bool { return p.Reason == problem.Reason })
		if problem.Reason != "" && !isKnown {
			problems = append(problems, problem)
		}
	}
	rank := []string{cachev1alpha1.ReasonNodeCrashing, cachev1alpha1.ReasonNodeNotStarting,
		cachev1alpha1.ReasonNodeUnschedulable}
	slices.SortStableFunc(problems, func(a, b status.Problem) int {
		return cmp.Compare(slices.Index(rank, a.Reason), slices.Index(rank, b.Reason))
	})
	return problems
}

// podProblem returns why a pod does not become ready; nothing while it only has to wait.
func podProblem(pod *corev1.Pod) status.Problem {
	if isReady(pod) {
		return status.Problem{}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if terminated := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated); terminated != nil {
			return status.Problem{Reason: cachev1alpha1.ReasonNodeCrashing,
				Message: fmt.Sprintf("node %s ended (%s, exit code %d): %s",
					pod.Name, cmp.Or(terminated.Reason, "Error"), terminated.ExitCode,
					cmp.Or(end(terminated.Message), "no termination message"))}
		}
		if waiting := c.State.Waiting; waiting != nil && !isStarting(waiting.Reason) {
			return status.Problem{Reason: cachev1alpha1.ReasonNodeNotStarting,
				Message: fmt.Sprintf("node %s cannot start (%s): %s",
					pod.Name, waiting.Reason, waiting.Message)}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return status.Problem{Reason: cachev1alpha1.ReasonNodeUnschedulable,
				Message: fmt.Sprintf("node %s: %s", pod.Name, c.Message)}
		}
	}
	return status.Problem{}
}

// end returns the end of a termination message, where the cause is.
func end(message string) string {
	const limit = 700
	message = strings.TrimSpace(message)
	if excess := len(message) - limit; excess > 0 {
		message = "…" + strings.ToValidUTF8(message[excess:], "")
	}
	return message
}

// isStarting reports whether a container that waits does so because it is being started.
func isStarting(reason string) bool {
	return reason == "" || reason == "ContainerCreating" || reason == "PodInitializing"
}
