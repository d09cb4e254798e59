package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/example/memcached-operator/test/reliability/history"
)

// finishedJobs is how many complete and how many failed Jobs there are: more than all tested limits except the highest.
const finishedJobs = 4

var keptJobs = map[string]any{"successfulJobsHistoryLimit": int64(finishedJobs),
	"failedJobsHistoryLimit": int64(finishedJobs)}

// tryLimit tests all ordered pairs of classes of a field that limits how many finished Jobs are kept. The operator
// deletes only Jobs that are older than a minute, so each pair has a resource of its own and all wait at the same time.
func (t *trial) tryLimit(ctx context.Context) error {
	var pairs sync.WaitGroup
	for _, from := range t.accepted {
		for _, to := range t.accepted {
			if from.name == to.name {
				continue
			}
			pairs.Go(func() {
				err := t.pair(ctx, from, to)
				t.mu.Lock()
				defer t.mu.Unlock()
				t.result.Transitions++
				if err != nil {
					t.violated("%s -> %s: %v", from.name, to.name, err)
				}
			})
		}
	}
	pairs.Wait()
	for _, from := range t.accepted {
		s, err := t.fresh(ctx, from, nil)
		if err != nil {
			return err
		}
		t.reject(ctx, s, from, t.rejected)
	}
	return nil
}

// pair creates a resource of one class with finished Jobs, and checks that the newest are kept, as many as the limit.
// It changes the resource to the other class, and checks the remaining Jobs in the same way.
func (t *trial) pair(ctx context.Context, from, to class) error {
	s, err := t.create(ctx, t.field.in(t.base, from.value))
	if err != nil {
		return err
	}
	other := batchv1.JobComplete
	if t.limits == other {
		other = batchv1.JobFailed
	}
	var kept, others []string
	for i := range finishedJobs {
		at := s.last.Truncate(time.Minute).Add(time.Duration(2*i-20) * time.Minute)
		kept, others = append(kept, nameOfJob(at)), append(others, nameOfJob(at.Add(time.Minute)))
		if err := errors.Join(s.startJob(ctx, kept[i], t.limits), s.startJob(ctx, others[i], other)); err != nil {
			return err
		}
	}
	for _, c := range []class{from, to} {
		limit, hasLimit := c.value.(int64)
		if !hasLimit {
			limit = decode(t.field.schema.Default.Raw).(int64)
		}
		kept = kept[max(0, len(kept)-int(limit)):]
		if err := s.change(ctx, t.field.in(t.base, c.value)); err != nil {
			return err
		}
		want := slices.Sorted(slices.Values(slices.Concat(kept, others)))
		if err := s.Cluster.Until(ctx, func() error {
			_, state, err := s.answered()
			jobs := state.Of(history.Jobs)
			names := make([]string, 0, len(jobs))
			for _, job := range jobs {
				names = append(names, job.GetName())
			}
			if err == nil && !slices.Equal(names, want) {
				err = fmt.Errorf("with the class %s, the Jobs are %s, not %s", c.name, names, want)
			}
			return err
		}); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[fmt.Sprint(kept)] = history.Normal{history.Jobs: fmt.Sprint(len(kept))}
	return nil
}
