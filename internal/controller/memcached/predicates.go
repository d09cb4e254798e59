package memcached

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// comesOrGoes lets an object pass when it appears, disappears or changes hands.
var comesOrGoes = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := metav1.GetControllerOfNoCopy(e.ObjectOld), metav1.GetControllerOfNoCopy(e.ObjectNew)
	return !equality.Semantic.DeepEqual(was, is)
}}

// looksDifferent lets a pod pass when something of it has changed that the cache keeps.
var looksDifferent = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
	return was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(was.OwnerReferences, is.OwnerReferences) ||
		!equality.Semantic.DeepEqual(was.Labels, is.Labels) ||
		!equality.Semantic.DeepEqual(was.Status, is.Status)
}}
