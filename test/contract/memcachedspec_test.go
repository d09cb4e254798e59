package contract

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	testkinds "github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

// The fields of a Memcached whose effects the specs of every kind do not cover.
var _ = Describe("The spec of a Memcached", func() {
	k := kinds[1]
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	memory := func(quantity string) *resource.Quantity { return ptr.To(resource.MustParse(quantity)) }
	limit := func(quantity string) *cachev1alpha1.Resources {
		return &cachev1alpha1.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(quantity)}}
	}

	DescribeTable("is not applied while its fields contradict each other, and names the one to change",
		func(ctx context.Context, contradict, correct func(*cachev1alpha1.MemcachedSpec), words string) {
			mc := newMemcached(ns, "one", 1)
			contradict(&mc.Spec)
			Expect(k8s.Create(ctx, mc)).To(Succeed())
			k.eventually(ctx, mc, "Degraded=True/InvalidSpec", "Progressing=False/Blocked", "Available=False/NoNodesReady")
			Expect(k.message(mc, "Degraded")).To(ContainSubstring(words))
			Eventually(ctx, eventsAbout).WithArguments(mc).Should(ConsistOf(HavePrefix("Warning InvalidSpec: ")))
			for _, child := range append(k.ChildrenOf(mc), testkinds.MemcachedSet.ChildrenOf(mc)...) {
				Expect(isGone(child)(ctx)).To(BeTrue(), "%T %s", child, child.GetName())
			}
			edit(ctx, mc, func(mc *cachev1alpha1.Memcached) { correct(&mc.Spec) })
			Eventually(ctx, k.conditionsOf(mc)).Should(settled)
		},
		Entry("a StatefulSet of 1001 nodes", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.WorkloadType, spec.Size = cachev1alpha1.StatefulSetWorkload, 1001
		}, func(spec *cachev1alpha1.MemcachedSpec) { spec.Size = 1 }, "spec.size must be at most 1000"),
		Entry("a limit below the memory for items", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.Config, spec.Resources = &cachev1alpha1.MemcachedConfig{Memory: memory("1Gi")}, limit("1023Mi")
		}, func(spec *cachev1alpha1.MemcachedSpec) { spec.Resources = nil },
			"spec.resources.limits.memory is 1023Mi, less than spec.config.memory, 1Gi"),
		Entry("items too large for the memory that fits the limit", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.Config, spec.Resources = &cachev1alpha1.MemcachedConfig{MaxItemSize: memory("32Mi")}, limit("120Mi")
		}, func(spec *cachev1alpha1.MemcachedSpec) { spec.Resources = limit("1Gi") },
			"spec.config.maxItemSize must be at most half of the memory for items"),
		Entry("TLS on the port of plaintext", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.TLS = cachev1alpha1.TLS{SecretName: "web", Port: 11211, Plaintext: cachev1alpha1.PlaintextEnabled}
		}, func(spec *cachev1alpha1.MemcachedSpec) { spec.TLS.Plaintext = "" },
			"spec.tls.port and spec.containerPort are both 11211"))

	DescribeTable("mounts the CA of clients", func(ctx context.Context, clients cachev1alpha1.ClientCertificates,
		argument string, want corev1.VolumeSource) {
		mc := newMemcached(ns, "one", 1)
		clients.Mode = cachev1alpha1.ClientCertificatesRequired
		mc.Spec.TLS = cachev1alpha1.TLS{SecretName: "web", ClientCertificates: clients}
		_, template := testkinds.Workload(k.own(ctx, k.create(ctx, mc))[0])
		Expect(template.Spec.Volumes).To(ContainElement(corev1.Volume{Name: "client-ca", VolumeSource: want}))
		for _, container := range template.Spec.InitContainers {
			Expect(container.Args).To(ContainElement(argument))
		}
	},
		Entry("from a Secret", cachev1alpha1.ClientCertificates{CASecretName: "clients"}, "--ca=Secret clients",
			corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "clients", Optional: ptr.To(true),
				DefaultMode: ptr.To[int32](0o644)}}),
		Entry("from a ConfigMap", cachev1alpha1.ClientCertificates{CAConfigMapName: "clients"}, "--ca=ConfigMap clients",
			corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{Optional: ptr.To(true),
				LocalObjectReference: corev1.LocalObjectReference{Name: "clients"}, DefaultMode: ptr.To[int32](0o644)}}))

	DescribeTable("cannot have a StatefulSet with this name", func(ctx context.Context, name string) {
		mc := newMemcached(ns, name, 1)
		mc.Spec.WorkloadType = cachev1alpha1.StatefulSetWorkload
		Expect(k8s.Create(ctx, mc)).To(Succeed())
		k.eventually(ctx, mc, "Degraded=True/InvalidSpec", "Progressing=False/Blocked")
		Expect(k.message(mc, "Degraded")).To(ContainSubstring("metadata.name must be a DNS label of at most 52 characters, " +
			"without dots: create a Memcached with another name"))
		Expect(mc.Status.Servers).To(BeEmpty())
	}, Entry("of 53 characters", strings.Repeat("a", 53)), Entry("with dots", "a.b"))

	It("leaves running nodes alone when it becomes invalid", func(ctx context.Context) {
		mc := newMemcached(ns, "one", 2)
		children := k.own(ctx, k.create(ctx, mc))
		before := resourceVersions(ctx, children...)
		edit(ctx, mc, func(mc *cachev1alpha1.Memcached) {
			mc.Spec.Size = 3
			mc.Spec.Resources, mc.Spec.Config = limit("63Mi"), &cachev1alpha1.MemcachedConfig{Memory: memory("64Mi")}
		})
		k.eventually(ctx, mc, "Degraded=True/InvalidSpec", "Available=True/SomeNodesReady",
			"MemorySufficient=False/LimitTooLow")
		Expect(resourceVersions(ctx, children...)).To(Equal(before))
		edit(ctx, mc, func(mc *cachev1alpha1.Memcached) { mc.Spec.Resources = nil })
		k.settle(ctx, mc)
		Expect(mc.Status.ReadyNodes).To(Equal(int32(3)))
	})

	It("stops the operator from writing children while it is paused, and the status is still reported",
		func(ctx context.Context) {
			mc := newMemcached(ns, "one", 2)
			children := k.own(ctx, k.create(ctx, mc))
			edit(ctx, mc, func(mc *cachev1alpha1.Memcached) { mc.Spec.Paused, mc.Spec.Size = ptr.To(true), 3 })
			k.eventually(ctx, mc, "Progressing=False/Paused", "Available=True/SomeNodesReady", "Degraded=False/AsExpected")
			Expect(eventsAbout(ctx, mc)).To(HaveLen(1), "nothing was synced")
			Expect(k8s.Delete(ctx, children[1])).To(Succeed())
			edit(ctx, children[0].(*appsv1.Deployment), func(deployment *appsv1.Deployment) {
				deployment.Spec.Replicas = ptr.To[int32](4)
			})
			Eventually(ctx, func() int32 { return get(ctx, mc).Status.ReadyNodes }).Should(Equal(int32(4)))
			k.eventually(ctx, mc, "Progressing=False/Paused", "Available=True/AllNodesReady")
			Expect(isGone(children[1])(ctx)).To(BeTrue())

			edit(ctx, mc, func(mc *cachev1alpha1.Memcached) { mc.Spec.Paused = nil })
			k.settle(ctx, mc)
			Expect(mc.Status.ReadyNodes).To(Equal(int32(3)))
			k.own(ctx, mc)
		})

	It("paces rollouts by the warm-up: a Deployment by the time that a pod must be ready, a StatefulSet by readiness",
		func(ctx context.Context) {
			mc, set := newMemcached(ns, "one", 1), kinds[3].Make(ns, "set", 1).(*cachev1alpha1.Memcached)
			mc.Spec.WarmupSeconds = ptr.To[int32](2)
			deployment := k.own(ctx, k.create(ctx, mc))[0].(*appsv1.Deployment)
			Expect(deployment.Spec.MinReadySeconds).To(Equal(int32(2)))
			Expect(*deployment.Spec.ProgressDeadlineSeconds).To(Equal(int32(602)))
			edit(ctx, mc, func(mc *cachev1alpha1.Memcached) { mc.Spec.WarmupSeconds = nil })
			k.settle(ctx, mc)
			Expect(get(ctx, deployment).Spec.MinReadySeconds).To(BeZero())

			workload := kinds[3].own(ctx, kinds[3].create(ctx, set))[0]
			delay := func() int32 {
				return template(get(ctx, workload)).Spec.Containers[0].ReadinessProbe.InitialDelaySeconds
			}
			Expect(delay()).To(Equal(int32(60)))
			for _, seconds := range []int32{3600, 0} {
				edit(ctx, set, func(mc *cachev1alpha1.Memcached) { mc.Spec.WarmupSeconds = &seconds })
				kinds[3].settle(ctx, set)
				Expect(delay()).To(Equal(seconds))
			}
		})

	It("warns when the limit is too low for the configuration, with the limit and the memory that fit",
		func(ctx context.Context) {
			mc := newMemcached(ns, "one", 1)
			mc.Spec.Config, mc.Spec.Resources = &cachev1alpha1.MemcachedConfig{Memory: memory("256Mi")}, limit("300Mi")
			k.create(ctx, mc)
			k.eventually(ctx, mc, "MemorySufficient=False/LimitTooLow")
			Expect(k.message(mc, "MemorySufficient")).To(MatchRegexp(
				`raise spec.resources.limits.memory to \d+Mi, or lower spec.config.memory to \d+Mi$`))
			edit(ctx, mc, func(mc *cachev1alpha1.Memcached) { mc.Spec.Resources = nil })
			k.eventually(ctx, mc, "MemorySufficient=True/LimitSufficient")
		})

	for _, k := range []kind{kinds[1], kinds[3]} {
		It("names the missing priority class of a "+k.Title()+", and recovers", func(ctx context.Context) {
			object := k.Make(ns, "one", 1)
			object.(*cachev1alpha1.Memcached).Spec.PodTemplate = &cachev1alpha1.PodTemplate{
				Spec: &cachev1alpha1.PodSpec{PriorityClassName: "missing-" + ns}}
			Expect(k8s.Create(ctx, object)).To(Succeed())
			Eventually(ctx, k.conditionsOf(object)).WithTimeout(90 * time.Second).Should(
				HaveKeyWithValue("Degraded", "True/RolloutStuck"))
			Expect(k.message(object, "Degraded")).To(And(ContainSubstring("no PriorityClass with name missing-"+ns+" was found"),
				HaveSuffix("; create it or change spec.podTemplate.spec.priorityClassName")))
			class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "missing-" + ns}, Value: 1}
			Expect(k8s.Create(ctx, class)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, class)).To(Succeed()) })
			// Kubernetes' controller backs off, from a fraction of a second to minutes.
			Eventually(ctx, k.conditionsOf(object)).WithTimeout(3 * time.Minute).Should(settled)
		})
	}

	It("lists the servers of a StatefulSet by name, also while they are not ready", func(ctx context.Context) {
		set := kinds[3]
		holding := newNamespace(ctx, testenv.HoldPods)
		mc := set.Make(holding, "one", 2).(*cachev1alpha1.Memcached)
		Expect(k8s.Create(ctx, mc)).To(Succeed())
		set.eventually(ctx, mc, "Available=False/NoNodesReady")
		Expect(mc.Status.Servers).To(Equal([]string{"one-0.one-nodes." + holding + ".svc:11211",
			"one-1.one-nodes." + holding + ".svc:11211"}))
		services := []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: holding, Name: "one"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: holding, Name: "one-nodes"}}}
		for i, publishes := range []bool{false, true} {
			Expect(get(ctx, services[i]).Spec.PublishNotReadyAddresses).To(Equal(publishes))
		}
		workload := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: holding, Name: "one"}}
		Expect(get(ctx, workload).Spec.ServiceName).To(Equal("one-nodes"))
	})

	It("reports a node of a StatefulSet that does not end, and the command for a lost machine", func(ctx context.Context) {
		set := kinds[3]
		mc := set.Make(ns, "one", 2).(*cachev1alpha1.Memcached)
		set.create(ctx, mc)
		lost := podsOf(ctx, ns, 2)[1]
		edit(ctx, &lost, func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/stays"} })
		Expect(k8s.Delete(ctx, &lost, client.GracePeriodSeconds(1))).To(Succeed())
		Eventually(ctx, set.conditionsOf(mc)).WithTimeout(90 * time.Second).Should(And(
			HaveKeyWithValue("Degraded", "True/NodeTerminating"), HaveKeyWithValue("Available", "True/SomeNodesReady")))
		Expect(set.message(mc, "Degraded")).To(And(ContainSubstring("node one-1 should have ended at "),
			ContainSubstring("node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")))
		edit(ctx, &lost, func(pod *corev1.Pod) { pod.Finalizers = nil })
		Eventually(ctx, set.conditionsOf(mc)).Should(settled)
	})
})
