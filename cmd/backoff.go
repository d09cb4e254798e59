package main

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// firstRetry is the delay of the first retry after a success.
const firstRetry = 100 * time.Millisecond

// backOff delays the retries of failed passes. Each delay of a resource is twice the one before, up to the longest. So
// the first retry after an outage comes at most as long after it as the outage lasted.
//
// A pass that an event triggers may fail, too, before the retry is due. It does not change when that is: with the rate
// limiters of client-go, ten events in the first second of a rollout would delay the retry by a minute.
type backOff struct {
	longest time.Duration
	clock   clock.PassiveClock

	mu      sync.Mutex
	retries map[reconcile.Request]retry
}

// retry is when the next retry of a resource is due, its delay, and how many passes have failed since the last success.
type retry struct {
	due      time.Time
	delay    time.Duration
	failures int
}

var _ workqueue.TypedRateLimiter[reconcile.Request] = &backOff{}

func newBackOff(longest time.Duration, clock clock.PassiveClock) *backOff {
	return &backOff{longest: longest, clock: clock, retries: map[reconcile.Request]retry{}}
}

// When returns the time until the next retry of a resource of which a pass has just failed.
func (b *backOff) When(failed reconcile.Request) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, known := b.clock.Now(), b.retries[failed]
	known.failures++
	if !known.due.After(now) {
		known.delay = min(max(2*known.delay, firstRetry), b.longest)
		known.due = now.Add(known.delay)
	}
	b.retries[failed] = known
	return known.due.Sub(now)
}

// Forget makes the next failure of a resource the first one.
func (b *backOff) Forget(succeeded reconcile.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.retries, succeeded)
}

// NumRequeues returns how many passes of a resource have failed since the last success.
func (b *backOff) NumRequeues(failed reconcile.Request) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.retries[failed].failures
}
