package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/bench/measure"
)

// jobs are the Jobs of a namespace, as a watch has shown them.
type jobs struct {
	mu     sync.Mutex
	byName map[string]*job
}

// job is what is known of one Job, which may be deleted by now.
type job struct {
	due      time.Time // its scheduled time
	seen     time.Time // when the watch on this machine showed it
	finished time.Time // when the watch showed that it is complete
}

// watchJobs watches the Jobs of the namespace until the context ends.
func watchJobs(ctx context.Context, c client.WithWatch) *jobs {
	j := &jobs{byName: map[string]*job{}}
	go measure.Follow(ctx, c, &batchv1.JobList{}, j.record, client.InNamespace(namespace))
	return j
}

// record records the state of a Job.
func (j *jobs) record(event watch.EventType, object client.Object) {
	now := time.Now()
	shown := object.(*batchv1.Job)
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.byName[shown.Name]
	if known == nil {
		known = &job{due: dueTime(shown.Name), seen: now}
		j.byName[shown.Name] = known
	}
	if known.finished.IsZero() && event != watch.Deleted && shown.Status.CompletionTime != nil {
		known.finished = now
	}
}

// dueTime returns the scheduled time of a Job. With both controllers, its name ends in the minutes since 1970.
func dueTime(name string) time.Time {
	minutes, err := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64)
	if err != nil {
		panic(fmt.Sprintf("a Job named %s", name))
	}
	return time.Unix(minutes*60, 0)
}

// of returns the Jobs of a scheduled time.
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

// progress returns how many Jobs there were, how many of them are complete, and when the last one was.
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
