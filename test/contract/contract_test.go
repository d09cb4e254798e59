package contract

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	testkinds "github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

// What every kind guarantees, tested with each of them.
var _ = Describe("Every kind", func() {
	for _, k := range kinds {
		Describe(k.Title(), func() {
			everyKind(k)
			if k.Deploys {
				everyDeployingKind(k)
			}
		})
	}
})

func everyKind(k kind) {
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	It("creates its children, controls them, and reports it", func(ctx context.Context) {
		object := k.create(ctx, k.Make(ns, "one", 2))
		k.own(ctx, object)
		Expect(object.GetFinalizers()).To(BeEmpty())
		Expect(k.Status(object).ObservedGeneration).To(Equal(object.GetGeneration()))
		Expect(eventsAbout(ctx, object)).To(ConsistOf(fmt.Sprintf("Normal Synced: %s synced successfully", k.Name)))
	})

	It("refuses a "+k.Children[0].Kind+" of that name that it does not control, until that is deleted",
		func(ctx context.Context) { refusesUnmanagedChildren(ctx, k, ns) })

	It("sends no requests once it has settled", func(ctx context.Context) {
		object := k.create(ctx, k.Make(ns, "one", 2))
		all := append(k.own(ctx, object), object)
		var before map[string]string
		Eventually(ctx, func() bool { // Kubernetes may still write their statuses
			was := before
			before = resourceVersions(ctx, all...)
			return maps.Equal(was, before)
		}).WithPolling(jobPace).Should(BeTrue())
		mark, passesBefore := cp.Audit.Now(), passes(k.Controller(), ns)
		time.Sleep(3 * time.Second)
		Expect(resourceVersions(ctx, all...)).To(Equal(before))
		Expect(requests(mark, ns)).To(BeEmpty())
		Expect(passes(k.Controller(), ns)).To(Equal(passesBefore), "passes with nothing to do")
	})

	It("leaves no child behind when it is deleted in the background or in the foreground", func(ctx context.Context) {
		policies := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}
		var all []client.Object
		for _, policy := range policies {
			object := k.create(ctx, k.Make(ns, strings.ToLower(string(policy)), 2))
			all = append(append(all, k.own(ctx, object)...), object)
			Expect(k8s.Delete(ctx, object, client.PropagationPolicy(policy))).To(Succeed())
		}
		for _, object := range all {
			Eventually(ctx, isGone(object)).Should(BeTrue(), "%T %s", object, object.GetName())
		}
		podsOf(ctx, ns, 0)
	})

	It("orphans its children when asked to, and does not take them over again", func(ctx context.Context) {
		object := k.create(ctx, k.Make(ns, "one", 1))
		children := k.own(ctx, object)
		collectorHasSeen(ctx, ns)
		Expect(k8s.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, isGone(object)).Should(BeTrue())
		for _, child := range children { // Kubernetes' controllers may still write its status
			unchanging(ctx, child, jobPace)
		}
		before := resourceVersions(ctx, children...)

		again := k.Make(ns, "one", 1)
		k.put(ctx, again)
		k.eventually(ctx, again, "Degraded=True/NameTaken")
		Expect(resourceVersions(ctx, children...)).To(Equal(before))
	})

	It("may have a name of 1 to the maximum number of characters", func(ctx context.Context) {
		var objects []client.Object
		for _, length := range []int{1, 52, 63, 64, longestDeployment()} {
			if length > k.LongestName {
				continue
			}
			for _, last := range []string{"z", "y"} { // when shortened, the names differ in the hash only
				objects = append(objects, k.Make(ns, strings.Repeat("a", length-1)+last, 1))
				k.put(ctx, objects[len(objects)-1])
			}
		}
		k.settle(ctx, objects...)
		for _, object := range objects {
			k.own(ctx, object)
		}
		if longestDeployment() < k.LongestName {
			object := k.Make(ns, strings.Repeat("a", k.LongestName), 1)
			k.put(ctx, object)
			k.eventually(ctx, object, "Degraded=True/RolloutStuck")
			Expect(k.message(object, "Degraded")).To(ContainSubstring("must be no more than 253 characters"))
		}
	})

	It("reports that a quota refuses a child, and recovers", func(ctx context.Context) {
		counted := corev1.ResourceName("count/" + k.Children[0].Resource + "." + k.Children[0].Group)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "nothing"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: resource.MustParse("0")}},
		}
		Expect(k8s.Create(ctx, quota)).To(Succeed())
		Eventually(ctx, func() corev1.ResourceList { return get(ctx, quota).Status.Hard }).ShouldNot(BeEmpty())

		mark := cp.Audit.Now()
		object := k.Make(ns, "one", 1)
		k.put(ctx, object)
		k.eventually(ctx, object, "Degraded=True/Refused")
		Expect(k.message(object, "Degraded")).To(ContainSubstring("exceeded quota: nothing"))
		time.Sleep(2 * time.Second)
		refused := requests(mark, ns, isForbidden)
		Expect(len(refused)).To(BeNumerically("<=", 8), "retried without backing off: %v", refused)
		Expect(eventsAbout(ctx, object)).To(ConsistOf(HavePrefix("Warning Refused: ")))

		edit(ctx, quota, func(quota *corev1.ResourceQuota) {
			quota.Spec.Hard[counted] = resource.MustParse("1")
		})
		Eventually(ctx, k.conditionsOf(object)).Should(settled)
	})

	It("reports that a policy refuses a child, and recovers", func(ctx context.Context) {
		message := "no " + k.Children[0].Kind + "s on Fridays"
		allow := refuse(ctx, ns, admissionregistrationv1.Create, k.Children[0].Group, k.Children[0].Resource, message,
			func() error { return k8s.Create(ctx, k.Unmanaged(ns, "probe"), client.DryRunAll) })
		object := k.Make(ns, "one", 1)
		k.put(ctx, object)
		k.eventually(ctx, object, "Degraded=True/Refused")
		Expect(k.message(object, "Degraded")).To(ContainSubstring(message))
		Eventually(ctx, eventsAbout).WithArguments(object).Should(ConsistOf(HavePrefix("Warning Refused: ")))
		allow(ctx)
		Eventually(ctx, k.conditionsOf(object)).Should(settled)
	})

	It("reports in an event that a policy refuses the status, and recovers", func(ctx context.Context) {
		allow := refuseStatus(ctx, k, k.create(ctx, k.Make(ns, "one", 1)))
		object := k.Make(ns, "two", 1)
		Expect(k8s.Create(ctx, object)).To(Succeed())
		Eventually(ctx, eventsAbout).WithArguments(object).Should(ContainElement(And(
			HavePrefix("Warning StatusNotWritten: the status is not up to date: "), ContainSubstring("no status on Fridays"))))
		allow(ctx)
		Eventually(ctx, k.conditionsOf(object)).Should(HaveKeyWithValue("Degraded", "False/AsExpected"))
	})

	It("works with kubectl get, explain and delete", func(ctx context.Context) {
		run := kubectlIn(ns)
		k.create(ctx, k.Make(ns, "one", 1))
		Expect(run("get", k.CRD(), "one")).To(ContainSubstring("one"))
		plural, _, _ := strings.Cut(k.CRD(), ".")
		Expect(run("explain", plural+".spec", "--api-version="+k.APIVersion())).To(ContainSubstring("Changing it"))
		Expect(run("get", "memcached-operator")).To(ContainSubstring("one"))
		run("delete", k.CRD(), "one", "--wait=true", "--timeout=30s")
	})
}

// refusesUnmanagedChildren creates objects whose first child exists already, each controlled in another way.
func refusesUnmanagedChildren(ctx context.Context, k kind, ns string) {
	GinkgoHelper()
	controllers := map[string][]metav1.OwnerReference{
		"by-none":          nil,
		"by-another-kind":  {controlledBy("apps/v1", "StatefulSet", "by-another-kind")},
		"by-another-name":  {controlledBy(k.APIVersion(), k.Name, "another")},
		"by-former-owner":  {controlledBy(k.APIVersion(), k.Name, "by-former-owner")},
		"by-another-group": {controlledBy("example.org/v1", k.Name, "by-another-group")},
	}
	var objects, unmanaged, before []client.Object
	for name, references := range controllers {
		taken := k.Unmanaged(ns, k.firstChildName(name))
		taken.SetOwnerReferences(references)
		taken.SetFinalizers([]string{"example.com/hold"}) // delays the garbage collector
		Expect(k8s.Create(ctx, taken)).To(Succeed())
		objects, unmanaged = append(objects, k.Make(ns, name, 1)), append(unmanaged, taken)
	}
	for _, taken := range unmanaged {
		before = append(before, unchanging(ctx, taken, 200*time.Millisecond))
	}
	for i, object := range objects {
		k.put(ctx, object)
		k.eventually(ctx, object, "Degraded=True/NameTaken", "Progressing=False/Blocked")
		kind, name := k.Children[0].Kind, unmanaged[i].GetName()
		Expect(k.message(object, "Degraded")).To(And(ContainSubstring("%s %q exists", kind, name),
			ContainSubstring("kubectl -n %s delete %s %s", ns, strings.ToLower(kind), name)))
		Eventually(ctx, eventsAbout).WithArguments(object).Should(HaveLen(1))
	}
	mark := cp.Audit.Now()
	k.staysBlocked(ctx, ns)
	for i, object := range objects {
		Expect(eventsAbout(ctx, object)).To(ConsistOf(HavePrefix("Warning " + k.NameTaken + ": ")))
		Expect(requests(mark, ns, func(r testenv.Request) bool { return r.Name == unmanaged[i].GetName() })).To(BeEmpty())
		Expect(get(ctx, unmanaged[i]).GetLabels()).To(Equal(before[i].GetLabels()))
		Expect(unmanaged[i].GetOwnerReferences()).To(Equal(before[i].GetOwnerReferences()))

		Expect(k8s.Delete(ctx, unmanaged[i])).To(Succeed()) // before it is released: its successor must not be deleted
		edit(ctx, unmanaged[i], func(unmanaged client.Object) { unmanaged.SetFinalizers(nil) })
	}
	for _, object := range objects {
		Eventually(ctx, k.conditionsOf(object)).Should(settled)
		k.own(ctx, object)
		Eventually(ctx, eventsAbout).WithArguments(object).Should(HaveLen(2))
	}
}

// staysBlocked checks that blocked objects in a namespace cause at most two passes in a second, and no write. In that
// second, no other client may write a child, because that triggers passes.
func (k kind) staysBlocked(ctx context.Context, ns string) {
	GinkgoHelper()
	var made int
	var found []testenv.Request
	Eventually(ctx, func() []testenv.Request {
		before, begun := settledPasses(k.Controller(), ns), cp.Audit.Now()
		time.Sleep(time.Second)
		made, found = passes(k.Controller(), ns)-before, requests(begun, ns)
		return cp.Audit.Since(begun, testenv.Request.IsWrite,
			func(r testenv.Request) bool { return strings.HasPrefix(r.Resource, k.Children[0].Resource) })
	}).Should(BeEmpty(), "another client writes children")
	Expect(made).To(BeNumerically("<=", 2), "a hot loop")
	Expect(len(found)).To(BeNumerically("<=", made), "more than one read in each pass: %v", found)
	Expect(slices.ContainsFunc(found, testenv.Request.IsWrite)).To(BeFalse(), "%v", found)
}

// What every kind with a Deployment or StatefulSet guarantees in addition: its children are kept in line with the spec.
func everyDeployingKind(k kind) {
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	It("reports all three conditions at once, also while pods do not start", func(ctx context.Context) {
		holding := newNamespace(ctx, testenv.HoldPods)
		object := k.Make(holding, "one", 2)
		Expect(k8s.Create(ctx, object)).To(Succeed())
		k.eventually(ctx, object, "Available=False/No*", "Progressing=True/RollingOut", "Degraded=False/AsExpected")
		Eventually(ctx, func() string { k.conditionsOf(object)(ctx); return k.message(object, "Progressing") }).
			Should(Equal("0 of 2 pods are available"))
		Eventually(ctx, eventsAbout).WithArguments(object).Should(HaveLen(1))
	})

	It("does not warn when it is deleted and recreated while the former children are being collected",
		func(ctx context.Context) {
			object := k.Make(ns, "one", 1)
			k.create(ctx, object)
			for range 3 {
				Expect(k8s.Delete(ctx, object)).To(Succeed())
				object = k.Make(ns, "one", 1)
				Expect(k8s.Create(ctx, object)).To(Succeed())
			}
			Eventually(ctx, k.conditionsOf(object)).Should(settled)
			Expect(eventsAbout(ctx, object)).NotTo(ContainElement(HavePrefix("Warning")))
			k.own(ctx, object)
		})

	It("recreates a deleted child", func(ctx context.Context) {
		object := k.create(ctx, k.Make(ns, "one", 1))
		for _, child := range k.own(ctx, object) {
			old := child.GetUID()
			Expect(k8s.Delete(ctx, child)).To(Succeed())
			Eventually(ctx, func(g Gomega) {
				g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(child), child)).To(Succeed())
				g.Expect(child.GetUID()).NotTo(Equal(old))
			}).Should(Succeed())
		}
		k.settle(ctx, object)
	})

	It("reverts changes of its children", func(ctx context.Context) {
		object := k.create(ctx, k.Make(ns, "one", 1))
		k.damageAll(ctx, object)
		for _, child := range k.own(ctx, object) {
			edit(ctx, child, func(child client.Object) { child.SetAnnotations(nil) })
			Eventually(ctx, func() map[string]string { return get(ctx, child).GetAnnotations() }).Should(
				HaveKeyWithValue("memcached-operator.example.com/owner-uid", string(object.GetUID())), "%T", child)
		}

		workload := k.own(ctx, object)[0]
		for _, change := range []func(replicas **int32, pod *corev1.PodSpec){
			func(replicas **int32, _ *corev1.PodSpec) { *replicas = ptr.To[int32](3) },
			func(_ **int32, pod *corev1.PodSpec) {
				pod.Containers[0].Image = "example.com/other:1"
				pod.SecurityContext.RunAsNonRoot = ptr.To(false)
			},
		} {
			changed := workload.DeepCopyObject().(client.Object)
			edit(ctx, changed, func(workload client.Object) {
				replicas, template := testkinds.Workload(workload)
				change(replicas, &template.Spec)
			})
			Eventually(ctx, func(g Gomega) {
				g.Expect(testkinds.Spec(get(ctx, changed))).To(Equal(testkinds.Spec(workload)))
			}).Should(Succeed())
			k.settle(ctx, object)
		}
	})

	for _, field := range k.optionalFields() {
		It("carries out each value of "+field.Path+", and keeps its children so", func(ctx context.Context) {
			object := k.create(ctx, k.Make(ns, "one", 1))
			if _, hasDefault := k.Defaults[field.Path]; hasDefault {
				k.setField(ctx, object, field.Path, nil) // only those that it needs
				k.settle(ctx, object)
			}
			before := k.desired(ctx, object)
			for _, value := range field.Accepted() {
				if name, ok := value.(string); ok && field.Path == "spec.deploymentName" && len(name) > longestDeployment() {
					continue
				}
				k.setField(ctx, object, field.Path, value)
				k.settle(ctx, object)
				after := k.desired(ctx, object)
				isDefault := k.Defaults[field.Path] == value // tried first
				Expect(equality.Semantic.DeepEqual(after, before)).To(Equal(isDefault), "the effect of %v", value)
				k.damageAll(ctx, object)
				Expect(k.desired(ctx, object)).To(Equal(after), "%v", value)
				before = after
			}
		})
	}

	It("keeps what other clients have added to a child", func(ctx context.Context) {
		object := k.create(ctx, k.Make(ns, "one", 1))
		workload := k.own(ctx, object)[0]
		selector := testkinds.Spec(workload)["selector"]
		k.setField(ctx, workload, "spec.minReadySeconds", 1)
		edit(ctx, workload, func(workload client.Object) {
			workload.GetAnnotations()["theirs"] = "stays"
			workload.GetLabels()["theirs"] = "stays"
			_, template := testkinds.Workload(workload)
			template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "today"}
		})
		mark := cp.Audit.Now()
		Eventually(ctx, k.conditionsOf(object)).Should(settled)

		// A reverted change shows that the child has been compared since.
		edit(ctx, workload, func(workload client.Object) { delete(workload.GetLabels(), "app") })
		Eventually(ctx, func() map[string]string { return get(ctx, workload).GetLabels() }).Should(HaveKey("app"))
		Expect(workload.GetAnnotations()).To(HaveKeyWithValue("theirs", "stays"))
		Expect(workload.GetLabels()).To(HaveKeyWithValue("theirs", "stays"))
		Expect(testkinds.Spec(workload)).To(And(HaveKeyWithValue("minReadySeconds", int64(1)),
			HaveKeyWithValue("selector", selector)))
		_, template := testkinds.Workload(workload)
		Expect(template.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"))
		// Its controller rolls it out meanwhile, so a write may be for an outdated version. After a conflict, the operator
		// reads the child.
		all := requests(mark, ns, isOf(k.Children[0].Resource))
		isDone := func(request testenv.Request) bool { return request.IsWrite() && request.Code < 300 }
		Expect(requests(mark, ns, isOf(k.Children[0].Resource), isDone)).To(HaveLen(1))
		Expect(len(all)).To(BeNumerically("<=", 1+2*len(requests(mark, ns, isOf(k.Children[0].Resource), isConflict))))
	})

	It("reports that the cluster cannot create its ReplicaSet, and recovers", func(ctx context.Context) {
		if k.Children[0].Kind != "Deployment" {
			Skip("it has none")
		}
		const counted = "count/replicasets.apps"
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "no-replicasets"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: resource.MustParse("0")}},
		}
		Expect(k8s.Create(ctx, quota)).To(Succeed())
		Eventually(ctx, func() corev1.ResourceList { return get(ctx, quota).Status.Hard }).ShouldNot(BeEmpty())

		object := k.Make(ns, "one", 1)
		Expect(k8s.Create(ctx, object)).To(Succeed())
		Eventually(ctx, k.conditionsOf(object)).Should(HaveKeyWithValue("Degraded", "True/RolloutStuck"))
		Expect(k.message(object, "Degraded")).To(ContainSubstring("exceeded quota: no-replicasets"))
		Expect(k8s.Delete(ctx, quota)).To(Succeed())
		edit(ctx, k.own(ctx, object)[0], func(workload client.Object) { // Kubernetes' controller retries at once
			workload.GetAnnotations()["look"] = "again"
		})
		Eventually(ctx, k.conditionsOf(object)).Should(settled)
	})

	It("reports that a quota refuses its pods, and recovers",
		func(ctx context.Context) {
			quota := &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one-pod"},
				Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/pods": resource.MustParse("1")}},
			}
			Expect(k8s.Create(ctx, quota)).To(Succeed())
			Eventually(ctx, func() corev1.ResourceList { return get(ctx, quota).Status.Hard }).ShouldNot(BeEmpty())

			object := k.Make(ns, "one", 2)
			Expect(k8s.Create(ctx, object)).To(Succeed())
			// The operator waits for a minute before it reports that a StatefulSet lacks pods.
			Eventually(ctx, k.conditionsOf(object)).WithTimeout(90 * time.Second).Should(And(
				HaveKeyWithValue("Degraded", "True/RolloutStuck"), HaveKeyWithValue("Available", HavePrefix("True/Some"))))
			Expect(k.message(object, "Degraded")).To(ContainSubstring("exceeded quota: one-pod"))

			Expect(k8s.Delete(ctx, quota)).To(Succeed())
			// Kubernetes' controller backs off; an edit of the workload makes it retry.
			edit(ctx, k.own(ctx, object)[0], func(workload client.Object) {
				_, template := testkinds.Workload(workload)
				template.Annotations = map[string]string{"look": "again"}
			})
			Eventually(ctx, k.conditionsOf(object)).Should(settled)
		})

	It("does not fight a policy that changes its children", func(ctx context.Context) {
		remove := change(ctx, k, ns, `Object{metadata: Object.metadata{labels: {"app": "theirs"}}}`)
		object := k.Make(ns, "one", 1)
		Expect(k8s.Create(ctx, object)).To(Succeed())
		k.settle(ctx, object)
		workload := k.own(ctx, object)[0]
		Expect(workload.GetLabels()).To(HaveKeyWithValue("app", "theirs"))

		mark := cp.Audit.Now()
		k.passOnStatusOf(ctx, workload)
		Expect(requests(mark, ns)).To(BeEmpty())

		By("reverting other changes")
		edit(ctx, workload, func(workload client.Object) { delete(workload.GetLabels(), "app.kubernetes.io/name") })
		Eventually(ctx, func() map[string]string { return get(ctx, workload).GetLabels() }).
			Should(HaveKey("app.kubernetes.io/name"))
		remove(ctx)
	})

	It("sends no request in a namespace that is being deleted, and does not delay it", func(ctx context.Context) {
		object := k.create(ctx, k.Make(ns, "one", 1))
		group, _, _ := strings.Cut(k.APIVersion(), "/")
		resource, _, _ := strings.Cut(k.CRD(), ".")
		allow := refuse(ctx, ns, admissionregistrationv1.Delete, group, resource, "not yet",
			func() error { return k8s.Delete(ctx, object, client.DryRunAll) })

		mark := cp.Audit.Now()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
		Expect(k8s.Delete(ctx, namespace)).To(Succeed())
		for _, child := range k.children(object) {
			Eventually(ctx, isGone(child)).Should(BeTrue(), "%T", child)
		}
		// Their deletion causes passes, too.
		for _, list := range []client.ObjectList{&appsv1.ReplicaSetList{}, &corev1.PodList{}} {
			Eventually(ctx, func(g Gomega) {
				g.Expect(k8s.List(ctx, list, client.InNamespace(ns))).To(Succeed())
				g.Expect(meta.LenList(list)).To(BeZero())
			}).Should(Succeed())
		}
		settledPasses(k.Controller(), ns)
		quiet := cp.Audit.Now()
		time.Sleep(2 * time.Second)
		Expect(get(ctx, object).GetDeletionTimestamp()).To(BeNil())
		Expect(requests(mark, ns, isForbidden)).NotTo(BeEmpty(), "the operator has not tried")
		Expect(requests(quiet, ns)).To(BeEmpty(), "the operator tries again")
		Expect(k.conditionsOf(object)(ctx)).To(HaveKeyWithValue("Degraded", "False/AsExpected"))

		allow(ctx)
		edit(ctx, namespace, func(namespace *corev1.Namespace) { // makes the namespace controller retry
			namespace.Annotations = map[string]string{"look": "again"}
		})
		Eventually(ctx, isGone(namespace)).WithTimeout(time.Minute).Should(BeTrue())
	})

	It("can be scaled with kubectl", func(ctx context.Context) {
		run := kubectlIn(ns)
		object := k.create(ctx, k.Make(ns, "one", 1))
		run("scale", k.CRD(), "one", "--replicas=3")
		k.settle(ctx, object)
		Eventually(ctx, eventsAbout).WithArguments(object).Should(HaveLen(2), "one for each change")
		Expect(run("get", k.Children[0].Resource, "one", "-o", "jsonpath={.status.availableReplicas}")).To(Equal("3"))
		Expect(run("get", "--raw",
			fmt.Sprintf("/apis/%s/namespaces/%s/%s/one/scale", k.APIVersion(), ns, strings.Split(k.CRD(), ".")[0]))).
			To(And(ContainSubstring(`"spec":{"replicas":3}`), ContainSubstring(`"status":{"replicas":3,"selector":"app=`)))
	})
}

// collectorHasSeen waits until the garbage collector has observed all objects so far, that is, until it deletes a new
// one. It would delete, and not orphan, objects that it has not observed.
func collectorHasSeen(ctx context.Context, namespace string) {
	GinkgoHelper()
	garbage := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "garbage",
		OwnerReferences: []metav1.OwnerReference{controlledBy("v1", "ConfigMap", "nothing")}}}
	Expect(k8s.Create(ctx, garbage)).To(Succeed())
	Eventually(ctx, isGone(garbage)).Should(BeTrue())
}

// kubectl runs kubectl as an administrator and returns what it prints.
func kubectl(args ...string) string {
	GinkgoHelper()
	out, err := cp.Kubectl(args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return strings.TrimSpace(out)
}

// kubectlIn returns a function that runs kubectl in a namespace.
func kubectlIn(namespace string) func(args ...string) string {
	return func(args ...string) string {
		GinkgoHelper()
		return kubectl(append([]string{"-n", namespace}, args...)...)
	}
}

// change adds a policy that changes the first child of every object of a kind in a namespace by an apply configuration
// in CEL. It returns a function that removes the policy.
func change(ctx context.Context, k kind, namespace, expression string) (remove func(context.Context)) {
	GinkgoHelper()
	if kubernetesMinor() < 36 {
		Skip("MutatingAdmissionPolicy is v1 since Kubernetes 1.36")
	}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "change-" + namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: in(namespace, k.Children[0].Group, k.Children[0].Resource,
				admissionregistrationv1.Create, admissionregistrationv1.Update),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: expression}}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	remove = put(ctx, policy, binding)
	Eventually(ctx, func() map[string]string {
		probe := k.Unmanaged(namespace, "probe")
		Expect(k8s.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		return probe.GetLabels()
	}).Should(HaveKey("app"), "the API server does not apply the policy")
	return remove
}

// refuse adds a policy that refuses an operation on a resource in a namespace, if the conditions match, and waits until
// a probe is refused with the message. It returns a function that removes the policy.
func refuse(ctx context.Context, namespace string, operation admissionregistrationv1.OperationType, group, resource,
	message string,
	probe func() error, conditions ...admissionregistrationv1.MatchCondition) (allow func(context.Context)) {
	GinkgoHelper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse-" + namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: in(namespace, group, resource, operation),
			MatchConditions:  conditions,
			Validations:      []admissionregistrationv1.Validation{{Expression: "false", Message: message}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	allow = put(ctx, policy, binding)
	Eventually(ctx, probe).Should(MatchError(ContainSubstring(message)), "the API server does not apply the policy")
	return allow
}

// in returns the constraints of a policy for operations on a resource in a namespace.
func in(namespace, group, resource string,
	operations ...admissionregistrationv1.OperationType) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: only(namespace),
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: operations,
				Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"},
					Resources: []string{resource}},
			},
		}},
	}
}

// only selects a namespace.
func only(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}

// put creates a policy and its binding, or the configuration of a webhook, and returns a function that removes them,
// the last one first. They are removed after the spec.
func put(ctx context.Context, objects ...client.Object) (remove func(context.Context)) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(k8s.Create(ctx, object)).To(Succeed())
	}
	remove = func(ctx context.Context) {
		GinkgoHelper()
		for _, object := range slices.Backward(objects) {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, object))).To(Succeed())
		}
	}
	DeferCleanup(remove)
	return remove
}
