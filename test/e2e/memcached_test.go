package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// warmup is the warm-up of the StatefulSet below, in seconds.
const warmup = 15

var _ = Describe("A Memcached", Ordered, ContinueOnFailure, func() {
	var namespace string
	var ring *cachev1alpha1.Memcached

	BeforeAll(func(ctx SpecContext) {
		deploy(ctx)
		namespace = newNamespaces(ctx, restrictedLevel, "memcached-")[0]
		ring = newMemcached(namespace, "ring", 3)
		ring.Spec.WorkloadType, ring.Spec.WarmupSeconds = cachev1alpha1.StatefulSetWorkload, ptr.To[int32](warmup)
		create(ctx, ring)
	}, NodeTimeout(2*stepTimeout))

	DescribeTable("runs memcached with every setting of config", func(ctx SpecContext, variable string) {
		mc := configured(namespace, strings.ReplaceAll(strings.ToLower(variable), "_", "-"))
		mc.Spec.Image = os.Getenv(variable)
		if variable == oldImage && mc.Spec.Image == "" {
			Skip("MEMCACHED_OLD_IMAGE names no older image")
		}
		create(ctx, mc)
		awaitSettled(ctx, memcacheds, mc)
		answer := ask(ctx, namespace, "", "settings", addressOf(ctx, mc, mc.Status.Nodes[0]))
		settings := map[string]string{}
		for _, line := range lines(answer) {
			name, value, _ := strings.Cut(line, " ")
			settings[name] = value
		}
		for field, wanted := range settingsOfConfig {
			for name, value := range wanted {
				Expect(settings).To(HaveKeyWithValue(name, value), "spec.config.%s", field)
			}
		}
		Expect(settings).To(HaveKeyWithValue("tcpport", "11311"))
		deleteAll(ctx, mc)
	},
		Entry("of the default image", "RELATED_IMAGE_MEMCACHED", SpecTimeout(stepTimeout)),
		Entry("of an older image", oldImage, SpecTimeout(stepTimeout)))

	It("is compared in all fields of config", func() {
		for field := range reflect.TypeFor[cachev1alpha1.MemcachedConfig]().Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			Expect(settingsOfConfig).To(HaveKey(name))
		}
	})

	It("loses only the keys of one node while it restarts, for clients that hash by name", func(ctx SpecContext) {
		awaitSettled(ctx, memcacheds, ring)
		Expect(ring.Status.Servers).To(HaveLen(3))
		reader := probe(namespace, append([]string{"ring"}, ring.Status.Servers...)...)
		create(ctx, reader)
		Eventually(podLog).WithContext(ctx).WithArguments(reader).Should(ContainSubstring("stored"))
		Expect(kube.Delete(ctx, podNamed(namespace, "ring-1"))).To(Succeed())
		Eventually(phaseOf).WithContext(ctx).WithArguments(reader).Should(Equal(corev1.PodSucceeded))
		answer := logOf(ctx, reader)
		for i, server := range ring.Status.Servers {
			var hits, misses, failures int
			for _, line := range lines(answer) {
				if rest, ok := strings.CutPrefix(line, server+": "); ok {
					_, err := fmt.Sscanf(rest, "%d hits, %d misses, %d errors", &hits, &misses, &failures)
					Expect(err).NotTo(HaveOccurred(), line)
				}
			}
			Expect(hits).To(BeNumerically(">", 0), answer)
			if i == 1 {
				Expect(min(misses, failures)).To(BeNumerically(">", 0), answer)
			} else {
				Expect(misses+failures).To(BeZero(), answer)
			}
			measure("a client that hashes by name, while ring-1 restarts: %s: %d hits, %d misses, %d errors",
				strings.TrimSuffix(server, "."+namespace+".svc:11211"), hits, misses, failures)
		}
		deleteAll(ctx, reader)
	}, SpecTimeout(stepTimeout))

	It("makes a drain wait for the warm-up of the node before", func(ctx SpecContext) {
		awaitSettled(ctx, memcacheds, ring)
		start := time.Now()
		Expect(evict(ctx, namespace, "ring-0")).To(Succeed())
		refused := 0
		Eventually(func(ctx context.Context) error {
			err := evict(ctx, namespace, "ring-1")
			if apierrors.IsTooManyRequests(err) {
				refused++
			}
			return err
		}).WithContext(ctx).WithPolling(time.Second).Should(Succeed())
		admitted := time.Now()
		Expect(refused).To(BeNumerically(">", 0), "the second eviction did not wait")

		pod := podNamed(namespace, "ring-0")
		Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		started := pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time
		ready := readySince(pod)
		Expect(ready.Sub(started)).To(BeNumerically(">=", (warmup-1)*time.Second), "times have a resolution of a second")
		Expect(admitted).To(BeTemporally(">=", ready))
		measure("a drain of two nodes with a warm-up of %d s: the first evicted at 0 s, started again at %.0f s, ready at "+
			"%.0f s; the second refused %d times, evicted at %.0f s", warmup, started.Sub(start).Seconds(),
			ready.Sub(start).Seconds(), refused, admitted.Sub(start).Seconds())
	}, SpecTimeout(stepTimeout))

	It("stops the node with the highest number when it scales down", func(ctx SpecContext) {
		awaitSettled(ctx, memcacheds, ring)
		kubectl(ctx, "scale", "--namespace="+namespace, "memcached/ring", "--replicas=2")
		awaitDeleted(ctx, podNamed(namespace, "ring-2"))
		awaitSettled(ctx, memcacheds, ring)
		Expect(ring.Status.Nodes).To(Equal([]string{"ring-0", "ring-1"}))
		Expect(ring.Status.Servers).To(HaveLen(2))
	}, SpecTimeout(stepTimeout))

	DescribeTable("recovers from a rollout that is stuck on a bad image when the spec is corrected",
		func(ctx SpecContext, workload cachev1alpha1.WorkloadType) {
			mc := newMemcached(namespace, "stuck-"+strings.ToLower(string(workload)), 2)
			mc.Spec.WorkloadType, mc.Spec.WarmupSeconds = workload, ptr.To[int32](0)
			create(ctx, mc)
			awaitSettled(ctx, memcacheds, mc)
			change(ctx, mc, func() { mc.Spec.Image = registry + "/nothing:1" })
			awaitDegraded(ctx, mc, cachev1alpha1.ReasonNodeNotStarting, "nothing:1",
				"; change spec.image or spec.imagePullSecrets")
			change(ctx, mc, func() { mc.Spec.Image = "" })
			awaitSettled(ctx, memcacheds, mc)
			deleteAll(ctx, mc)
		},
		Entry("with a Deployment", cachev1alpha1.DeploymentWorkload, SpecTimeout(stepTimeout)),
		Entry("with a StatefulSet", cachev1alpha1.StatefulSetWorkload, SpecTimeout(stepTimeout)))

	DescribeTable("names the cause and the field, until it is corrected",
		func(ctx SpecContext, breaks func(*cachev1alpha1.MemcachedSpec), reason string, words ...string) {
			mc := newMemcached(namespace, "broken-"+strings.ToLower(reason)+"-"+strconv.FormatInt(time.Now().UnixMilli(), 36), 1)
			breaks(&mc.Spec)
			create(ctx, mc)
			awaitDegraded(ctx, mc, reason, words...)
			change(ctx, mc, func() { mc.Spec = cachev1alpha1.MemcachedSpec{Size: 1, WorkloadType: mc.Spec.WorkloadType} })
			awaitSettled(ctx, memcacheds, mc)
			deleteAll(ctx, mc)
		},
		Entry("an option that memcached rejects", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.Config = &cachev1alpha1.MemcachedConfig{Options: map[string]cachev1alpha1.OptionValue{"hot_lru_pct": "99"}}
		}, cachev1alpha1.ReasonNodeCrashing, "hot_lru_pct must be > 1 and < 80", "; change spec.config",
			SpecTimeout(stepTimeout)),
		Entry("a missing priority class", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.PodTemplate = &cachev1alpha1.PodTemplate{Spec: &cachev1alpha1.PodSpec{PriorityClassName: "missing"}}
		}, cachev1alpha1.ReasonRolloutStuck, "no PriorityClass with name missing was found",
			"; create it or change spec.podTemplate.spec.priorityClassName", SpecTimeout(stepTimeout)),
		Entry("a missing service account", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.PodTemplate = &cachev1alpha1.PodTemplate{Spec: &cachev1alpha1.PodSpec{ServiceAccountName: "missing"}}
		}, cachev1alpha1.ReasonRolloutStuck, `"missing" not found`,
			"; create it or change spec.podTemplate.spec.serviceAccountName", SpecTimeout(stepTimeout)),
		Entry("a missing service account, with a StatefulSet", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.WorkloadType = cachev1alpha1.StatefulSetWorkload
			spec.PodTemplate = &cachev1alpha1.PodTemplate{Spec: &cachev1alpha1.PodSpec{ServiceAccountName: "missing"}}
		}, cachev1alpha1.ReasonRolloutStuck, `"missing" not found`,
			"; create it or change spec.podTemplate.spec.serviceAccountName", SpecTimeout(stepTimeout)),
		Entry("an image that needs a missing pull secret", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.Image = registry + "/private:1"
			spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "missing"}}
		}, cachev1alpha1.ReasonNodeNotStarting, "private:1", "; change spec.image or spec.imagePullSecrets",
			SpecTimeout(stepTimeout)),
		Entry("an image without memcached", func(spec *cachev1alpha1.MemcachedSpec) {
			spec.Image = cmp.Or(os.Getenv("BUSYBOX_IMAGE"), "docker.io/library/busybox:1.37")
		}, cachev1alpha1.ReasonNodeCrashing, `"memcached"`, "; change spec.image to one that contains the program memcached",
			SpecTimeout(stepTimeout)))

	It("names the fields to change when a full node is killed for its memory", func(ctx SpecContext) {
		mc := newMemcached(namespace, "greedy", 1)
		mc.Spec.Config = &cachev1alpha1.MemcachedConfig{Memory: ptr.To(apiresource.MustParse("64Mi"))}
		mc.Spec.Resources = &cachev1alpha1.Resources{
			Limits: corev1.ResourceList{corev1.ResourceMemory: apiresource.MustParse("64Mi")}}
		create(ctx, mc)
		awaitSettled(ctx, memcacheds, mc)
		Expect(meta.FindStatusCondition(mc.Status.Conditions, cachev1alpha1.ConditionMemorySufficient).Reason).
			To(Equal(cachev1alpha1.ReasonLimitTooLow))
		Eventually(func(g Gomega, ctx context.Context) { // it restarts soon, and is ready again
			ask(ctx, namespace, "", "fill", addressOf(ctx, mc, mc.Status.Nodes[0]), "200")
			pod := podNamed(namespace, mc.Status.Nodes[0])
			g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
			g.Expect(last).To(And(Not(BeNil()), HaveField("Reason", "OOMKilled")))
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(ctx context.Context) string {
			return kubectl(ctx, "get", "events", "--namespace="+namespace, "--field-selector=involvedObject.name=greedy",
				"--output=jsonpath={.items[*].message}")
		}).WithContext(ctx).Should(ContainSubstring("raise spec.resources.limits.memory or lower spec.config.memory"))
		change(ctx, mc, func() { mc.Spec.Resources = nil })
		awaitSettled(ctx, memcacheds, mc)
		Expect(ask(ctx, namespace, "", "fill", addressOf(ctx, mc, mc.Status.Nodes[0]), "200")).To(ContainSubstring("stored"))
		deleteAll(ctx, mc)
	}, SpecTimeout(2*stepTimeout))

	It("passes every field of podTemplate to its pods", func(ctx SpecContext) { reachesPods(ctx, namespace) },
		SpecTimeout(stepTimeout))

	It("reports a node on a lost machine, and a command that makes Kubernetes replace it", func(ctx SpecContext) {
		replacesLostNode(ctx, namespace)
	}, SpecTimeout(2*stepTimeout))
})

const oldImage = "MEMCACHED_OLD_IMAGE"

func newMemcached(namespace, name string, size int32) *cachev1alpha1.Memcached {
	return memcacheds.Make(namespace, name, size).(*cachev1alpha1.Memcached)
}

// configured returns a Memcached in which no field of config has its default.
func configured(namespace, name string) *cachev1alpha1.Memcached {
	mc := newMemcached(namespace, name, 1)
	mc.Spec.ContainerPort = 11311
	mc.Spec.Config = &cachev1alpha1.MemcachedConfig{
		Memory: ptr.To(apiresource.MustParse("128Mi")), MaxItemSize: ptr.To(apiresource.MustParse("2Mi")),
		MaxConnections: 2048, Threads: 2, WhenFull: cachev1alpha1.RejectWhenFull, IdleTimeoutSeconds: ptr.To[int32](600),
		Verbosity: ptr.To[int32](2),
		DisabledCommands: []cachev1alpha1.Command{cachev1alpha1.FlushCommand, cachev1alpha1.DumpCommand,
			cachev1alpha1.WatchCommand},
		Options: map[string]cachev1alpha1.OptionValue{"hash_algorithm": "murmur3", "hashpower": "17", "hot_lru_pct": "21",
			"hot_max_factor": "0.3", "lru_crawler_sleep": "200", "lru_crawler_tocrawl": "7", "no_hashexpand": "",
			"read_buf_mem_limit": "64", "slab_automove": "0", "slab_automove_ratio": "0.7", "slab_automove_window": "40",
			"tail_repair_time": "30", "temporary_ttl": "61", "track_sizes": "", "warm_lru_pct": "41",
			"warm_max_factor": "1.5", "watcher_logbuf_size": "512"},
	}
	return mc
}

// settingsOfConfig are the settings that memcached must report for that, by the field of config. It reports none for
// "watch", which is tried, and for no_hashexpand.
var settingsOfConfig = map[string]map[string]string{
	"memory": {"maxbytes": "134217728"}, "maxItemSize": {"item_size_max": "2097152"},
	"maxConnections": {"maxconns": "2048"}, "threads": {"num_threads": "2"}, "whenFull": {"evictions": "off"},
	"idleTimeoutSeconds": {"idle_timeout": "600"}, "verbosity": {"verbosity": "2"},
	"disabledCommands": {"flush_enabled": "no", "dump_enabled": "no", "watch": "CLIENT_ERROR watch commands not allowed"},
	"options": {"hash_algorithm": "murmur3", "hashpower_init": "17", "hot_lru_pct": "21", "hot_max_factor": "0.30",
		"lru_crawler_sleep": "200", "lru_crawler_tocrawl": "7", "read_buf_mem_limit": "67108864", "slab_automove": "0",
		"slab_automove_ratio": "0.70", "slab_automove_window": "40", "tail_repair_time": "30", "temporary_ttl": "61",
		"track_sizes": "yes", "warm_lru_pct": "41", "warm_max_factor": "1.50", "watcher_logbuf_size": "524288"},
}

// reachesPods checks that pods have what podTemplate has.
func reachesPods(ctx context.Context, namespace string) {
	GinkgoHelper()
	priority := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Value: 7}
	runtime := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Handler: "runc"}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache"}}
	cleanUp(func(ctx context.Context) { deleteAll(ctx, priority, runtime) })
	create(ctx, priority, runtime, account)
	mc := newMemcached(namespace, "templated", 1)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}
	given := &cachev1alpha1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
		Tolerations:  []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1,
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector}}}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 2, TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector}},
		PriorityClassName: priority.Name, RuntimeClassName: runtime.Name, SchedulerName: corev1.DefaultSchedulerName,
		ServiceAccountName: account.Name,
		SecurityContext:    &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](10001), FSGroup: ptr.To[int64](10002)},
	}
	mc.Spec.PodTemplate = &cachev1alpha1.PodTemplate{Spec: given, Metadata: &cachev1alpha1.PodMetadata{
		Labels: map[string]string{"team": "web"}, Annotations: map[string]string{"example.com/note": "yes"}}}
	create(ctx, mc)
	awaitSettled(ctx, memcacheds, mc)
	pod := podNamed(namespace, mc.Status.Nodes[0])
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	Expect(pod.Labels).To(HaveKeyWithValue("team", "web"))
	Expect(pod.Annotations).To(HaveKeyWithValue("example.com/note", "yes"))
	for name, want := range contentOf(given) {
		got := contentOf(pod.Spec)[name]
		switch name {
		case "tolerations": // Kubernetes adds some
			Expect(got).To(ContainElements(want))
		case "securityContext": // merged with the operator's
			for field, value := range want.(map[string]any) {
				Expect(got).To(HaveKeyWithValue(field, value))
			}
			Expect(got).To(HaveKeyWithValue("runAsNonRoot", true))
		default:
			Expect(got).To(Equal(want), name)
		}
	}
	Expect(contentOf(given)).To(HaveLen(reflect.TypeFor[cachev1alpha1.PodSpec]().NumField()), "a field has no value here")
	deleteAll(ctx, mc)
}

// contentOf returns the fields of an object.
func contentOf(object any) map[string]any {
	GinkgoHelper()
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	content := map[string]any{}
	Expect(json.Unmarshal(text, &content)).To(Succeed())
	return content
}

// replacesLostNode runs a node on a machine without a kubelet, which the API server believes ready for 40 seconds.
func replacesLostNode(ctx context.Context, namespace string) {
	GinkgoHelper()
	machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"lost": namespace}}}
	cleanUp(func(ctx context.Context) { deleteAll(ctx, machine) })
	create(ctx, machine)
	before := machine.DeepCopy()
	capacity := corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("1"),
		corev1.ResourcePods: apiresource.MustParse("9"), corev1.ResourceMemory: apiresource.MustParse("1Gi")}
	machine.Status = corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}}
	Expect(kube.Status().Patch(ctx, machine, client.MergeFrom(before))).To(Succeed())

	mc := newMemcached(namespace, "lost", 1)
	mc.Spec.WorkloadType = cachev1alpha1.StatefulSetWorkload
	mc.Spec.PodTemplate = &cachev1alpha1.PodTemplate{Spec: &cachev1alpha1.PodSpec{NodeSelector: machine.Labels,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}
	create(ctx, mc)
	lost := podNamed(namespace, "lost-0")
	Eventually(func(ctx context.Context) string {
		_ = kube.Get(ctx, client.ObjectKeyFromObject(lost), lost)
		return lost.Spec.NodeName
	}).WithContext(ctx).Should(Equal(machine.Name))
	uid := lost.UID
	Expect(kube.Delete(ctx, lost, client.GracePeriodSeconds(1))).To(Succeed())
	awaitDegraded(ctx, mc, cachev1alpha1.ReasonNodeTerminating, "node lost-0 should have ended at ")

	message := meta.FindStatusCondition(mc.Status.Conditions, cachev1alpha1.ConditionDegraded).Message
	_, advice, found := strings.Cut(message, "run: kubectl ")
	Expect(found).To(BeTrue(), message)
	advice, _, _ = strings.Cut(advice, ";")
	kubectl(ctx, strings.Fields(advice)...)
	Eventually(func(ctx context.Context) (bool, error) {
		err := kube.Get(ctx, client.ObjectKeyFromObject(lost), lost)
		return lost.UID != uid, client.IgnoreNotFound(err)
	}).WithContext(ctx).Should(BeTrue(), "the node is not replaced")
	deleteAll(ctx, mc)
	Expect(client.IgnoreNotFound(kube.Delete(ctx, lost, client.GracePeriodSeconds(0)))).To(Succeed())
}

// awaitDegraded waits until the condition Degraded of a Memcached has a reason, and a message with these words.
func awaitDegraded(ctx context.Context, mc *cachev1alpha1.Memcached, reason string, words ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(mc), mc)).To(Succeed())
		degraded := meta.FindStatusCondition(mc.Status.Conditions, cachev1alpha1.ConditionDegraded)
		g.Expect(degraded).To(And(Not(BeNil()), HaveField("ObservedGeneration", mc.Generation)))
		g.Expect(degraded.Reason).To(Equal(reason), degraded.Message)
		for _, word := range words {
			g.Expect(degraded.Message).To(ContainSubstring(word))
		}
	}).WithContext(ctx).Should(Succeed())
}

// evict evicts a pod through the API that drains use.
func evict(ctx context.Context, namespace, name string) error {
	return clients.PolicyV1().Evictions(namespace).Evict(ctx,
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

func podNamed(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// hostOf returns the IP address of a node of a Memcached.
func hostOf(ctx context.Context, mc *cachev1alpha1.Memcached, node string) string {
	GinkgoHelper()
	pod := podNamed(mc.Namespace, node)
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	return pod.Status.PodIP
}

// addressOf returns the address of a node of a Memcached for clients without TLS.
func addressOf(ctx context.Context, mc *cachev1alpha1.Memcached, node string) string {
	GinkgoHelper()
	return net.JoinHostPort(hostOf(ctx, mc, node), strconv.Itoa(int(cmp.Or(mc.Spec.ContainerPort, 11211))))
}

// readySince returns when a pod became ready; the zero time if it is not.
func readySince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func phaseOf(ctx context.Context, pod *corev1.Pod) (corev1.PodPhase, error) {
	err := kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	return pod.Status.Phase, err
}

// podLog returns the log of a pod so far; "" if it has none.
func podLog(ctx context.Context, pod *corev1.Pod) string {
	content, _ := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	return string(content)
}
