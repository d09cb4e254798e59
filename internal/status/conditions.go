package status

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition types that all our kinds have. They are documented with each kind in api/.
const (
	available   = "Available"
	progressing = "Progressing"
	degraded    = "Degraded"
)

// Reasons that all our kinds have: of Progressing, and of Degraded.
const (
	blocked      = "Blocked"
	asExpected   = "AsExpected"
	nameTaken    = "NameTaken"
	refused      = "Refused"
	failed       = "Error"
	rolloutStuck = "RolloutStuck"
)

// maxMessage is how many bytes a message may have. Conditions could hold 32768, but the note of an event no more than
// 1024.
const maxMessage = 1024

// Condition is the content of one condition.
type Condition struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Problem is something that a user should know of, as a reason of the condition Degraded.
type Problem struct {
	Reason  string
	Message string
}

// Degraded summarizes problems, the worst of which comes first: it gives the reason, and the message lists them all.
func Degraded(problems []Problem) Condition {
	if len(problems) == 0 {
		return Condition{metav1.ConditionFalse, asExpected, "nothing is wrong"}
	}
	messages := make([]string, len(problems))
	for i, problem := range problems {
		messages[i] = problem.Message
	}
	return Condition{metav1.ConditionTrue, problems[0].Reason, strings.Join(messages, "; ")}
}

// SetConditions sets all three conditions, as observed for the given generation of the spec. The time of a condition's
// last transition changes with its Status only.
func SetConditions(conditions *[]metav1.Condition, generation int64, isAvailable, isProgressing, isDegraded Condition) {
	for _, c := range []struct {
		Type string
		Condition
	}{{available, isAvailable}, {progressing, isProgressing}, {degraded, isDegraded}} {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type:               c.Type,
			Status:             c.Status,
			Reason:             c.Reason,
			Message:            shorten(c.Message),
			ObservedGeneration: generation,
		})
	}
}

// shorten cuts a text to what a condition and an event can hold.
func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:maxMessage-len(ellipsis)], "") + ellipsis
}

// IsOutcome reports whether a change of conditions is more than progress: all is done without a problem, availability
// was lost, or the Degraded condition or its reason changed.
func IsOutcome(before, after []metav1.Condition) bool {
	isDone := !meta.IsStatusConditionTrue(after, progressing) && !meta.IsStatusConditionTrue(after, degraded)
	isLost := meta.IsStatusConditionTrue(before, available) && !meta.IsStatusConditionTrue(after, available)
	return isDone || isLost || problem(before) != problem(after)
}

// HasBecomeDegraded reports whether Degraded has a reason that the conditions before did not have, or still has it
// after a change of the spec. That is the transition to warn of by an event.
func HasBecomeDegraded(before, after []metav1.Condition) bool {
	return problem(after) != "" && (problem(before) != problem(after) || generationOf(before) != generationOf(after))
}

// HasBeenSynced reports whether a generation of the spec has been carried out as far as the operator can, and the
// conditions before did not say so.
func HasBeenSynced(before, after []metav1.Condition) bool {
	return isCarriedOut(after) && (!isCarriedOut(before) || generationOf(before) != generationOf(after))
}

// problem returns the reason of the worst problem; "" if there is none.
func problem(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, degraded); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

func isCarriedOut(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, progressing)
	return c != nil && c.Reason != blocked && !slices.Contains([]string{nameTaken, refused, failed}, problem(conditions))
}

func generationOf(conditions []metav1.Condition) int64 {
	if c := meta.FindStatusCondition(conditions, degraded); c != nil {
		return c.ObservedGeneration
	}
	return 0
}
