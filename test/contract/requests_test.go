package contract

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/testenv"
)

// What it costs, counted by the API server's audit log. It begins first, because one of these specs takes longest.
var _ = Describe("The number of requests", SpecPriority(1), func() {
	for _, k := range kinds {
		Describe("of a "+k.Name, func() {
			var (
				ns     string
				object client.Object
			)
			BeforeEach(func(ctx context.Context) {
				ns = newNamespace(ctx)
				object = k.Make(ns, "one", 2)
			})

			It("is zero for a status event of a settled child", func(ctx context.Context) {
				k.create(ctx, object)
				child := k.own(ctx, object)[0]
				atRest(ctx, child, jobPace)
				mark := cp.Audit.Now()
				k.passOnStatusOf(ctx, child)
				report("requests for a status event of a settled child of a "+k.Name, len(requests(mark, ns)), 0)
			})

			It("is zero for a resync", func(ctx context.Context) {
				k.create(ctx, object)
				restartWith(ctx, []string{"WATCH_NAMESPACE=" + ns}, "--sync-period=1s")
				Eventually(func() int { return passes(k.Controller()) }).Should(BeNumerically(">", 0))
				mark, before := cp.Audit.Now(), passes(k.Controller())
				Eventually(func() int { return passes(k.Controller()) }).Should(BeNumerically(">=", before+3))
				time.Sleep(200 * time.Millisecond)
				found := requests(mark, ns)
				report("requests for three resyncs of a "+k.Name, len(found), 0)
			})

			It("is zero for a restart of the manager", func(ctx context.Context) {
				var objects []client.Object
				for i := range 10 {
					objects = append(objects, k.Make(ns, fmt.Sprintf("n%d", i), 1))
					k.put(ctx, objects[i])
				}
				for _, object := range objects {
					k.settle(ctx, object)
				}
				mark := cp.Audit.Now()
				restartWith(ctx, []string{"WATCH_NAMESPACE=" + ns})
				Eventually(func() int { return passes(k.Controller()) }).Should(BeNumerically(">=", len(objects)))
				time.Sleep(2 * time.Second)
				found := cp.Audit.Since(mark, testenv.ByOperator, func(r testenv.Request) bool {
					return r.IsWrite() || r.Verb == "get" && r.Resource != ""
				})
				report("writes and child requests for a restart of the manager with 10 "+k.Name+"s", len(found), 0)
			})
		})
	}

	for _, k := range deploying {
		It("of a "+k.Name+" from its creation until it is ready is one for each child, one for the status and one for "+
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
			for _, child := range []string{"deployments", "services", "poddisruptionbudgets"}[:len(k.children(object))] {
				Expect(count).To(HaveKeyWithValue("patch "+child, 1))
			}
			Expect(count).To(HaveKeyWithValue("create events", 1))
			// Where the machine takes longer than a second, progress is told after 1, 3, 7 … seconds.
			progress := int(math.Log2(found[len(found)-1].At.Sub(start).Seconds() + 1))
			report("requests of one "+k.Name+" from creation to ready", len(found), len(k.children(object))+2+progress)
		})
	}

	It("stays at three each for 500 Foos made at once, without a conflict or a write that changes nothing",
		func(ctx context.Context) {
			const count = 500
			ns := newNamespace(ctx)
			DeferCleanup(func(ctx context.Context) {
				Expect(k8s.DeleteAllOf(ctx, &samplev1alpha1.Foo{}, client.InNamespace(ns))).To(Succeed())
				Eventually(ctx, func(g Gomega) { // so that the next spec has the machine to itself
					var deployments appsv1.DeploymentList
					g.Expect(k8s.List(ctx, &deployments, client.InNamespace(ns))).To(Succeed())
					g.Expect(deployments.Items).To(BeEmpty())
					var pods corev1.PodList
					g.Expect(k8s.List(ctx, &pods, client.InNamespace(ns))).To(Succeed())
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
				ready := 0
				for _, foo := range foos.Items {
					if foo.Status.AvailableReplicas == 1 {
						ready++
					}
				}
				return ready
			}).WithTimeout(3 * time.Minute).WithPolling(time.Second).Should(Equal(count))
			time.Sleep(2 * time.Second)

			all := requests(mark, ns)
			perResource, conflicts := map[string]int{}, 0
			for _, request := range all {
				perResource[request.Verb+" "+request.Resource]++
				if request.Code == 409 {
					conflicts++
				}
			}
			report("conflicts (409) over 500 Foos", conflicts, 0)
			report("writes that change nothing over 500 Foos", noOps(mark, ns), 0)
			report("requests for the 500 Deployments of 500 Foos", perResource["patch deployments"], count)
			report("events of 500 Foos", perResource["create events"], count)
			Expect(perResource).To(And(HaveKeyWithValue("patch deployments", count), HaveKeyWithValue("create events", count)))
			// Where a pod takes longer than a second to be ready, as many at once do here, progress is told in between.
			note("%5.2f                 requests per Foo over 500 Foos made at once, progress reports included",
				float64(len(all))/count)
		})
})

// noOps counts the operator's writes whose answer is a version of the object that another write had made before.
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
	Expect(len(made)).To(BeNumerically(">", 0), "the audit log has no answers")
	return found
}

// report notes a count with its bound, and fails where it is over.
func report(what string, count, bound int) {
	GinkgoHelper()
	note("%5d (at most %3d)  %s", count, bound, what)
	Expect(count).To(BeNumerically("<=", bound), what)
}

// cost is the name of the report entries that note writes.
const cost = "cost"

// note keeps a line that is printed when all processes have ended.
func note(format string, values ...any) {
	AddReportEntry(cost, fmt.Sprintf(format, values...), ReportEntryVisibilityNever)
}

// entriesOf returns the report entries of a name that all processes have made.
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
