package contract

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	testkinds "github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

var _ = Describe("Memcached", func() {
	k := kinds[1]
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	It("creates the tutorial's Deployment with production settings, a Service and a budget", func(ctx context.Context) {
		mc := newMemcached(ns, "memcached-sample", 3)
		children := k.own(ctx, k.create(ctx, mc))
		deployment := children[0].(*appsv1.Deployment)
		labels := map[string]string{"app": "memcached", "memcached_cr": "memcached-sample"}
		Expect(deployment.Spec.Selector.MatchLabels).To(Equal(labels))
		Expect(deployment.Spec.Template.Labels).To(Equal(labels))
		container := deployment.Spec.Template.Spec.Containers[0]
		Expect(container.Name).To(Equal("memcached"))
		Expect(container.Command).To(Equal([]string{"memcached", "--memory-limit=64", "-o", "modern", "-v"}))
		Expect(container.Ports).
			To(ConsistOf(corev1.ContainerPort{Name: "memcached", ContainerPort: 11211, Protocol: corev1.ProtocolTCP}))
		Expect(container.Resources.Limits.Memory().String()).To(Equal("168Mi"))
		Expect(deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue()).To(Equal(1))
		Expect(deployment.Spec.Strategy.RollingUpdate.MaxSurge.IntValue()).To(Equal(0))
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
			Expect(probe.TCPSocket.Port.String()).To(Equal("memcached"))
		}

		service := children[1].(*corev1.Service)
		Expect(service.Name).To(Equal("memcached-sample"))
		Expect(service.Spec.ClusterIP).To(Equal("None"))
		Expect(service.Spec.Selector).To(Equal(labels))
		Expect(service.Spec.Ports[0].Name).To(Equal("memcached"))
		budget := children[2].(*policyv1.PodDisruptionBudget)
		Expect(budget.Spec.MaxUnavailable.IntValue()).To(Equal(1))
		Expect(budget.Spec.Selector.MatchLabels).To(Equal(labels))
	})

	It("lists all its pods as nodes, sorted", func(ctx context.Context) {
		mc := newMemcached(ns, "one", 3)
		k.create(ctx, mc)
		Expect(mc.Status.Nodes).To(Equal(namesOf(podsOf(ctx, ns, 3))))
		Expect(mc.Status).To(And(HaveField("Size", int32(3)), HaveField("ReadyNodes", int32(3)),
			HaveField("ServiceName", "one"), HaveField("Selector", "app=memcached,memcached_cr=one")))

		kubectl("-n", ns, "patch", "memcached", "one", "-p", `{"spec":{"size": 5}}`, "--type=merge")
		Eventually(ctx, k.conditionsOf(mc)).Should(settled)
		Expect(mc.Status.Nodes).To(Equal(namesOf(podsOf(ctx, ns, 5))))
		Expect(kubectl("-n", ns, "get", "memcached", "one", "-o", "jsonpath={.status.nodes}")).To(Equal(`["` + strings.Join(mc.Status.Nodes, `","`) + `"]`))
		Expect(kubectl("-n", ns, "get", "mcd")).To(MatchRegexp(`^NAME +SIZE +READY +STATUS +AGE\none +5 +5 +AllNodesReady +\d+s$`))

		kubectl("-n", ns, "scale", "memcached", "one", "--replicas=0")
		Eventually(ctx, k.conditionsOf(mc)).Should(And(settled, HaveKeyWithValue("Available", "True/ScaledToZero")))
		Expect(mc.Status.Nodes).To(BeEmpty())
	})

	DescribeTable("does not list a pod that is", func(ctx context.Context, remove func(context.Context, *corev1.Pod)) {
		mc := newMemcached(ns, "one", 2)
		k.create(ctx, mc)
		removed := podsOf(ctx, ns, 2)[0]
		remove(ctx, &removed)
		Eventually(ctx, func() []string { return get(ctx, mc).Status.Nodes }).
			Should(And(HaveLen(2), Not(ContainElement(removed.Name))))
		Eventually(ctx, k.conditionsOf(mc)).Should(settled)
		if len(removed.Finalizers) > 0 {
			Expect(get(ctx, &removed).DeletionTimestamp).NotTo(BeNil(), "it does not exist")
			edit(ctx, &removed, func(pod *corev1.Pod) { pod.Finalizers = nil })
		}
	},
		Entry("deleted", func(ctx context.Context, pod *corev1.Pod) { Expect(k8s.Delete(ctx, pod)).To(Succeed()) }),
		Entry("terminated, such as an evicted one", func(ctx context.Context, pod *corev1.Pod) {
			Expect(cp.SetPodStatus(ctx, pod, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"})).To(Succeed())
		}),
		Entry("being deleted but stays, such as one on a lost machine", func(ctx context.Context, pod *corev1.Pod) {
			edit(ctx, pod, func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/stays"} })
			Expect(k8s.Delete(ctx, pod)).To(Succeed())
		}))

	It("lists neither the pods of another Memcached nor pods that only have the labels", func(ctx context.Context) {
		one, two := newMemcached(ns, "one", 2), newMemcached(ns, "two", 3)
		k.create(ctx, one)
		k.create(ctx, two)
		Expect(slices.ContainsFunc(one.Status.Nodes, func(name string) bool {
			return slices.Contains(two.Status.Nodes, name)
		})).To(BeFalse())

		stray := strayPod(ns, map[string]string{"app": "memcached", "memcached_cr": "one"})
		Expect(k8s.Create(ctx, stray)).To(Succeed())
		// in a namespace that is restricted it gets no pod, but a ReplicaSet
		unmanaged := testkinds.NewDeployment(ns, "unmanaged", 1)
		unmanaged.Spec.Template.Labels["memcached_cr"] = "one"
		Expect(k8s.Create(ctx, unmanaged)).To(Succeed())
		Consistently(ctx, func() []string { return get(ctx, one).Status.Nodes }).WithTimeout(time.Second).
			Should(And(HaveLen(2), Not(ContainElement(stray.Name))))
		Expect(k.conditionsOf(one)(ctx)).To(settled)
	})

	It("writes its status at most 8 times while it grows to 100 nodes over 10 s, and at once when they are complete",
		func(ctx context.Context) {
			holding := newNamespace(ctx, testenv.HoldPods)
			mark := cp.Audit.Now()
			mc := newMemcached(holding, "one", 100)
			Expect(k8s.Create(ctx, mc)).To(Succeed())
			for i, pod := range podsOf(ctx, holding, 100) {
				Expect(cp.SetPodReady(ctx, &pod)).To(Succeed())
				if i < 99 {
					time.Sleep(100 * time.Millisecond)
				}
			}
			Eventually(ctx, k.conditionsOf(mc)).WithTimeout(3 * time.Second).Should(settled)
			Expect(mc.Status.Nodes).To(Equal(namesOf(podsOf(ctx, holding, 100))))
			writes := requests(mark, holding, isOf("memcacheds/status"))
			report("status writes of a Memcached growing to 100 nodes over 10 s", len(writes), 8)
		})

	Describe("reports why a node does not start:", func() {
		DescribeTable("it", func(ctx context.Context, status corev1.PodStatus, reason, message string) {
			holding := newNamespace(ctx, testenv.HoldPods)
			mc := newMemcached(holding, "one", 2)
			Expect(k8s.Create(ctx, mc)).To(Succeed())
			pods := podsOf(ctx, holding, 2)
			Expect(cp.SetPodReady(ctx, &pods[0])).To(Succeed())
			Expect(cp.SetPodStatus(ctx, &pods[1], status)).To(Succeed())
			Eventually(ctx, k.conditionsOf(mc)).Should(And(
				HaveKeyWithValue("Degraded", "True/"+reason), HaveKeyWithValue("Available", "True/SomeNodesReady")))
			Expect(k.message(mc, "Degraded")).To(And(ContainSubstring("node "+pods[1].Name), ContainSubstring(message)))
			Eventually(ctx, eventsAbout).WithArguments(mc).Should(ContainElement(HavePrefix("Warning " + reason)))

			Expect(cp.SetPodReady(ctx, &pods[1])).To(Succeed())
			Eventually(ctx, k.conditionsOf(mc)).Should(settled)
		},
			Entry("has crashed", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
				Name:         "memcached",
				RestartCount: 3,
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
					Message: "back-off 40s"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					ExitCode: 64, Reason: "Error", Message: "Cannot set item size limit higher than 1/2 of memory max.\n"}},
			}}}, "NodeCrashing", "exit code 64): Cannot set item size limit higher than 1/2 of memory max."),
			Entry("has no image", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "memcached",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff",
					Message: `Back-off pulling image "memcached:1"`}},
			}}}, "NodeNotStarting", `Back-off pulling image "memcached:1"`),
			Entry("has no machine", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "0/3 nodes are available: 3 Insufficient memory."}}},
				"NodeUnschedulable", "3 Insufficient memory"),
		)
	})

	It("reverts fields that exclude each other: a probe, a hook, a Service type, a budget",
		func(ctx context.Context) {
			children := k.own(ctx, k.create(ctx, newMemcached(ns, "one", 1)))
			deployment, budget := children[0].(*appsv1.Deployment), children[2].(*policyv1.PodDisruptionBudget)
			wanted, wantedBudget := deployment.Spec.DeepCopy(), budget.Spec.DeepCopy()
			always := &corev1.ExecAction{Command: []string{"true"}}
			edit(ctx, deployment, func(deployment *appsv1.Deployment) {
				container := &deployment.Spec.Template.Spec.Containers[0]
				container.LivenessProbe.ProbeHandler = corev1.ProbeHandler{Exec: always}
				container.Lifecycle.PreStop = &corev1.LifecycleHandler{Exec: always}
			})
			Eventually(ctx, func() appsv1.DeploymentSpec { return get(ctx, deployment).Spec }).Should(Equal(*wanted))
			service := children[1].(*corev1.Service)
			edit(ctx, service, func(service *corev1.Service) {
				service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "elsewhere.example.com"
			})
			Eventually(ctx, func() string { return fmt.Sprint(get(ctx, service).Spec.Type, service.Spec.ClusterIP) }).
				Should(Equal("ClusterIPNone"))
			edit(ctx, budget, func(budget *policyv1.PodDisruptionBudget) {
				budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, ptr.To(intstr.FromInt32(1))
			})
			Eventually(ctx, func() policyv1.PodDisruptionBudgetSpec { return get(ctx, budget).Spec }).
				Should(Equal(*wantedBudget))
		})

	It("refuses a Service and a budget that it does not control, and creates the rest", func(ctx context.Context) {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"},
			Spec: corev1.ServiceSpec{Selector: map[string]string{"another": "client"},
				Ports: []corev1.ServicePort{{Port: 80}}},
		}
		Expect(k8s.Create(ctx, service)).To(Succeed())
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}}
		Expect(k8s.Create(ctx, budget)).To(Succeed())
		before := resourceVersions(ctx, service)

		mc := newMemcached(ns, "one", 2)
		Expect(k8s.Create(ctx, mc)).To(Succeed())
		k.eventually(ctx, mc, "Degraded=True/NameTaken", "Available=True/AllNodesReady")
		Expect(k.message(mc, "Degraded")).To(ContainSubstring("kubectl -n %s delete service one", ns))
		Expect(resourceVersions(ctx, service)).To(Equal(before))
		Expect(get(ctx, budget).Spec).To(Equal(policyv1.PodDisruptionBudgetSpec{}))

		Expect(k8s.Delete(ctx, service)).To(Succeed())
		Expect(k8s.Delete(ctx, budget)).To(Succeed())
		Eventually(ctx, k.conditionsOf(mc)).Should(settled)
		k.own(ctx, mc)
	})

	It("shortens the name of a Service, and repairs that Service at once", func(ctx context.Context) {
		mc := newMemcached(ns, "4.caches.example", 1)
		k.create(ctx, mc)
		Expect(mc.Status.ServiceName).To(MatchRegexp(`^n4-caches-example-[0-9a-f]{8}$`))
		service := get(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: mc.Status.ServiceName}})
		Expect(metav1.IsControlledBy(service, mc)).To(BeTrue())

		edit(ctx, service, func(service *corev1.Service) { service.Spec.Selector["app"] = "other" })
		Eventually(ctx, func() map[string]string { return get(ctx, service).Spec.Selector }).
			Should(HaveKeyWithValue("app", "memcached"))
		Expect(k8s.Delete(ctx, service)).To(Succeed())
		Eventually(ctx, func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(service), service) }).Should(Succeed())
	})

	It("reports a taken name and a crashing node at the same time", func(ctx context.Context) {
		holding := newNamespace(ctx, testenv.HoldPods)
		taken := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: holding, Name: "one"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		Expect(k8s.Create(ctx, taken)).To(Succeed())
		mc := newMemcached(holding, "one", 1)
		Expect(k8s.Create(ctx, mc)).To(Succeed())
		crashed := podsOf(ctx, holding, 1)[0]
		Expect(cp.SetPodStatus(ctx, &crashed,
			corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "memcached",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 64, Reason: "Error",
					Message: "bad option"}},
			}}})).To(Succeed())
		Eventually(ctx, func() string { k.conditionsOf(mc)(ctx); return k.message(mc, "Degraded") }).Should(And(
			ContainSubstring("kubectl -n %s delete service one", holding),
			ContainSubstring("node %s terminated (Error, exit code 64): bad option", crashed.Name)))
		Expect(k.conditionsOf(mc)(ctx)).To(HaveKeyWithValue("Degraded", "True/NameTaken"))

		Expect(k8s.Delete(ctx, taken)).To(Succeed())
		Expect(cp.SetPodReady(ctx, &crashed)).To(Succeed())
		Eventually(ctx, k.conditionsOf(mc)).Should(settled)
	})
})

// podsOf waits until there are so many pods in a namespace and returns them, sorted by name.
func podsOf(ctx context.Context, namespace string, count int) []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Eventually(ctx, func(g Gomega) {
		g.Expect(k8s.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(count))
	}).Should(Succeed())
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods.Items
}

func namesOf(pods []corev1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// strayPod returns a pod without a controller, for a namespace that enforces Pod Security "restricted".
func strayPod(namespace string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stray", Labels: labels},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "it", Image: "it", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
		},
	}
}
