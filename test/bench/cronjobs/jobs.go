package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// jobs are the Jobs of a namespace, as a watch has shown them.
type jobs struct {
	mu     sync.Mutex
	byName map[string]*job
}

// job is what is known of one Job, which may be gone.
type job struct {
	due      time.Time // what it is of
	seen     time.Time // when this machine was told of it
	created  time.Time // by the API server's clock, in whole seconds
	finished time.Time // when this machine was told so
}

// watchJobs follows the Jobs of a namespace until the context ends.
func (b *bench) watchJobs(ctx context.Context, namespace string) (*jobs, error) {
	j := &jobs{byName: map[string]*job{}}
	factory := informers.NewSharedInformerFactoryWithOptions(b.clients, 0, informers.WithNamespace(namespace))
	informer := factory.Batch().V1().Jobs().Informer()
	registered, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    j.note,
		UpdateFunc: func(_, object any) { j.note(object) },
	})
	if err != nil {
		return nil, err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registered.HasSynced) {
		return nil, errors.New("the watch of the Jobs does not begin")
	}
	return j, nil
}

// note notes what a Job is like now.
func (j *jobs) note(object any) {
	now := time.Now()
	shown := object.(*batchv1.Job)
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.byName[shown.Name]
	if known == nil {
		known = &job{due: dueTime(shown.Name), seen: now, created: shown.CreationTimestamp.Time}
		j.byName[shown.Name] = known
	}
	if known.finished.IsZero() && shown.Status.CompletionTime != nil {
		known.finished = now
	}
}

// dueTime returns the time that a Job is of. Both controllers end its name in the minutes since 1970.
func dueTime(name string) time.Time {
	minutes, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	if err != nil {
		panic(fmt.Sprintf("a Job named %s", name))
	}
	return time.Unix(minutes*60, 0)
}

// of returns the Jobs of a time.
func (j *jobs) of(due time.Time) []job {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []job
	for _, job := range j.byName {
		if job.due.Equal(due) {
			found = append(found, *job)
		}
	}
	return found
}

// progress returns how many Jobs there have been, how many of them are complete, and when the last one was.
func (j *jobs) progress() (total, finished int, last time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, job := range j.byName {
		if !job.finished.IsZero() {
			finished++
		}
		if job.finished.After(last) {
			last = job.finished
		}
	}
	return len(j.byName), finished, last
}
