package status

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/memcached-operator/internal/child"
)

// ChildProblems evaluates the errors of reading and writing children, the worst first: a name is taken, a write was
// refused, a request failed otherwise. The remedy completes "delete it (kubectl ...)" for a name that is taken.
func ChildProblems(err error, namespace, remedy string) []Problem {
	errs := child.Flatten(err)
	problems := make([]Problem, 0, len(errs))
	for _, err := range errs {
		notControlled := child.AsNotControlled(err)
		switch {
		case notControlled != nil:
			problems = append(problems, Problem{nameTaken, fmt.Sprintf("%v; delete it (kubectl -n %s delete %s %s)%s",
				notControlled, namespace, notControlled.Resource(), notControlled.Name, remedy)})
		case child.IsRefusal(err):
			problems = append(problems, Problem{refused, err.Error()})
		default:
			problems = append(problems, Problem{failed, err.Error()})
		}
	}
	rank := []string{nameTaken, refused, failed}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Compare(slices.Index(rank, a.Reason), slices.Index(rank, b.Reason))
	})
	return problems
}

// AlteredProblems evaluates a Deployment that was applied with a number of replicas and has another one.
func AlteredProblems(deployment *appsv1.Deployment, applied int32) []Problem {
	has := ptr.Deref(deployment.Spec.Replicas, 1)
	if has == applied {
		return nil
	}
	return []Problem{{refused, fmt.Sprintf(
		"Deployment %s was given %d replicas and has %d: a policy or webhook of the cluster changes what is applied",
		deployment.Name, applied, has)}}
}

// RolloutProblems evaluates what a Deployment itself reports: pods that cannot be created, or that do not become ready
// in time. What it reported of an earlier spec counts no more.
func RolloutProblems(deployment *appsv1.Deployment) []Problem {
	if deployment == nil || !isObserved(deployment) {
		return nil
	}
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason != "DeploymentPaused" {
			return []Problem{{rolloutStuck, fmt.Sprintf("Deployment %s: %s: %s", deployment.Name, c.Reason, c.Message)}}
		}
	}
	return nil
}

// isObserved reports whether the Deployment controller has observed the latest spec.
func isObserved(deployment *appsv1.Deployment) bool {
	return deployment.Status.ObservedGeneration >= deployment.Generation
}
