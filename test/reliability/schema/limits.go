package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/example/memcached-operator/test/reliability/history"
)

// finishedJobs is how many finished Jobs of each sort there are: more than any limit that is tested, but for the
// highest.
const finishedJobs = 4

// tryLimit tests all ordered pairs of classes of a field that limits how many finished Jobs are kept. The operator
// deletes only Jobs that finished more than a minute ago, so each pair has a resource of its own and all wait at the
// same time.
func (t *trial) tryLimit(ctx context.Context) Result {
	t.base = maps.Clone(t.base)
	t.base["successfulJobsHistoryLimit"], t.base["failedJobsHistoryLimit"] = int64(finishedJobs), int64(finishedJobs)
	var mu sync.Mutex
	var pairs sync.WaitGroup
	kept := map[string]bool{}
	for _, from := range t.accepted {
		for _, to := range t.accepted {
			if from.Name == to.Name {
				continue
			}
			pairs.Go(func() {
				s, left, err := t.pair(ctx, from, to)
				if err == nil && t.isWatched() {
					writes := t.world.SettledWrites(ctx, s.namespace, restWindow)
					mu.Lock()
					t.result.RestWindows++
					t.result.RestWrites = append(t.result.RestWrites, writes...)
					mu.Unlock()
				}
				if s != nil {
					err = errors.Join(err, s.delete(ctx))
				}
				mu.Lock()
				defer mu.Unlock()
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
	for _, from := range t.accepted {
		s, _, err := t.fresh(ctx, from)
		if err != nil {
			t.violated("%v", err)
			continue
		}
		t.reject(ctx, s, from)
		if err := s.delete(ctx); err != nil {
			t.violated("%v", err)
		}
	}
	return t.result
}

// pair creates a resource of one class with finished Jobs, checks which of them are kept, changes it to the other
// class, and checks again: of those that the first has kept the newest, as many as a fresh resource of the second would
// keep.
func (t *trial) pair(ctx context.Context, from, to Class) (s *subject, kept []string, err error) {
	if s, err = t.world.create(ctx, t.kind, t.kind.apply(t.base, t.field, from), 0); err != nil {
		return nil, nil, err
	}
	other := batchv1.JobComplete
	if t.limits == other {
		other = batchv1.JobFailed
	}
	var others []string
	for i := range finishedJobs {
		at := s.last.Truncate(time.Minute).Add(time.Duration(2*i-20) * time.Minute)
		kept, others = append(kept, nameOfJob(at)), append(others, nameOfJob(at.Add(time.Minute)))
		err := errors.Join(s.startJob(ctx, kept[i], t.limits), s.startJob(ctx, others[i], other))
		if err != nil {
			return s, nil, err
		}
	}
	for _, class := range []Class{from, to} {
		kept = kept[max(0, len(kept)-int(t.limit(class))):]
		if err := s.change(ctx, t.kind.apply(t.base, t.field, class)); err != nil {
			return s, nil, err
		}
		want := strings.Join(slices.Sorted(slices.Values(slices.Concat(kept, others))), " ")
		if err := t.world.until(ctx, func() error {
			_, world, err := s.answered()
			jobs := world.Of(history.Jobs)
			names := make([]string, 0, len(jobs))
			for _, job := range jobs {
				names = append(names, job.GetName())
			}
			if got := strings.Join(names, " "); err == nil && got != want {
				err = fmt.Errorf("as %s it keeps %s, and not %s", class.Name, got, want)
			}
			return err
		}); err != nil {
			return s, nil, err
		}
	}
	return s, kept, nil
}

// limit returns how many Jobs a class keeps: the default where it does not say.
func (t *trial) limit(class Class) int64 {
	if limit, ok := class.value.(int64); ok {
		return limit
	}
	return decode(t.field.schema.Default.Raw).(int64)
}
