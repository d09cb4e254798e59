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

// namespacePrefix is the prefix of all namespaces of tests.
const namespacePrefix = "field-"

// Namespace is the namespace of one test.
type Namespace struct {
	Cluster *Cluster
	Name    string
	// Normalize returns its state in a form in which two namespaces with the same resources are equal. The default is
	// for CronJobs that have never been due.
	Normalize func(history.State) history.Normal

	known   history.Normal // the cached result of State; nil if it must be computed again
	changes int            // the number of recorded changes that known includes
}

// Namespace creates a namespace.
func (c *Cluster) Namespace(ctx context.Context) (*Namespace, error) {
	n := &Namespace{Cluster: c, Name: fmt.Sprintf(namespacePrefix+"%05d", c.namespaces.Add(1))}
	n.Normalize = func(state history.State) history.Normal {
		return history.Normalize(n.Name, state, nil, calendarOf(state))
	}
	namespace := &corev1.Namespace{}
	namespace.Name = n.Name
	return n, c.ControlPlane.Client.Create(ctx, namespace)
}

// State returns the normal form of the state that the watches have shown.
func (n *Namespace) State() history.Normal {
	if changes := n.Cluster.recorder.Count(n.Name); n.known == nil || n.changes != changes {
		n.known, n.changes = n.Normalize(n.Cluster.recorder.State(n.Name)), changes
	}
	return n.known
}

// Becomes waits until the state equals want and isCurrent returns nil.
func (n *Namespace) Becomes(ctx context.Context, want history.Normal, isCurrent func() error) error {
	return n.Cluster.Until(ctx, func() error {
		err := isCurrent()
		if got := n.State(); err == nil && !maps.Equal(got, want) {
			err = errors.New("it differs from a fresh one (-fresh +changed):\n" + history.Diff(want, got))
		}
		return err
	})
}

// Settle waits until the state is settled and has not changed for some time, and returns it. The function isSettled
// returns that time, or an error that describes what is missing.
func (n *Namespace) Settle(ctx context.Context,
	isSettled func(history.Normal) (time.Duration, error)) (history.Normal, error) {
	last, since := history.Normal(nil), time.Now()
	err := n.Cluster.Until(ctx, func() error {
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
		// The watches of different resources may lag differently, so compare with the API server.
		state, err := n.Cluster.recorder.Read(ctx, n.Name, history.Resources()...)
		if err == nil && !maps.Equal(n.Normalize(state), last) {
			err = errors.New("the watches are behind")
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("it does not settle: %w", err)
	}
	return last, err
}

// calendarOf returns the next scheduled time of each CronJob with a cron expression (not "@every"), named by itself.
func calendarOf(state history.State) history.Symbols {
	symbols := history.Symbols{}
	for _, cronJob := range state.Of(history.CronJobs) {
		next, _, _ := unstructured.NestedString(cronJob.Object, "status", "nextScheduleTime")
		if t, err := time.Parse(time.RFC3339, next); err == nil && !isEvery(cronJob) {
			symbols[t.Format(time.DateTime)] = t
		}
	}
	return symbols
}
