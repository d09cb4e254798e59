package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/test/proof"
)

// Events with bars or plots of their own.
const (
	imageEvent         = "another image"
	formerImageEvent   = "the former image again"
	configurationEvent = "another configuration"
	killEvent          = "a node is killed"
	drainEvent         = "a drain"
	renewalEvent       = "a renewed certificate"
	upgradeEvent       = "an upgrade of the operator"
)

const (
	warmUp       = 30 * time.Second // of our StatefulSet
	rolloutTail  = 30 * time.Second // observed after a cache has settled
	rolloutLimit = 20 * time.Minute // for an event
)

// cache is one way to run memcached, with its users.
type cache struct {
	name      string
	namespace string
	workload  client.Object // *appsv1.Deployment, *appsv1.StatefulSet or *cachev1alpha1.Memcached
	others    []client.Object
	selector  client.MatchingLabels
	users     *corev1.Pod
	authority *authority  // of the certificates
	follower  *corev1.Pod // observes the certificates that nodes serve
}

// interval is what probe users prints.
type interval struct {
	Ended                time.Time
	Hits, Misses, Errors int
	Silent               time.Duration
}

const (
	aDeployment  = "Deployment of the operator-sdk sample"
	aStatefulSet = "StatefulSet as in charts"
	ourDefault   = "Memcached"
	ourTLS       = "Memcached with TLS"
	ourPlainSet  = "Memcached with a StatefulSet, no warm-up"
	ourSet       = "Memcached with a StatefulSet, warm-up of 30 s"
)

var (
	ours      = []string{ourDefault, ourPlainSet, ourSet, ourTLS}
	allCaches = append([]string{aDeployment, aStatefulSet}, ours...)
)

// event is something that happens to caches.
type event struct {
	name string
	// before prepares it for all caches, without being observed; nil for nothing.
	before func(ctx context.Context, caches []*cache)
	do     func(ctx context.Context, c *cache) // starts it for one cache
	all    func(ctx context.Context)           // lets it happen to all at once, in place of do
	to     []string                            // the caches that it happens to; nil for all
}

// effect is what an event did to the users of a cache.
type effect struct {
	misses, errors int
	lowest         float64 // hit ratio of a second
	silent         time.Duration
	seconds        float64   // until the cache had settled
	ratios         []float64 // of each 2 s, from the beginning
}

// What the users of a cache notice. "make bench-rollout" runs it.
var _ = Describe("The users of a cache", Ordered, Label("bench-rollout"), func() {
	page := &rolloutPage{effects: map[int]map[string]map[string]effect{}}
	sizes := []int{3, 6}

	BeforeAll(func(ctx SpecContext) {
		page.run = proof.Begin(root, "")
		Expect(os.Getenv(oldImage)).NotTo(BeEmpty(), "the cluster needs a second image of memcached in $%s", oldImage)
		version, err := clients.Discovery().ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		page.kubernetes = version.GitVersion
		deploy(ctx)
	}, NodeTimeout(stepTimeout))

	for _, nodes := range sizes {
		It(fmt.Sprintf("notice what happens to %d nodes", nodes), func(ctx SpecContext) {
			caches := startCaches(ctx, nodes)
			page.effects[nodes] = map[string]map[string]effect{}
			for _, e := range eventsFor(nodes) {
				By(e.name)
				if !slices.Contains(page.events, e.name) {
					page.events = append(page.events, e.name)
				}
				page.effects[nodes][e.name] = observe(ctx, caches, e)
			}
			page.nodes = append(page.nodes, nodes)
		}, SpecTimeout(2*time.Hour))
	}

	AfterAll(func() {
		page.run.End()
		Expect(page.page().Print(GinkgoWriter)).To(Succeed())
		if len(page.nodes) == len(sizes) { // only a whole run writes a page
			Expect(page.run.Write(page.page(), os.Getenv("PROOF"))).To(Succeed())
		}
	})
})

// startCaches creates all caches and their users, and waits until all keys are stored.
func startCaches(ctx context.Context, nodes int) []*cache {
	GinkgoHelper()
	var prefixes []string
	for i := range allCaches {
		prefixes = append(prefixes, fmt.Sprintf("cache%d-", i))
	}
	namespaces := newNamespaces(ctx, restrictedLevel, prefixes...)
	ca := newAuthority(ctx, namespaces...)
	var caches []*cache
	for i, name := range allCaches {
		c := newCache(name, namespaces[i], int32(nodes))
		if c.authority = &ca; name == ourTLS {
			c.renew(ctx)
		}
		create(ctx, append(c.others, c.workload)...)
		caches = append(caches, c)
	}
	for _, c := range caches {
		Eventually(c.hasSettled).WithContext(ctx).Should(BeTrue(), c.name)
		create(ctx, c.users)
	}
	for _, c := range caches {
		Eventually(logOf).WithContext(ctx).WithArguments(c.users).Should(HavePrefix("filled"))
	}
	return caches
}

func newCache(name, namespace string, nodes int32) *cache {
	c := &cache{name: name, namespace: namespace, selector: client.MatchingLabels{"app": "cache"}}
	in := metav1.ObjectMeta{Namespace: namespace, Name: "cache"}
	service, port := "cache."+namespace+".svc", "memcached"
	switch name {
	case aDeployment, aStatefulSet:
		c.others = []client.Object{&corev1.Service{ObjectMeta: in, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone,
			Selector: c.selector, Ports: []corev1.ServicePort{{Name: "memcached", Port: 11211}}}}}
		selector := &metav1.LabelSelector{MatchLabels: c.selector}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: c.selector}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "memcached", Image: os.Getenv("RELATED_IMAGE_MEMCACHED"),
				Command: []string{"memcached", "--memory-limit=64", "-o", "modern", "-v"}, SecurityContext: restricted(),
				Ports: []corev1.ContainerPort{{Name: "memcached", ContainerPort: 11211}}}}}}
		if name == aDeployment {
			c.workload = &appsv1.Deployment{ObjectMeta: in, Spec: appsv1.DeploymentSpec{Replicas: &nodes, Selector: selector,
				Template: template}}
			break
		}
		template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 5,
			ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("memcached")}}}
		c.workload = &appsv1.StatefulSet{ObjectMeta: in, Spec: appsv1.StatefulSetSpec{Replicas: &nodes, Selector: selector,
			ServiceName: "cache", PodManagementPolicy: appsv1.ParallelPodManagement, Template: template}}
		c.others = append(c.others, &policyv1.PodDisruptionBudget{ObjectMeta: in, Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: selector}})
	default:
		mc := newMemcached(namespace, "cache", nodes)
		mc.Spec.Image = os.Getenv("RELATED_IMAGE_MEMCACHED")
		c.selector = client.MatchingLabels{"app": "memcached", "memcached_cr": "cache"}
		switch name {
		case ourSet, ourPlainSet:
			mc.Spec.WorkloadType = cachev1alpha1.StatefulSetWorkload
			mc.Spec.WarmupSeconds = ptr.To(int32(0))
			if name == ourSet {
				mc.Spec.WarmupSeconds = ptr.To(int32(warmUp.Seconds()))
			}
			service = "cache-nodes." + namespace + ".svc"
		case ourTLS:
			mc.Spec.TLS = cachev1alpha1.TLS{SecretName: "certificate"}
			port = "memcached-tls"
		}
		c.workload = mc
	}
	args := []string{"users", port, service}
	if name == ourTLS {
		args = append(args, identitiesDir, service)
	}
	c.users = withIdentities(probe(namespace, args...))
	return c
}

// renew issues a certificate for the nodes, and returns it.
func (c *cache) renew(ctx context.Context) keyPair {
	GinkgoHelper()
	pair := issue(&c.authority.ca, time.Hour, namesIn(c.namespace, "cache")...)
	put(ctx, c.namespace, "certificate", c.authority.content(pair))
	return pair
}

// renewServed renews the certificate, and waits until every node serves the new one.
func (c *cache) renewServed(ctx context.Context) {
	GinkgoHelper()
	mc := c.workload.(*cachev1alpha1.Memcached)
	Expect(mc.Status.Nodes).To(HaveLen(int(mc.Spec.Size)))
	pair := c.renew(ctx)
	for _, node := range mc.Status.Nodes {
		servedAt(ctx, c.follower, tlsAddressOf(ctx, mc, node), pair)
	}
	Expect(kube.Delete(ctx, c.follower)).To(Succeed())
}

// startFollower observes the certificates of a Memcached with TLS.
func startFollower(ctx context.Context, caches []*cache) {
	GinkgoHelper()
	for _, c := range caches {
		if c.name == ourTLS {
			c.follower = followNodes(ctx, c.workload.(*cachev1alpha1.Memcached))
		}
	}
}

// hasSettled reports whether all pods are of the latest template and ready, and none is ending.
func (c *cache) hasSettled(ctx context.Context) (bool, error) {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(c.workload), c.workload); err != nil {
		return false, err
	}
	var isRolledOut bool
	var size int32
	switch w := c.workload.(type) {
	case *appsv1.Deployment:
		size = *w.Spec.Replicas
		isRolledOut = w.Status.ObservedGeneration == w.Generation && w.Status.UpdatedReplicas == size
	case *appsv1.StatefulSet:
		size = *w.Spec.Replicas
		isRolledOut = w.Status.ObservedGeneration == w.Generation && w.Status.CurrentRevision == w.Status.UpdateRevision
	case *cachev1alpha1.Memcached:
		size, isRolledOut = w.Spec.Size, settled(ctx, memcacheds, w) == nil
	}
	// The status of a workload may not show yet what has just happened to a pod.
	var pods corev1.PodList
	if err := kube.List(ctx, &pods, client.InNamespace(c.namespace), c.selector); err != nil {
		return false, err
	}
	return isRolledOut && len(pods.Items) == int(size) && !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	}), nil
}

// change changes the workload: its image, its number of threads and its number of nodes, unless they are zero.
func (c *cache) change(ctx context.Context, image string, threads, nodes int32) {
	GinkgoHelper()
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(c.workload), c.workload)).To(Succeed())
	before := client.MergeFrom(c.workload.DeepCopyObject().(client.Object))
	var container *corev1.Container
	switch w := c.workload.(type) {
	case *appsv1.Deployment:
		container, w.Spec.Replicas = &w.Spec.Template.Spec.Containers[0], ptr.To(cmp.Or(nodes, *w.Spec.Replicas))
	case *appsv1.StatefulSet:
		container, w.Spec.Replicas = &w.Spec.Template.Spec.Containers[0], ptr.To(cmp.Or(nodes, *w.Spec.Replicas))
	case *cachev1alpha1.Memcached:
		w.Spec.Image, w.Spec.Size = cmp.Or(image, w.Spec.Image), cmp.Or(nodes, w.Spec.Size)
		if threads > 0 {
			w.Spec.Config = &cachev1alpha1.MemcachedConfig{Threads: threads}
		}
	}
	if container != nil {
		container.Image = cmp.Or(image, container.Image)
		if threads > 0 {
			container.Command = append(container.Command, fmt.Sprintf("--threads=%d", threads))
		}
	}
	Expect(kube.Patch(ctx, c.workload, before)).To(Succeed())
}

// nodes returns the pods.
func (c *cache) nodes(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(kube.List(ctx, &pods, client.InNamespace(c.namespace), c.selector)).To(Succeed())
	Expect(pods.Items).NotTo(BeEmpty())
	return pods.Items
}

// eventsFor returns the events for caches with a number of nodes.
func eventsFor(nodes int) []event {
	size := int32(nodes)
	return []event{
		{name: imageEvent, do: func(ctx context.Context, c *cache) { c.change(ctx, os.Getenv(oldImage), 0, 0) }},
		{name: formerImageEvent, do: func(ctx context.Context, c *cache) {
			c.change(ctx, os.Getenv("RELATED_IMAGE_MEMCACHED"), 0, 0)
		}},
		{name: configurationEvent, do: func(ctx context.Context, c *cache) { c.change(ctx, "", 2, 0) }},
		{name: "one node more", do: func(ctx context.Context, c *cache) { c.change(ctx, "", 0, size+1) }},
		{name: "one node less", do: func(ctx context.Context, c *cache) { c.change(ctx, "", 0, size) }},
		{name: killEvent, do: func(ctx context.Context, c *cache) {
			Expect(kube.Delete(ctx, &c.nodes(ctx)[0], client.GracePeriodSeconds(0))).To(Succeed())
		}},
		{name: drainEvent, do: drain},
		{name: renewalEvent, to: []string{ourTLS}, before: startFollower,
			do: func(ctx context.Context, c *cache) { c.renewServed(ctx) }},
		{name: upgradeEvent, to: ours,
			before: func(ctx context.Context, _ []*cache) { replaceOperator(ctx, image("", "v"+last)) },
			all:    func(ctx context.Context) { replaceOperator(ctx, image("")) }},
	}
}

// drain evicts all nodes, as "kubectl drain" does: again if a budget does not allow it yet.
func drain(ctx context.Context, c *cache) {
	GinkgoHelper()
	for _, pod := range c.nodes(ctx) {
		Eventually(func(ctx context.Context) error {
			return clients.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{
				Namespace: pod.Namespace, Name: pod.Name},
				DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}})
		}).WithContext(ctx).WithTimeout(rolloutLimit).WithPolling(time.Second).
			Should(Or(Succeed(), MatchError(apierrors.IsNotFound, "IsNotFound")))
	}
}

// replaceOperator has another image of the operator run, and waits until the image hold-off is over.
func replaceOperator(ctx context.Context, next string) {
	GinkgoHelper()
	kubectl(ctx, "set", "image", "--namespace="+operatorNamespace, "deployment/"+managerName, "manager="+next)
	kubectl(ctx, "rollout", "status", "--namespace="+operatorNamespace, "--timeout=180s", "deployment/"+managerName)
	time.Sleep(imageHoldOff + 10*time.Second)
}

// observe lets an event happen to all caches at the same time, and returns its effect on the users of each.
func observe(ctx context.Context, caches []*cache, e event) map[string]effect {
	GinkgoHelper()
	if e.before != nil {
		e.before(ctx, caches)
	}
	for _, c := range caches {
		Eventually(c.hasSettled).WithContext(ctx).WithTimeout(rolloutLimit).Should(BeTrue(), c.name)
		Eventually(c.hits).WithContext(ctx).WithPolling(time.Second).Should(BeNumerically(">", 0.999), c.name)
	}
	began := time.Now()
	if e.all != nil {
		e.all(ctx)
	}
	effects := map[string]effect{}
	var mu sync.Mutex
	var over sync.WaitGroup
	for _, c := range caches {
		if len(e.to) > 0 && !slices.Contains(e.to, c.name) {
			continue
		}
		over.Go(func() {
			defer GinkgoRecover()
			if e.do != nil {
				e.do(ctx, c)
			}
			Eventually(c.hasSettled).WithContext(ctx).WithTimeout(rolloutLimit).Should(BeTrue(), c.name)
			lasted := time.Since(began)
			time.Sleep(rolloutTail)
			seen := c.since(ctx, began)
			Expect(len(seen)).To(BeNumerically(">=", int(lasted/userInterval)), "users of %s reported no results for a while",
				c.name)
			noticed := effectOf(seen)
			noticed.seconds = lasted.Seconds()
			mu.Lock()
			defer mu.Unlock()
			effects[c.name] = noticed
		})
	}
	over.Wait()
	Expect(effects).To(HaveLen(cmp.Or(len(e.to), len(caches))), "an event failed")
	return effects
}

// since returns what users have noticed since a time.
func (c *cache) since(ctx context.Context, began time.Time) (noticed []interval) {
	GinkgoHelper()
	content, err := clients.CoreV1().Pods(c.namespace).GetLogs(c.users.Name,
		&corev1.PodLogOptions{SinceTime: &metav1.Time{Time: began}}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, line := range lines(string(content)) {
		var i interval
		if json.Unmarshal([]byte(line), &i) == nil && i.Ended.After(began) {
			noticed = append(noticed, i)
		}
	}
	return noticed
}

// hits returns the hit ratio of the last two seconds.
func (c *cache) hits(ctx context.Context) float64 {
	return ratioOf(c.since(ctx, time.Now().Add(-2*time.Second)))
}

// ratioOf returns the share of requests that were hits; 0 for no requests.
func ratioOf(noticed []interval) float64 {
	hits, requests := 0, 0
	for _, i := range noticed {
		hits += i.Hits
		requests += i.Hits + i.Misses + i.Errors
	}
	return float64(hits) / float64(max(requests, 1))
}

const (
	userInterval = 200 * time.Millisecond          // as in probe/users.go
	inSecond     = int(time.Second / userInterval) // intervals
	inPoint      = 2 * inSecond                    // intervals for a point of a plot
)

func effectOf(noticed []interval) effect {
	result := effect{lowest: 1}
	for n, i := range noticed {
		result.misses += i.Misses
		result.errors += i.Errors
		result.silent = max(result.silent, i.Silent)
		if n+1 >= inSecond {
			result.lowest = min(result.lowest, ratioOf(noticed[n+1-inSecond:n+1]))
		}
	}
	for chunk := range slices.Chunk(noticed, inPoint) {
		result.ratios = append(result.ratios, ratioOf(chunk))
	}
	return result
}

// rolloutPage is what was measured: effects by the number of nodes, event and cache.
type rolloutPage struct {
	run        *proof.Run
	kubernetes string // the version
	nodes      []int
	events     []string
	effects    map[int]map[string]map[string]effect
}

func (r *rolloutPage) page() *proof.Page {
	page := &proof.Page{Name: "rollout", Title: "What the users of a cache notice",
		Text: []string{"Clients read keys, some more often than others, and store those that are missing, while something " +
			"happens to the cache: 500 requests a second, of 600 keys, that belong to nodes by a consistent hash of " +
			"the names in the DNS of a headless Service, or, where pods have no names, their addresses, looked up every 5 " +
			"seconds and after errors. A node is avoided for a second after an error. All caches run at the same time, on one " +
			"machine. `make bench-rollout` makes this page.",
			"The sample is the Deployment of the operator-sdk tutorial, which has Kubernetes' defaults for rollouts (a " +
				"quarter more pods and a quarter fewer, rounded up and down) and no probes. A StatefulSet as in charts has a " +
				"readiness probe and a PodDisruptionBudget of one.",
			"A node that is replaced is empty, so with every workload its keys are missed again. What differs is how many " +
				"nodes are empty, or do not answer, at the same time.",
			"The operator is that of the tree; for its upgrade, the last release has run before. Each event is observed once " +
				"with each cache. A bar for several events or caches is for the worst of them. A killed node is a pod that is " +
				"deleted with a grace period of 0. A drain evicts one pod of a cache after the other, as soon as its " +
				"PodDisruptionBudget allows it. Only Memcacheds have certificate renewals and upgrades of the " +
				"operator. A renewal ends when every node serves the new certificate. spec.image is set, so an upgrade keeps the " +
				"image of the nodes."},
		Settings: append(r.run.Settings(), proof.Setting{Name: "Kubernetes", Value: r.kubernetes},
			proof.Setting{Name: "memcached", Value: os.Getenv("RELATED_IMAGE_MEMCACHED") + ", " + os.Getenv(oldImage)}),
		Claims: append(r.claims(), r.run.Claim()),
	}
	for _, nodes := range r.nodes {
		section := proof.Section{Title: fmt.Sprintf("%d nodes", nodes), Text: []string{"The lowest hit ratio is that of a " +
			"second. Without an answer is the longest time in which all requests to one node failed. Each event is observed " +
			fmt.Sprintf("until %s after the cache has settled.", rolloutTail)}}
		for _, e := range r.events {
			table := proof.Table{Title: e, Columns: []string{"cache", "misses", "errors", "lowest hit ratio, %",
				"without an answer, s", "settled after, s"}}
			for _, name := range allCaches {
				if noticed, ok := r.effects[nodes][e][name]; ok {
					table.Rows = append(table.Rows, []string{name, fmt.Sprint(noticed.misses), fmt.Sprint(noticed.errors),
						fmt.Sprintf("%.1f", 100*noticed.lowest), fmt.Sprintf("%.1f", noticed.silent.Seconds()),
						fmt.Sprintf("%.0f", noticed.seconds)})
				}
			}
			section.Tables = append(section.Tables, table)
		}
		page.Sections = append(page.Sections, section)
		for _, e := range []string{imageEvent, killEvent, drainEvent} {
			page.Sections = append(page.Sections, r.plots(nodes, e))
		}
	}
	return page
}

// plots are the hit ratios during an event.
func (r *rolloutPage) plots(nodes int, e string) proof.Section {
	section := proof.Section{Title: fmt.Sprintf("Hit ratio of %d nodes: %s", nodes, e)}
	for _, name := range allCaches {
		noticed := r.effects[nodes][e][name]
		var points []string
		for _, ratio := range noticed.ratios {
			points = append(points, fmt.Sprintf("%.0f", 100*ratio))
		}
		section.Text = append(section.Text, fmt.Sprintf("```mermaid\nxychart-beta\n  title %q\n  x-axis \"s\" 0 --> %d\n"+
			"  y-axis \"%% hits\" 0 --> 100\n  line [%s]\n```", name, 2*len(points), strings.Join(points, ", ")))
	}
	return section
}

// claims are the bars.
func (r *rolloutPage) claims() []proof.Claim {
	var claims []proof.Claim
	for _, nodes := range r.nodes {
		effects := r.effects[nodes]
		for _, e := range []string{upgradeEvent, renewalEvent} {
			misses, failed := 0, 0
			for _, noticed := range effects[e] {
				misses += noticed.misses
				failed += noticed.errors
			}
			claims = append(claims, proof.Claim{What: fmt.Sprintf("%s, %d nodes: misses and errors of %s", e, nodes,
				strings.Join(slices.Sorted(maps.Keys(effects[e])), ", ")), Bar: "0 and 0",
				Found: fmt.Sprintf("%d and %d", misses, failed), Verdict: proof.Judge(misses+failed == 0)})
		}
		bar := 1 - 1/float64(nodes) - 0.05
		rollouts := []string{imageEvent, formerImageEvent, configurationEvent}
		var lows, shares []float64
		for _, e := range rollouts {
			own, sample := effects[e][ourSet], effects[e][aDeployment]
			lows = append(lows, own.lowest)
			shares = append(shares, float64(own.misses+own.errors)/float64(max(sample.misses+sample.errors, 1)))
		}
		claims = append(claims, proof.Claim{What: fmt.Sprintf("%s, %d nodes, %s: lowest hit ratio",
			strings.Join(rollouts, ", "), nodes, ourSet), Bar: fmt.Sprintf("at least %.1f %%", 100*bar),
			Found:   fmt.Sprintf("%.1f %% to %.1f %%", 100*slices.Min(lows), 100*slices.Max(lows)),
			Verdict: proof.Judge(slices.Min(lows) >= bar)})
		misses := map[string]int{}
		for _, byCache := range effects {
			for name, noticed := range byCache {
				misses[name] += noticed.misses + noticed.errors
			}
		}
		share := float64(misses[ourSet]) / float64(max(misses[aDeployment], 1))
		claim := proof.Claim{What: fmt.Sprintf("misses and errors in all events, %d nodes: %s, of those of the sample", nodes,
			ourSet), Bar: "at most 33 %", Found: fmt.Sprintf("%d of %d, %.0f %%; in each of %d rollouts %.0f %% to %.0f %%",
			misses[ourSet], misses[aDeployment], 100*share, len(rollouts), 100*slices.Min(shares), 100*slices.Max(shares)),
			Verdict: proof.Judge(share <= 1.0/3)}
		if claim.Verdict == proof.Missed {
			claim.Note = "a new node is empty, whatever the workload, so each replacement causes misses"
		}
		claims = append(claims, claim)
	}
	return claims
}
