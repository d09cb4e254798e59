package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/test/reliability/history"
)

// namespacePrefix begins the names of the tests' namespaces.
const namespacePrefix = "field-"

// Namespace is a namespace of one test.
type Namespace struct {
	World *World
	Name  string
	// Normalize returns its state in a form in which two namespaces with the same resources are equal. That of a new
	// namespace is for CronJobs that have never been due.
	Normalize func(history.World) history.Normal

	known   history.Normal // the state after so many changes; nil if it must be computed anew
	changes int
}

// Namespace creates a namespace.
func (w *World) Namespace(ctx context.Context) (*Namespace, error) {
	n := &Namespace{World: w, Name: fmt.Sprintf(namespacePrefix+"%05d", w.namespaces.Add(1))}
	n.Normalize = func(world history.World) history.Normal {
		return history.Normalize(n.Name, world, nil, calendarOf(world))
	}
	namespace := &corev1.Namespace{}
	namespace.Name = n.Name
	return n, w.ControlPlane.Client.Create(ctx, namespace)
}

// State returns the normal form of what the watches have shown.
func (n *Namespace) State() history.Normal {
	if changes := n.World.recorder.Count(n.Name); n.known == nil || n.changes != changes {
		n.known, n.changes = n.Normalize(n.World.recorder.World(n.Name)), changes
	}
	return n.known
}

// Becomes waits until the state is as wanted. Until then isCurrent may return an error.
func (n *Namespace) Becomes(ctx context.Context, want history.Normal, isCurrent func() error) error {
	return n.World.Until(ctx, func() error {
		err := isCurrent()
		if got := n.State(); err == nil && !maps.Equal(got, want) {
			err = errors.New("it differs from a fresh one (-fresh +changed):\n" + history.Diff(want, got))
		}
		return err
	})
}

// Settle waits until the state has stayed the same for a while, and returns it. The error of isSettled says what is
// missing, and it returns how long that while is.
func (n *Namespace) Settle(ctx context.Context,
	isSettled func(history.Normal) (time.Duration, error)) (history.Normal, error) {
	last, since := history.Normal(nil), time.Now()
	err := n.World.Until(ctx, func() error {
		if state := n.State(); !maps.Equal(state, last) {
			last, since = state, time.Now()
		}
		quiet, err := isSettled(last)
		if err != nil {
			return err
		}
		if time.Since(since) < max(quiet, 400*time.Millisecond) {
			return errors.New("the state still changes")
		}
		// The watches of different resources are not equally fast.
		world, err := n.World.recorder.Read(ctx, n.Name, history.Resources()...)
		if err == nil && !maps.Equal(n.Normalize(world), last) {
			err = errors.New("the watches are behind")
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("it does not settle: %w", err)
	}
	return last, err
}

// calendarOf returns the next times of the CronJobs whose times are those of a calendar, each as its own symbol.
func calendarOf(world history.World) history.Symbols {
	symbols := history.Symbols{}
	for _, cronJob := range world.Of(history.CronJobs) {
		next, _, _ := unstructured.NestedString(cronJob.Object, "status", "nextScheduleTime")
		if t, err := time.Parse(time.RFC3339, next); err == nil && !isEvery(cronJob) {
			symbols[t.Format(time.DateTime)] = t
		}
	}
	return symbols
}
