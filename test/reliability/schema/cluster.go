package schema

import (
	"context"
	"errors"
	"fmt"
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

// Cluster is a control plane and one running manager. Each test has its own namespace in it.
type Cluster struct {
	ControlPlane *testenv.ControlPlane
	// Timeout is how long anything may take before it counts as a failure.
	Timeout time.Duration

	program    string
	managers   []*testenv.Manager // those started since Clear; the last one is running, unless it was killed
	recorder   *history.Recorder
	end        context.CancelFunc
	namespaces atomic.Int64
}

// Start starts the control plane. Use starts the manager.
func Start(ctx context.Context) (_ *Cluster, err error) {
	c := &Cluster{Timeout: time.Minute}
	ctx, c.end = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if c.ControlPlane, err = testenv.Start(); err != nil {
		return nil, err
	}
	if err := c.ControlPlane.Install(); err != nil {
		return nil, err
	}
	go c.ControlPlane.Kubelet(ctx)
	c.recorder, err = history.Record(ctx, c.ControlPlane.Config)
	return c, err
}

// Use starts a manager program in place of the previous one. It runs without leader election: on a busy machine it
// could lose its lease and exit.
func (c *Cluster) Use(ctx context.Context, program string) error {
	c.Kill()
	c.program = program
	manager, err := c.ControlPlane.StartManager(ctx, program, nil, "--leader-elect=false")
	if err != nil {
		return err
	}
	c.managers = append(c.managers, manager)
	return manager.WaitUntilReady(ctx)
}

// Restart kills the manager and starts another one.
func (c *Cluster) Restart(ctx context.Context) error { return c.Use(ctx, c.program) }

// Kill kills the manager.
func (c *Cluster) Kill() {
	if len(c.managers) > 0 {
		c.managers[len(c.managers)-1].Kill()
	}
}

// Managers returns how many managers were started since Clear.
func (c *Cluster) Managers() int { return len(c.managers) }

// Defects returns the lines in the logs of these managers that no log may contain, such as panics and data races.
func (c *Cluster) Defects() []string {
	var logs strings.Builder
	for _, manager := range c.managers {
		logs.WriteString(manager.Logs())
	}
	return testenv.Defects(logs.String())
}

// Clear kills the manager, drops the logs, and deletes everything that was created for tests.
func (c *Cluster) Clear(ctx context.Context) error {
	c.Kill()
	c.managers = nil
	kinds := slices.DeleteFunc(history.Resources(), func(resource string) bool { return !history.IsOwnKind(resource) })
	found, err := c.list(ctx, "", append(kinds, history.Children()...))
	for i := range found {
		background := client.PropagationPolicy(metav1.DeletePropagationBackground)
		err = errors.Join(err, client.IgnoreNotFound(c.ControlPlane.Client.Delete(ctx, &found[i], background)))
	}
	return err
}

// list returns the objects of some resources in a namespace, or in all namespaces of tests if it is empty.
func (c *Cluster) list(ctx context.Context, namespace string, resources []string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, resource := range resources {
		found, err := c.recorder.List(ctx, resource, namespace)
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
func (c *Cluster) Children(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	return c.list(ctx, namespace, history.Children())
}

// left waits until all children are deleted, and returns those that remain at the timeout.
func (c *Cluster) left(ctx context.Context) (left []string) {
	err := c.Until(ctx, func() error {
		found, err := c.Children(ctx, "")
		left = nil
		for _, child := range found {
			left = append(left, fmt.Sprintf("%s %s/%s", child.GetKind(), child.GetNamespace(), child.GetName()))
		}
		if err == nil && len(left) > 0 {
			err = errors.New("there are still children")
		}
		return err
	})
	if err != nil && len(left) == 0 {
		left = []string{err.Error()}
	}
	return left
}

// Stop stops the manager and the control plane.
func (c *Cluster) Stop() error {
	c.end()
	c.Kill()
	if c.ControlPlane == nil {
		return nil
	}
	return c.ControlPlane.Stop()
}

// Until polls until done returns nil. At the timeout it returns the last error of done.
func (c *Cluster) Until(ctx context.Context, done func() error) error {
	deadline := time.Now().Add(c.Timeout)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := done()
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(wait)
	}
}

// SettledWrites returns the operator's writes in some namespaces, or in all if none is given, within a window. The
// window begins after a second without writes, as the last ones may still be in flight. Events do not count: they are
// aggregated, and may be sent minutes later.
func (c *Cluster) SettledWrites(ctx context.Context, window time.Duration, namespaces ...string) []string {
	writesIn := func(window time.Duration) (writes []string) {
		mark := c.ControlPlane.Audit.Now()
		select {
		case <-time.After(window):
		case <-ctx.Done():
		}
		for _, request := range c.ControlPlane.Audit.Since(mark, testenv.ByOperator, testenv.Request.IsWrite) {
			isWatched := len(namespaces) == 0 || slices.Contains(namespaces, request.Namespace)
			if isWatched && request.Resource != "events" {
				writes = append(writes, request.String())
			}
		}
		return writes
	}
	_ = c.Until(ctx, func() error {
		if writes := writesIn(time.Second); len(writes) > 0 {
			return errors.New("the operator still writes")
		}
		return nil
	})
	return writesIn(window)
}
