package schema

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/testenv"
)

// World is one control plane and one manager for all that is tried: what is tried keeps to namespaces of its own.
type World struct {
	ControlPlane *testenv.ControlPlane
	Manager      *testenv.Manager

	program    string
	cache      cache.Cache
	end        context.CancelFunc
	namespaces atomic.Int64
	// patience is how long anything may take to become as it should be. It bounds a failure and is no measure of time.
	patience time.Duration
	isHasty  bool
}

// watched are the kinds of children that are compared, and the pods that are counted by the status of Deployments.
var watched = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Version: "v1", Kind: "Service"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
}

// Start starts the control plane, and no manager yet.
func Start(ctx context.Context) (_ *World, err error) {
	w := &World{}
	ctx, w.end = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Stop())
		}
	}()
	if w.ControlPlane, err = testenv.Start(); err != nil {
		return nil, err
	}
	if err := w.ControlPlane.Install(); err != nil {
		return nil, err
	}
	go w.ControlPlane.Kubelet(ctx)
	if w.cache, err = cache.New(w.ControlPlane.Config, cache.Options{DefaultTransform: cache.TransformStripManagedFields()}); err != nil {
		return nil, err
	}
	go func() { _ = w.cache.Start(ctx) }()
	return w, nil
}

// Build builds the manager of this tree with more flags of go build, and returns where it is.
func Build(ctx context.Context, name string, flags ...string) (string, error) {
	build := exec.CommandContext(ctx, "go", append(append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", name}, flags...), "./cmd")...)
	build.Dir = testenv.Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return name, nil
}

// Use has a manager program work from now on, and no other one: those before are killed. There is no leader election, as there is nobody
// else, and who loses the lead because the machine is busy would end.
func (w *World) Use(ctx context.Context, program string) (err error) {
	w.Kill()
	w.program = program
	if w.Manager, err = w.ControlPlane.StartManager(ctx, program, nil, "--leader-elect=false"); err != nil {
		return err
	}
	return w.Manager.WaitUntilReady(ctx)
}

// Restart kills the manager and starts another one.
func (w *World) Restart(ctx context.Context) error {
	return w.Use(ctx, w.program)
}

// Kill ends the manager without warning.
func (w *World) Kill() {
	if w.Manager != nil {
		w.Manager.Kill()
	}
}

// Clear takes away everything that was tried, with the manager, whatever state it is in.
func (w *World) Clear(ctx context.Context) error {
	w.Kill()
	kinds, err := Kinds()
	if err != nil {
		return err
	}
	all := slices.Clone(watched)
	for _, kind := range kinds {
		all = append(all, schema.FromAPIVersionAndKind(kind.APIVersion, kind.Name))
	}
	for _, kind := range all {
		found, err := listed(ctx, w.ControlPlane.Client, kind, "")
		if err != nil {
			return err
		}
		for i := range found {
			if !strings.HasPrefix(found[i].GetNamespace(), namespacePrefix) {
				continue
			}
			err := w.ControlPlane.Client.Delete(ctx, &found[i], client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// Stop ends everything.
func (w *World) Stop() error {
	w.end()
	w.Kill()
	if w.ControlPlane == nil {
		return nil
	}
	return w.ControlPlane.Stop()
}

// namespacePrefix begins the names of the namespaces in which things are tried.
const namespacePrefix = "leaf-"

// namespace makes a namespace and returns its name.
func (w *World) namespace(ctx context.Context) (string, error) {
	name := fmt.Sprintf(namespacePrefix+"%05d", w.namespaces.Add(1))
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	return name, w.ControlPlane.Client.Create(ctx, namespace)
}

// list returns what the watch has shown of a kind in a namespace.
func (w *World) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	return listed(ctx, w.cache, kind, namespace)
}

func listed(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := from.List(ctx, found, client.InNamespace(namespace))
	return found.Items, err
}

// until polls until done returns nil; the error is the last that done returned.
func (w *World) until(ctx context.Context, done func() error) error {
	deadline := time.Now().Add(w.patience)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := done()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(wait)
	}
}
