package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
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

// makers is the largest number of concurrent requests that create or change Foos.
const makers = 16

// load is how Foos are created or changed.
type load struct {
	count int
	// pending limits how many Foos do not match their specs yet; 0 for no limit.
	pending int
}

// run creates or changes Foos as the load says, and waits until the status of each reports that so many replicas are
// available.
func (l load) run(ctx context.Context, o *observer, replicas int32, name func(number int) string,
	do func(name string) error) error {
	limit := time.Minute + time.Duration(l.count)*100*time.Millisecond
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var making errgroup.Group
	making.SetLimit(makers)
	started := 0
	for number := range l.count {
		if l.pending > 0 {
			o.wait(limited, l.pending-1)
		}
		if limited.Err() != nil {
			break
		}
		o.expect(name(number), replicas)
		started++
		making.Go(func() error {
			err := do(name(number))
			if err != nil {
				cancel()
			}
			return err
		})
	}
	if err := making.Wait(); err != nil {
		return err
	}
	missing := o.wait(limited, 0) + l.count - started
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d Foos match their specs after %s", l.count-missing, l.count, limit)
	}
	return nil
}

// createFoos creates Foos whose names have a prefix.
func (p *plane) createFoos(ctx context.Context, namespace, prefix string, o *observer, l load) error {
	name := func(number int) string { return fmt.Sprintf("%s-%05d", prefix, number) }
	return l.run(ctx, o, 1, name, func(name string) error {
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
	return l.run(ctx, o, replicas, name, func(name string) error {
		return p.making.Patch(ctx, &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
			patch)
	})
}

// observer watches the Foos of a namespace, and records when their statuses report as many available pods as expected.
type observer struct {
	mu       sync.Mutex
	expected map[string]expectation
	observed map[string]int32 // the last status of each Foo
	done     []convergence
	progress chan struct{} // has something in it after a Foo was done
	stop     func()
}

type expectation struct {
	replicas int32
	since    time.Time
}

// convergence is the time from when a Foo was expected to change until its status was as expected.
type convergence struct {
	from, to time.Time
}

// newObserver returns an observer that watches nothing.
func newObserver(stop func()) *observer {
	return &observer{expected: map[string]expectation{}, observed: map[string]int32{}, progress: make(chan struct{}, 1),
		stop: stop}
}

// observe watches the Foos of a namespace.
func (p *plane) observe(ctx context.Context, namespace string) *observer {
	ctx, stop := context.WithCancel(ctx)
	o := newObserver(stop)
	go measure.Follow(ctx, p.watching, &samplev1alpha1.FooList{}, o.record, client.InNamespace(namespace))
	return o
}

// record records the status of a Foo.
func (o *observer) record(event watch.EventType, object client.Object) {
	now := time.Now()
	foo := object.(*samplev1alpha1.Foo)
	o.mu.Lock()
	defer o.mu.Unlock()
	if event == watch.Deleted {
		delete(o.observed, foo.Name)
		return
	}
	o.observed[foo.Name] = foo.Status.AvailableReplicas
	o.check(foo.Name, now)
}

// expect sets what the status of a Foo is to report.
func (o *observer) expect(name string, replicas int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.expected[name] = expectation{replicas, time.Now()}
	o.check(name, time.Now())
}

// check records a Foo whose status is as expected. The lock is held.
func (o *observer) check(name string, now time.Time) {
	wanted, isExpected := o.expected[name]
	if replicas, isObserved := o.observed[name]; !isExpected || !isObserved || replicas != wanted.replicas {
		return
	}
	delete(o.expected, name)
	o.done = append(o.done, convergence{wanted.since, now})
	select {
	case o.progress <- struct{}{}:
	default:
	}
}

// wait waits until no more than so many Foos are pending, or the context ends, and returns how many are.
func (o *observer) wait(ctx context.Context, atMost int) (pending int) {
	for {
		o.mu.Lock()
		pending = len(o.expected)
		o.mu.Unlock()
		if pending <= atMost || ctx.Err() != nil {
			return pending
		}
		select {
		case <-o.progress:
		case <-ctx.Done():
		}
	}
}

// take returns the convergences since the last call, in their order, and forgets them and what is still expected.
func (o *observer) take() []convergence {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := o.done
	o.done = nil
	clear(o.expected)
	slices.SortFunc(done, func(a, b convergence) int { return a.to.Compare(b.to) })
	return done
}

// latency is a distribution of seconds.
type latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func latencyOf(done []convergence) latency {
	seconds := each(done, func(c convergence) float64 { return c.to.Sub(c.from).Seconds() })
	slices.Sort(seconds)
	return latency{measure.Percentile(seconds, 50), measure.Percentile(seconds, 99)}
}
