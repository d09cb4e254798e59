package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/history"
)

// nobody has the controller of Jobs leave a Job alone: it stays active and has no pods.
const nobody = "example.com/nobody"

// jobSpec is a template of Jobs, as small as it can be.
func jobSpec() map[string]any {
	return map[string]any{
		"managedBy": nobody,
		"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never",
			"containers":    []any{map[string]any{"name": objectName, "image": objectName}},
		}},
	}
}

// nameOfJob returns the name that a Job of a time has.
func nameOfJob(tick time.Time) string {
	return objectName + "-" + history.JobSuffix(tick)
}

// due makes a CronJob of "@every 1h" due, for a time after all those before. That is never a whole minute: the name of its Job would be
// shorter, and stand elsewhere among others that are sorted by name.
func (s *subject) due(ctx context.Context) error {
	s.last = s.last.Add(time.Second)
	if s.last.Second() == 0 {
		s.last = s.last.Add(time.Second)
	}
	s.ticks = append(s.ticks, s.last)
	return s.remind(ctx)
}

// remind tells the CronJob of the time that it is due for: by the time that its schedule counts from. The operator may be writing the
// status at that very moment, and so over it.
func (s *subject) remind(ctx context.Context) error {
	return s.countFrom(ctx, s.tick().Add(-period))
}

// age has the schedule of a CronJob count from the day before yesterday, unless that would make it due: a schedule that it gets next must
// not run for the time until then.
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
	_, err = s.rest(ctx)
	return err
}

// countFrom sets the time that the schedule of a CronJob counts from.
func (s *subject) countFrom(ctx context.Context, since time.Time) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"scheduledSince": stamp(since)}})
	if err != nil {
		return err
	}
	object := s.empty()
	if err := s.world.ControlPlane.Client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	s.wrote(object)
	return nil
}

func (s *subject) tick() time.Time {
	return s.ticks[len(s.ticks)-1]
}

// handled waits until the operator has done something about the time that is due: run it, missed it, let it wait, been refused it, or
// forgotten it because the CronJob is suspended.
func (s *subject) handled(ctx context.Context) error {
	reminded := time.Now()
	return s.world.until(ctx, func() error {
		object, _, err := s.seen()
		if err != nil {
			return err
		}
		status, _ := object.Object["status"].(map[string]any)
		_, progress, _ := says(object, "Progressing")
		_, _, wrong := says(object, "Degraded")
		_, isCounting := status["scheduledSince"]
		switch {
		case status["lastScheduleTime"] == stamp(s.tick()), status["lastMissedTime"] == stamp(s.tick()), !isCounting,
			progress == "WaitingForJob", containsName(wrong, nameOfJob(s.tick())):
			return nil
		}
		if time.Since(reminded) > time.Second {
			reminded = time.Now()
			if err := s.remind(ctx); err != nil {
				return err
			}
		}
		return fmt.Errorf("nothing is done about what is due at %s", stamp(s.tick()))
	})
}

func containsName(text, name string) bool {
	for _, found := range jobName.FindAllString(text, -1) {
		if found == name {
			return true
		}
	}
	return false
}

// clear deletes all Jobs, and waits until the operator has seen that.
func (s *subject) clear(ctx context.Context) error {
	s.ticks, s.known = nil, nil
	return s.world.until(ctx, func() error {
		object, world, err := s.answered()
		if err != nil {
			return err
		}
		left := world.Of(history.Jobs)
		for _, job := range left {
			if err := s.world.ControlPlane.Client.Delete(ctx, job.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		active, _, _ := unstructured.NestedInt64(object.Object, "status", "activeJobs")
		_, progress, _ := says(object, "Progressing")
		if len(left) > 0 || active != 0 || progress == "WaitingForJob" {
			return errors.New("there are Jobs left")
		}
		return nil
	})
}

// by makes a Job of the CronJob's by hand: active, or finished in one of two ways.
func (s *subject) by(ctx context.Context, name string, finished batchv1.JobConditionType) error {
	object := s.empty()
	if err := s.world.ControlPlane.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": jobSpec()}}
	job.SetNamespace(s.namespace)
	job.SetName(name)
	job.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: s.kind.APIVersion, Kind: s.kind.Name, Name: objectName, UID: object.GetUID(), Controller: ptr.To(true)}})
	if err := s.world.ControlPlane.Client.Create(ctx, job); err != nil || finished == "" {
		return err
	}
	now := stamp(time.Now())
	condition := func(kind batchv1.JobConditionType) any {
		return map[string]any{"type": string(kind), "status": "True", "reason": "Tried", "message": "", "lastProbeTime": now, "lastTransitionTime": now}
	}
	first := batchv1.JobFailureTarget
	status := map[string]any{"startTime": now}
	if finished == batchv1.JobComplete {
		first, status["completionTime"] = batchv1.JobSuccessCriteriaMet, now
	}
	status["conditions"] = []any{condition(first), condition(finished)}
	job.Object["status"] = status
	return s.world.ControlPlane.Client.Status().Update(ctx, job)
}
