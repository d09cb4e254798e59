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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/testenv"
)

// World is one control plane and one manager for all that is tried: what is tried keeps to namespaces of its own.
type World struct {
	ControlPlane *testenv.ControlPlane

	program    string
	managers   []manager // that have worked since all was cleared: the last one works now, unless it was killed
	recorder   *history.Recorder
	end        context.CancelFunc
	namespaces atomic.Int64
	options    Options
}

// manager is what a world has to do with a testenv.Manager once it works.
type manager interface {
	Kill()
	Logs() string
}

// childResources are what the operator makes.
var childResources = history.Children()

// Start starts the control plane, and no manager yet.
func Start(ctx context.Context) (*World, error) {
	return startWith(ctx, testenv.Settings{})
}

func startWith(ctx context.Context, settings testenv.Settings) (_ *World, err error) {
	w := &World{}
	ctx, w.end = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Stop())
		}
	}()
	if w.ControlPlane, err = testenv.StartWith(settings); err != nil {
		return nil, err
	}
	if err := w.ControlPlane.Install(); err != nil {
		return nil, err
	}
	go w.ControlPlane.Kubelet(ctx)
	w.recorder, err = history.Record(ctx, w.ControlPlane.Config)
	return w, err
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
func (w *World) Use(ctx context.Context, program string) error {
	w.Kill()
	w.program = program
	manager, err := w.ControlPlane.StartManager(ctx, program, nil, "--leader-elect=false")
	if err != nil {
		return err
	}
	w.managers = append(w.managers, manager)
	return manager.WaitUntilReady(ctx)
}

// Restart kills the manager and starts another one.
func (w *World) Restart(ctx context.Context) error {
	return w.Use(ctx, w.program)
}

// Kill ends the manager without warning.
func (w *World) Kill() {
	if len(w.managers) > 0 {
		w.managers[len(w.managers)-1].Kill()
	}
}

// Managers returns how many managers have worked since all was cleared.
func (w *World) Managers() int { return len(w.managers) }

// Defects returns what the logs of all those managers have that no log may have.
func (w *World) Defects() []string {
	var all strings.Builder
	for _, manager := range w.managers {
		all.WriteString(manager.Logs())
	}
	return testenv.Defects(all.String())
}

// Clear takes away everything that was tried, with the manager, whatever state it is in. The logs of the managers so far are forgotten.
func (w *World) Clear(ctx context.Context) error {
	w.Kill()
	w.managers = nil
	found, err := w.tried(ctx, append([]string{history.Foos, history.Memcacheds, history.CronJobs}, childResources...))
	if err != nil {
		return err
	}
	for i := range found {
		err := w.ControlPlane.Client.Delete(ctx, &found[i], client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// tried returns what there is of some resources in all namespaces in which things are tried.
func (w *World) tried(ctx context.Context, resources []string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, resource := range resources {
		found, err := w.recorder.List(ctx, resource, "")
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(object unstructured.Unstructured) bool {
		return !strings.HasPrefix(object.GetNamespace(), namespacePrefix)
	}), nil
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

// until polls until done returns nil; the error is the last that done returned. How long that may take bounds a failure and is no measure
// of time.
func (w *World) until(ctx context.Context, done func() error) error {
	return within(ctx, w.options.Patience, done)
}

// within waits until something is done, or until patience ends, and returns what it still lacks then.
func within(ctx context.Context, patience time.Duration, done func() error) error {
	deadline := time.Now().Add(patience)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := done()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(wait)
	}
}
