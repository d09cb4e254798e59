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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/testenv"
)

// objectName is the name of every resource that is tested: each has a namespace of its own.
const objectName = "it"

// subject is one resource that is tested.
type subject struct {
	world     *World
	kind      *Kind
	namespace string
	// version is the resource version of our last write. Nothing counts before the watch has shown it.
	version string
	// ticks are the times that the present class has made due, and last is the last of all. They begin in the past, so
	// that all of them are over.
	ticks []time.Time
	last  time.Time
	// begun is where the audit log was before the subject existed.
	begun testenv.Mark
	// known is the normal form of the namespace after so many changes in it; nil if unknown.
	known history.Normal
	after int
}

// create creates a resource in a namespace of its own, with room for so many pods; 0 is no limit.
func (w *World) create(ctx context.Context, kind *Kind, spec map[string]any, pods int) (*subject, error) {
	namespace, err := w.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	s := &subject{world: w, kind: kind, namespace: namespace, begun: w.ControlPlane.Audit.Now(),
		last: time.Now().UTC().Truncate(time.Second).Add(-period / 2)}
	if pods > 0 {
		if err := s.limitPods(ctx, pods); err != nil {
			return nil, err
		}
	}
	object := s.empty()
	object.Object["spec"] = runtime.DeepCopyJSON(spec)
	if err := w.ControlPlane.Client.Create(ctx, object, client.FieldValidation("Strict")); err != nil {
		return nil, err
	}
	s.wrote(object)
	return s, nil
}

// limitPods creates a quota, and waits until it is in force: before, it refuses every pod.
func (s *subject) limitPods(ctx context.Context, pods int) error {
	api := s.world.ControlPlane.Client
	quota := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "room", "namespace": s.namespace},
		"spec": map[string]any{"hard": map[string]any{"pods": fmt.Sprint(pods)}}}}
	if err := api.Create(ctx, quota); err != nil {
		return err
	}
	return s.world.until(ctx, func() error {
		err := api.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		if err == nil && at(quota.Object, "status", "used") == nil {
			err = errors.New("the quota is not in force")
		}
		return err
	})
}

func (s *subject) wrote(object *unstructured.Unstructured) {
	s.version, s.known = object.GetResourceVersion(), nil
}

func (s *subject) empty() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.kind.APIVersion, "kind": s.kind.Name,
		"metadata": map[string]any{"name": objectName, "namespace": s.namespace}}}
}

// change replaces the spec.
func (s *subject) change(ctx context.Context, spec map[string]any) error {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": spec}})
	if err != nil {
		return err
	}
	object := s.empty()
	raw := client.RawPatch(types.JSONPatchType, patch)
	if err := s.world.ControlPlane.Client.Patch(ctx, object, raw, client.FieldValidation("Strict")); err != nil {
		return err
	}
	s.wrote(object)
	return nil
}

func (s *subject) key() history.Key { return history.Key{Resource: s.kind.Resource, Name: objectName} }

// seen returns the resource and everything in its namespace as the watch has shown it, once it has shown our last
// write.
func (s *subject) seen() (*unstructured.Unstructured, history.World, error) {
	world := s.world.recorder.World(s.namespace)
	object := world[s.key()]
	if object == nil {
		return nil, nil, errors.New("the watch has not shown it")
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), s.version)
	if err != nil || order < 0 {
		return nil, nil, errors.New("the watch is behind")
	}
	return object, world, nil
}

// answered returns the same once the status is about the present generation.
func (s *subject) answered() (*unstructured.Unstructured, history.World, error) {
	object, world, err := s.seen()
	if err != nil {
		return nil, nil, err
	}
	if at(object.Object, "status", "observedGeneration") != object.GetGeneration() {
		return nil, nil, fmt.Errorf("generation %d is not observed", object.GetGeneration())
	}
	return object, world, nil
}

// state returns the normal form of the namespace.
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

// rest waits until the state has stayed the same for a while, and returns it. A rollout has not settled unless it is
// stuck for lack of room; progress is reported at growing intervals, so that takes longer. Nor has a CronJob whose
// status does not count all its Jobs.
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
			return errors.New("it has not settled")
		}
		return s.isCurrent(ctx, last)
	})
	return last, err
}

// isCounted returns whether the status of a CronJob counts the Jobs that exist, none of which has finished.
func (s *subject) isCounted() bool {
	object, world, err := s.answered()
	if err != nil || s.kind.Resource != history.CronJobs {
		return err == nil
	}
	active, _, _ := unstructured.NestedInt64(object.Object, "status", "activeJobs")
	return active == int64(len(world.Of(history.Jobs)))
}

// isCurrent compares a state with what the API server has: the watches of different resources are not equally fast.
func (s *subject) isCurrent(ctx context.Context, state history.Normal) error {
	world, err := s.world.recorder.Read(ctx, s.namespace, history.Resources()...)
	if err == nil && !maps.Equal(s.normal(world), state) {
		err = errors.New("the watch is behind")
	}
	return err
}

// delete deletes the resource; Kubernetes collects its children.
func (s *subject) delete(ctx context.Context) error {
	s.world.recorder.Forget(s.namespace)
	return s.world.ControlPlane.Client.Delete(ctx, s.empty())
}

// conditionOf returns the status, reason and message of a condition.
func conditionOf(object *unstructured.Unstructured, condition string) (status, reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == condition {
			return fmt.Sprint(c["status"]), fmt.Sprint(c["reason"]), fmt.Sprint(c["message"])
		}
	}
	return "", "", ""
}
