package contract

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// kind is what the contract has to know of a kind to be run against it.
type kind struct {
	name       string
	controller string
	apiVersion string
	resource   string
	make       func(namespace, name string, pods int32) client.Object
	children   func(object client.Object) []client.Object // empty ones, to be read
	child      firstChild
	deploys    bool                                            // the first child is a Deployment, and all are kept as they should be; otherwise they are made once
	due        func(ctx context.Context, object client.Object) // has the operator make the children; nil where it does so at once
	longest    int                                             // how many characters a name may have
	conditions func(object client.Object) []metav1.Condition
	generation func(object client.Object) int64 // status.observedGeneration
	nameTaken  string                           // the reason of the event
}

// firstChild is what the contract has to know of a kind's first child.
type firstChild struct {
	kind, group, resource string
	name                  func(object string) string                 // for an object of this name
	theirs                func(namespace, name string) client.Object // one of somebody else's
}

var kinds = []kind{
	{
		name:       "Foo",
		controller: "foo",
		apiVersion: samplev1alpha1.GroupVersion.String(),
		resource:   "foos.samplecontroller.k8s.io",
		make: func(namespace, name string, pods int32) client.Object {
			return newFoo(namespace, name, name, &pods)
		},
		children: func(object client.Object) []client.Object {
			return []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: object.GetNamespace(), Name: object.(*samplev1alpha1.Foo).Spec.DeploymentName}}}
		},
		conditions: func(object client.Object) []metav1.Condition { return object.(*samplev1alpha1.Foo).Status.Conditions },
		generation: func(object client.Object) int64 { return object.(*samplev1alpha1.Foo).Status.ObservedGeneration },
		nameTaken:  samplev1alpha1.EventErrResourceExists,
		child:      deploymentOfTheName,
		deploys:    true,
		longest:    253,
	},
	{
		name:       "Memcached",
		controller: "memcached",
		apiVersion: cachev1alpha1.GroupVersion.String(),
		resource:   "memcacheds.cache.example.com",
		make: func(namespace, name string, pods int32) client.Object {
			return newMemcached(namespace, name, pods)
		},
		children: func(object client.Object) []client.Object {
			named := metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}
			service := named
			if len(service.Name) > 63 {
				service.Name = get(context.Background(), object.DeepCopyObject().(*cachev1alpha1.Memcached)).Status.ServiceName
			}
			return []client.Object{
				&appsv1.Deployment{ObjectMeta: named},
				&corev1.Service{ObjectMeta: service},
				&policyv1.PodDisruptionBudget{ObjectMeta: named},
			}
		},
		conditions: func(object client.Object) []metav1.Condition {
			return object.(*cachev1alpha1.Memcached).Status.Conditions
		},
		generation: func(object client.Object) int64 { return object.(*cachev1alpha1.Memcached).Status.ObservedGeneration },
		nameTaken:  cachev1alpha1.ReasonNameTaken,
		child:      deploymentOfTheName,
		deploys:    true,
		longest:    253,
	},
	{
		name:       "CronJob",
		controller: "cronjob",
		apiVersion: tutorialv1.GroupVersion.String(),
		resource:   "cronjobs.batch.tutorial.kubebuilder.io",
		make: func(namespace, name string, pods int32) client.Object {
			cj := newCronJob(namespace, name, "@every 1h")
			cj.Spec.JobTemplate.Spec.Parallelism = &pods
			return cj
		},
		children: func(object client.Object) []client.Object {
			return []client.Object{jobAt(object, lastHour)}
		},
		conditions: func(object client.Object) []metav1.Condition { return object.(*tutorialv1.CronJob).Status.Conditions },
		generation: func(object client.Object) int64 { return object.(*tutorialv1.CronJob).Status.ObservedGeneration },
		nameTaken:  tutorialv1.ReasonNameTaken,
		child: firstChild{
			kind: "Job", group: "batch", resource: "jobs",
			name:   func(object string) string { return jobName(object, lastHour) },
			theirs: func(namespace, name string) client.Object { return newJob(namespace, name) },
		},
		due: func(ctx context.Context, object client.Object) {
			backdate(ctx, object.(*tutorialv1.CronJob), lastHour.Add(-time.Hour))
		},
		longest: 52,
	},
}

var deploymentOfTheName = firstChild{
	kind: "Deployment", group: "apps", resource: "deployments",
	name:   func(object string) string { return object },
	theirs: func(namespace, name string) client.Object { return newDeployment(namespace, name, 0) },
}

// deploying are the kinds that have a Deployment.
var deploying = slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !k.deploys })

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

// newCronJob returns one whose Jobs go on until somebody ends their pod, fit for a namespace that is restricted.
func newCronJob(namespace, name, schedule string) *tutorialv1.CronJob {
	cj := &tutorialv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       tutorialv1.CronJobSpec{Schedule: schedule},
	}
	cj.Spec.JobTemplate.Spec = newJob("", "").Spec
	cj.Spec.JobTemplate.Spec.Suspend = nil
	return cj
}

// newJob returns one of somebody else's, which is suspended.
func newJob(namespace, name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			Suspend:      ptr.To(true),
			BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{{Name: "it", Image: "it", SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
			}},
		},
	}
}

// newDeployment returns one of somebody else's.
func newDeployment(namespace, name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"somebody": "else"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "it", Image: "it"}}},
			},
		},
	}
}

// controlledBy returns a reference to a controller that does not exist.
func controlledBy(apiVersion, kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: "00000000-0000-0000-0000-000000000001", Controller: ptr.To(true)}
}

// says is a matcher for a condition of an object: "Available=True/AllNodesReady", or without a reason.
func (k kind) says(object client.Object) func(ctx context.Context) map[string]string {
	return func(ctx context.Context) map[string]string {
		if err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return map[string]string{"error": err.Error()}
		}
		said := map[string]string{}
		for _, c := range k.conditions(object) {
			said[c.Type] = fmt.Sprintf("%s/%s", c.Status, c.Reason)
			if c.ObservedGeneration != object.GetGeneration() {
				said[c.Type] = fmt.Sprintf("of generation %d, not %d", c.ObservedGeneration, object.GetGeneration())
			}
		}
		return said
	}
}

// message returns the message of a condition, as it was last read.
func (k kind) message(object client.Object, condition string) string {
	if c := meta.FindStatusCondition(k.conditions(object), condition); c != nil {
		return c.Message
	}
	return ""
}

// settled is what says returns of an object that has nothing to wait for. A Job goes on until its pods end.
var settled = And(
	HaveKeyWithValue("Available", HavePrefix("True/")),
	HaveKeyWithValue("Progressing", BeElementOf("False/RolloutComplete", "True/JobsRunning")),
	HaveKeyWithValue("Degraded", "False/AsExpected"))

// put creates an object and sees to it that the operator has children to make for it.
func (k kind) put(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, object)).To(Succeed())
	if k.due == nil {
		return
	}
	// What was said when it was new does not count.
	Eventually(ctx, func() []string { return eventsAbout(ctx, object) }).Should(HaveLen(1))
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

// settle waits until an object has settled, and the operator with it: nothing it does later has that as its cause.
func (k kind) settle(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(ctx, k.says(object)).Should(settled)
	mark := cp.Audit.Now()
	Eventually(ctx, func() []string { return eventsAbout(ctx, object) }).ShouldNot(BeEmpty())
	Eventually(func() int {
		seen := len(requests(mark, object.GetNamespace()))
		mark = cp.Audit.Now()
		return seen
	}).WithPolling(300 * time.Millisecond).Should(BeZero())
}

// own returns the children of an object as they are, all of them being its own.
func (k kind) own(ctx context.Context, object client.Object) []client.Object {
	GinkgoHelper()
	children := k.children(object)
	for _, child := range children {
		Expect(metav1.IsControlledBy(get(ctx, child), object)).To(BeTrue(), "%T %s", child, child.GetName())
	}
	return children
}

// resourceVersions of objects, to see whether anybody has written them.
func resourceVersions(ctx context.Context, objects ...client.Object) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	for _, object := range objects {
		versions[fmt.Sprintf("%T %s", object, object.GetName())] = get(ctx, object).GetResourceVersion()
	}
	return versions
}

// passOnStatusOf has a child's status change and waits until the controller has made a pass because of it.
func (k kind) passOnStatusOf(ctx context.Context, child client.Object) {
	GinkgoHelper()
	before := passes(k.controller)
	changed := child.DeepCopyObject().(client.Object)
	switch changed := changed.(type) {
	case *appsv1.Deployment:
		changed.Status.Conditions = append(changed.Status.Conditions, appsv1.DeploymentCondition{Type: "Theirs", Status: corev1.ConditionTrue})
	case *batchv1.Job:
		changed.Status.Conditions = append(changed.Status.Conditions, batchv1.JobCondition{Type: "Theirs", Status: corev1.ConditionTrue})
	}
	Expect(k8s.Status().Patch(ctx, changed, client.MergeFrom(child))).To(Succeed())
	Eventually(func() int { return passes(k.controller) }).Should(BeNumerically(">", before))
	time.Sleep(200 * time.Millisecond)
}

// jobPace is longer than the second that Kubernetes collects news of a Job for before it tells them.
const jobPace = 1200 * time.Millisecond
