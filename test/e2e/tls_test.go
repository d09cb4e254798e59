package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// tlsNamespace is a namespace with the samples of TLS, which run one image of memcached.
type tlsNamespace struct {
	name, image string
	plain       *cachev1alpha1.Memcached // the sample memcached-tls, with names and metrics
	mutual      *cachev1alpha1.Memcached // the sample memcached-mutual-tls
}

var _ = Describe("A Memcached with TLS", Ordered, func() {
	var namespaces []*tlsNamespace
	var a authority
	renewed := map[string]keyPair{} // the latest good certificate, by namespace and name

	BeforeAll(func(ctx SpecContext) {
		deploy(ctx)
		images := []string{os.Getenv("RELATED_IMAGE_MEMCACHED")}
		if old := os.Getenv(oldImage); old != "" {
			images = append(images, old)
		}
		for i, name := range newNamespaces(ctx, restrictedLevel, slices.Repeat([]string{"tls-"}, len(images))...) {
			namespaces = append(namespaces, &tlsNamespace{name: name, image: images[i]})
		}
		a = newAuthority(ctx, namesOfAll(namespaces)...)
		for _, ns := range namespaces {
			ns.plain, ns.mutual = sample(ns, "tls"), sample(ns, "mutual_tls")
			for _, mc := range ns.both() {
				renewed[key(mc)] = issue(&a.ca, time.Hour, namesIn(ns.name, mc.Name)...)
				put(ctx, ns.name, mc.Spec.TLS.SecretName, a.content(renewed[key(mc)]))
				create(ctx, mc)
			}
		}
		for _, ns := range namespaces {
			awaitSettled(ctx, memcacheds, ns.plain, ns.mutual)
		}
	}, NodeTimeout(2*stepTimeout))

	It("serves only clients that know its CA and have what it requires", func(ctx SpecContext) {
		for _, ns := range namespaces {
			answers := ns.answers(ctx, ns.plain)
			for client, want := range map[string]string{"plaintext": "refused: ", "with-ca": "VERSION ",
				"with-other-ca": "refused: ", "with-other-name": "refused: ", "with-certificate": "VERSION ",
				"with-certificate-tls12": "refused: ", "with-strange-certificate": "VERSION "} {
				Expect(answers).To(HaveKeyWithValue(client, HavePrefix(want)), "%s: %v", ns.image, answers)
			}
			answers = ns.answers(ctx, ns.mutual)
			for client, want := range map[string]string{"plaintext": "refused: ", "with-ca": "refused: ",
				"with-other-ca": "refused: ", "with-other-name": "refused: ", "with-certificate": "VERSION ",
				"with-certificate-tls12": "VERSION ", "with-strange-certificate": "refused: "} {
				Expect(answers).To(HaveKeyWithValue(client, HavePrefix(want)), "%s: %v", ns.image, answers)
			}
			Expect(ns.plain.Status.Servers).To(ContainElement("memcached-tls-0.memcached-tls-nodes." + ns.name + ".svc:11212"))
			Expect(ns.metrics(ctx)).To(And(HaveKeyWithValue("memcached_up", "1"),
				HaveKeyWithValue("memcached_agent_certificate_usable", "1"),
				HaveKeyWithValue("memcached_agent_certificate_current", "1")))
		}
	}, SpecTimeout(stepTimeout))

	// The kubelet mounts a changed Secret after up to 90 s, so all renewals and damages happen at the same times.
	It("serves renewed certificates, and no unusable ones, without a restart and without the operator",
		func(ctx SpecContext) {
			scaleOperator(ctx, 0)
			cleanUp(func(ctx context.Context) { scaleOperator(ctx, 2) })
			before := runningContainers(ctx, namespaces)
			followers := map[string]*corev1.Pod{}
			for _, ns := range namespaces {
				followers[ns.name] = followNodes(ctx, ns.both()...)
			}
			for round, bad := range []func(good, next keyPair) map[string][]byte{
				func(good, next keyPair) map[string][]byte { // a key that does not match
					return a.content(keyPair{certificate: next.certificate, key: good.key})
				},
				func(keyPair, keyPair) map[string][]byte {
					return a.content(issue(&a.ca, -time.Minute, "expired"))
				},
				nil, // deleted
			} {
				changed := time.Now()
				for _, ns := range namespaces {
					renewed[key(ns.mutual)] = issue(&a.ca, time.Hour, namesIn(ns.name, ns.mutual.Name)...)
					put(ctx, ns.name, ns.mutual.Spec.TLS.SecretName, a.content(renewed[key(ns.mutual)]))
					if bad == nil {
						deleteAll(ctx, &corev1.Secret{ObjectMeta: podNamed(ns.name, ns.plain.Spec.TLS.SecretName).ObjectMeta})
						continue
					}
					put(ctx, ns.name, ns.plain.Spec.TLS.SecretName, bad(renewed[key(ns.plain)], issue(&a.ca, time.Hour)))
				}
				for _, ns := range namespaces {
					ns.awaitServed(ctx, followers[ns.name], changed, ns.mutual, renewed[key(ns.mutual)], round+1)
					Eventually(ns.metrics).WithContext(ctx).WithPolling(5 * time.Second).Should(And(
						HaveKeyWithValue("memcached_up", "1"), HaveKeyWithValue("memcached_agent_certificate_usable", "0"),
						HaveKeyWithValue("memcached_agent_certificate_current", "0")))
				}
			}
			changed := time.Now()
			for _, ns := range namespaces {
				renewed[key(ns.plain)] = issue(&a.ca, time.Hour, namesIn(ns.name, ns.plain.Name)...)
				put(ctx, ns.name, ns.plain.Spec.TLS.SecretName, a.content(renewed[key(ns.plain)]))
			}
			for _, ns := range namespaces {
				ns.awaitServed(ctx, followers[ns.name], changed, ns.plain, renewed[key(ns.plain)], 1)
				Eventually(ns.metrics).WithContext(ctx).Should(HaveKeyWithValue("memcached_agent_certificate_usable", "1"))
				log := podLog(ctx, followers[ns.name])
				Expect(log).NotTo(ContainSubstring("error"), "connections, handshakes and items")
				// Each node has served its first certificate and each renewed one, and nothing else.
				Expect(lines(log)).To(HaveLen(2*4+2*2), log)
				deleteAll(ctx, followers[ns.name])
			}
			Expect(runningContainers(ctx, namespaces)).To(Equal(before), "containers and when they started")
		}, SpecTimeout(4*stepTimeout))

	It("serves a certificate that is renewed while nodes restart", func(ctx SpecContext) {
		for _, ns := range namespaces { // a rollout of one, and a restarting node of the other
			for _, mc := range ns.both() {
				awaitSettled(ctx, memcacheds, mc)
				renewed[key(mc)] = issue(&a.ca, time.Hour, namesIn(ns.name, mc.Name)...)
			}
			change(ctx, ns.mutual, func() {
				ns.mutual.Spec.Config = &cachev1alpha1.MemcachedConfig{Verbosity: ptr.To[int32](0)}
			})
			put(ctx, ns.name, ns.mutual.Spec.TLS.SecretName, a.content(renewed[key(ns.mutual)]))
			restart(ctx, podNamed(ns.name, ns.plain.Status.Nodes[0]))
			put(ctx, ns.name, ns.plain.Spec.TLS.SecretName, a.content(renewed[key(ns.plain)]))
		}
		changed := time.Now()
		for _, ns := range namespaces {
			awaitSettled(ctx, memcacheds, ns.plain, ns.mutual)
			follower := followNodes(ctx, ns.both()...)
			for _, mc := range ns.both() {
				ns.awaitServed(ctx, follower, changed, mc, renewed[key(mc)], 0)
			}
			deleteAll(ctx, follower)
		}
	}, SpecTimeout(2*stepTimeout))

	It("keeps memcached running when its agent crashes, reports a crash loop, and ends with it", func(ctx SpecContext) {
		ns := namespaces[0]
		pod := podNamed(ns.name, ns.plain.Status.Nodes[0])
		Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		started := statusOf(pod, "memcached").State.Running.StartedAt
		crash(ctx, pod, "agent")
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
			agent := statusOf(pod, "agent")
			g.Expect(agent.RestartCount).To(BeEquivalentTo(1))
			g.Expect(agent.State.Running).NotTo(BeNil())
		}).WithContext(ctx).Should(Succeed())
		Expect(statusOf(pod, "memcached")).To(And(HaveField("RestartCount", BeEquivalentTo(0)),
			HaveField("State.Running.StartedAt", started)))
		awaitSettled(ctx, memcacheds, ns.plain)

		usage := kubectl(ctx, "get", "--raw", "/api/v1/nodes/"+pod.Spec.NodeName+"/proxy/metrics/resource")
		for _, line := range lines(usage) {
			isUsage := strings.HasPrefix(line, "container_cpu_usage_seconds_total") ||
				strings.HasPrefix(line, "container_memory_working_set_bytes")
			if isUsage && strings.Contains(line, `container="agent"`) && strings.Contains(line, ns.name) {
				measure("%s", line)
			}
		}

		Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		crash(ctx, pod, "agent") // again, so the kubelet waits before it restarts it
		awaitDegraded(ctx, ns.plain, cachev1alpha1.ReasonNodeCrashing, "container agent of node "+pod.Name+" terminated")
		awaitSettled(ctx, memcacheds, ns.plain)
		Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		Expect(statusOf(pod, "memcached")).To(HaveField("RestartCount", BeEquivalentTo(0)))

		began := time.Now()
		restart(ctx, pod)
		measure("a pod with an agent ends %.0f s after its deletion; memcached waits for 5 s", time.Since(began).Seconds())
		awaitSettled(ctx, memcacheds, ns.plain)
	}, SpecTimeout(stepTimeout))

	It("moves from plaintext to TLS without an interruption for clients that follow its Service", func(ctx SpecContext) {
		ns := namespaces[0].name
		mc := newMemcached(ns, "moving", 3)
		put(ctx, ns, "moving", a.content(issue(&a.ca, time.Hour, namesIn(ns, "moving")...)))
		create(ctx, mc)
		awaitSettled(ctx, memcacheds, mc)
		mover := withIdentities(probe(ns, "move", identitiesDir, "moving."+ns+".svc", "3"))
		create(ctx, mover)
		Eventually(podLog).WithContext(ctx).WithArguments(mover).Should(ContainSubstring("started"))
		change(ctx, mc, func() {
			mc.Spec.TLS = cachev1alpha1.TLS{SecretName: "moving", Plaintext: cachev1alpha1.PlaintextEnabled}
		})
		awaitSettled(ctx, memcacheds, mc)
		time.Sleep(45 * time.Second) // longer than DNS answers are cached
		change(ctx, mc, func() { mc.Spec.TLS.Plaintext = cachev1alpha1.PlaintextDisabled })
		awaitSettled(ctx, memcacheds, mc)
		Eventually(phaseOf).WithContext(ctx).WithArguments(mover).
			Should(BeElementOf(corev1.PodSucceeded, corev1.PodFailed))
		answer := logOf(ctx, mover)
		Expect(answer).To(HaveSuffix("; 0 not answered\n"))
		measure("a client during the move to TLS: %s", lines(answer)[len(lines(answer))-1])
		deleteAll(ctx, mover, mc)
	}, SpecTimeout(2*stepTimeout))

	It("names the Secret and key that are missing, and runs when they are there", func(ctx SpecContext) {
		namesWhatIsMissing(ctx, namespaces[0].name, a)
	}, SpecTimeout(3*stepTimeout))

	It("never shows what Secrets contain", func(ctx SpecContext) {
		metrics := fmt.Sprint(namespaces[0].metrics(ctx))
		report := run(ctx, "env", append([]string{"KUBECTL=" + os.Getenv("KUBECTL"), "config/bug-report.sh"},
			namesOfAll(namespaces)...)...)
		for _, part := range []string{"Server Version:", `"msg":"Starting"`, "holderIdentity:", "  kind: Memcached\n",
			"Containers:\n", "memcached-tls-0"} {
			Expect(report).To(ContainSubstring(part), "what a bug report needs")
		}
		for _, ns := range append(namesOfAll(namespaces), operatorNamespace) {
			in := "--namespace=" + ns
			out := kubectl(ctx, "get", in, "--output=yaml",
				"memcacheds,deployments,statefulsets,pods,services,configmaps,events")
			for _, pod := range strings.Fields(kubectl(ctx, "get", "pods", in, "--output=name")) {
				out += kubectl(ctx, "logs", in, "--all-containers", "--ignore-errors", pod)
			}
			out += metrics + report
			Expect(len(out)).To(BeNumerically(">", 1000))
			for _, secret := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary + "\n"))[:16],
				"PRIVATE KEY"} {
				Expect(strings.Contains(out, secret)).To(BeFalse(), "%s is in the objects or logs of %s", secret, ns)
			}
		}
	}, SpecTimeout(stepTimeout))
})

// namesWhatIsMissing moves caches to TLS with Secrets that cannot be used, all at once because each takes a minute.
func namesWhatIsMissing(ctx context.Context, ns string, a authority) {
	GinkgoHelper()
	good := func(name string) map[string][]byte {
		return a.content(issue(&a.ca, time.Hour, namesIn(ns, name)...))
	}
	without := func(name string, keys ...string) map[string][]byte {
		content := good(name)
		maps.DeleteFunc(content, func(key string, _ []byte) bool { return slices.Contains(keys, key) })
		return content
	}
	required := cachev1alpha1.ClientCertificates{Mode: cachev1alpha1.ClientCertificatesRequired, CAConfigMapName: "no-ca"}
	none := cachev1alpha1.ClientCertificates{}
	cases := []struct {
		name    string
		content map[string][]byte // nil for no Secret
		clients cachev1alpha1.ClientCertificates
		words   string
	}{
		{"missing", nil, none,
			"Secret missing does not exist or is empty: create it with the key tls.crt and the key tls.key"},
		{"no-key", without("no-key", "tls.key"), none, "Secret no-key has no key tls.key: add it"},
		{"no-content", map[string][]byte{"tls.crt": {}, "tls.key": {}}, none, "Secret no-content: the key tls.crt is empty"},
		{"no-type", without("no-type", "tls.crt", "tls.key"), none, "Secret no-type has no key tls.crt: add it"},
		{"no-ca", good("no-ca"), required, "ConfigMap no-ca does not exist or is empty: create it with the key ca.crt"},
	}
	var all []*cachev1alpha1.Memcached
	for _, c := range cases {
		mc := newMemcached(ns, c.name, 2)
		create(ctx, mc)
		all = append(all, mc)
		if c.content != nil {
			put(ctx, ns, c.name, c.content)
		}
	}
	nodes := map[string][]string{}
	for _, mc := range all {
		awaitSettled(ctx, memcacheds, mc)
		nodes[mc.Name] = mc.Status.Nodes
	}
	changed := time.Now()
	for i, mc := range all {
		change(ctx, mc, func() {
			mc.Spec.TLS = cachev1alpha1.TLS{SecretName: mc.Name, ClientCertificates: cases[i].clients}
		})
	}
	for i, mc := range all {
		awaitDegraded(ctx, mc, cachev1alpha1.ReasonNodeNotStarting, cases[i].words)
		Expect(mc.Status.ReadyNodes).To(BeEquivalentTo(1), "the other node is not touched")
		Expect(mc.Status.Nodes).To(ContainElement(BeElementOf(nodes[mc.Name])))
	}
	measure("all of %d unusable Secrets are named in Degraded %.0f s after the change", len(all),
		time.Since(changed).Seconds())
	for _, mc := range all {
		put(ctx, ns, mc.Name, good(mc.Name))
	}
	create(ctx, &corev1.ConfigMap{ObjectMeta: podNamed(ns, "no-ca").ObjectMeta,
		Data: map[string]string{"ca.crt": string(a.ca.certificate)}})
	for _, mc := range all {
		awaitSettled(ctx, memcacheds, mc)
		deleteAll(ctx, mc)
	}
	// The next spec reads the logs of all pods.
	Eventually(func(ctx context.Context) (string, error) {
		return try(ctx, os.Getenv("KUBECTL"), "get", "pods", "--namespace="+ns, "--output=name",
			"--selector=memcached_cr in (missing, no-key, no-content, no-type, no-ca)")
	}).WithContext(ctx).WithPolling(time.Second).Should(BeEmpty())
}

func key(mc *cachev1alpha1.Memcached) string { return mc.Namespace + "/" + mc.Name }

func namesOfAll(namespaces []*tlsNamespace) []string {
	var names []string
	for _, ns := range namespaces {
		names = append(names, ns.name)
	}
	return names
}

// sample returns a sample for a namespace, without the pace of a cache in production.
func sample(ns *tlsNamespace, name string) *cachev1alpha1.Memcached {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, "config/samples/cache_v1alpha1_memcached_"+name+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	mc := &cachev1alpha1.Memcached{}
	Expect(yaml.UnmarshalStrict(content, mc)).To(Succeed())
	mc.Namespace, mc.Spec.Image, mc.Spec.WarmupSeconds = ns.name, ns.image, ptr.To[int32](1)
	if name == "mutual_tls" { // with a user like those that OpenShift assigns
		user := ptr.To[int64](1000650000)
		mc.Spec.PodTemplate = &cachev1alpha1.PodTemplate{Spec: &cachev1alpha1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: user, FSGroup: user}}}
	}
	return mc
}

func (ns *tlsNamespace) both() []*cachev1alpha1.Memcached {
	return []*cachev1alpha1.Memcached{ns.plain, ns.mutual}
}

// answers returns the answers of the first node of a Memcached to the clients of "probe tls".
func (ns *tlsNamespace) answers(ctx context.Context, mc *cachev1alpha1.Memcached) map[string]string {
	GinkgoHelper()
	out := answerOf(ctx, withIdentities(probe(ns.name, "tls", identitiesDir, mc.Name+"."+ns.name+".svc",
		tlsAddressOf(ctx, mc, mc.Status.Nodes[0]))))
	answers := map[string]string{}
	for _, line := range lines(out) {
		client, answer, _ := strings.Cut(line, " ")
		answers[client] = answer
	}
	return answers
}

// metrics returns the metrics without labels of the first node of the Memcached with metrics.
func (ns *tlsNamespace) metrics(ctx context.Context) map[string]string {
	GinkgoHelper()
	host := hostOf(ctx, ns.plain, ns.plain.Status.Nodes[0])
	found := map[string]string{}
	page := ask(ctx, ns.name, "", "fetch", "memcached_", "http://"+net.JoinHostPort(host, "9150")+"/metrics")
	for _, line := range lines(page) {
		name, value, _ := strings.Cut(line, " ")
		found[name] = value
	}
	return found
}

// followNodes starts "probe follow" for the nodes of Memcacheds in one namespace.
func followNodes(ctx context.Context, all ...*cachev1alpha1.Memcached) *corev1.Pod {
	GinkgoHelper()
	args := []string{"follow", identitiesDir}
	for _, mc := range all {
		for _, node := range mc.Status.Nodes {
			args = append(args, mc.Name+"."+mc.Namespace+".svc@"+tlsAddressOf(ctx, mc, node))
		}
	}
	pod := withIdentities(probe(all[0].Namespace, args...))
	create(ctx, pod)
	Eventually(func(ctx context.Context) []string { return lines(podLog(ctx, pod)) }).WithContext(ctx).
		Should(HaveLen(len(args) - 2))
	return pod
}

// awaitServed waits until all nodes of a Memcached serve a certificate, and records how long that took.
func (ns *tlsNamespace) awaitServed(ctx context.Context, follower *corev1.Pod, changed time.Time,
	mc *cachev1alpha1.Memcached, pair keyPair, renewal int) {
	GinkgoHelper()
	slowest := 0.0
	for _, node := range mc.Status.Nodes {
		slowest = max(slowest, servedAt(ctx, follower, tlsAddressOf(ctx, mc, node), pair).Sub(changed).Seconds())
	}
	measure("%s, %s, renewal %d: all nodes serve the new certificate after %.0f s", filepath.Base(ns.image), mc.Name,
		renewal, slowest)
	Expect(slowest).To(BeNumerically("<", 120), "seconds until the nodes serve the certificate")
}

// servedAt waits until a node serves a certificate, and returns when it first did.
func servedAt(ctx context.Context, follower *corev1.Pod, address string, pair keyPair) time.Time {
	GinkgoHelper()
	serves := address + " serves " + pair.fingerprint()
	Eventually(podLog).WithContext(ctx).WithArguments(follower).WithPolling(time.Second).
		Should(ContainSubstring(serves))
	_, rest, _ := strings.Cut(podLog(ctx, follower), serves)
	at, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return time.UnixMilli(at)
}

// tlsAddressOf returns the address of a node for TLS.
func tlsAddressOf(ctx context.Context, mc *cachev1alpha1.Memcached, node string) string {
	GinkgoHelper()
	return net.JoinHostPort(hostOf(ctx, mc, node), "11212")
}

// runningContainers returns when each container of the nodes has started.
func runningContainers(ctx context.Context, namespaces []*tlsNamespace) map[string]string {
	GinkgoHelper()
	started := map[string]string{}
	for _, ns := range namespaces {
		var pods corev1.PodList
		Expect(kube.List(ctx, &pods, client.InNamespace(ns.name), client.MatchingLabels{"app": "memcached"})).To(Succeed())
		for _, pod := range pods.Items {
			for _, container := range []string{"memcached", "agent"} {
				status := statusOf(&pod, container)
				Expect(status.State.Running).NotTo(BeNil())
				started[fmt.Sprint(ns.name, pod.Name, pod.UID, container)] = status.State.Running.StartedAt.String()
			}
		}
	}
	return started
}

// restart deletes a pod, and waits until another one has its name.
func restart(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	uid := pod.UID
	Expect(kube.Delete(ctx, pod)).To(Succeed())
	Eventually(func(ctx context.Context) (bool, error) {
		err := kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.UID != uid, client.IgnoreNotFound(err)
	}).WithContext(ctx).Should(BeTrue())
}

// scaleOperator changes the number of pods of the operator, and waits until it has them.
func scaleOperator(ctx context.Context, replicas int) {
	GinkgoHelper()
	in := "--namespace=" + operatorNamespace
	kubectl(ctx, "scale", in, "deployment/"+managerName, fmt.Sprintf("--replicas=%d", replicas))
	kubectl(ctx, "rollout", "status", in, "--timeout=180s", "deployment/"+managerName)
	if replicas == 0 {
		Eventually(func(ctx context.Context) string {
			return kubectl(ctx, "get", "pods", in, "--output=name")
		}).WithContext(ctx).Should(BeEmpty())
	}
}
