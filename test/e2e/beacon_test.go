package e2e

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// beacon changes a Foo without pods again and again, each time when the operator has answered the last change, and
// measures how long the answers take.
type beacon struct {
	foo     *samplev1alpha1.Foo
	cancel  context.CancelFunc
	done    chan error
	answers chan time.Duration
	longest time.Duration
}

// startBeacon makes the Foo and waits for the first answer.
func startBeacon(ctx context.Context, namespace string) *beacon {
	b := &beacon{
		foo: &samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "beacon"},
			Spec:       samplev1alpha1.FooSpec{DeploymentName: "beacon", Replicas: ptr.To(int32(0))},
		},
		done:    make(chan error, 1),
		answers: make(chan time.Duration, 100_000),
	}
	create(ctx, b.foo)
	// It outlives the node of the suite that has started it, and not the spec.
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.cancel = cancel
	DeferCleanup(cancel)
	go func() { b.done <- b.loop(loop) }()
	b.awaitAnswer(ctx)
	return b
}

func (b *beacon) loop(ctx context.Context) error {
	defer close(b.answers)
	for replicas := int32(0); ; {
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
		select {
		case <-ctx.Done():
			return nil
		case b.answers <- time.Since(began):
		}
		// Its own count and nobody's take turns: the spec changes, and nothing has to be done.
		change := client.MergeFrom(b.foo.DeepCopy())
		if b.foo.Spec.Replicas == nil {
			b.foo.Spec.Replicas = &replicas
		} else {
			b.foo.Spec.Replicas = nil
		}
		if err := kube.Patch(ctx, b.foo, change); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// awaitAnswer waits for the answer to a change that was made after the call.
func (b *beacon) awaitAnswer(ctx context.Context) {
	for { // those of before
		select {
		case answer, more := <-b.answers:
			b.longest = max(b.longest, answer)
			if more {
				continue
			}
		default:
		}
		break
	}
	for range 2 { // the first may be to a change of before
		select {
		case answer, more := <-b.answers:
			b.longest = max(b.longest, answer)
			if !more {
				Expect(errors.Join(errors.New("the beacon has ended"), <-b.done)).NotTo(HaveOccurred())
			}
		case <-ctx.Done():
			Expect(ctx.Err()).NotTo(HaveOccurred(), "the operator answers no changes any more")
		}
	}
}

// stop ends the changes and returns the longest time that an answer took.
func (b *beacon) stop() time.Duration {
	b.cancel()
	Expect(<-b.done).To(Succeed())
	for answer := range b.answers {
		b.longest = max(b.longest, answer)
	}
	return b.longest
}
