package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/testenv"
)

// objectName is the name of every resource that is tried: each has a namespace of its own.
const objectName = "it"

// period is that of the CronJobs that are made due.
const period = time.Hour

// subject is one resource that is tried.
type subject struct {
	world     *World
	kind      *Kind
	namespace string
	// version is the resource version that has to be seen before anything counts.
	version string
	// ticks are the times that the present trial has made due, and last is the last of all trials. They begin some time ago, so that there
	// is room until now.
	ticks []time.Time
	last  time.Time
	// begun is where the audit log was when there was no such subject.
	begun testenv.Mark
	// known is the normal form of what there was after so many changes in the namespace; nil for unknown.
	known history.Normal
	after int
}

// create makes a resource in a namespace of its own.
func (w *World) create(ctx context.Context, kind *Kind, spec map[string]any, pods int) (*subject, error) {
	s, err := w.place(ctx, kind, pods)
	if err != nil {
		return nil, err
	}
	object := s.empty()
	object.Object["spec"] = clone(spec)
	if err := w.ControlPlane.Client.Create(ctx, object, client.FieldValidation("Strict")); err != nil {
		return nil, err
	}
	s.wrote(object)
	return s, nil
}

// wrote notes what we have written: nothing counts before the watch has shown it.
func (s *subject) wrote(object *unstructured.Unstructured) {
	s.version, s.known = object.GetResourceVersion(), nil
}

// place makes the namespace of a resource, with room for so many pods; 0 is no limit.
func (w *World) place(ctx context.Context, kind *Kind, pods int) (*subject, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return nil, err
	}
	s := &subject{world: w, kind: kind, namespace: namespace, last: time.Now().UTC().Truncate(time.Second).Add(-period / 2), begun: w.ControlPlane.Audit.Now()}
	if pods == 0 {
		return s, nil
	}
	quota := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "room", "namespace": namespace},
		"spec": map[string]any{"hard": map[string]any{"pods": fmt.Sprint(pods)}}}}
	if err := w.ControlPlane.Client.Create(ctx, quota); err != nil {
		return nil, err
	}
	return s, w.until(ctx, func() error { // before it is counted, everything is refused
		if err := w.ControlPlane.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if _, counted, _ := unstructured.NestedMap(quota.Object, "status", "used"); !counted {
			return errors.New("the quota is not counted")
		}
		return nil
	})
}

func (s *subject) empty() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.kind.APIVersion, "kind": s.kind.Name,
		"metadata": map[string]any{"name": objectName, "namespace": s.namespace}}}
}

// change gives the resource another spec.
func (s *subject) change(ctx context.Context, spec map[string]any) error {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": spec}})
	if err != nil {
		return err
	}
	object := s.empty()
	if err := s.world.ControlPlane.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), client.FieldValidation("Strict")); err != nil {
		return err
	}
	s.wrote(object)
	return nil
}

func (s *subject) key() history.Key {
	return history.Key{Resource: s.kind.Resource, Name: objectName}
}

// seen returns the resource and all else in its namespace as the watch has shown it, not before it has shown our own last write.
func (s *subject) seen() (*unstructured.Unstructured, history.World, error) {
	world := s.world.recorder.World(s.namespace)
	object := world[s.key()]
	if object == nil {
		return nil, nil, errors.New("the watch has not shown it")
	}
	if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), s.version); err != nil || order < 0 {
		return nil, nil, errors.New("the watch is behind")
	}
	return object, world, nil
}

// answered returns the resource once its status speaks of its present generation, and all else in its namespace.
func (s *subject) answered() (*unstructured.Unstructured, history.World, error) {
	object, world, err := s.seen()
	if err != nil {
		return nil, nil, err
	}
	if observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); observed != object.GetGeneration() {
		return nil, nil, fmt.Errorf("generation %d is not answered", object.GetGeneration())
	}
	return object, world, nil
}

// state returns the normal form of the resource and all else in its namespace.
func (s *subject) state() (history.Normal, error) {
	changes := s.world.recorder.Count(s.namespace)
	if s.known != nil && s.after == changes {
		return s.known, nil
	}
	_, world, err := s.answered()
	if err != nil {
		return nil, err
	}
	s.known, s.after = s.normal(world), changes
	return s.known, nil
}

// resources are those of which there may be something in the namespace.
func (s *subject) resources() []string {
	if s.kind.Resource == history.CronJobs {
		return []string{history.CronJobs, history.Jobs, history.Pods} // pods: if the template does not leave its Jobs to nobody
	}
	return append([]string{s.kind.Resource, history.ReplicaSets, history.Pods}, childResources...)
}

// becomes waits until the state is as wanted.
func (s *subject) becomes(ctx context.Context, want history.Normal) error {
	return s.world.until(ctx, func() error {
		got, err := s.state()
		if err == nil && !maps.Equal(got, want) {
			err = errors.New("it is not as a fresh one (-fresh +changed):\n" + history.Diff(want, got))
		}
		return err
	})
}

// rest waits until the state has stayed the same for a while, and returns it. What is on its way is not at rest, unless it is stuck for want
// of room; progress is told at intervals that become longer, so that has to stay the same for longer. Nor is a CronJob at rest while it
// does not tell of all its Jobs.
func (s *subject) rest(ctx context.Context) (history.Normal, error) {
	last, since := history.Normal(nil), time.Now()
	err := s.world.until(ctx, func() error {
		got, err := s.state()
		if err != nil || !maps.Equal(got, last) {
			last, since = got, time.Now()
		}
		quiet := 400 * time.Millisecond
		own := got[s.key().String()]
		isMoving, isStuck := strings.Contains(own, "RollingOut"), strings.Contains(own, "RolloutStuck")
		if isStuck {
			quiet = 5 * time.Second
		}
		switch {
		case err != nil:
			return err
		case isMoving && !isStuck, !s.isCounted(), time.Since(since) < quiet:
			return errors.New("it has not come to rest")
		}
		return s.isCurrent(ctx, last)
	})
	return last, err
}

// isCounted tells whether the status of a CronJob counts the Jobs that there are, none of which has finished.
func (s *subject) isCounted() bool {
	object, world, err := s.answered()
	if err != nil || s.kind.Resource != history.CronJobs {
		return err == nil
	}
	active, _, _ := unstructured.NestedInt64(object.Object, "status", "activeJobs")
	return active == int64(len(world.Of(history.Jobs)))
}

// isCurrent compares a state with what the API server has: the watches of the kinds are not equally quick.
func (s *subject) isCurrent(ctx context.Context, state history.Normal) error {
	world, err := s.world.recorder.Read(ctx, s.namespace, s.resources()...)
	if err == nil && !maps.Equal(s.normal(world), state) {
		err = errors.New("the watch is behind")
	}
	return err
}

// delete ends the resource; Kubernetes collects what belongs to it.
func (s *subject) delete(ctx context.Context) error {
	s.world.recorder.Forget(s.namespace)
	return s.world.ControlPlane.Client.Delete(ctx, s.empty())
}

// says returns the status, reason and message of a condition.
func says(object *unstructured.Unstructured, condition string) (status, reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == condition {
			return fmt.Sprint(c["status"]), fmt.Sprint(c["reason"]), fmt.Sprint(c["message"])
		}
	}
	return "", "", ""
}

// isEvery tells whether the times of a CronJob are counted from a moment, and not those of a calendar.
func isEvery(cronJob *unstructured.Unstructured) bool {
	schedule, _, _ := unstructured.NestedString(cronJob.Object, "spec", "schedule")
	return strings.HasPrefix(strings.TrimSpace(schedule), "@every")
}
