package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/example/memcached-operator/test/reliability/history"
)

// histories are the leaves that say how many finished Jobs stay, with the condition of those Jobs. What they do shows only in Jobs that
// are more than a minute old, so each pair of classes has a resource of its own and all wait at the same time.
var histories = map[string]batchv1.JobConditionType{
	"spec.successfulJobsHistoryLimit": batchv1.JobComplete,
	"spec.failedJobsHistoryLimit":     batchv1.JobFailed,
}

// finishedJobs is how many Jobs there are of each sort: more than any limit that is tried, but for the highest.
const finishedJobs = 4

// tryHistory tries all ordered pairs of classes of a leaf that limits the history.
func tryHistory(ctx context.Context, w *World, kind *Kind, leaf Leaf) Result {
	t := newTrial(w, kind, leaf)
	for path := range histories { // so that Jobs of the other sort are to stay
		if path != leaf.Path {
			t.plan.base[strings.TrimPrefix(path, "spec.")] = int64(finishedJobs)
		}
	}
	var pairs sync.WaitGroup
	kept := map[string]bool{}
	for _, from := range t.taken {
		for _, to := range t.taken {
			if from.Name == to.Name {
				continue
			}
			pairs.Go(func() {
				left, err := t.pair(ctx, from, to)
				t.mu.Lock()
				defer t.mu.Unlock()
				t.result.Transitions++
				kept[fmt.Sprint(left)] = true
				if err != nil {
					t.violated("%s -> %s: %v", from.Name, to.Name, err)
				}
			})
		}
	}
	pairs.Wait()
	t.result.Ends = len(kept)
	if len(kept) > 1 {
		t.result.Effect = differ
	}
	for _, from := range t.taken {
		s, _, err := t.fresh(ctx, from)
		if err != nil {
			t.violated("%v", err)
			continue
		}
		t.refuse(ctx, s, from)
		if err := s.delete(ctx); err != nil {
			t.violated("%v", err)
		}
	}
	return t.result
}

// pair makes a resource of one class with finished Jobs, sees which of them stay, changes it to the other class, and sees which stay then:
// of those that the first has left the newest, as many as a fresh resource of the second would leave of them.
func (t *trial) pair(ctx context.Context, from, to Class) (left []string, err error) {
	s, err := t.world.create(ctx, t.kind, t.kind.apply(t.plan.base, t.leaf, from), 0)
	if err != nil {
		return nil, err
	}
	sort, other := histories[t.leaf.Path], batchv1.JobComplete
	if sort == other {
		other = batchv1.JobFailed
	}
	var ours, others []string
	for i := range finishedJobs {
		at := s.last.Truncate(time.Minute).Add(time.Duration(2*i-20) * time.Minute)
		ours, others = append(ours, nameOfJob(at)), append(others, nameOfJob(at.Add(time.Minute)))
		if err := errors.Join(s.by(ctx, nameOfJob(at), sort), s.by(ctx, nameOfJob(at.Add(time.Minute)), other)); err != nil {
			return nil, err
		}
	}
	for _, class := range []Class{from, to} {
		ours = ours[max(0, len(ours)-int(t.limit(class))):]
		if err := s.change(ctx, t.kind.apply(t.plan.base, t.leaf, class)); err != nil {
			return nil, err
		}
		want := slices.Sorted(slices.Values(append(slices.Clone(ours), others...)))
		if err := t.world.until(ctx, func() error {
			_, world, err := s.answered()
			found := world.Of(history.Jobs)
			names := make([]string, len(found))
			for i, job := range found {
				names[i] = job.GetName()
			}
			if err == nil && !slices.Equal(names, want) {
				err = fmt.Errorf("as %s it keeps %v, and not %v", class.Name, names, want)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	if t.isWatched() {
		err = t.watchRest(ctx, s)
	}
	return ours, errors.Join(err, s.delete(ctx))
}

// limit returns how many Jobs a class allows: the default where it says nothing.
func (t *trial) limit(class Class) int64 {
	if limit, ok := class.value.(int64); ok {
		return limit
	}
	return decode(t.leaf.schema.Default.Raw).(int64)
}
