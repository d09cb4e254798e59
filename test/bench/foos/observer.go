package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
)

// observer sees when Foos of a namespace are as they should be: when their status says that as many pods are available as are wanted.
type observer struct {
	mu       sync.Mutex
	awaited  map[string]awaited
	seen     map[string]int32 // what the status of each Foo has said last
	done     []convergence
	progress chan struct{} // has something in it when a Foo has converged
	stop     func()
}

type awaited struct {
	replicas int32
	since    time.Time
	reached  func()
}

// convergence is how a Foo came to be as it should.
type convergence struct {
	from, to time.Time
}

func (c convergence) seconds() float64 { return c.to.Sub(c.from).Seconds() }

// observe begins to watch the Foos of a namespace.
func (p *plane) observe(ctx context.Context, namespace string) *observer {
	ctx, stop := context.WithCancel(ctx)
	o := &observer{awaited: map[string]awaited{}, seen: map[string]int32{}, progress: make(chan struct{}, 1), stop: stop}
	go measure.Follow(ctx, p.watching, &samplev1alpha1.FooList{}, o.note, client.InNamespace(namespace))
	return o
}

// note notes what the status of a Foo says now.
func (o *observer) note(event watch.EventType, object client.Object) {
	now := time.Now()
	foo := object.(*samplev1alpha1.Foo)
	o.mu.Lock()
	defer o.mu.Unlock()
	if event == watch.Deleted {
		delete(o.seen, foo.Name)
		return
	}
	o.seen[foo.Name] = foo.Status.AvailableReplicas
	o.check(foo.Name, now)
}

// expect says what the status of a Foo is to say soon, and since when that is waited for. Reached is called when it does.
func (o *observer) expect(name string, replicas int32, since time.Time, reached func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaited[name] = awaited{replicas, since, reached}
	o.check(name, time.Now())
}

// check notes a Foo whose status says what it should. The lock is held.
func (o *observer) check(name string, now time.Time) {
	wanted, isAwaited := o.awaited[name]
	if said, isSeen := o.seen[name]; !isAwaited || !isSeen || said != wanted.replicas {
		return
	}
	delete(o.awaited, name)
	o.done = append(o.done, convergence{wanted.since, now})
	wanted.reached()
	select {
	case o.progress <- struct{}{}:
	default:
	}
}

// wait waits until all that is expected has come, or the time is up, and returns how many Foos are still not as they should be.
func (o *observer) wait(ctx context.Context, limit time.Duration) (missing int, err error) {
	timeUp := time.After(limit)
	for {
		o.mu.Lock()
		missing = len(o.awaited)
		o.mu.Unlock()
		if missing == 0 || ctx.Err() != nil {
			return missing, context.Cause(ctx)
		}
		select {
		case <-o.progress:
		case <-timeUp:
			return missing, nil
		case <-ctx.Done():
		}
	}
}

// take returns what has converged since it was last asked, in that order, and forgets it and what is still awaited.
func (o *observer) take() []convergence {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := o.done
	o.done = nil
	clear(o.awaited)
	slices.SortFunc(done, func(a, b convergence) int { return a.to.Compare(b.to) })
	return done
}
