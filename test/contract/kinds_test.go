package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	testkinds "github.com/example/memcached-operator/test/kinds"
)

// kind is a kind and what this suite does with it.
type kind struct {
	testkinds.Kind
	// due makes an object due, so that the operator creates its children; nil if it creates them at once.
	due func(ctx context.Context, object client.Object)
}

var kinds = []kind{
	{Kind: testkinds.Foo},
	{Kind: testkinds.Memcached},
	{Kind: testkinds.CronJob, due: func(ctx context.Context, object client.Object) {
		backdate(ctx, object.(*tutorialv1.CronJob), lastHour.Add(-time.Hour))
	}},
	{Kind: testkinds.MemcachedSet},
}

// children returns the children of an object, to be read.
func (k kind) children(object client.Object) []client.Object {
	if !k.Deploys {
		return []client.Object{jobAt(object, lastHour)}
	}
	if len(object.GetName()) > 63 { // the status has the name of the Service
		object = get(context.Background(), object.DeepCopyObject().(client.Object))
	}
	return k.ChildrenOf(object)
}

// firstChildName returns the name of the first child of an object that Make returns.
func (k kind) firstChildName(name string) string {
	if !k.Deploys {
		return jobName(name, lastHour)
	}
	return name
}

// template returns the pod template of a Deployment or StatefulSet.
func template(workload client.Object) *corev1.PodTemplateSpec {
	_, found := testkinds.Workload(workload)
	return found
}

// deploying are the kinds that have a Deployment or StatefulSet.
var deploying = slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !k.Deploys })

func newFoo(namespace, name, deployment string, replicas *int32) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deployment, Replicas: replicas},
	}
}

func newMemcached(namespace, name string, size int32) *cachev1alpha1.Memcached {
	return &cachev1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       cachev1alpha1.MemcachedSpec{Size: size},
	}
}

// newCronJob returns a CronJob whose Jobs run until their pods end. Pod Security "restricted" admits them.
func newCronJob(namespace, name, schedule string) *tutorialv1.CronJob {
	cj := testkinds.CronJob.Make(namespace, name, 1).(*tutorialv1.CronJob)
	cj.Spec.Schedule, cj.Spec.JobTemplate.Spec.Parallelism = schedule, nil
	return cj
}

// controlledBy returns a reference to a controller that does not exist.
func controlledBy(apiVersion, kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name,
		UID: "00000000-0000-0000-0000-000000000001", Controller: ptr.To(true)}
}

// conditionsOf returns a function that reads the conditions of an object, by type, as "True/AllNodesReady".
func (k kind) conditionsOf(object client.Object) func(ctx context.Context) map[string]string {
	return func(ctx context.Context) map[string]string {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return map[string]string{"error": err.Error()}
		}
		found := map[string]string{}
		for _, c := range k.Conditions(object) {
			found[c.Type] = fmt.Sprintf("%s/%s", c.Status, c.Reason)
			if c.ObservedGeneration != object.GetGeneration() {
				found[c.Type] = fmt.Sprintf("of generation %d, not %d", c.ObservedGeneration, object.GetGeneration())
			}
		}
		return found
	}
}

// eventually waits until an object has conditions such as "Degraded=True/NameTaken", or with any reason that begins so,
// "Available=False/No*".
func (k kind) eventually(ctx context.Context, object client.Object, conditions ...string) {
	GinkgoHelper()
	matchers := make([]OmegaMatcher, len(conditions))
	for i, condition := range conditions {
		name, value, _ := strings.Cut(condition, "=")
		prefix, isPrefix := strings.CutSuffix(value, "*")
		if isPrefix {
			matchers[i] = HaveKeyWithValue(name, HavePrefix(prefix))
		} else {
			matchers[i] = HaveKeyWithValue(name, value)
		}
	}
	Eventually(ctx, k.conditionsOf(object)).Should(And(matchers...))
}

// message returns the message of a condition, as it was last read.
func (k kind) message(object client.Object, condition string) string {
	if c := meta.FindStatusCondition(k.Conditions(object), condition); c != nil {
		return c.Message
	}
	return ""
}

// settled matches the conditions of an object that matches its spec. A Job runs until its pods end.
var settled = And(
	HaveKeyWithValue("Available", HavePrefix("True/")),
	HaveKeyWithValue("Progressing", BeElementOf("False/RolloutComplete", "True/JobsRunning")),
	HaveKeyWithValue("Degraded", "False/AsExpected"))

// put creates an object and makes it due, if it is not at once.
func (k kind) put(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, object)).To(Succeed())
	if k.due == nil {
		return
	}
	// The event of its creation does not count.
	Eventually(ctx, eventsAbout).WithArguments(object).Should(HaveLen(1))
	for _, event := range eventsOf(ctx, object) {
		Expect(k8s.Delete(ctx, &event)).To(Succeed())
	}
	k.due(ctx, object)
}

// create puts an object and waits until it has settled.
func (k kind) create(ctx context.Context, object client.Object) client.Object {
	GinkgoHelper()
	k.put(ctx, object)
	k.settle(ctx, object)
	return object
}

// settle waits until objects of one namespace have settled, and the operator with them: its later requests have another
// cause.
func (k kind) settle(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(ctx, k.conditionsOf(object)).Should(settled)
	}
	for _, object := range objects {
		Eventually(ctx, eventsAbout).WithArguments(object).ShouldNot(BeEmpty())
	}
	Eventually(func() int { // events are recorded some time after the status
		mark := cp.Audit.Now()
		time.Sleep(300 * time.Millisecond)
		return len(requests(mark, objects[0].GetNamespace()))
	}).Should(BeZero())
}

// own returns the children of an object, and checks that it controls all of them.
func (k kind) own(ctx context.Context, object client.Object) []client.Object {
	GinkgoHelper()
	children := k.children(object)
	for _, child := range children {
		Expect(metav1.IsControlledBy(get(ctx, child), object)).To(BeTrue(), "%T %s", child, child.GetName())
	}
	return children
}

// optionalFields returns the fields whose values can be tried one after the other. The number of pods is not among
// them: the maximum of that is more than a control plane without machines can have.
func (k kind) optionalFields() []testkinds.Field {
	if k.Variant != "" {
		return nil // variants share the code
	}
	crd, err := k.Definition()
	if err != nil {
		panic(err)
	}
	return slices.DeleteFunc(k.Fields(crd), func(field testkinds.Field) bool {
		return field.Path == k.ScalePath(crd) || len(field.Accepted()) == 0 || slices.Contains(k.OwnSpecs, field.Path)
	})
}

// setField sets one field of an object by a merge patch, and those that it needs.
func (k kind) setField(ctx context.Context, object client.Object, path string, value any) {
	GinkgoHelper()
	patch := map[string]any{}
	k.Set(patch, path, value)
	body, err := json.Marshal(patch)
	Expect(err).NotTo(HaveOccurred())
	Expect(k8s.Patch(ctx, object, client.RawPatch(types.MergePatchType, body))).To(Succeed())
}

// desired returns what the operator applies of each child of an object.
func (k kind) desired(ctx context.Context, object client.Object) map[string]any {
	GinkgoHelper()
	desired := map[string]any{}
	for i, child := range k.own(ctx, object) {
		desired[k.Children[i].Kind+" "+child.GetName()] = testkinds.Desired(child)
	}
	return desired
}

// damageAll changes the metadata and the spec of all children in all ways that the operator reverts, and waits until it
// has. All children are damaged at once, each in one way after the other.
func (k kind) damageAll(ctx context.Context, object client.Object) {
	GinkgoHelper()
	children := k.own(ctx, object)
	var before []client.Object
	rounds := 0
	for i, child := range children {
		before = append(before, child.DeepCopyObject().(client.Object))
		rounds = max(rounds, len(k.Children[i].Damage))
	}
	for round := range rounds {
		for i, child := range children {
			edit(ctx, child, func(child client.Object) {
				child.SetLabels(map[string]string{"theirs": "stays", "app.kubernetes.io/managed-by": "another-client"})
				child.SetOwnerReferences(nil)
				if round < len(k.Children[i].Damage) {
					k.Children[i].Damage[round](child)
				}
			})
		}
		for i, child := range children {
			Eventually(ctx, func(g Gomega) {
				g.Expect(metav1.IsControlledBy(get(ctx, child), object)).To(BeTrue())
				for label, value := range before[i].GetLabels() {
					g.Expect(child.GetLabels()).To(HaveKeyWithValue(label, value))
				}
				g.Expect(child.GetLabels()).To(HaveKeyWithValue("theirs", "stays"))
				g.Expect(testkinds.Spec(child)).To(Equal(testkinds.Spec(before[i])))
			}).Should(Succeed(), "%T", child)
			Expect(child.GetUID()).To(Equal(before[i].GetUID()))
		}
		k.settle(ctx, object)
	}
	for i, child := range children { // labels of other clients stay until they remove them
		edit(ctx, child, func(child client.Object) { child.SetLabels(before[i].GetLabels()) })
	}
}

// resourceVersions returns the versions of objects, to detect writes.
func resourceVersions(ctx context.Context, objects ...client.Object) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	for _, object := range objects {
		versions[fmt.Sprintf("%T %s", object, object.GetName())] = get(ctx, object).GetResourceVersion()
	}
	return versions
}

// passOnStatusOf changes the status of a child and waits for the pass that this triggers.
func (k kind) passOnStatusOf(ctx context.Context, child client.Object) {
	GinkgoHelper()
	before := passes(k.Controller(), child.GetNamespace())
	changed := child.DeepCopyObject().(client.Object)
	switch changed := changed.(type) {
	case *appsv1.Deployment:
		changed.Status.Conditions = append(changed.Status.Conditions,
			appsv1.DeploymentCondition{Type: "Theirs", Status: corev1.ConditionTrue})
	case *appsv1.StatefulSet:
		changed.Status.Conditions = append(changed.Status.Conditions,
			appsv1.StatefulSetCondition{Type: "Theirs", Status: corev1.ConditionTrue})
	case *batchv1.Job:
		changed.Status.Conditions = append(changed.Status.Conditions,
			batchv1.JobCondition{Type: "Theirs", Status: corev1.ConditionTrue})
	}
	Expect(k8s.Status().Patch(ctx, changed, client.MergeFrom(child))).To(Succeed())
	Eventually(func() int { return passes(k.Controller(), child.GetNamespace()) }).Should(BeNumerically(">", before))
	time.Sleep(200 * time.Millisecond)
}

// jobPace is longer than the second for which Kubernetes batches status updates of a Job.
const jobPace = 1200 * time.Millisecond

// kubernetesMinor returns the minor version of the API server, such as 36 for 1.36.
var kubernetesMinor = sync.OnceValue(func() int {
	GinkgoHelper()
	clients, err := discovery.NewDiscoveryClientForConfig(cp.Config)
	Expect(err).NotTo(HaveOccurred())
	version, err := clients.ServerVersion()
	Expect(err).NotTo(HaveOccurred())
	minor, err := strconv.Atoi(version.Minor)
	Expect(err).NotTo(HaveOccurred())
	return minor
})

// longestDeployment is the length of the longest name with which a Deployment gets pods. Before Kubernetes 1.34, the
// names of its ReplicaSets were not shortened.
func longestDeployment() int {
	if kubernetesMinor() < 34 {
		return 253 - len("-0123456789")
	}
	return 253
}
