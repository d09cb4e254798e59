package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestBackOff(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	b := newBackOff(time.Second, clock)
	failed := reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}}

	for _, delay := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
		g.Expect(b.When(failed)).To(Equal(delay * time.Millisecond))
		clock.Step(delay * time.Millisecond / 2)
		g.Expect(b.When(failed)).To(Equal(delay*time.Millisecond/2), "a pass before the retry does not delay it")
		clock.Step(delay * time.Millisecond / 2)
	}
	g.Expect(b.NumRequeues(failed)).To(Equal(12))
	g.Expect(b.When(reconcile.Request{})).To(Equal(100*time.Millisecond), "another resource has its own delays")

	b.Forget(failed)
	g.Expect(b.NumRequeues(failed)).To(BeZero())
	g.Expect(b.When(failed)).To(Equal(100 * time.Millisecond))
}
