package sequences

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/schema"
)

// patience is how long a world may take to become what it should be. It bounds a failure and is no measure of time.
const patience = time.Minute

// resource is one of ours, by what a user writes of it.
type resource struct {
	kind kinds.Kind
	name string
	spec map[string]any
}

func (r resource) object(namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.kind.APIVersion(), "kind": r.kind.Name}}
	object.SetNamespace(namespace)
	object.SetName(r.name)
	if r.spec != nil {
		object.Object["spec"] = maps.Clone(r.spec)
	}
	return object
}

// stage is a namespace in which a sequence is played.
type stage struct {
	world     *schema.World
	namespace string
	wanted    map[string]resource // by name
	foreign   map[string]*unstructured.Unstructured
	played    []string
	isDown    bool // there is no manager
}

func (s *stage) client() client.Client { return s.world.ControlPlane.Client }

func (s *stage) note(format string, args ...any) {
	s.played = append(s.played, fmt.Sprintf(format, args...))
}

// kill ends the manager without warning.
func (s *stage) kill() {
	s.note("kill")
	s.isDown = true
	s.world.Kill()
}

// start starts a manager if there is none.
func (s *stage) start(ctx context.Context) error {
	if !s.isDown {
		return nil
	}
	s.note("start")
	s.isDown = false
	return s.world.Restart(ctx)
}

// put creates a resource, or changes it to what it is to be.
func (s *stage) put(ctx context.Context, r resource) error {
	s.note("put %s %v", r.name, r.spec)
	_, isThere := s.wanted[r.name]
	s.wanted[r.name] = r
	if !isThere {
		return s.client().Create(ctx, r.object(s.namespace))
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": r.spec}})
	if err != nil {
		return err
	}
	return s.client().Patch(ctx, r.object(s.namespace), client.RawPatch(types.JSONPatchType, patch))
}

// end deletes a resource, once it has what was taken from it: what has no owner then is nobody's, and stays.
func (s *stage) end(ctx context.Context, name string) error {
	s.note("delete %s", name)
	r := s.wanted[name]
	delete(s.wanted, name)
	if err := s.ownedAgain(ctx, r); err != nil {
		return err
	}
	return s.client().Delete(ctx, r.object(s.namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// ownedAgain waits until all children that were made for a resource have an owner.
func (s *stage) ownedAgain(ctx context.Context, r resource) error {
	object := r.object(s.namespace)
	if err := s.client().Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	isDisowned := func() error {
		children, err := s.world.Children(ctx, s.namespace)
		for i := range children {
			if children[i].GetAnnotations()[child.OwnerAnnotation] == string(object.GetUID()) &&
				len(children[i].GetOwnerReferences()) == 0 {
				err = fmt.Errorf("%s %s was made for %s and has no owner any more", children[i].GetKind(), children[i].GetName(),
					r.name)
			}
		}
		return err
	}
	if isDisowned() == nil {
		return nil
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	return schema.Within(ctx, patience, isDisowned)
}

// occupy makes a Deployment of somebody else's, if the name is free.
func (s *stage) occupy(ctx context.Context, name string) error {
	s.note("occupy %s", name)
	labels := map[string]any{"somebody": "else"}
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": s.namespace, "name": name},
		"spec": map[string]any{"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "it", "image": "it"}}}}}}}
	err := s.client().Create(ctx, theirs)
	if err == nil {
		s.foreign[name] = theirs
	}
	return client.IgnoreAlreadyExists(err)
}

// free takes a Deployment of somebody else's away, which nobody must have touched.
func (s *stage) free(ctx context.Context, name string) error {
	s.note("free %s", name)
	was := s.foreign[name]
	delete(s.foreign, name)
	is := was.DeepCopy()
	if err := s.client().Get(ctx, client.ObjectKeyFromObject(was), is); err != nil {
		return fmt.Errorf("the Deployment %s of somebody else's: %w", name, err)
	}
	if is.GetUID() != was.GetUID() || len(is.GetOwnerReferences()) > 0 || len(is.GetLabels()) > 0 ||
		!equality.Semantic.DeepEqual(is.Object["spec"], was.Object["spec"]) {
		return fmt.Errorf("the Deployment %s of somebody else's has been changed", name)
	}
	return s.client().Delete(ctx, is, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// harm does something to a child that only the operator may do.
func (s *stage) harm(ctx context.Context, which int, how string) error {
	children, err := s.world.Children(ctx, s.namespace)
	if err != nil {
		return err
	}
	children = slices.DeleteFunc(children,
		func(child unstructured.Unstructured) bool { return s.foreign[child.GetName()] != nil })
	if len(children) == 0 {
		return nil
	}
	child := children[which%len(children)]
	if how == "disown" && !s.hasOwner(ctx, &child) {
		return nil // it is being collected, and would stay for ever
	}
	s.note("%s %s %s", how, child.GetKind(), child.GetName())
	if how == "delete" {
		return client.IgnoreNotFound(s.client().Delete(ctx, &child,
			client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	patches := map[string]string{
		"relabel": `{"metadata":{"labels":{"app.kubernetes.io/name":"somebody-else"}}}`,
		"disown":  `{"metadata":{"ownerReferences":null}}`,
		"respec": map[string]string{"Deployment": `{"spec":{"replicas":4}}`,
			"Service":             `{"spec":{"selector":{"app":"other"}}}`,
			"PodDisruptionBudget": `{"spec":{"maxUnavailable":3}}`}[child.GetKind()],
	}
	return client.IgnoreNotFound(s.client().Patch(ctx, &child, client.RawPatch(types.MergePatchType,
		[]byte(patches[how]))))
}

// hasOwner tells whether the resource that a child belongs to is there.
func (s *stage) hasOwner(ctx context.Context, child *unstructured.Unstructured) bool {
	controller := metav1.GetControllerOf(child)
	if controller == nil || s.wanted[controller.Name].kind.Name != controller.Kind {
		return false
	}
	owner := s.wanted[controller.Name].object(s.namespace)
	return s.client().Get(ctx, client.ObjectKeyFromObject(owner), owner) == nil && owner.GetUID() == controller.UID
}

// fresh makes a namespace with resources that have no past, and returns it as it is when it has come to rest. Counts
// are those that Deployments are scaled to where their resource leaves that to others.
func fresh(ctx context.Context, w *schema.World, wanted map[string]resource, counts map[string]*int32) (history.Normal,
	error) {
	namespace, err := w.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	s := &stage{world: w, namespace: namespace, wanted: map[string]resource{}}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := s.put(ctx, wanted[name]); err != nil {
			return nil, err
		}
	}
	if _, err := s.rest(ctx); err != nil {
		return nil, err
	}
	for name, count := range counts {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := s.client().Patch(ctx, deployment, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, *count))); err != nil {
			return nil, err
		}
	}
	end, err := s.rest(ctx)
	return end, errors.Join(err, s.leave(ctx))
}

// leave deletes all resources of the stage.
func (s *stage) leave(ctx context.Context) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.wanted)) {
		errs = append(errs, s.end(ctx, name))
	}
	return errors.Join(errs...)
}

// rest waits until the namespace has stayed the same for a while and is settled.
func (s *stage) rest(ctx context.Context) (history.Normal, error) {
	last, since := history.Normal(nil), time.Now()
	err := schema.Within(ctx, patience, func() error {
		now, err := s.world.Snapshot(ctx, s.namespace)
		if err != nil {
			return err
		}
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if !s.isSettled(now) || time.Since(since) < 400*time.Millisecond {
			return fmt.Errorf("the world has not come to rest: %s", now)
		}
		return nil
	})
	return last, err
}

// isSettled tells whether the status of every resource speaks of its present generation, four times, and of no rollout.
func (s *stage) isSettled(world history.Normal) bool {
	for _, r := range s.wanted {
		status := world[history.Key{Resource: history.Name(r.kind.GroupVersionResource()), Name: r.name}.String()]
		if strings.Contains(status, "RollingOut") || strings.Count(status, `"observedGeneration": 0`) < 4 {
			return false
		}
	}
	return true
}

// becomes waits until the namespace is like another one.
func (s *stage) becomes(ctx context.Context, want history.Normal) error {
	return schema.Within(ctx, patience, func() error {
		got, err := s.world.Snapshot(ctx, s.namespace)
		if err == nil && !maps.Equal(got, want) {
			err = errors.New("it is not as a fresh one (-fresh +played):\n" + history.Diff(want, got))
		}
		return err
	})
}
