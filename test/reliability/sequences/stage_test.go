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

// background deletes an object at once, and its children later.
const background = client.PropagationPolicy(metav1.DeletePropagationBackground)

// resource is one of the operator's kinds, with the spec that a user writes.
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

// stage is a namespace in which a sequence runs.
type stage struct {
	*schema.Namespace
	client    client.Client
	desired   map[string]resource           // by name
	unmanaged map[string]*appsv1.Deployment // by name
	actions   []string
	isDown    bool // no manager runs
}

// newStage creates a namespace for a sequence.
func newStage(ctx context.Context, cluster *schema.Cluster) (*stage, error) {
	namespace, err := cluster.Namespace(ctx)
	return &stage{Namespace: namespace, client: cluster.ControlPlane.Client, desired: map[string]resource{},
		unmanaged: map[string]*appsv1.Deployment{}}, err
}

func (s *stage) log(format string, args ...any) {
	s.actions = append(s.actions, fmt.Sprintf(format, args...))
}

// kill kills the manager.
func (s *stage) kill() {
	s.log("kill")
	s.isDown = true
	s.Cluster.Kill()
}

// start starts a manager if none runs.
func (s *stage) start(ctx context.Context) error {
	if !s.isDown {
		return nil
	}
	s.log("start")
	s.isDown = false
	return s.Cluster.Restart(ctx)
}

// put creates a resource, or replaces its spec.
func (s *stage) put(ctx context.Context, r resource) error {
	s.log("put %s %v", r.name, r.spec)
	_, exists := s.desired[r.name]
	s.desired[r.name] = r
	if !exists {
		return s.client.Create(ctx, r.object(s.Name))
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": r.spec}})
	if err != nil {
		return err
	}
	return s.client.Patch(ctx, r.object(s.Name), client.RawPatch(types.JSONPatchType, patch))
}

// remove deletes a resource, once its children have their owner references: a child without one stays.
func (s *stage) remove(ctx context.Context, name string) error {
	s.log("delete %s", name)
	object := s.desired[name].object(s.Name)
	delete(s.desired, name)
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	areOwned := func() error {
		children, err := s.Cluster.Children(ctx, s.Name)
		for _, c := range children {
			if c.GetAnnotations()[child.OwnerAnnotation] == string(object.GetUID()) && len(c.GetOwnerReferences()) == 0 {
				err = fmt.Errorf("%s %s was created for %s and has no owner reference", c.GetKind(), c.GetName(), name)
			}
		}
		return err
	}
	if areOwned() != nil {
		if err := errors.Join(s.start(ctx), s.Cluster.Until(ctx, areOwned)); err != nil {
			return err
		}
	}
	return s.client.Delete(ctx, object, background)
}

// occupy creates a Deployment that the operator does not control, if the name is free.
func (s *stage) occupy(ctx context.Context, name string) error {
	s.log("occupy %s", name)
	deployment := kinds.NewDeployment(s.Name, name, 0)
	err := s.client.Create(ctx, deployment)
	if err == nil {
		s.unmanaged[name] = deployment
	}
	return client.IgnoreAlreadyExists(err)
}

// free deletes a Deployment that the operator does not control, and must not have changed.
func (s *stage) free(ctx context.Context, name string) error {
	s.log("free %s", name)
	was, is := s.unmanaged[name], &appsv1.Deployment{}
	delete(s.unmanaged, name)
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(was), is); err != nil {
		return fmt.Errorf("the unmanaged Deployment: %w", err)
	}
	if is.UID != was.UID || len(is.OwnerReferences) > 0 || len(is.Labels) > 0 ||
		!equality.Semantic.DeepEqual(is.Spec, was.Spec) {
		return fmt.Errorf("the unmanaged Deployment %s has been changed", name)
	}
	return s.client.Delete(ctx, is, background)
}

// damage changes or deletes a child in a way that the operator must revert.
func (s *stage) damage(ctx context.Context, which int, how string) error {
	children, err := s.Cluster.Children(ctx, s.Name)
	if err != nil {
		return err
	}
	children = slices.DeleteFunc(children,
		func(child unstructured.Unstructured) bool { return s.unmanaged[child.GetName()] != nil })
	if len(children) == 0 {
		return nil
	}
	child := &children[which%len(children)]
	if how == "disown" && !s.hasOwner(ctx, child) {
		return nil // the garbage collector is about to delete it, and would not without its owner reference
	}
	s.log("%s %s %s", how, child.GetKind(), child.GetName())
	if how == "delete" {
		return client.IgnoreNotFound(s.client.Delete(ctx, child, background))
	}
	patches := map[string]string{
		"relabel":                    `{"metadata":{"labels":{"app.kubernetes.io/name":"other"}}}`,
		"disown":                     `{"metadata":{"ownerReferences":null}}`,
		"respec Deployment":          `{"spec":{"replicas":4}}`,
		"respec StatefulSet":         `{"spec":{"replicas":4}}`,
		"respec Service":             `{"spec":{"selector":{"app":"other"}}}`,
		"respec PodDisruptionBudget": `{"spec":{"maxUnavailable":3}}`,
	}
	if how == "respec" {
		how += " " + child.GetKind()
	}
	return client.IgnoreNotFound(s.client.Patch(ctx, child, client.RawPatch(types.MergePatchType, []byte(patches[how]))))
}

// hasOwner reports whether the resource that controls a child exists.
func (s *stage) hasOwner(ctx context.Context, child *unstructured.Unstructured) bool {
	controller := metav1.GetControllerOf(child)
	if controller == nil || s.desired[controller.Name].kind.Name != controller.Kind {
		return false
	}
	owner := s.desired[controller.Name].object(s.Name)
	return s.client.Get(ctx, client.ObjectKeyFromObject(owner), owner) == nil && owner.GetUID() == controller.UID
}

// removeAll deletes all resources.
func (s *stage) removeAll(ctx context.Context) (err error) {
	for _, name := range slices.Sorted(maps.Keys(s.desired)) {
		err = errors.Join(err, s.remove(ctx, name))
	}
	return err
}

// settle waits until the status and the three conditions of every resource are for the current generation, and no
// rollout is in progress.
func (s *stage) settle(ctx context.Context) (history.Normal, error) {
	return s.Settle(ctx, func(state history.Normal) (time.Duration, error) {
		for _, r := range s.desired {
			status := state[history.Key{Resource: history.Name(r.kind.GroupVersionResource()), Name: r.name}.String()]
			if strings.Contains(status, "RollingOut") || strings.Count(status, `"observedGeneration": 0`) < 4 {
				return 0, fmt.Errorf("%s: %s", r.name, status)
			}
		}
		return 0, nil
	})
}

// check removes what keeps resources from matching their specs, and compares the namespace with one in which the same
// resources are newly created. After that, the operator must write nothing in it.
func (s *stage) check(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.unmanaged)) {
		if err := s.free(ctx, name); err != nil {
			return err
		}
	}
	if first, second := s.desired["one"], s.desired["two"]; first.spec != nil && second.spec != nil &&
		first.spec["deploymentName"] == second.spec["deploymentName"] {
		second.spec = maps.Clone(second.spec)
		second.spec["deploymentName"] = "elsewhere"
		if err := s.put(ctx, second); err != nil {
			return err
		}
	}
	if _, err := s.settle(ctx); err != nil {
		return err
	}
	want, err := s.fresh(ctx)
	if err != nil {
		return err
	}
	if err := s.Becomes(ctx, want, func() error { return nil }); err != nil {
		return err
	}
	if writes := s.Cluster.SettledWrites(ctx, restWindow, s.Name); len(writes) > 0 {
		return fmt.Errorf("the operator writes although everything is settled: %s", strings.Join(writes, ", "))
	}
	return nil
}

// fresh returns the state of a namespace in which the same resources are newly created. Deployments of Foos without
// spec.replicas are scaled to the replicas that they have in this namespace.
func (s *stage) fresh(ctx context.Context) (history.Normal, error) {
	f, err := newStage(ctx, s.Cluster)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.desired)) {
		if err := f.put(ctx, s.desired[name]); err != nil {
			return nil, err
		}
	}
	if _, err := f.settle(ctx); err != nil {
		return nil, err
	}
	for _, r := range s.desired {
		if r.kind.Name != kinds.Foo.Name || r.spec["replicas"] != nil {
			continue
		}
		deployment := kinds.NewDeployment(s.Name, fmt.Sprint(r.spec["deploymentName"]), 0)
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return nil, err
		}
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, *deployment.Spec.Replicas)
		deployment = kinds.NewDeployment(f.Name, deployment.Name, 0)
		if err := s.client.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return nil, err
		}
	}
	end, err := f.settle(ctx)
	return end, errors.Join(err, f.removeAll(ctx))
}
