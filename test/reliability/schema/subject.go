package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	// ticks are the times that the last trial has made due. They begin some time ago, so that the next one is always later.
	ticks []time.Time
	begun time.Time
	made  int
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
	s.version = object.GetResourceVersion()
	return s, nil
}

// place makes the namespace of a resource, with room for so many pods; 0 is no limit.
func (w *World) place(ctx context.Context, kind *Kind, pods int) (*subject, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return nil, err
	}
	s := &subject{world: w, kind: kind, namespace: namespace, begun: time.Now().UTC().Truncate(time.Second).Add(-period / 2)}
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
	s.version = object.GetResourceVersion()
	return nil
}

// seen returns the resource as the watch has shown it, not before it has shown our own last write.
func (s *subject) seen(ctx context.Context) (*unstructured.Unstructured, error) {
	object := s.empty()
	if err := s.world.cache.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, err
	}
	if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), s.version); err != nil || order < 0 {
		return nil, errors.New("the watch is behind")
	}
	return object, nil
}

// answered returns the resource once its status speaks of its present generation.
func (s *subject) answered(ctx context.Context) (*unstructured.Unstructured, error) {
	object, err := s.seen(ctx)
	if err != nil {
		return nil, err
	}
	if observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration"); observed != object.GetGeneration() {
		return nil, fmt.Errorf("generation %d is not answered", object.GetGeneration())
	}
	return object, nil
}

// state returns the normal form of the resource and its children.
func (s *subject) state(ctx context.Context) (string, error) {
	object, err := s.answered(ctx)
	if err != nil {
		return "", err
	}
	children, err := s.children(ctx, s.world.cache)
	if err != nil {
		return "", err
	}
	return s.normal(object, children), nil
}

// children returns all objects of the kinds of our children in the namespace: there are no others in it.
func (s *subject) children(ctx context.Context, from client.Reader) ([]unstructured.Unstructured, error) {
	var children []unstructured.Unstructured
	for _, kind := range s.childKinds() {
		some, err := listed(ctx, from, kind, s.namespace)
		if err != nil {
			return nil, err
		}
		children = append(children, some...)
	}
	return children, nil
}

func (s *subject) childKinds() []schema.GroupVersionKind {
	switch s.kind.Name {
	case "Foo":
		return watched[:1]
	case "CronJob":
		return watched[1:2]
	}
	return watched
}

// becomes waits until the state is as wanted.
func (s *subject) becomes(ctx context.Context, want string) error {
	return s.world.until(ctx, func() error {
		got, err := s.state(ctx)
		if err != nil {
			return err
		}
		if got != want {
			return errors.New(difference(got, want))
		}
		return nil
	})
}

// rest waits until the state has stayed the same for a while, and returns it. What is on its way is not at rest, unless it is stuck for want
// of room; progress is told at intervals that become longer, so that has to stay the same for longer.
func (s *subject) rest(ctx context.Context) (string, error) {
	last, since := "", time.Now()
	err := s.world.until(ctx, func() error {
		got, err := s.state(ctx)
		if err != nil || got != last {
			last, since = got, time.Now()
		}
		quiet := 400 * time.Millisecond
		isMoving, isStuck := strings.Contains(got, "RollingOut"), strings.Contains(got, "RolloutStuck")
		if isStuck {
			quiet = 5 * time.Second
		}
		switch {
		case err != nil:
			return err
		case isMoving && !isStuck, time.Since(since) < quiet:
			return errors.New("it has not come to rest")
		}
		return s.isCurrent(ctx, last)
	})
	return last, err
}

// isCurrent compares a state with what the API server has: the watches of the kinds are not equally quick.
func (s *subject) isCurrent(ctx context.Context, state string) error {
	object := s.empty()
	if err := s.world.ControlPlane.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	children, err := s.children(ctx, s.world.ControlPlane.Client)
	if err == nil && s.normal(object, children) != state {
		err = errors.New("the watch is behind")
	}
	return err
}

// delete ends the resource; Kubernetes collects what belongs to it.
func (s *subject) delete(ctx context.Context) error {
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

func (s *subject) schedule(object *unstructured.Unstructured) string {
	schedule, _, _ := unstructured.NestedString(object.Object, "spec", "schedule")
	return strings.TrimSpace(schedule)
}
