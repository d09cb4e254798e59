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

// World is one control plane and one manager. Every test has a namespace of its own in it.
type World struct {
	ControlPlane *testenv.ControlPlane
	// Patience is how long anything may take before that counts as a failure.
	Patience time.Duration

	program    string
	managers   []*testenv.Manager // since Clear; the last one runs now, unless it was killed
	recorder   *history.Recorder
	end        context.CancelFunc
	namespaces atomic.Int64
}

// Start starts the control plane, and no manager yet.
func Start(ctx context.Context) (_ *World, err error) {
	w := &World{Patience: time.Minute}
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
	w.recorder, err = history.Record(ctx, w.ControlPlane.Config)
	return w, err
}

// Build builds the manager of this tree with more flags of go build, and returns its path.
func Build(ctx context.Context, name string, flags ...string) (string, error) {
	args := slices.Concat([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", name}, flags, []string{"./cmd"})
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = testenv.Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return name, nil
}

// Use runs a manager program in place of the one before. It runs without leader election, as a manager that loses the
// lead on a busy machine would exit.
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
func (w *World) Restart(ctx context.Context) error { return w.Use(ctx, w.program) }

// Kill kills the manager.
func (w *World) Kill() {
	if len(w.managers) > 0 {
		w.managers[len(w.managers)-1].Kill()
	}
}

// Managers returns how many managers have run since Clear.
func (w *World) Managers() int { return len(w.managers) }

// Defects returns the lines in the logs of all those managers that no log may have.
func (w *World) Defects() []string {
	var logs strings.Builder
	for _, manager := range w.managers {
		logs.WriteString(manager.Logs())
	}
	return testenv.Defects(logs.String())
}

// Clear kills the manager, forgets the logs so far, and deletes everything that was created for tests.
func (w *World) Clear(ctx context.Context) error {
	w.Kill()
	w.managers = nil
	kinds := slices.DeleteFunc(history.Resources(), func(resource string) bool { return !history.IsOurs(resource) })
	found, err := w.list(ctx, "", append(kinds, history.Children()...))
	for i := range found {
		background := client.PropagationPolicy(metav1.DeletePropagationBackground)
		err = errors.Join(err, client.IgnoreNotFound(w.ControlPlane.Client.Delete(ctx, &found[i], background)))
	}
	return err
}

// list returns the objects of some resources in a namespace, or in all of the tests' namespaces if that is empty.
func (w *World) list(ctx context.Context, namespace string, resources []string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, resource := range resources {
		found, err := w.recorder.List(ctx, resource, namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(object unstructured.Unstructured) bool {
		return !strings.HasPrefix(object.GetNamespace(), namespacePrefix)
	}), nil
}

// Children returns the objects in a namespace of the resources that the operator creates.
func (w *World) Children(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	return w.list(ctx, namespace, history.Children())
}

// left waits until all children are deleted, and returns those that are not.
func (w *World) left(ctx context.Context) (left []string) {
	err := w.Until(ctx, func() error {
		found, err := w.Children(ctx, "")
		left = nil
		for _, child := range found {
			left = append(left, fmt.Sprintf("%s %s/%s", child.GetKind(), child.GetNamespace(), child.GetName()))
		}
		if err == nil && len(left) > 0 {
			err = errors.New("there are children left")
		}
		return err
	})
	if err != nil && len(left) == 0 {
		left = []string{err.Error()}
	}
	return left
}

// Stop stops everything.
func (w *World) Stop() error {
	w.end()
	w.Kill()
	if w.ControlPlane == nil {
		return nil
	}
	return w.ControlPlane.Stop()
}

// Until polls until done returns nil; the error is the last that done returned. Patience only ends a failing test.
func (w *World) Until(ctx context.Context, done func() error) error {
	deadline := time.Now().Add(w.Patience)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := done()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(wait)
	}
}

// SettledWrites returns what the operator writes in some namespaces, or in all if none is named, in a window that
// begins once it has written nothing for a second: its last writes may still be in flight. Events do not count: they
// are about the past, and are summed up minutes later.
func (w *World) SettledWrites(ctx context.Context, window time.Duration, namespaces ...string) []string {
	writesIn := func(window time.Duration) (writes []string) {
		mark := w.ControlPlane.Audit.Now()
		select {
		case <-time.After(window):
		case <-ctx.Done():
		}
		for _, request := range w.ControlPlane.Audit.Since(mark, testenv.ByOperator, testenv.Request.IsWrite) {
			isWatched := len(namespaces) == 0 || slices.Contains(namespaces, request.Namespace)
			if isWatched && request.Resource != "events" {
				writes = append(writes, request.String())
			}
		}
		return writes
	}
	_ = w.Until(ctx, func() error {
		if writes := writesIn(time.Second); len(writes) > 0 {
			return errors.New("the operator writes")
		}
		return nil
	})
	return writesIn(window)
}
