package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// makers is how many requests that make or change Foos are under way at most.
const makers = 16

// load is how Foos are made or changed.
type load struct {
	count int
	// underWay is how many may be not yet as they should be; 0 for any number.
	underWay int
	// rate is how many there are in a second, whatever becomes of them; 0 for as many as can be.
	rate float64
	// limit is how long all of them may take. Default: long enough for all but the slowest.
	limit time.Duration
	// mayLack says that when the time is up, it is no error if not all Foos are as they should be.
	mayLack bool
}

// of returns the load for an arm: the stock sample-controller makes as much of it as it can in a time, and all others make all of it.
func (l load) of(a arm, stockTime time.Duration) load {
	if a.name == stock.name {
		l.limit, l.mayLack = stockTime, true
	}
	return l
}

// run does something count times, as the load says, and waits until all Foos are as they should be. What is done is given a number, the
// time since when its effect is waited for, and what to call when it is there. It is an error if the time is up before, unless the load
// may lack some.
func (l load) run(ctx context.Context, o *observer, do func(number int, since time.Time, reached func()) error) error {
	limit := l.limit
	if limit == 0 {
		limit = time.Minute + time.Duration(l.count)*100*time.Millisecond
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	room := make(chan struct{}, max(l.underWay, 1))
	numbers := make(chan int)
	begun := time.Now()
	wait := work(numbers, func(number int) error {
		since, reached := time.Now(), func() {}
		if l.rate > 0 {
			since = begun.Add(l.after(number)) // when it should have been done: whoever is slow must not slow down the clock
		}
		if l.underWay > 0 {
			reached = func() { <-room }
		}
		err := do(number, since, reached)
		if err != nil {
			cancel()
		}
		return err
	})
	handed := l.hand(ctx, numbers, room, begun, limit)
	if err := wait(); err != nil {
		return err
	}
	missing, err := o.wait(ctx, limit-time.Since(begun))
	missing += l.count - handed
	if err != nil || missing == 0 || l.mayLack {
		return err
	}
	return fmt.Errorf("the time is up: %d of %d Foos are as they should be after %s", l.count-missing, l.count, limit)
}

// work has makers do something with the numbers that come. To wait closes numbers, and returns what has gone wrong.
func work(numbers chan int, do func(number int) error) (wait func() error) {
	errs := make([]error, makers)
	var working sync.WaitGroup
	for i := range errs {
		working.Go(func() {
			for number := range numbers {
				errs[i] = errors.Join(errs[i], do(number))
			}
		})
	}
	return func() error {
		close(numbers)
		working.Wait()
		return errors.Join(errs...)
	}
}

// hand hands out all numbers at their times, until the time is up, and returns how many it has.
func (l load) hand(ctx context.Context, numbers chan<- int, room chan struct{}, begun time.Time, limit time.Duration) int {
	timeUp := time.After(limit)
	for number := range l.count {
		if l.underWay > 0 {
			select {
			case room <- struct{}{}:
			case <-timeUp:
				return number
			case <-ctx.Done():
				return number
			}
		}
		if l.rate > 0 {
			time.Sleep(time.Until(begun.Add(l.after(number))))
		}
		select {
		case numbers <- number:
		case <-ctx.Done():
			return number
		}
	}
	return l.count
}

func (l load) after(number int) time.Duration {
	return time.Duration(float64(number) / l.rate * float64(time.Second))
}

// makeFoos makes Foos whose names begin alike, and waits until they are as they should be.
func (p *plane) makeFoos(ctx context.Context, namespace, prefix string, o *observer, l load) error {
	return l.run(ctx, o, func(number int, since time.Time, reached func()) error {
		return p.makeFoo(ctx, namespace, fmt.Sprintf("%s-%05d", prefix, number), since, reached, o)
	})
}

// makeFoo makes a Foo that is waited for since a time.
func (p *plane) makeFoo(ctx context.Context, namespace, name string, since time.Time, reached func(), o *observer) error {
	o.expect(name, 1, since, reached)
	return p.making.Create(ctx, &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To[int32](1)},
	})
}

// scaleFoos gives Foos that makeFoos has made another number of replicas, and waits until they are as they should be. Of the Foos there
// are it takes some that are far apart.
func (p *plane) scaleFoos(ctx context.Context, namespace, prefix string, there int, replicas int32, o *observer, l load) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	return l.run(ctx, o, func(number int, since time.Time, reached func()) error {
		name := fmt.Sprintf("%s-%05d", prefix, number*there/l.count)
		o.expect(name, replicas, since, reached)
		return p.making.Patch(ctx, &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, patch)
	})
}
