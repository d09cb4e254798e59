package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
)

// load is how Foos are created or changed.
type load struct {
	count   int
	pending int // the maximum number of Foos that do not match their specs yet
	// every is the interval at which Foos are due; 0 starts them as soon as pending allows.
	every time.Duration
}

// run creates or changes Foos, and waits until the status of each reports the expected number of available replicas. It
// returns how many seconds each took, from the time at which it was due.
func (l load) run(ctx context.Context, o *observer, replicas int32, name func(number int) string,
	do func(ctx context.Context, name string) error) ([]float64, error) {
	limit := time.Minute + time.Duration(l.count)*100*time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.pending)
	seconds, ready, started := make([]float64, l.count), atomic.Int32{}, time.Now()
	for number := range l.count {
		group.Go(func() error {
			due, isReady := time.Now(), o.expect(name(number), replicas)
			err := ctx.Err()
			if err == nil && l.every > 0 {
				due = started.Add(time.Duration(number) * l.every)
				err = measure.Pause(ctx, time.Until(due))
			}
			if err == nil {
				err = do(ctx, name(number))
			}
			if err != nil {
				return err
			}
			select {
			case at := <-isReady:
				seconds[number] = at.Sub(due).Seconds()
				ready.Add(1)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("%d of %d Foos match their specs; the limit is %s: %w", ready.Load(), l.count, limit, err)
	}
	return seconds, nil
}

// createFoos creates Foos whose names have a prefix.
func (p *plane) createFoos(ctx context.Context, namespace, prefix string, o *observer, l load) ([]float64, error) {
	name := func(number int) string { return fmt.Sprintf("%s-%05d", prefix, number) }
	return l.run(ctx, o, 1, name, func(ctx context.Context, name string) error {
		return p.making.Create(ctx, &samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To[int32](1)},
		})
	})
}

// scaleFoos changes the replicas of some of the Foos that populate has created, evenly spread among all of them.
func (p *plane) scaleFoos(ctx context.Context, namespace string, all int, replicas int32, o *observer, l load) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	name := func(number int) string { return fmt.Sprintf("foo-%05d", number*all/l.count) }
	_, err := l.run(ctx, o, replicas, name, func(ctx context.Context, name string) error {
		return p.making.Patch(ctx, &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
			patch)
	})
	return err
}

// observer reports when the statuses of Foos are as expected.
type observer struct {
	mu       sync.Mutex
	observed map[string]int32 // available replicas in the last status of each Foo
	expected map[string]expectation
}

type expectation struct {
	replicas int32
	isMet    chan time.Time
}

func newObserver() *observer {
	return &observer{observed: map[string]int32{}, expected: map[string]expectation{}}
}

// observe watches the Foos of a namespace until the context is canceled.
func (p *plane) observe(ctx context.Context, namespace string, options ...client.ListOption) *observer {
	o := newObserver()
	go measure.Follow(ctx, p.watching, &samplev1alpha1.FooList{}, o.record,
		append(options, client.InNamespace(namespace))...)
	return o
}

// record records the status of a Foo.
func (o *observer) record(event watch.EventType, object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := object.GetName()
	if event == watch.Deleted {
		delete(o.observed, name)
		return
	}
	o.observed[name] = object.(*samplev1alpha1.Foo).Status.AvailableReplicas
	o.check(name)
}

// expect returns a channel that receives the time at which the status of a Foo reports a number of available replicas.
func (o *observer) expect(name string, replicas int32) <-chan time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	isMet := make(chan time.Time, 1)
	o.expected[name] = expectation{replicas, isMet}
	o.check(name)
	return isMet
}

// check must be called with the lock held.
func (o *observer) check(name string) {
	wanted, isExpected := o.expected[name]
	if replicas, isObserved := o.observed[name]; isExpected && isObserved && replicas == wanted.replicas {
		wanted.isMet <- time.Now()
		delete(o.expected, name)
	}
}
