package contract

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	testkinds "github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

var _ = Describe("Foo", func() {
	k := kinds[0]
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	deploymentOf := func(name string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	rename := func(ctx context.Context, foo *samplev1alpha1.Foo, name string) {
		GinkgoHelper()
		edit(ctx, foo, func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = name })
	}

	It("creates the Deployment of the sample-controller", func(ctx context.Context) {
		foo := newFoo(ns, "example", "web", ptr.To[int32](2))
		k.create(ctx, foo)
		deployment := get(ctx, deploymentOf("web"))
		Expect(deployment.Labels).To(And(HaveKeyWithValue("app", "nginx"), HaveKeyWithValue("controller", "example")))
		Expect(deployment.Spec.Selector.MatchLabels).To(Equal(map[string]string{"app": "nginx", "controller": "example"}))
		Expect(deployment.Spec.Template.Spec.Containers).To(HaveLen(1))
		Expect(deployment.Spec.Template.Spec.Containers[0].Name).To(Equal("nginx"))
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:latest"))
		Expect(get(ctx, foo).Status).To(And(
			HaveField("AvailableReplicas", int32(2)), HaveField("Replicas", int32(2)),
			HaveField("Selector", "app=nginx,controller=example")))
	})

	It("reports availableReplicas as the Deployment does, up and down", func(ctx context.Context) {
		holding := newNamespace(ctx, testenv.HoldPods)
		foo := newFoo(holding, "example", "web", ptr.To[int32](3))
		Expect(k8s.Create(ctx, foo)).To(Succeed())
		pods := podsOf(ctx, holding, 3)
		for i := range pods {
			Expect(cp.SetPodReady(ctx, &pods[i])).To(Succeed())
			Eventually(ctx, func() int32 { return get(ctx, foo).Status.AvailableReplicas }).Should(Equal(int32(i + 1)))
		}
		k.eventually(ctx, foo, "Available=True/AllReplicasAvailable")
		Expect(k8s.Delete(ctx, &pods[0])).To(Succeed())
		k.eventually(ctx, foo, "Available=True/SomeReplicasAvailable")
		Expect(foo.Status.AvailableReplicas).To(Equal(int32(2)))
	})

	It("deletes the old Deployment when deploymentName changes", func(ctx context.Context) {
		foo := newFoo(ns, "example", "old", ptr.To[int32](1))
		k.create(ctx, foo)
		rename(ctx, foo, "new")
		Eventually(ctx, isGone(deploymentOf("old"))).Should(BeTrue())
		Eventually(ctx, k.conditionsOf(foo)).Should(settled)
		k.own(ctx, foo)
	})

	It("keeps the Deployment it has, and repairs and scales it, while the new name is taken", func(ctx context.Context) {
		unmanaged := testkinds.NewDeployment(ns, "taken", 0)
		Expect(k8s.Create(ctx, unmanaged)).To(Succeed())
		foo, later := newFoo(ns, "example", "old", ptr.To[int32](1)), newFoo(ns, "later", "older", ptr.To[int32](1))
		k.create(ctx, foo)
		k.create(ctx, later)
		for _, foo := range []*samplev1alpha1.Foo{foo, later} {
			rename(ctx, foo, "taken")
			k.eventually(ctx, foo, "Degraded=True/NameTaken", "Available=True/AllReplicasAvailable")
		}
		Eventually(ctx, eventsAbout).WithArguments(foo).Should(ContainElement(
			`Warning ErrResourceExists: Resource "taken" already exists and is not managed by Foo`))
		Consistently(ctx, isGone(deploymentOf("old"))).WithTimeout(time.Second).Should(BeFalse())

		older := deploymentOf("older")
		edit(ctx, older, func(d *appsv1.Deployment) { d.OwnerReferences, d.Spec.Replicas = nil, ptr.To[int32](5) })
		Eventually(ctx, func(g Gomega) {
			g.Expect(metav1.IsControlledBy(get(ctx, older), later)).To(BeTrue())
			g.Expect(older.Spec.Replicas).To(HaveValue(Equal(int32(1))))
		}).Should(Succeed())
		edit(ctx, later, func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = ptr.To[int32](2) })
		Eventually(ctx, func() *int32 { return get(ctx, older).Spec.Replicas }).Should(HaveValue(Equal(int32(2))))
		k.eventually(ctx, later, "Degraded=True/NameTaken")
		Expect(k8s.Delete(ctx, later)).To(Succeed())
		Eventually(ctx, isGone(older)).Should(BeTrue())

		Expect(k8s.Delete(ctx, unmanaged)).To(Succeed())
		Eventually(ctx, isGone(deploymentOf("old"))).Should(BeTrue())
		Eventually(ctx, k.conditionsOf(foo)).Should(settled)
	})

	It("makes one of two Foos with the same deploymentName wait for the other", func(ctx context.Context) {
		foos := []*samplev1alpha1.Foo{newFoo(ns, "a", "web", ptr.To[int32](1)), newFoo(ns, "b", "web", ptr.To[int32](1))}
		for _, foo := range foos {
			Expect(k8s.Create(ctx, foo)).To(Succeed())
		}
		degraded := func(status string) int {
			n := 0
			for _, foo := range foos {
				if k.conditionsOf(foo)(ctx)["Degraded"] == status {
					n++
				}
			}
			return n
		}
		Eventually(ctx, func() []int {
			return []int{degraded("False/AsExpected"), degraded("True/NameTaken")}
		}).Should(Equal([]int{1, 1}))
		holder := metav1.GetControllerOf(get(ctx, deploymentOf("web")))
		winner, loser := foos[0], foos[1]
		if holder.UID == loser.UID {
			winner, loser = loser, winner
		}
		Expect(holder.UID).To(Equal(winner.UID))
		Eventually(ctx, eventsAbout).WithArguments(loser).Should(ConsistOf(HavePrefix("Warning ErrResourceExists")))
		Expect(k.message(loser, "Degraded")).To(ContainSubstring(fmt.Sprintf("controlled by Foo %q", winner.Name)))

		Expect(k8s.Delete(ctx, winner)).To(Succeed())
		Eventually(ctx, k.conditionsOf(loser)).Should(settled)
		k.own(ctx, loser)
	})

	DescribeTable("swaps the Deployments of Foos that swap names", func(ctx context.Context, names ...string) {
		var foos []*samplev1alpha1.Foo
		for _, name := range names {
			foos = append(foos, newFoo(ns, "foo-"+name, name, ptr.To[int32](1)))
			k.create(ctx, foos[len(foos)-1])
		}
		for i, foo := range foos {
			rename(ctx, foo, names[(i+1)%len(names)])
		}
		for _, foo := range foos {
			Eventually(ctx, k.conditionsOf(foo)).Should(settled)
			k.own(ctx, foo)
		}
		var deployments appsv1.DeploymentList
		Expect(k8s.List(ctx, &deployments, client.InNamespace(ns))).To(Succeed())
		Expect(deployments.Items).To(HaveLen(len(names)))
	},
		Entry("two", "a", "b"),
		Entry("three, in a circle", "a", "b", "c"))

	Describe("without spec.replicas", func() {
		It("starts with one pod and does not change the number", func(ctx context.Context) {
			foo := newFoo(ns, "example", "web", nil)
			k.create(ctx, foo)
			deployment := get(ctx, deploymentOf("web"))
			Expect(*deployment.Spec.Replicas).To(Equal(int32(1)))

			kubectl("-n", ns, "scale", "deployment", "web", "--replicas=4")
			Eventually(ctx, func() int32 { return get(ctx, foo).Status.AvailableReplicas }).Should(Equal(int32(4)))

			By("changing another field")
			edit(ctx, deployment, func(deployment *appsv1.Deployment) { delete(deployment.Labels, "app") })
			Eventually(ctx, func() map[string]string { return get(ctx, deployment).Labels }).Should(HaveKey("app"))
			Expect(*deployment.Spec.Replicas).To(Equal(int32(4)))

			By("removing the annotation by which the cache selects what to keep")
			edit(ctx, deployment, func(deployment *appsv1.Deployment) { deployment.Annotations = nil })
			Eventually(ctx, func() map[string]string { return get(ctx, deployment).Annotations }).
				Should(HaveKey("memcached-operator.example.com/owner-uid"))
			Expect(*deployment.Spec.Replicas).To(Equal(int32(4)))
		})

		It("keeps the number of pods when spec.replicas is removed", func(ctx context.Context) {
			foo := newFoo(ns, "example", "web", ptr.To[int32](3))
			k.create(ctx, foo)
			mark := cp.Audit.Now()
			edit(ctx, foo, func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = nil })
			Eventually(ctx, k.conditionsOf(foo)).Should(settled)
			Expect(*get(ctx, deploymentOf("web")).Spec.Replicas).To(Equal(int32(3)))
			Expect(requests(mark, ns, isOf("deployments"))).To(BeEmpty())

			kubectl("-n", ns, "scale", "deployment", "web", "--replicas=2")
			Consistently(ctx, func() int32 { return *get(ctx, deploymentOf("web")).Spec.Replicas }).WithTimeout(2 * time.Second).
				Should(Equal(int32(2)))
		})
	})

	It("can be scaled by kubectl without spec.replicas", func(ctx context.Context) {
		foo := newFoo(ns, "example", "web", nil)
		k.create(ctx, foo)
		kubectl("-n", ns, "scale", "foo", "example", "--replicas=2")
		Eventually(ctx, func() int32 { return get(ctx, foo).Status.AvailableReplicas }).Should(Equal(int32(2)))
	})

	It("reverts a volume that was replaced by one of another type", func(ctx context.Context) {
		k.create(ctx, newFoo(ns, "example", "web", nil))
		deployment := get(ctx, deploymentOf("web"))
		wanted := deployment.Spec.DeepCopy()
		edit(ctx, deployment, func(deployment *appsv1.Deployment) {
			deployment.Spec.Template.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "theirs"}}}
		})
		Eventually(ctx, func() appsv1.DeploymentSpec { return get(ctx, deployment).Spec }).Should(Equal(*wanted))
	})

	It("runs no pod with replicas 0, and is available", func(ctx context.Context) {
		foo := newFoo(ns, "example", "web", ptr.To[int32](0))
		k.create(ctx, foo)
		Expect(k.conditionsOf(foo)(ctx)).To(HaveKeyWithValue("Available", "True/ScaledToZero"))
	})

	It("shows its columns", func(ctx context.Context) {
		k.create(ctx, newFoo(ns, "example", "web", ptr.To[int32](2)))
		Expect(kubectl("-n", ns, "get", "fo")).To(MatchRegexp(`^NAME +DEPLOYMENT +DESIRED +AVAILABLE +READY +AGE\nexample +web +2 +2 +True +\d+s$`))
	})
})
