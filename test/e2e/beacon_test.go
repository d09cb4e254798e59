package e2e

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// beacon changes a Foo without pods, again whenever the operator has observed the last change, and measures how long
// that takes.
type beacon struct {
	foo      *samplev1alpha1.Foo
	observed atomic.Int64 // changes
	longest  time.Duration
	end      func()
}

// startBeacon creates the Foo and waits until the operator observes changes.
func startBeacon(ctx context.Context, namespace string) *beacon {
	b := &beacon{foo: &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "beacon"},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: "beacon", Replicas: ptr.To(int32(0))},
	}}
	create(ctx, b.foo)
	b.end = inBackground(ctx, b.loop)
	b.awaitChange(ctx)
	return b
}

func (b *beacon) loop(ctx context.Context) error {
	for {
		began := time.Now()
		for b.foo.Status.ObservedGeneration != b.foo.Generation {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(20 * time.Millisecond):
			}
			if err := kube.Get(ctx, client.ObjectKeyFromObject(b.foo), b.foo); err != nil && ctx.Err() == nil {
				return err
			}
		}
		b.longest = max(b.longest, time.Since(began))
		b.observed.Add(1)
		// 0 replicas and no number of replicas, in turn: the spec changes, but the Deployment does not.
		before := client.MergeFrom(b.foo.DeepCopy())
		if b.foo.Spec.Replicas == nil {
			b.foo.Spec.Replicas = ptr.To(int32(0))
		} else {
			b.foo.Spec.Replicas = nil
		}
		if err := kube.Patch(ctx, b.foo, before); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// awaitChange waits until the operator observes a change that is made after the call: the second one from now on.
func (b *beacon) awaitChange(ctx context.Context) {
	GinkgoHelper()
	want := b.observed.Load() + 2
	Eventually(b.observed.Load).WithContext(ctx).Should(BeNumerically(">=", want), "the operator observes no changes")
}

// stop stops changing the Foo and returns the longest time until the operator observed a change.
func (b *beacon) stop() time.Duration {
	GinkgoHelper()
	b.end()
	return b.longest
}

// inBackground runs work until stop is called or the spec ends: until the context of work ends. Stop waits for work to
// return, and fails if it returns an error.
func inBackground(ctx context.Context, work func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	return func() {
		GinkgoHelper()
		cancel()
		Expect(<-done).To(Succeed())
	}
}
