package schema

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/testenv"
)

// The operator writes nothing for a settled resource. One of each field, and of every so many templates, is watched for
// a window.
const (
	restWindow = 10 * time.Second
	restShare  = 10
)

// settling is how long the operator's last writes may take.
const settling = 30 * time.Second

// retried are the reasons of what the operator retries, or reports again, at growing intervals.
var retried = []string{tutorialv1.ReasonRefused, samplev1alpha1.ReasonRolloutStuck}

// writesIn returns what the operator writes in a namespace, or in all if that is empty, in the window that begins now.
func (w *World) writesIn(ctx context.Context, namespace string, window time.Duration) []string {
	mark := w.ControlPlane.Audit.Now()
	select {
	case <-time.After(window):
	case <-ctx.Done():
	}
	return restWrites(w.ControlPlane.Audit.Since(mark), namespace)
}

// SettledWrites returns what the operator writes in a namespace, or in all if that is empty, in the window that begins
// once it has written nothing for a second: its last writes may still be in flight.
func (w *World) SettledWrites(ctx context.Context, namespace string, window time.Duration) []string {
	_ = Within(ctx, settling, func() error {
		if writes := w.writesIn(ctx, namespace, time.Second); len(writes) > 0 {
			return errors.New("the operator writes: " + strings.Join(writes, ", "))
		}
		return nil
	})
	return w.writesIn(ctx, namespace, window)
}

// restWrites returns the writes of the operator among requests, also those that failed. Events do not count: they are
// about the past, and are summed up minutes later.
func restWrites(requests []testenv.Request, namespace string) []string {
	var writes []string
	for _, request := range requests {
		isWrite := request.IsWrite() && request.Resource != "events"
		if isWrite && testenv.ByOperator(request) && (namespace == "" || request.Namespace == namespace) {
			writes = append(writes, request.String())
		}
	}
	return writes
}

// watchRest records what the operator writes for a settled resource.
func (t *trial) watchRest(ctx context.Context, s *subject) error {
	object, _, err := s.answered()
	if err != nil {
		return err
	}
	if _, reason, _ := conditionOf(object, "Degraded"); slices.Contains(retried, reason) {
		return nil
	}
	t.result.RestWindows++
	t.result.RestWrites = append(t.result.RestWrites, t.world.SettledWrites(ctx, s.namespace, restWindow)...)
	return nil
}

// watchedClass returns with which of its classes the field is watched: not the first, which in most cases is that it
// has no value. It is -1 if there is no other.
func (t *trial) watchedClass() int {
	if !t.isWatched() || len(t.accepted) < 2 {
		return -1
	}
	return 1 + newMaker(t.world.options.Seed, t.field.Path+" at rest").IntN(len(t.accepted)-1)
}

func (t *trial) isWatched() bool { return !t.world.options.IsHasty }
