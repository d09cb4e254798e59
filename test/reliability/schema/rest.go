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

// At rest, the operator writes nothing. A resource of each of our own leaves is watched for a window in which the leaf has one of its values, and
// one of every so many leaves of the template, as the seed chooses.
const (
	restWindow = 10 * time.Second
	restShare  = 10
)

// writesIn returns what the operator writes in a namespace, or in all if that is empty, from now on until a window is over.
func (w *World) writesIn(ctx context.Context, namespace string, window time.Duration) []string {
	mark := w.ControlPlane.Audit.Now()
	select {
	case <-time.After(window):
	case <-ctx.Done():
	}
	return restWrites(w.ControlPlane.Audit.Since(mark), namespace)
}

// settling is how long the operator may take at most to write what there was to do last.
const settling = 30 * time.Second

// SettledWrites returns what the operator writes in a namespace, or in all if that is empty, over the window that begins when it has written
// nothing for a second: the last that there was to do may still be on its way.
func (w *World) SettledWrites(ctx context.Context, namespace string, window time.Duration) []string {
	_ = within(ctx, settling, func() error {
		if writes := w.writesIn(ctx, namespace, time.Second); len(writes) > 0 {
			return errors.New("the operator writes: " + strings.Join(writes, ", "))
		}
		return nil
	})
	return w.writesIn(ctx, namespace, window)
}

// restWrites returns the writes of the operator among requests, in a namespace or, if that is empty, in all. Those that fail count, too. Events
// do not: they are news of before, which is summed up minutes later.
func restWrites(requests []testenv.Request, namespace string) []string {
	var writes []string
	for _, request := range requests {
		if testenv.ByOperator(request) && request.IsWrite() && request.Resource != "events" && (namespace == "" || request.Namespace == namespace) {
			writes = append(writes, request.String())
		}
	}
	return writes
}

// watchRest notes what the operator writes about a resource that is at rest.
func (t *trial) watchRest(ctx context.Context, s *subject) error {
	object, _, err := s.answered()
	if err != nil {
		return err
	}
	if _, reason, _ := says(object, "Degraded"); slices.Contains(triedAgain, reason) {
		return nil
	}
	writes := t.world.SettledWrites(ctx, s.namespace, restWindow)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.RestWindows++
	t.result.RestWrites = append(t.result.RestWrites, writes...)
	return nil
}

// triedAgain are the reasons of what is tried again, or told of again, at intervals that become longer.
var triedAgain = []string{tutorialv1.ReasonRefused, samplev1alpha1.ReasonRolloutStuck}

// watchedClass returns which of the classes that are taken the leaf has while its resource is watched: not the first, which in most cases is that
// it has no value. It is -1 if there is no other, or the leaf is none of those.
func (t *trial) watchedClass() int {
	if !t.isWatched() || len(t.taken) < 2 {
		return -1
	}
	return 1 + randomOf(t.world.options.Seed, t.leaf.Path+" at rest").IntN(len(t.taken)-1)
}

// isWatched tells whether the leaf is one of those whose resources are watched at rest.
func (t *trial) isWatched() bool {
	options := t.world.options
	return !options.IsHasty && (!t.leaf.inTemplate() || randomOf(options.Seed, t.leaf.Path).IntN(restShare) == 0)
}
