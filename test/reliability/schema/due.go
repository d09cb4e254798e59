package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

// period is the interval of the CronJobs that tests make due.
const period = time.Hour

// newJob returns a Job that the Job controller ignores, so that it stays active and has no pods.
func newJob(namespace, name string) *batchv1.Job {
	job := kinds.NewJob(namespace, name)
	job.Spec.Suspend, job.Spec.ManagedBy = nil, ptr.To("example.com/none")
	return job
}

// jobTemplate returns a minimal template.
func jobTemplate() map[string]any { return map[string]any{"spec": kinds.Spec(newJob("", ""))} }

// nameOfJob returns the name of the Job for a scheduled time.
func nameOfJob(scheduled time.Time) string { return objectName + "-" + history.JobSuffix(scheduled) }

// run makes a CronJob with "@every 1h" due at a time later than all before, and waits until the operator has handled
// it. The time is never a full minute: its Job's name would be shorter, and sort differently.
func (s *subject) run(ctx context.Context) error {
	s.last = s.last.Add(time.Second)
	if s.last.Second() == 0 {
		s.last = s.last.Add(time.Second)
	}
	s.dueTimes = append(s.dueTimes, s.last)
	if err := s.remind(ctx); err != nil {
		return err
	}
	return s.handled(ctx)
}

// remind sets the time that the schedule counts from, so that a run is due. The operator may overwrite it if it writes
// the status at the same time.
func (s *subject) remind(ctx context.Context) error {
	return s.countFrom(ctx, s.dueTime().Add(-period))
}

func (s *subject) dueTime() time.Time { return s.dueTimes[len(s.dueTimes)-1] }

// age makes the schedule of a CronJob count from 36 hours ago, unless that would make it due. The schedule that is set
// next must not run for the time before it was set.
func (s *subject) age(ctx context.Context) error {
	object, _, err := s.answered()
	if err != nil {
		return err
	}
	if at(object.Object, "status", "scheduledSince") == nil || isEvery(object) {
		return nil
	}
	if err := s.countFrom(ctx, time.Now().Add(-36*time.Hour)); err != nil {
		return err
	}
	_, err = s.settle(ctx)
	return err
}

func (s *subject) countFrom(ctx context.Context, since time.Time) error {
	object := s.empty()
	patch := fmt.Appendf(nil, `{"status":{"scheduledSince":%q}}`, stamp(since))
	raw := client.RawPatch(types.MergePatchType, patch)
	if err := s.Cluster.ControlPlane.Client.Status().Patch(ctx, object, raw); err != nil {
		return err
	}
	s.wrote(object)
	return nil
}

// handled waits until the operator has handled the due time: its Job was created or rejected, the time is recorded as
// missed or waits, or it no longer counts because the CronJob is suspended.
func (s *subject) handled(ctx context.Context) error {
	reminded := time.Now()
	return s.Cluster.Until(ctx, func() error {
		object, _, err := s.answered()
		if err != nil {
			return err
		}
		status, _ := object.Object["status"].(map[string]any)
		_, progress, _ := conditionOf(object, "Progressing")
		_, _, problem := conditionOf(object, "Degraded")
		_, isCounting := status["scheduledSince"]
		switch {
		case status["lastScheduleTime"] == stamp(s.dueTime()), status["lastMissedTime"] == stamp(s.dueTime()), !isCounting,
			progress == "WaitingForJob", slices.Contains(jobName.FindAllString(problem, -1), nameOfJob(s.dueTime())):
			return nil
		}
		if time.Since(reminded) > time.Second {
			reminded = time.Now()
			if err := s.remind(ctx); err != nil {
				return err
			}
		}
		return fmt.Errorf("the run due at %s is not handled", stamp(s.dueTime()))
	})
}

// clear deletes all Jobs, and waits until the operator has observed that.
func (s *subject) clear(ctx context.Context) error {
	s.dueTimes, s.known = nil, nil
	return s.Cluster.Until(ctx, func() error {
		object, state, err := s.answered()
		if err != nil {
			return err
		}
		left := state.Of(history.Jobs)
		for _, job := range left {
			background := client.PropagationPolicy(metav1.DeletePropagationBackground)
			err := s.Cluster.ControlPlane.Client.Delete(ctx, job.DeepCopy(), background)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		active, _, _ := unstructured.NestedInt64(object.Object, "status", "activeJobs")
		_, progress, _ := conditionOf(object, "Progressing")
		if len(left) > 0 || active != 0 || progress == "WaitingForJob" {
			return errors.New("there are still Jobs")
		}
		return nil
	})
}

// startJob creates a Job that the CronJob controls: active, or finished with a condition.
func (s *subject) startJob(ctx context.Context, name string, finished batchv1.JobConditionType) error {
	api, object := s.Cluster.ControlPlane.Client, s.empty()
	if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	job := newJob(s.Name, name)
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(object, object.GroupVersionKind())}
	if err := api.Create(ctx, job); err != nil || finished == "" {
		return err
	}
	return jobstate.Finish(ctx, api, job, finished)
}

// isEvery reports whether a CronJob has an "@every" schedule, whose times count from a moment.
func isEvery(cronJob *unstructured.Unstructured) bool {
	schedule, _ := at(cronJob.Object, "spec", "schedule").(string)
	return strings.HasPrefix(strings.TrimSpace(schedule), "@every")
}
