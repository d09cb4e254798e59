package history

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Reported has the status fields that all kinds of the operator share. [As] reads it from an object.
type Reported struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Is reports whether a condition has a status.
func (r *Reported) Is(condition string, status metav1.ConditionStatus) bool {
	return meta.IsStatusConditionPresentAndEqual(r.Status.Conditions, condition, status)
}

// Condition returns a condition; an empty one if it is not set.
func (r *Reported) Condition(condition string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(r.Status.Conditions, condition), metav1.Condition{})
}

// IsSetRolledOut reports whether a StatefulSet's rollout is complete with this number of replicas.
func IsSetRolledOut(s *appsv1.StatefulSet, pods int32) bool {
	return s.Status.ObservedGeneration == s.Generation && ptr.Deref(s.Spec.Replicas, 1) == pods &&
		s.Status.Replicas == pods && s.Status.UpdatedReplicas == pods && s.Status.AvailableReplicas == pods
}

// IsRolledOut reports whether a Deployment's rollout is complete with this number of replicas.
func IsRolledOut(d *appsv1.Deployment, pods int32) bool {
	return d.Status.ObservedGeneration == d.Generation && ptr.Deref(d.Spec.Replicas, 1) == pods &&
		d.Status.Replicas == pods && d.Status.UpdatedReplicas == pods && d.Status.AvailableReplicas == pods
}
