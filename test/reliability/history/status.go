package history

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reported is what the statuses of all our kinds have in common. [As] reads it from an object.
type Reported struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Is reports whether a condition is there with a status.
func (r *Reported) Is(condition string, status metav1.ConditionStatus) bool {
	return meta.IsStatusConditionPresentAndEqual(r.Status.Conditions, condition, status)
}

// Condition returns a condition; an empty one if there is none.
func (r *Reported) Condition(condition string) metav1.Condition {
	if c := meta.FindStatusCondition(r.Status.Conditions, condition); c != nil {
		return *c
	}
	return metav1.Condition{}
}
