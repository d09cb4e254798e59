package contract

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/recent"
	"github.com/example/memcached-operator/internal/status"
	"github.com/example/memcached-operator/test/testenv"
)

// These specs use the packages of the operator directly, with a cache that never changes. No manager runs that would
// write the same objects.
var _ = Describe("With a cache that is behind, the operator", ownManager, SpecPriority(1), func() {
	var (
		ns    string
		owner *cachev1alpha1.Memcached
	)
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx)
		stop()
		owner = newMemcached(ns, "one", 0)
		Expect(k8s.Create(ctx, owner)).To(Succeed())
	})

	// frozen returns children whose cache always has one object, or none.
	frozen := func(cached *corev1.Service) *child.Client {
		stale := interceptor.NewClient(k8s, interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object,
				_ ...client.GetOption) error {
				if cached == nil {
					return apierrors.NewNotFound(corev1.Resource("services"), key.Name)
				}
				cached.DeepCopyInto(into.(*corev1.Service))
				return nil
			},
		})
		return child.New(client.WithFieldOwner(stale, string(child.FieldOwner)), k8s, clock.RealClock{})
	}
	want := func() *corev1ac.ServiceApplyConfiguration {
		return corev1ac.Service("it", ns).WithSpec(corev1ac.ServiceSpec().
			WithSelector(map[string]string{"owned": "yes"}).
			WithPorts(corev1ac.ServicePort().WithPort(11211).WithProtocol(corev1.ProtocolTCP)))
	}
	// apply does what a pass does with a child: it reads the child once and applies the desired state to that version.
	apply := func(ctx context.Context, c *child.Client, pass *child.Pass) (*corev1.Service, error) {
		GinkgoHelper()
		observed, err := child.Get[corev1.Service](ctx, c, nil, ns, "it")
		Expect(err).NotTo(HaveOccurred())
		return child.Apply(ctx, c, pass, observed, want())
	}
	// deletedChild returns a child that was applied and then deleted.
	deletedChild := func(ctx context.Context) *corev1.Service {
		GinkgoHelper()
		applied, err := apply(ctx, frozen(nil), &child.Pass{Owner: owner})
		Expect(err).NotTo(HaveOccurred())
		Expect(k8s.Delete(ctx, applied.DeepCopy())).To(Succeed())
		return applied
	}
	createUnmanaged := func(ctx context.Context) *corev1.Service {
		GinkgoHelper()
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "it"},
			Spec: corev1.ServiceSpec{Selector: map[string]string{"unmanaged": "yes"},
				Ports: []corev1.ServicePort{{Port: 80}}},
		}
		Expect(k8s.Create(ctx, service)).To(Succeed())
		return service
	}

	It("does not take over an unmanaged object that the cache does not have yet", func(ctx context.Context) {
		unmanaged := createUnmanaged(ctx)
		before := resourceVersions(ctx, unmanaged)
		_, err := apply(ctx, frozen(nil), &child.Pass{Owner: owner})
		Expect(err).To(MatchError(ContainSubstring(`Service "it" exists and is not controlled by anything`)))
		Expect(child.ToRetry(err)).NotTo(HaveOccurred())
		Expect(resourceVersions(ctx, unmanaged)).To(Equal(before))
	})

	It("does not take over the child that it has created for another resource", func(ctx context.Context) {
		former := owner.DeepCopy()
		Expect(k8s.Delete(ctx, owner)).To(Succeed())
		owner = newMemcached(ns, "one", 0)
		Expect(k8s.Create(ctx, owner)).To(Succeed())
		unmanaged, err := apply(ctx, frozen(nil), &child.Pass{Owner: owner})
		Expect(err).NotTo(HaveOccurred())
		before := unmanaged.ResourceVersion
		_, err = apply(ctx, frozen(nil), &child.Pass{Owner: former})
		Expect(err).To(MatchError(ContainSubstring(`Service "it" exists and is controlled by Memcached "one"`)))
		Expect(child.ToRetry(err)).NotTo(HaveOccurred())
		Expect(get(ctx, unmanaged.DeepCopy()).ResourceVersion).To(Equal(before))
	})

	It("does not recreate a child of a deleted resource", func(ctx context.Context) {
		former := owner.DeepCopy()
		Expect(k8s.Delete(ctx, owner)).To(Succeed())
		_, err := apply(ctx, frozen(nil), &child.Pass{Owner: former, HadChildren: true})
		Expect(recent.IsBehind(err)).To(BeTrue(), "%v", err)
		Expect(isGone(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "it"}})(ctx)).To(BeTrue())
	})

	It("does not write over the object that replaced its child", func(ctx context.Context) {
		owned := deletedChild(ctx)
		unmanaged := createUnmanaged(ctx)
		owned.Spec.Selector = nil // a difference to repair
		_, err := apply(ctx, frozen(owned), &child.Pass{Owner: owner})
		Expect(err).To(MatchError(ContainSubstring(`Service "it" exists and is not controlled by anything`)))
		Expect(get(ctx, unmanaged).Spec.Selector).To(Equal(map[string]string{"unmanaged": "yes"}))
		Expect(unmanaged.OwnerReferences).To(BeEmpty())
	})

	It("retries when its child was recreated", func(ctx context.Context) {
		first := deletedChild(ctx)
		_, err := apply(ctx, frozen(nil), &child.Pass{Owner: owner})
		Expect(err).NotTo(HaveOccurred())
		first.Spec.Selector = nil // a difference to repair
		_, err = apply(ctx, frozen(first), &child.Pass{Owner: owner})
		Expect(recent.IsBehind(err)).To(BeTrue(), "%v", err)
	})

	It("does not create a deleted child that the cache still shows", func(ctx context.Context) {
		owned := deletedChild(ctx)
		owned.Spec.Selector = nil // a difference to repair
		_, err := apply(ctx, frozen(owned), &child.Pass{Owner: owner})
		Expect(recent.IsBehind(err)).To(BeTrue(), "%v", err)
		Expect(isGone(owned)(ctx)).To(BeTrue())
	})

	It("changes a newer version of its child than was observed, but not for an outdated spec", func(ctx context.Context) {
		older, err := apply(ctx, frozen(nil), &child.Pass{Owner: owner})
		Expect(err).NotTo(HaveOccurred())
		newer := older.DeepCopy()
		edit(ctx, newer, func(service *corev1.Service) {
			service.Labels = map[string]string{"new": "yes"}
			service.Spec.Selector = map[string]string{"another": "yes"}
		})
		older.Spec.Selector = nil // a difference to repair

		outdated := owner.DeepCopy()
		owner.Spec.Size = 1
		Expect(k8s.Update(ctx, owner)).To(Succeed())
		_, err = apply(ctx, frozen(older), &child.Pass{Owner: outdated})
		Expect(recent.IsBehind(err)).To(BeTrue(), "%v", err)
		Expect(get(ctx, newer).Spec.Selector).To(HaveKey("another"))

		changed, err := apply(ctx, frozen(older), &child.Pass{Owner: owner})
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Spec.Selector).To(Equal(want().Spec.Selector))
		Expect(changed.Labels).To(HaveKey("new"))
	})

	It("does not delete the object that replaced its child", func(ctx context.Context) {
		owned := deletedChild(ctx)
		unmanaged := createUnmanaged(ctx)
		Expect(recent.IsBehind(frozen(owned).Delete(ctx, owner, owned))).To(BeTrue())
		Expect(get(ctx, unmanaged).DeletionTimestamp).To(BeNil())
	})

	It("refuses to delete an object that it does not control", func(ctx context.Context) {
		unmanaged := createUnmanaged(ctx)
		Expect(frozen(unmanaged).Delete(ctx, owner, unmanaged)).
			To(MatchError(ContainSubstring("is not controlled by anything")))
		Expect(get(ctx, unmanaged).DeletionTimestamp).To(BeNil())
	})

	It("gives a child back to its owner only as both were observed", func(ctx context.Context) {
		children := frozen(nil)
		service, err := apply(ctx, children, &child.Pass{Owner: owner})
		Expect(err).NotTo(HaveOccurred())
		lose := func(service *corev1.Service) { service.OwnerReferences = nil }
		lost := service.DeepCopy()
		edit(ctx, lost, lose)
		older := lost.DeepCopy()
		edit(ctx, lost, func(service *corev1.Service) { service.Labels = map[string]string{"new": "yes"} })
		_, err = child.Adopt(ctx, children, owner, older)
		Expect(recent.IsBehind(err)).To(BeTrue(), "%v", err)
		adopted, err := child.Adopt(ctx, children, owner, lost)
		Expect(err).NotTo(HaveOccurred())
		Expect(metav1.IsControlledBy(adopted, owner)).To(BeTrue())
		Expect(adopted.Labels).To(HaveKey("new"))

		edit(ctx, lost, lose)
		Expect(k8s.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		_, err = child.Adopt(ctx, children, owner, lost)
		Expect(recent.IsBehind(err)).To(BeTrue(), "%v", err)
		_, err = child.Apply(ctx, children, &child.Pass{Owner: owner}, lost, want())
		Expect(recent.IsBehind(err)).To(BeTrue(), "%v", err)
		Expect(get(ctx, lost).OwnerReferences).To(BeEmpty())
	})

	It("succeeds in deleting a child that does not exist", func(ctx context.Context) {
		owned := deletedChild(ctx)
		Expect(frozen(owned).Delete(ctx, owner, owned)).To(Succeed())
	})

	It("confirms that a resource is still as it was observed", func(ctx context.Context) {
		services, seen := frozen(nil), get(ctx, owner).DeepCopy()
		Expect(services.Confirm(ctx, seen)).To(Succeed())

		owner.Spec.Size = 1
		Expect(k8s.Update(ctx, owner)).To(Succeed())
		Expect(recent.IsBehind(services.Confirm(ctx, seen))).To(BeTrue(), "its spec has changed")

		seen = get(ctx, owner).DeepCopy()
		Expect(k8s.Delete(ctx, owner)).To(Succeed())
		Expect(recent.IsBehind(services.Confirm(ctx, seen))).To(BeTrue(), "it was deleted")

		Expect(k8s.Create(ctx, newMemcached(ns, "one", 1))).To(Succeed())
		seen.Generation = 1
		Expect(recent.IsBehind(services.Confirm(ctx, seen))).To(BeTrue(), "another resource has its name")
	})

	It("does not give a resource the status of an earlier one of its name", func(ctx context.Context) {
		before := get(ctx, owner).DeepCopy()
		writer := newWriter()
		Expect(k8s.Delete(ctx, owner)).To(Succeed())
		again := newMemcached(ns, "one", 1)
		Expect(k8s.Create(ctx, again)).To(Succeed())

		after := before.DeepCopy()
		after.Status.ReadyNodes, after.Status.Nodes = 7, []string{}
		stored, _, err := status.Patch(ctx, writer, before, after, true)
		Expect(recent.IsBehind(err)).To(BeTrue(), "%v", err)
		Expect(stored).To(BeNil())
		Expect(get(ctx, again).Status.ReadyNodes).To(BeZero())

		after = again.DeepCopy()
		after.Status.ReadyNodes, after.Status.Nodes = 7, []string{}
		stored, _, err = status.Patch(ctx, writer, again, after, true)
		Expect(err).NotTo(HaveOccurred())
		Expect(stored.Status.ReadyNodes).To(Equal(int32(7)))
	})

	It("does not write a CronJob's status over one that it has not observed", func(ctx context.Context) {
		object := newCronJob(ns, "one", "@yearly")
		Expect(k8s.Create(ctx, object)).To(Succeed())
		older := object.DeepCopy()
		// The API server decides, not the memory of this writer.
		write := func(over *tutorialv1.CronJob, lastRun metav1.Time) error {
			after := over.DeepCopy()
			after.Status.LastScheduleTime = &lastRun
			stored, _, err := status.Patch(ctx, newWriter(), over, after, true)
			Expect(stored != nil).To(Equal(err == nil))
			return err
		}
		now := metav1.Now().Rfc3339Copy()
		Expect(write(object, now)).To(Succeed())
		Expect(recent.IsBehind(write(older, metav1.NewTime(now.Add(-time.Hour))))).To(BeTrue())
		Expect(get(ctx, object).Status.LastScheduleTime.Equal(&now)).To(BeTrue())
		Expect(write(object, metav1.NewTime(now.Add(time.Hour)))).To(Succeed())
	})

	It("does not repeat a write that the cache does not show yet", func(ctx context.Context) {
		children := frozen(nil)
		first, err := apply(ctx, children, &child.Pass{Owner: owner})
		Expect(err).NotTo(HaveOccurred())
		mark := cp.Audit.Now()
		second, err := apply(ctx, children, &child.Pass{Owner: owner})
		Expect(err).NotTo(HaveOccurred())
		Expect(second).To(Equal(first))
		Consistently(func() int { return len(cp.Audit.Since(mark, testenv.In(ns))) }).
			WithTimeout(300 * 1e6).Should(BeZero())
	})
})

// newWriter returns a writer as the controllers have.
func newWriter() *status.Writer {
	return status.NewWriter("Test", k8s, k8s, clock.RealClock{}, client.Object.GetGeneration)
}
