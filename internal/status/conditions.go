package status

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition types that all our kinds have. Users find them documented with each kind in api/.
const (
	available   = "Available"
	progressing = "Progressing"
	degraded    = "Degraded"
)

// The reasons that all our kinds have for what is not carried out: of Progressing, and of Degraded.
const blocked = "Blocked"

var notCarriedOut = []string{"NameTaken", "Refused", "Error"}

// maxMessage is how many bytes a message may have. Conditions could hold 32768, but the note of an event no more than 1024.
const maxMessage = 1024

// Verdict is what one condition says.
type Verdict struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// Conditions sets all three conditions, as seen for the given generation of the spec. The time of a
// condition's last transition changes with its Status only.
func Conditions(conditions *[]metav1.Condition, generation int64, isAvailable, isProgressing, isDegraded Verdict) {
	for _, c := range []struct {
		Type string
		Verdict
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

// IsOutcome tells whether a change of conditions is more than progress: all is done and well, what worked does not work any
// more, or somebody has to act for a reason that was not there before, or has not to any longer.
func IsOutcome(before, after []metav1.Condition) bool {
	isDone := !meta.IsStatusConditionTrue(after, progressing) && !meta.IsStatusConditionTrue(after, degraded)
	isLost := meta.IsStatusConditionTrue(before, available) && !meta.IsStatusConditionTrue(after, available)
	return isDone || isLost || trouble(before) != trouble(after)
}

// HasBecomeDegraded tells whether somebody has to act for a reason that the conditions before did not give, or still has to after
// having changed the spec. That is the transition to warn of by an event.
func HasBecomeDegraded(before, after []metav1.Condition) bool {
	return trouble(after) != "" && (trouble(before) != trouble(after) || generationOf(before) != generationOf(after))
}

// HasBeenSynced tells whether a generation of the spec has been carried out as far as it is in our hands, and the conditions
// before had not said so.
func HasBeenSynced(before, after []metav1.Condition) bool {
	return isCarriedOut(after) && (!isCarriedOut(before) || generationOf(before) != generationOf(after))
}

// trouble returns why somebody has to act; nothing if nobody has.
func trouble(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, degraded); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

func isCarriedOut(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, progressing)
	return c != nil && c.Reason != blocked && !slices.Contains(notCarriedOut, trouble(conditions))
}

func generationOf(conditions []metav1.Condition) int64 {
	if c := meta.FindStatusCondition(conditions, degraded); c != nil {
		return c.ObservedGeneration
	}
	return 0
}
