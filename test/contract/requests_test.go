package contract

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/testenv"
)

// Requests are counted in the API server's audit log.
var _ = Describe("The number of requests", func() {
	for _, k := range kinds {
		It("is zero for a status event of a settled child of a "+k.Title(), func(ctx context.Context) {
			ns := newNamespace(ctx)
			child := k.own(ctx, k.create(ctx, k.Make(ns, "one", 2)))[0]
			unchanging(ctx, child, jobPace)
			mark := cp.Audit.Now()
			k.passOnStatusOf(ctx, child)
			report("requests for a status event of a settled child of a "+k.Title(), len(requests(mark, ns)), 0)
		})
	}

	for _, k := range deploying {
		It("of a "+k.Title()+" from its creation until it is ready is one for each child, one for the status and one for "+
			"the event", func(ctx context.Context) {
			ns := newNamespace(ctx)
			object := k.Make(ns, "one", 2)
			mark, start := cp.Audit.Now(), time.Now()
			k.create(ctx, object)
			found := requests(mark, ns)
			count := map[string]int{}
			for _, request := range found {
				count[request.Verb+" "+request.Resource]++
			}
			children := map[string]int{}
			for _, child := range k.Children {
				children["patch "+child.Resource]++
			}
			for child, one := range children {
				Expect(count).To(HaveKeyWithValue(child, one))
			}
			Expect(count).To(HaveKeyWithValue("create events", 1))
			// If it takes longer than a second, progress is reported after 1, 3, 7 … seconds.
			progress := int(math.Log2(found[len(found)-1].At.Sub(start).Seconds() + 1))
			report("requests of one "+k.Title()+" from creation to ready", len(found), len(k.children(object))+2+progress)
		})
	}

	It("of a Memcached with every field is no more", func(ctx context.Context) {
		ns := newNamespace(ctx)
		text, err := os.ReadFile(testenv.Root() + "/config/samples/cache_v1alpha1_memcached_full.yaml")
		Expect(err).NotTo(HaveOccurred())
		full := &cachev1alpha1.Memcached{}
		Expect(yaml.UnmarshalStrict(text, full)).To(Succeed())
		full.Namespace = ns
		mark, start := cp.Audit.Now(), time.Now()
		kinds[3].create(ctx, full)
		found := requests(mark, ns)
		progress := int(math.Log2(found[len(found)-1].At.Sub(start).Seconds() + 1))
		report("requests of one Memcached with every field from creation to ready", len(found),
			len(kinds[3].Children)+2+progress)
	})
})

// This spec runs first because it takes longest.
var _ = Describe("The number of requests", ownManager, SpecPriority(3), func() {
	It("is three for each of 200 Foos created at once, without a conflict or a write that changes nothing",
		func(ctx context.Context) {
			const count = 200
			// The mutation detector compares all cached objects each second: too slow for so many. It runs in other specs.
			restart(ctx, []string{"KUBE_CACHE_MUTATION_DETECTOR=false"})
			ns := newNamespace(ctx)
			DeferCleanup(func(ctx context.Context) {
				Expect(k8s.DeleteAllOf(ctx, &samplev1alpha1.Foo{}, client.InNamespace(ns))).To(Succeed())
				Eventually(ctx, func(g Gomega) { // the next spec does not compete with the garbage collector
					var pods corev1.PodList
					g.Expect(k8s.List(ctx, &pods, client.InNamespace(ns), client.Limit(1))).To(Succeed())
					g.Expect(pods.Items).To(BeEmpty())
				}).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
			})
			mark := cp.Audit.Now()
			for i := range count {
				Expect(k8s.Create(ctx, newFoo(ns, fmt.Sprintf("foo-%d", i), fmt.Sprintf("web-%d", i), ptr.To[int32](1)))).
					To(Succeed())
			}
			Eventually(ctx, func() int {
				var foos samplev1alpha1.FooList
				Expect(k8s.List(ctx, &foos, client.InNamespace(ns))).To(Succeed())
				return len(slices.DeleteFunc(foos.Items,
					func(foo samplev1alpha1.Foo) bool { return foo.Status.AvailableReplicas != 1 }))
			}).WithTimeout(3 * time.Minute).WithPolling(time.Second).Should(Equal(count))
			time.Sleep(2 * time.Second)

			all := requests(mark, ns)
			count409 := 0
			perResource := map[string]int{}
			for _, request := range all {
				perResource[request.Verb+" "+request.Resource]++
				if isConflict(request) {
					count409++
				}
			}
			report("conflicts (409) over 200 Foos", count409, 0)
			report("writes that change nothing over 200 Foos", noOps(mark, ns), 0)
			report("requests for the 200 Deployments of 200 Foos", perResource["patch deployments"], count)
			report("events of 200 Foos", perResource["create events"], count)
			Expect(perResource).To(And(HaveKeyWithValue("patch deployments", count), HaveKeyWithValue("create events", count)))
			// If a pod takes longer than a second to become ready, progress is reported in between.
			note("%5.2f                 requests per Foo over 200 Foos created at once, progress reports included",
				float64(len(all))/count)
		})
})

// noOps counts the operator's writes that are answered with a version of the object that an earlier write created.
func noOps(mark testenv.Mark, namespace string) int {
	made, found := map[string]bool{}, 0
	for _, request := range cp.Audit.Since(mark, testenv.In(namespace), testenv.Request.IsWrite) {
		if request.Code >= 300 || request.ResponseRV == "" {
			continue
		}
		version := request.ResponseUID + "@" + request.ResponseRV
		if made[version] && testenv.ByOperator(request) {
			found++
		}
		made[version] = true
	}
	Expect(len(made)).To(BeNumerically(">", 0), "the audit log has no responses")
	return found
}

// report notes a count with its bound, and fails if the count exceeds it.
func report(what string, count, bound int) {
	GinkgoHelper()
	note("%5d (at most %3d)  %s", count, bound, what)
	Expect(count).To(BeNumerically("<=", bound), what)
}

// cost is the name of the report entries that note writes.
const cost = "cost"

// note keeps a line that is printed at the end of the suite.
func note(format string, values ...any) {
	AddReportEntry(cost, fmt.Sprintf(format, values...), ReportEntryVisibilityNever)
}

// entriesOf returns the report entries of a name from all processes.
func entriesOf(report Report, name string) (entries []types.ReportEntry) {
	for _, spec := range report.SpecReports {
		for _, entry := range spec.ReportEntries {
			if entry.Name == name {
				entries = append(entries, entry)
			}
		}
	}
	return entries
}

var _ = ReportAfterSuite("what it costs", func(report Report) {
	var costs []string
	for _, entry := range entriesOf(report, cost) {
		costs = append(costs, entry.StringRepresentation())
	}
	if len(costs) > 0 {
		slices.Sort(costs)
		fmt.Printf("\n\nWhat it costs, as the API server has counted:\n%s\n", strings.Join(costs, "\n"))
	}
})
