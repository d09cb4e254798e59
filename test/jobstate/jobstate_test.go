package jobstate

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestIsFinished(t *testing.T) {
	for _, test := range []struct {
		condition batchv1.JobConditionType
		status    corev1.ConditionStatus
		want      bool
	}{
		{batchv1.JobComplete, corev1.ConditionTrue, true},
		{batchv1.JobFailed, corev1.ConditionTrue, true},
		{batchv1.JobFailed, corev1.ConditionFalse, false},
		{batchv1.JobSuspended, corev1.ConditionTrue, false},
		{batchv1.JobFailureTarget, corev1.ConditionTrue, false},
	} {
		job := &batchv1.Job{}
		job.Status.Conditions = []batchv1.JobCondition{{Type: test.condition, Status: test.status}}
		if got := IsFinished(job); got != test.want {
			t.Errorf("%s=%s: %t", test.condition, test.status, got)
		}
	}
}
