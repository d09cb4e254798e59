package schema

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

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
}

// watched are the kinds of children that are compared, and the pods that are counted by the status of Deployments.
var watched = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Version: "v1", Kind: "Service"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
}

// Start starts the control plane and a manager: the program of that path, or that of this tree if it is empty.
func Start(ctx context.Context, program string) (_ *World, err error) {
	w := &World{program: program}
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
	if w.program == "" {
		w.program = filepath.Join(os.TempDir(), fmt.Sprintf("manager-%d", os.Getpid()))
		build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", w.program, "./cmd")
		build.Dir = testenv.Root()
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the manager: %w\n%s", err, out)
		}
	}
	if err := w.startManager(ctx); err != nil {
		return nil, err
	}
	if w.cache, err = cache.New(w.ControlPlane.Config, cache.Options{DefaultTransform: cache.TransformStripManagedFields()}); err != nil {
		return nil, err
	}
	go func() { _ = w.cache.Start(ctx) }()
	return w, nil
}

func (w *World) startManager(ctx context.Context) (err error) {
	if w.Manager, err = w.ControlPlane.StartManager(ctx, w.program, nil); err != nil {
		return err
	}
	return w.Manager.WaitUntilReady(ctx)
}

// Restart kills the manager and starts another one.
func (w *World) Restart(ctx context.Context) error {
	w.Manager.Kill()
	return w.startManager(ctx)
}

// Stop ends everything.
func (w *World) Stop() error {
	w.end()
	if w.Manager != nil {
		w.Manager.Kill()
	}
	if w.ControlPlane == nil {
		return nil
	}
	return w.ControlPlane.Stop()
}

// namespace makes a namespace and returns its name.
func (w *World) namespace(ctx context.Context) (string, error) {
	name := fmt.Sprintf("leaf-%05d", w.namespaces.Add(1))
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	return name, w.ControlPlane.Client.Create(ctx, namespace)
}

// list returns what the watch has shown of a kind in a namespace.
func (w *World) list(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	return list(ctx, w.cache, kind, namespace)
}

func list(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := from.List(ctx, found, client.InNamespace(namespace))
	return found.Items, err
}

// patience is how long anything may take to become as it should be. It bounds a failure and is no measure of time.
const patience = 90 * time.Second

// until polls until done returns nil; the error is the last that done returned.
func until(ctx context.Context, done func() error) error {
	deadline := time.Now().Add(patience)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := done()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(wait)
	}
}
