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
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	testkinds "github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

type phase func(ctx context.Context)

// outage is a test in a namespace during a time without a manager. All tests share that time, because each start of a
// manager takes seconds of CPU. The function runs before it, and returns functions that run during and after it.
type outage struct {
	name    string
	prepare func(ctx context.Context, ns string) (during, after phase)
}

// This container runs last: the Jobs in the history have to be a minute old.
var _ = Describe("After the manager was killed and started again, the operator", Ordered, ContinueOnFailure, ownManager,
	SpecPriority(-1), func() {
		outages := outagesOfCronJobs()
		for _, k := range kinds {
			outages = append(outages, outageOf(k), outageWithoutChange(k))
		}
		for _, k := range deploying {
			outages = append(outages, outageThatStripsAWorkload(k))
		}
		outages = append(outages, outageThatRenamesAFoo())
		after := make([]phase, len(outages))

		BeforeAll(func(ctx context.Context) {
			startDefault(ctx)
			during := make([]phase, len(outages))
			for i, outage := range outages {
				during[i], after[i] = outage.prepare(ctx, newNamespace(ctx))
			}
			kill(ctx)
			for _, change := range during {
				change(ctx)
			}
			start(ctx, nil)
			Eventually(manager.Logs).Should(ContainSubstring("Starting workers"))
		})
		for i, outage := range outages {
			It(outage.name, func(ctx context.Context) { after[i](ctx) })
		}
	})

func outageOf(k kind) outage {
	return outage{"handles all changes of each " + k.Title(), func(ctx context.Context, ns string) (during, after phase) {
		object := k.create(ctx, k.Make(ns, "one", 1))
		children := k.own(ctx, object)
		last := children[len(children)-1]
		later, deleted := k.Make(ns, "later", 1), k.Make(ns, "deleted", 1)
		during = func(ctx context.Context) {
			Expect(k8s.Delete(ctx, last)).To(Succeed())
			Expect(k8s.Create(ctx, later)).To(Succeed())
			if k.due != nil {
				k.due(ctx, later)
			}
			Expect(k8s.Create(ctx, deleted)).To(Succeed())
			Expect(k8s.Delete(ctx, deleted)).To(Succeed())
		}
		after = func(ctx context.Context) {
			Eventually(ctx, k.conditionsOf(later)).Should(settled)
			if k.Deploys {
				Eventually(ctx, func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(last), last) }).Should(Succeed())
			}
			for _, child := range k.children(deleted) {
				Expect(isGone(child)(ctx)).To(BeTrue(), "%T", child)
			}
		}
		return during, after
	}}
}

func outageWithoutChange(k kind) outage {
	name := "sends no request for settled objects, each a " + k.Title()
	return outage{name, func(ctx context.Context, ns string) (during, after phase) {
		const count = 10
		var objects []client.Object
		for i := range count {
			objects = append(objects, k.Make(ns, fmt.Sprintf("n%d", i), 1))
			k.put(ctx, objects[i])
		}
		k.settle(ctx, objects...)
		var mark testenv.Mark
		during = func(context.Context) { mark = cp.Audit.Now() }
		after = func(ctx context.Context) {
			Eventually(func() int { return passes(k.Controller(), ns) }).Should(BeNumerically(">=", count))
			time.Sleep(2 * time.Second)
			report(fmt.Sprintf("requests for a restart of the manager with %d objects, each a %s", count, k.Title()),
				len(requests(mark, ns)), 0)
		}
		return during, after
	}}
}

func outageThatStripsAWorkload(k kind) outage {
	name := "refuses the " + k.Children[0].Kind + " of a " + k.Title() +
		" without owner, annotations and labels, until it has its owner again"
	return outage{name, func(ctx context.Context, ns string) (during, after phase) {
		object := k.create(ctx, k.Make(ns, "one", 1))
		workload := k.own(ctx, object)[0]
		stripped := workload.DeepCopyObject().(client.Object)
		during = func(ctx context.Context) {
			edit(ctx, stripped, func(w client.Object) {
				w.SetOwnerReferences(nil)
				w.SetAnnotations(nil)
				w.SetLabels(nil)
			})
		}
		after = func(ctx context.Context) {
			k.eventually(ctx, object, "Degraded=True/NameTaken")
			Expect(get(ctx, stripped).GetLabels()).To(BeEmpty())
			edit(ctx, stripped, func(w client.Object) { w.SetOwnerReferences(workload.GetOwnerReferences()) })
			Eventually(ctx, k.conditionsOf(object)).Should(settled)
			Expect(get(ctx, stripped).GetLabels()).To(Equal(workload.GetLabels()))
			Expect(stripped.GetUID()).To(Equal(workload.GetUID()))
		}
		return during, after
	}}
}

// Backup tools drop owner references.
func outageThatRenamesAFoo() outage {
	return outage{"deletes the former Deployment of a Foo", func(ctx context.Context, ns string) (during, after phase) {
		k, foo := kinds[0], newFoo(ns, "example", "old", ptr.To[int32](1))
		k.create(ctx, foo)
		old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "old"}}
		during = func(ctx context.Context) {
			edit(ctx, old, func(old *appsv1.Deployment) { old.OwnerReferences = nil })
			edit(ctx, foo, func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
		}
		after = func(ctx context.Context) {
			Eventually(ctx, isGone(old)).Should(BeTrue())
			Eventually(ctx, k.conditionsOf(foo)).Should(settled)
			k.own(ctx, foo)
		}
		return during, after
	}}
}

func outagesOfCronJobs() []outage {
	k := kinds[2]
	deletedJob := func(ctx context.Context, ns string) (during, after phase) {
		cj := hourly(ns)
		putSince(ctx, cj, 1)
		Eventually(ctx, func() *metav1.Time { return get(ctx, cj).Status.LastSuccessfulTime }).ShouldNot(BeNil())
		deleteJob(ctx, jobAt(cj, lastHour))
		touch(ctx, cj)
		Expect(jobNames(ctx, ns)).To(BeEmpty())
		after = func(ctx context.Context) {
			touch(ctx, cj)
			Expect(jobNames(ctx, ns)).To(BeEmpty())
		}
		return func(context.Context) {}, after
	}
	changedZone := func(ctx context.Context, ns string) (during, after phase) {
		cj := hourly(ns)
		cj.Spec.Schedule = fmt.Sprintf("%d %d * * *", lastHour.Minute(), lastHour.Hour())
		cj.Spec.TimeZone = ptr.To("Asia/Tokyo")
		Expect(k8s.Create(ctx, cj)).To(Succeed())
		k.eventually(ctx, cj, "Available=True/Scheduled")
		during = func(ctx context.Context) {
			backdate(ctx, cj, hoursBefore(101), ranLongAgo)
			edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Spec.TimeZone = ptr.To("Etc/UTC") })
		}
		return during, func(ctx context.Context) { expectNoRun(ctx, cj) }
	}
	return []outage{
		{"does not create the Job of a run again that was deleted", deletedJob},
		{"does not run a CronJob for times before its time zone was changed", changedZone},
		{"keeps no finished Job if the limits are 0, once the status has them and they are a minute old", limitsOfZero},
	}
}

func limitsOfZero(ctx context.Context, _ string) (during, after phase) {
	waitForHistory()
	ns, cj := history.Namespace, history.DeepCopy()
	Eventually(ctx, func() *metav1.Time { return get(ctx, cj).Status.LastSuccessfulTime }).ShouldNot(BeNil())
	remembered := *cj.Status.LastSuccessfulTime
	young := testkinds.NewJob(ns, jobName("none", hoursBefore(2)))
	var mark testenv.Mark
	during = func(ctx context.Context) {
		backdate(ctx, cj, history.CreationTimestamp.Time)
		limitHistory(ctx, cj, 0, 0)
		young.OwnerReferences = controlledByCronJob(cj)
		Expect(k8s.Create(ctx, young)).To(Succeed())
		finish(ctx, young, batchv1.JobFailed)
		mark = cp.Audit.Now()
	}
	after = func(ctx context.Context) {
		Eventually(ctx, func() []string {
			return slices.DeleteFunc(jobNames(ctx, ns), func(name string) bool { return !strings.HasPrefix(name, "none-") })
		}).Should(Equal([]string{jobName("none", hoursBefore(3)), young.Name}), "an active Job and a new Job stay")
		writes := requests(mark, ns, testenv.Request.IsWrite,
			func(r testenv.Request) bool { return r.Resource != "events" && strings.HasPrefix(r.Name, "none") })
		Expect(writes[0].Resource).To(Equal("cronjobs/status"), "%v", writes)
		Expect(get(ctx, cj).Status.LastScheduleTime.UTC()).To(Equal(hoursBefore(2)))
		Expect(cj.Status.LastSuccessfulTime.Time).To(BeTemporally("==", remembered.Time))
		Expect(k8s.Delete(ctx, young)).To(Succeed()) // or the operator deletes it during another spec
		touch(ctx, cj)
	}
	return during, after
}
