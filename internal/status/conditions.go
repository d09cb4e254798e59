package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/memcached-operator/internal/child"
)

// The condition types that all kinds have. They are documented with each kind in api/.
const (
	available   = "Available"
	progressing = "Progressing"
	degraded    = "Degraded"
)

// Reasons of Progressing with which nothing has been applied.
const (
	blocked = "Blocked"
	paused  = "Paused"
)

// Reasons of Degraded that all kinds have.
const (
	asExpected   = "AsExpected"
	nameTaken    = "NameTaken"
	refused      = "Refused"
	failed       = "Error" // a request failed otherwise
	rolloutStuck = "RolloutStuck"
)

// maxMessage is the maximum length of a message in bytes. Messages are also used as notes of events, which are limited
// to 1024 bytes.
const maxMessage = 1024

// Condition is the content of one condition.
type Condition struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Problem is something that the condition Degraded reports to the user.
type Problem struct {
	Reason  string
	Message string
}

// Degraded summarizes problems, which the caller has sorted, the worst first. The first one sets the reason; the
// message lists them all.
func Degraded(problems []Problem) Condition {
	if len(problems) == 0 {
		// The message is that of release 0.1.0, so that an upgrade does not write the status of every resource.
		return Condition{metav1.ConditionFalse, asExpected, "nothing is wrong"}
	}
	messages := make([]string, len(problems))
	for i, problem := range problems {
		messages[i] = problem.Message
	}
	return Condition{metav1.ConditionTrue, problems[0].Reason, strings.Join(messages, "; ")}
}

// SetConditions sets the three conditions of all kinds, as observed for the given generation of the spec.
func SetConditions(conditions *[]metav1.Condition, generation int64, isAvailable, isProgressing, isDegraded Condition) {
	SetCondition(conditions, generation, available, isAvailable)
	SetCondition(conditions, generation, progressing, isProgressing)
	SetCondition(conditions, generation, degraded, isDegraded)
}

// SetCondition sets one condition. lastTransitionTime changes only when the status of the condition does.
func SetCondition(conditions *[]metav1.Condition, generation int64, conditionType string, c Condition) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               conditionType,
		Status:             c.Status,
		Reason:             c.Reason,
		Message:            shorten(c.Message),
		ObservedGeneration: generation,
	})
}

// shorten truncates a text to maxMessage bytes.
func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:maxMessage-len(ellipsis)], "") + ellipsis
}

// IsOutcome reports whether a change of conditions is more than progress: the rollout is complete and there is no
// problem, availability was lost, or the Degraded condition or its reason changed.
func IsOutcome(before, after []metav1.Condition) bool {
	isDone := !meta.IsStatusConditionTrue(after, progressing) && !meta.IsStatusConditionTrue(after, degraded)
	isLost := meta.IsStatusConditionTrue(before, available) && !meta.IsStatusConditionTrue(after, available)
	return isDone || isLost || problem(before) != problem(after)
}

// HasBecomeDegraded reports whether Degraded has become True, has another reason than before, or is still True after a
// change of the spec. In each case, a Warning event is recorded.
func HasBecomeDegraded(before, after []metav1.Condition) bool {
	return problem(after) != "" && (problem(before) != problem(after) || generationOf(before) != generationOf(after))
}

// HasBeenSynced reports whether the spec has been applied, and the conditions before did not show that for its
// generation.
func HasBeenSynced(before, after []metav1.Condition) bool {
	return isApplied(after) && (!isApplied(before) || generationOf(before) != generationOf(after))
}

// problem returns the reason of the worst problem; "" if there is none.
func problem(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, degraded); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// isApplied reports whether the children were applied. Their rollout may still be in progress, or stuck.
func isApplied(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, progressing)
	return c != nil && c.Reason != blocked && c.Reason != paused &&
		!slices.Contains([]string{nameTaken, refused, failed}, problem(conditions))
}

// generationOf returns the generation of the spec that the conditions are for; all have the same.
func generationOf(conditions []metav1.Condition) int64 {
	if c := meta.FindStatusCondition(conditions, degraded); c != nil {
		return c.ObservedGeneration
	}
	return 0
}

// ChildProblems converts errors of reading and writing children into problems, the worst first: a name is taken, a
// write was refused, a request failed otherwise. Alternative is appended to the advice to delete an object whose name
// is taken, such as " or choose another name".
func ChildProblems(err error, namespace, alternative string) []Problem {
	errs := child.Flatten(err)
	problems := make([]Problem, 0, len(errs))
	for _, err := range errs {
		notControlled := child.AsNotControlled(err)
		switch {
		case notControlled != nil:
			problems = append(problems, Problem{nameTaken, fmt.Sprintf("%v; delete it (kubectl -n %s delete %s %s)%s",
				notControlled, namespace, notControlled.Resource(), notControlled.Name, alternative)})
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

// AlteredProblems returns a problem if a workload, such as "Deployment web", has another number of replicas than was
// applied.
func AlteredProblems(workload string, rollout Rollout, applied int32) []Problem {
	if rollout.Desired == applied {
		return nil
	}
	return []Problem{{refused, fmt.Sprintf(
		"%s was applied with %d replicas and has %d: a policy or webhook of the cluster changes it",
		workload, applied, rollout.Desired)}}
}

// longName is a length of names that, repeated in a message, would leave no room for what is wrong with them.
const longName = 63

// RolloutProblems returns the problem that a Deployment itself reports, such as pods that cannot be created or do not
// become ready in time; nothing without a Deployment. Conditions that the Deployment controller set for an earlier spec
// are ignored, except one: while it cannot create a ReplicaSet, it does not report that it has observed the spec.
func RolloutProblems(deployment *appsv1.Deployment) []Problem {
	if deployment == nil {
		return nil
	}
	for _, c := range deployment.Status.Conditions {
		isProblem := c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason != "DeploymentPaused"
		if isProblem && (isObserved(deployment) || c.Reason == "ReplicaSetCreateError") {
			message := c.Message
			if len(deployment.Name) > longName {
				message = strings.ReplaceAll(message, deployment.Name, "...")
			}
			return []Problem{{rolloutStuck, fmt.Sprintf("Deployment %s: %s: %s", deployment.Name, c.Reason, message)}}
		}
	}
	return nil
}

// isObserved reports whether the Deployment controller has observed the latest spec.
func isObserved(deployment *appsv1.Deployment) bool {
	return deployment.Status.ObservedGeneration >= deployment.Generation
}

// Rollout is the progress of a workload.
type Rollout struct {
	Desired   int32  // pods in the spec
	Total     int32  // pods that exist and are not terminating, ready or not, of any revision
	Available int32  // pods that are available
	IsOver    bool   // all pods are up to date and available, and there are no others
	Progress  string // the message of the condition Progressing
}

// Counts are the numbers of pods that a workload reports.
type Counts struct {
	// IsObserved reports whether the controller of the workload has observed its latest spec.
	IsObserved                         bool
	Desired, Total, Updated, Available int32
}

// RolloutOf returns the progress of a Deployment.
func RolloutOf(deployment *appsv1.Deployment) Rollout {
	return RolloutFrom("Deployment", Counts{
		IsObserved: isObserved(deployment),
		Desired:    ptr.Deref(deployment.Spec.Replicas, 1),
		Total:      deployment.Status.Replicas,
		Updated:    deployment.Status.UpdatedReplicas,
		Available:  deployment.Status.AvailableReplicas,
	})
}

// RolloutFrom returns the progress of a workload of a kind, from the numbers that it reports. Until its controller has
// observed the latest spec, the rollout is not over.
func RolloutFrom(kind string, c Counts) Rollout {
	rollout := Rollout{Desired: c.Desired, Total: c.Total, Available: c.Available}
	switch {
	case !c.IsObserved:
		rollout.Progress = fmt.Sprintf("waiting for the %s controller to observe the change", kind)
	case c.Updated < c.Desired:
		rollout.Progress = fmt.Sprintf("%d of %d pods are up to date", c.Updated, c.Desired)
	case c.Total > c.Desired:
		rollout.Progress = fmt.Sprintf("%d surplus pods are being stopped", c.Total-c.Desired)
	default:
		rollout.Progress = fmt.Sprintf("%d of %d pods are available", c.Available, c.Desired)
	}
	rollout.IsOver = c.IsObserved && c.Updated == c.Desired && c.Total == c.Desired && c.Available == c.Desired
	return rollout
}
