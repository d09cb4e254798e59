// Package jobstate finishes Jobs whose pods no machine runs, and reads the results of Jobs, for all suites.
package jobstate

import (
	"cmp"
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// Finish reads a Job and ends it as complete or failed, as the Job controller does. It tries again when that controller
// has written in between, such as that the Job is suspended.
func Finish(ctx context.Context, c client.Client, job *batchv1.Job, how batchv1.JobConditionType) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		now := metav1.Now()
		job.Status.StartTime = &now
		first := batchv1.JobFailureTarget
		if how == batchv1.JobComplete {
			first, job.Status.CompletionTime = batchv1.JobSuccessCriteriaMet, &now
		}
		for _, condition := range []batchv1.JobConditionType{first, how} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: condition, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded",
				LastProbeTime: now, LastTransitionTime: now,
			})
		}
		err := c.Status().Update(ctx, job)
		if apierrors.IsInvalid(err) {
			// Before Kubernetes 1.32, SuccessCriteriaMet was only for Jobs with a success policy.
			job.Status.Conditions = slices.DeleteFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
				return c.Type == batchv1.JobSuccessCriteriaMet
			})
			err = c.Status().Update(ctx, job)
		}
		return err
	})
}

// Condition returns a condition of a Job that is true; nil if it is not.
func Condition(job *batchv1.Job, condition batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == condition && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// IsFinished reports whether a Job is complete or has failed.
func IsFinished(job *batchv1.Job) bool {
	return Condition(job, batchv1.JobComplete) != nil || Condition(job, batchv1.JobFailed) != nil
}

// IsComplete reports whether a Job is complete.
func IsComplete(job *batchv1.Job) bool { return Condition(job, batchv1.JobComplete) != nil }

// IsActive reports whether a Job is neither finished nor being deleted.
func IsActive(job *batchv1.Job) bool { return job.DeletionTimestamp == nil && !IsFinished(job) }

// ScheduledAt returns the time that the operator has created a Job for.
func ScheduledAt(job *batchv1.Job) string { return job.Annotations[tutorialv1.ScheduledAtAnnotation] }

// Owned returns the Jobs that an object controls and that pass all filters, those of the latest times last.
func Owned(ctx context.Context, reader client.Reader, owner client.Object,
	filters ...func(*batchv1.Job) bool) ([]batchv1.Job, error) {
	var jobs batchv1.JobList
	if err := reader.List(ctx, &jobs, client.InNamespace(owner.GetNamespace())); err != nil {
		return nil, err
	}
	owned := slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool {
		return !metav1.IsControlledBy(&job, owner) ||
			slices.ContainsFunc(filters, func(passes func(*batchv1.Job) bool) bool { return !passes(&job) })
	})
	slices.SortStableFunc(owned, func(a, b batchv1.Job) int { return cmp.Compare(ScheduledAt(&a), ScheduledAt(&b)) })
	return owned, nil
}
