package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

const (
	// fleetSize is the number of resources of each kind during an upgrade.
	fleetSize = 20
	// longestGap is less than the 15 s that a Lease costs which was not released.
	longestGap = 10 * time.Second
)

// fleet has resources of several kinds, by the index of the kind.
type fleet struct {
	kinds   []kind
	objects [][]client.Object
}

var _ = Describe("Upgraded", func() {
	// An administrator who approves each InstallPlan can stay on the first release until the catalog offers the tree. It
	// offers the tree to every release, so none in between is installed.
	DescribeTable("leaves the children of existing resources alone",
		func(ctx SpecContext, approval operatorsv1alpha1.Approval) {
			from, offered, settings := last, "released", operandImages()
			if approval == operatorsv1alpha1.ApprovalManual {
				from, offered = first, "tree"
				if os.Getenv("TEST_MIRROR") != "" { // the images in the bundles: tags, and digests in the tree's
					settings = nil
				}
			}
			cleanUp(deleteOLMLeftovers)
			cleanUp(deleteDefinitions)
			namespace := newNamespaces(ctx, restrictedLevel, operatorNamespace, "fleet-")[1]
			i := subscribe(ctx, wanted{catalog: offered, version: from, approval: approval, settings: settings})
			cleanUp(i.remove)
			if approval == operatorsv1alpha1.ApprovalManual {
				i.approve(ctx, from)
			}
			i.awaitInstalled(ctx, from)

			had, added := kindsOf(from)
			for _, k := range added {
				expectNoDefinitions(ctx, from+" has no "+k.Name, k.CRD())
			}
			f := newFleet(ctx, namespace, had)
			before := takeSnapshot(ctx, namespace)
			Expect(before.pods).To(HaveLen(f.deploying()))
			b := startBeacon(ctx, namespace)
			stopChanges := f.startChanges(ctx)

			i.offer(ctx, "tree")
			if approval == operatorsv1alpha1.ApprovalManual {
				i.approve(ctx, tree)
			}
			i.awaitInstalled(ctx, tree)
			awaitSettledLeader(ctx, settings)
			b.awaitChange(ctx)
			grown, touched := stopChanges()
			gap := b.stop()
			Expect(grown).To(HaveLen(f.deploying() / 2))

			f.awaitSettled(ctx)
			b.remove(ctx)
			before.expectOnlyGrown(takeSnapshot(ctx, namespace), grown)
			useNewFields(ctx, namespace)
			for _, k := range added {
				Eventually(isEstablished).WithContext(ctx).WithArguments(k.CRD()).Should(BeTrue(), "the upgrade brings %s", k.CRD())
				object := k.Make(namespace, "new", 1)
				create(ctx, object)
				awaitSettled(ctx, k, object)
				k.serve(ctx, object)
			}
			measure("upgrade from %s to %s, approval %s, %d resources grew, %d other changes: a change waited %.1f s at most",
				from, tree, approval, len(grown), touched-len(grown), gap.Seconds())
			Expect(gap).To(BeNumerically("<", longestGap), "the former leader has not released its Lease, or the next is late")
		},
		Entry("from the last release, automatically", operatorsv1alpha1.ApprovalAutomatic, SpecTimeout(4*stepTimeout)),
		Entry("from the first release, with an administrator's approval", operatorsv1alpha1.ApprovalManual,
			SpecTimeout(4*stepTimeout)),
	)

	// Catalogs offer every release the newest one. This one offers each the next, in the channel for production.
	It("release by release on the channel stable, and back, leaves the children alone", func(ctx SpecContext) {
		cleanUp(deleteOLMLeftovers)
		cleanUp(deleteDefinitions)
		namespace := newNamespaces(ctx, restrictedLevel, operatorNamespace, "steps-")[1]
		i := subscribe(ctx, wanted{catalog: "steps", channel: "stable", version: first, settings: operandImages(),
			approval: operatorsv1alpha1.ApprovalManual})
		cleanUp(i.remove)
		i.approve(ctx, first)
		i.awaitInstalled(ctx, first)
		had, _ := kindsOf(first)
		var objects []resource
		for _, k := range had {
			r := resource{kind: k, Object: k.Make(namespace, strings.ToLower(k.Name), 1)}
			create(ctx, r.Object)
			objects = append(objects, r)
		}
		settle := func() {
			for _, r := range objects {
				awaitSettled(ctx, r.kind, r.Object)
			}
		}
		settle()
		before := takeSnapshot(ctx, namespace)
		for _, version := range append(releasedVersions()[1:], tree) {
			i.approve(ctx, version)
			i.awaitInstalled(ctx, version)
			settle()
			before.expectOnlyGrown(takeSnapshot(ctx, namespace), nil)
		}

		i.replace(ctx, last)
		i.awaitInstalled(ctx, last)
		for _, r := range objects {
			change(ctx, r.Object, func() { r.Resize(r.Object, 2) })
		}
		settle()
		grown := takeSnapshot(ctx, namespace)
		for uid, restarts := range before.pods {
			Expect(grown.pods).To(HaveKeyWithValue(uid, restarts), "a pod was replaced or restarted")
		}
		Expect(grown.pods).To(HaveLen(2 * len(before.pods)))
	}, SpecTimeout(4*stepTimeout))

	It("from 0.2.0 with CronJobs, while the node of all pods is killed, the manager's too", func(ctx SpecContext) {
		command := strings.Fields(os.Getenv("TEST_RESTART_NODE"))
		if len(command) == 0 {
			Skip("there is no command that kills a node")
		}
		cleanUp(deleteOLMLeftovers)
		cleanUp(deleteDefinitions)
		namespace := newNamespaces(ctx, restrictedLevel, operatorNamespace, "killed-")[1]
		i := subscribe(ctx, wanted{catalog: "tree", version: withCronJobs, settings: operandImages(),
			approval: operatorsv1alpha1.ApprovalManual})
		cleanUp(i.remove)
		i.approve(ctx, withCronJobs)
		i.awaitInstalled(ctx, withCronJobs)
		objects := map[string]client.Object{}
		for _, k := range kinds {
			objects[k.Name] = k.Make(namespace, strings.ToLower(k.Name), 1)
			create(ctx, objects[k.Name])
			awaitSettled(ctx, k, objects[k.Name])
		}
		before := takeSnapshot(ctx, namespace)
		// with runs that are due all the time, in a namespace of their own
		busy := newNamespaces(ctx, restrictedLevel, "killed-jobs-")[0]
		for n := range 3 {
			create(ctx, newCronJob(busy, fmt.Sprintf("busy-%d", n), "@every 10s", "echo hello"))
		}
		repeated := watchJobs(ctx, busy)

		i.approve(ctx, tree)
		Eventually(phase).WithContext(ctx).WithArguments(tree).WithPolling(50 * time.Millisecond).
			Should(Equal(operatorsv1alpha1.CSVPhaseInstalling))
		run(ctx, command[0], command[1:]...)
		i.awaitInstalled(ctx, tree)
		for _, k := range kinds {
			awaitSettled(ctx, k, objects[k.Name])
		}
		after := takeSnapshot(ctx, namespace)
		Expect(slices.Collect(maps.Keys(after.pods))).To(ConsistOf(slices.Collect(maps.Keys(before.pods))),
			"a pod was replaced; that its containers are started again is due to the node")
		before.expectSameChildren(after)
		for _, k := range kinds {
			k.serve(ctx, objects[k.Name])
		}
		var busyOnes tutorialv1.CronJobList
		Expect(kube.List(ctx, &busyOnes, client.InNamespace(busy))).To(Succeed())
		for _, cj := range busyOnes.Items {
			Expect(time.Since(cj.Status.LastScheduleTime.Time)).To(BeNumerically("<", time.Minute), "%s does not run", cj.Name)
		}
		Expect(repeated()).To(BeEmpty(), "a scheduled time was run twice")
	}, SpecTimeout(4*stepTimeout))
})

// watchJobs records the Jobs of a namespace until repeated is called. That returns the names that two Jobs have had: a
// name is that of a scheduled time.
func watchJobs(ctx context.Context, namespace string) (repeated func() []string) {
	seen, again := map[string]types.UID{}, []string{}
	stop := inBackground(ctx, func(ctx context.Context) error {
		for ; ctx.Err() == nil; time.Sleep(time.Second) {
			var jobs batchv1.JobList
			if kube.List(ctx, &jobs, client.InNamespace(namespace)) != nil {
				continue // the node is away
			}
			for _, job := range jobs.Items {
				if uid, isKnown := seen[job.Name]; isKnown && uid != job.UID {
					again = append(again, job.Name)
				}
				seen[job.Name] = job.UID
			}
		}
		return nil
	})
	return func() []string {
		GinkgoHelper()
		stop()
		return again
	}
}

// withCronJobs is the first release that has them.
const withCronJobs = "0.2.0"

// useNewFields sets fields that the earlier release does not have, on a resource from before the upgrade and on a new
// one.
func useNewFields(ctx context.Context, namespace string) {
	GinkgoHelper()
	mc, set := newMemcached(namespace, "m00", 0), newMemcached(namespace, "set", 1)
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(mc), mc)).To(Succeed())
	change(ctx, mc, func() { mc.Spec.Config = &cachev1alpha1.MemcachedConfig{Threads: 2} })
	set.Spec.WorkloadType, set.Spec.WarmupSeconds = cachev1alpha1.StatefulSetWorkload, ptr.To[int32](0)
	create(ctx, set)
	awaitSettled(ctx, memcacheds, mc, set)
	pod := podNamed(namespace, mc.Status.Nodes[0])
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	Expect(pod.Spec.Containers[0].Command).To(ContainElement("--threads=2"))
	Expect(set.Status.Servers).To(HaveLen(1))
}

// isEstablished reports whether the API server serves a definition.
func isEstablished(ctx context.Context, definition string) (bool, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	err := kube.Get(ctx, client.ObjectKey{Name: definition}, &crd)
	return apihelpers.IsCRDConditionTrue(&crd, apiextensionsv1.Established), err
}

// newFleet creates resources of some kinds and waits until they settle.
func newFleet(ctx context.Context, namespace string, kinds []kind) fleet {
	GinkgoHelper()
	f := fleet{kinds: kinds, objects: make([][]client.Object, len(kinds))}
	for k, kind := range kinds {
		for n := range fleetSize {
			object := kind.Make(namespace, fmt.Sprintf("%c%02d", kind.Name[0]|0x20, n), 1)
			create(ctx, object)
			f.objects[k] = append(f.objects[k], object)
		}
	}
	f.awaitSettled(ctx)
	return f
}

func (f fleet) awaitSettled(ctx context.Context) {
	GinkgoHelper()
	for k, objects := range f.objects {
		awaitSettled(ctx, f.kinds[k], objects...)
	}
}

// deploying returns the number of resources that have a Deployment.
func (f fleet) deploying() int {
	count := 0
	for k, objects := range f.objects {
		if f.kinds[k].Deploys {
			count += len(objects)
		}
	}
	return count
}

// imageHoldOff is the default of --image-delay, see docs/flags.md.
const imageHoldOff = 2 * time.Minute

// awaitSettledLeader waits until an operator of the tree with some settings has led until the image hold-off is over.
func awaitSettledLeader(ctx context.Context, settings []corev1.EnvVar) {
	GinkgoHelper()
	By("waiting for the end of the image hold-off")
	Eventually(func(g Gomega, ctx context.Context) {
		name, since := leader(ctx)
		var pod corev1.Pod
		g.Expect(kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: name}, &pod)).To(Succeed())
		// By its digest, if the cluster has a mirror.
		g.Expect(pod.Spec.Containers[0].Image).To(Or(Equal(image("")), HavePrefix(registry+"/memcached-operator@")))
		g.Expect(pod.Spec.Containers[0].Env).To(ContainElements(settings))
		g.Expect(pod.DeletionTimestamp).To(BeNil())
		g.Expect(time.Since(since)).To(BeNumerically(">", imageHoldOff+5*time.Second))
	}).WithContext(ctx).WithTimeout(2 * stepTimeout).WithPolling(time.Second).Should(Succeed())
}

// snapshot is what an upgrade must not change in a namespace.
type snapshot struct {
	pods     map[types.UID]int32 // restarts
	children map[string]int64    // generations, by childKey
}

func takeSnapshot(ctx context.Context, namespace string) snapshot {
	GinkgoHelper()
	s := snapshot{pods: map[types.UID]int32{}, children: map[string]int64{}}
	var pods corev1.PodList
	Expect(kube.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
	for _, pod := range pods.Items {
		s.pods[pod.UID] = 0
		for _, container := range pod.Status.ContainerStatuses {
			s.pods[pod.UID] += container.RestartCount
		}
	}
	all, err := children(ctx, namespace)
	Expect(err).NotTo(HaveOccurred())
	for _, child := range all {
		s.children[childKey(child.Kind, &child)] = child.Generation
	}
	return s
}

// expectOnlyGrown checks that the Deployments in grown have one pod more after an upgrade, and that nothing else was
// changed, replaced or restarted.
func (s snapshot) expectOnlyGrown(after snapshot, grown map[string]int64) {
	GinkgoHelper()
	for uid, restarts := range s.pods {
		Expect(after.pods).To(HaveKeyWithValue(uid, restarts), "a pod was replaced or restarted")
	}
	Expect(after.pods).To(HaveLen(len(s.pods) + len(grown)))
	for child := range s.children {
		s.children[child] += grown[child]
	}
	s.expectSameChildren(after)
}

// expectSameChildren checks that no child was created, changed or deleted; one that was replaced is both gone and new.
// It names only those that were: gomega cuts two long maps short.
func (s snapshot) expectSameChildren(after snapshot) {
	GinkgoHelper()
	var differences []string
	for child, generation := range after.children {
		if _, isOld := s.children[child]; !isOld {
			differences = append(differences, fmt.Sprintf("%s, generation %d, is new", child, generation))
		}
	}
	for child, want := range s.children {
		if generation, exists := after.children[child]; !exists {
			differences = append(differences, child+" is gone")
		} else if generation != want {
			differences = append(differences, fmt.Sprintf("%s has generation %d instead of %d", child, generation, want))
		}
	}
	slices.Sort(differences)
	Expect(differences).To(BeEmpty())
}

func childKey(kind string, object client.Object) string {
	return fmt.Sprintf("%s %s %s", kind, object.GetName(), object.GetUID())
}

// startChanges writes to one resource after the other, in rounds: an annotation, which the operator ignores, and, once
// to every other resource with a Deployment, one pod more. Stop returns when all of these have grown: by how many
// generations each Deployment has changed, and the number of writes.
func (f fleet) startChanges(ctx context.Context) (stop func() (grown map[string]int64, touched int)) {
	grown, touched := map[string]int64{}, 0
	end := inBackground(ctx, func(ctx context.Context) error {
		requests := context.WithoutCancel(ctx)
		for round, ended := 0, false; !ended; round++ {
			ended = ctx.Err() != nil // the resources that have not grown yet grow in the last round
			for n := range fleetSize {
				grows := n%2 == 0 && (n/2 == round || ended && n/2 > round)
				for k, kind := range f.kinds {
					object := f.objects[k][n]
					if err := annotate(requests, kind, object, round, grows && kind.Deploys); err != nil {
						return err
					}
					touched++
					if grows && kind.Deploys {
						var deployment appsv1.Deployment
						if err := kube.Get(requests, client.ObjectKeyFromObject(object), &deployment); err != nil {
							return err
						}
						grown[childKey("Deployment", &deployment)] = 1
					}
					if ctx.Err() == nil {
						time.Sleep(200 * time.Millisecond)
					}
				}
			}
		}
		return nil
	})
	return func() (map[string]int64, int) {
		GinkgoHelper()
		end()
		return grown, touched
	}
}

func annotate(ctx context.Context, k kind, object client.Object, round int, grows bool) error {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	before := object.DeepCopyObject().(client.Object)
	object.SetAnnotations(map[string]string{"e2e/round": fmt.Sprint(round)})
	if grows {
		k.Resize(object, k.Pods(object)+1)
	}
	return kube.Patch(ctx, object, client.MergeFrom(before))
}

// beacon changes a Foo without pods, again whenever the operator has observed the last change, and measures how long
// that takes.
type beacon struct {
	foo      *samplev1alpha1.Foo
	observed atomic.Int64 // changes
	longest  time.Duration
	end      func()
}

// startBeacon creates the Foo and waits until the operator observes changes.
func startBeacon(ctx context.Context, namespace string) *beacon {
	name := "beacon-" + rand.String(5)
	b := &beacon{foo: &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To(int32(0))},
	}}
	create(ctx, b.foo)
	b.end = inBackground(ctx, b.loop)
	b.awaitChange(ctx)
	return b
}

func (b *beacon) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		for b.foo.Status.ObservedGeneration != b.foo.Generation {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(20 * time.Millisecond):
			}
			if err := kube.Get(ctx, client.ObjectKeyFromObject(b.foo), b.foo); err != nil && ctx.Err() == nil {
				return err
			}
		}
		b.longest = max(b.longest, time.Since(began))
		b.observed.Add(1)
		// 0 replicas and no number of replicas, in turn: the spec changes, but the Deployment does not.
		before := client.MergeFrom(b.foo.DeepCopy())
		if b.foo.Spec.Replicas == nil {
			b.foo.Spec.Replicas = ptr.To(int32(0))
		} else {
			b.foo.Spec.Replicas = nil
		}
		if err := kube.Patch(ctx, b.foo, before); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// awaitChange waits until the operator observes a change that is made after the call: the second one from now on.
func (b *beacon) awaitChange(ctx context.Context) {
	GinkgoHelper()
	want := b.observed.Load() + 2
	Eventually(b.observed.Load).WithContext(ctx).Should(BeNumerically(">=", want), "the operator observes no changes")
}

// stop stops changing the Foo and returns the longest time until the operator observed a change.
func (b *beacon) stop() time.Duration {
	GinkgoHelper()
	b.end()
	return b.longest
}

// remove deletes the Foo, and returns when the garbage collector has deleted its Deployment.
func (b *beacon) remove(ctx context.Context) {
	GinkgoHelper()
	deleteAll(ctx, b.foo)
	awaitDeleted(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.foo.Namespace, Name: b.foo.Name}})
}

// inBackground runs work until stop is called or the spec ends: until the context of work ends. Stop waits for work to
// return, and fails if it returns an error.
func inBackground(ctx context.Context, work func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	return func() {
		GinkgoHelper()
		cancel()
		Expect(<-done).To(Succeed())
	}
}
