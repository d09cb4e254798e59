package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// kind is what the specs have to know of a kind.
type kind struct {
	name       string
	definition string // its CustomResourceDefinition
	// make returns one that settles. Pods are how many it keeps running, if it keeps any.
	make func(namespace, name string, pods int32) client.Object
	// grow has it keep one pod more; nil for a kind that keeps none.
	grow func(object client.Object)
	// hurry has it do every few seconds what it does by the hour; nil for a kind that does at once all there is to do.
	hurry func(object client.Object)
	seen  func(object client.Object) (observedGeneration int64, conditions []metav1.Condition)
	// serve shows that its pods do what they are there for.
	serve func(ctx context.Context, object client.Object)
}

var kinds = []kind{foos, memcacheds, cronJobs}

// foos have a Deployment of the same name here.
var foos = kind{
	name:       "Foo",
	definition: "foos.samplecontroller.k8s.io",
	make: func(namespace, name string, pods int32) client.Object {
		return &samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       samplev1alpha1.FooSpec{DeploymentName: name, Replicas: &pods},
		}
	},
	grow: func(object client.Object) {
		spec := &object.(*samplev1alpha1.Foo).Spec
		spec.Replicas = ptr.To(*spec.Replicas + 1)
	},
	seen: func(object client.Object) (int64, []metav1.Condition) {
		status := object.(*samplev1alpha1.Foo).Status
		return status.ObservedGeneration, status.Conditions
	},
	serve: func(ctx context.Context, object client.Object) {
		GinkgoHelper()
		pods, err := podsOf(ctx, object)
		Expect(err).NotTo(HaveOccurred())
		var urls []string
		for _, pod := range pods {
			urls = append(urls, "http://"+net.JoinHostPort(pod.Status.PodIP, "80"))
		}
		Expect(ask(ctx, object.GetNamespace(), "", append([]string{"http"}, urls...)...)).To(ContainSubstring("200 OK"))
	},
}

var memcacheds = kind{
	name:       "Memcached",
	definition: "memcacheds.cache.example.com",
	make: func(namespace, name string, pods int32) client.Object {
		return &cachev1alpha1.Memcached{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       cachev1alpha1.MemcachedSpec{Size: pods},
		}
	},
	grow: func(object client.Object) { object.(*cachev1alpha1.Memcached).Spec.Size++ },
	seen: func(object client.Object) (int64, []metav1.Condition) {
		status := object.(*cachev1alpha1.Memcached).Status
		return status.ObservedGeneration, status.Conditions
	},
	serve: func(ctx context.Context, object client.Object) {
		GinkgoHelper()
		mc := object.(*cachev1alpha1.Memcached)
		answer := ask(ctx, mc.Namespace, "", "memcached", fmt.Sprintf("%s.%s.svc", mc.Status.ServiceName, mc.Namespace))
		Expect(lines(answer)).To(HaveLen(int(mc.Spec.Size)), "each node answers by its own name")
	},
}

// cronJobs have nothing to do within an hour, unless they are hurried. The sample of config/samples says hello too.
var cronJobs = kind{
	name:       "CronJob",
	definition: "cronjobs.batch.tutorial.kubebuilder.io",
	make: func(namespace, name string, _ int32) client.Object {
		return newCronJob(namespace, name, "@every 1h", "echo hello")
	},
	hurry: func(object client.Object) { object.(*tutorialv1.CronJob).Spec.Schedule = "@every 10s" },
	seen: func(object client.Object) (int64, []metav1.Condition) {
		status := object.(*tutorialv1.CronJob).Status
		return status.ObservedGeneration, status.Conditions
	},
	serve: func(ctx context.Context, object client.Object) {
		GinkgoHelper()
		cj := object.(*tutorialv1.CronJob)
		calm := cj.Spec.Schedule
		change(ctx, cj, func() { cj.Spec.Schedule = "@every 10s" })
		var job *batchv1.Job
		Eventually(func(ctx context.Context) (err error) {
			job, err = lastJob(ctx, cj, isComplete)
			return err
		}).WithContext(ctx).Should(Succeed())
		Expect(logOf(ctx, job)).To(ContainSubstring("hello\n"))
		change(ctx, cj, func() { cj.Spec.Schedule = calm })
	},
}

// definitions are the CustomResourceDefinitions of the operator.
func definitions() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.definition)
	}
	return names
}

// kindsOf are the kinds that a release has, and those that have come since.
func kindsOf(release string) (had, added []kind) {
	GinkgoHelper()
	for _, k := range kinds {
		plural, group, _ := strings.Cut(k.definition, ".")
		_, err := os.Stat(filepath.Join(root, "config/catalog/released", release, "manifests", group+"_"+plural+".yaml"))
		if err == nil {
			had = append(had, k)
			continue
		}
		Expect(err).To(MatchError(os.ErrNotExist))
		added = append(added, k)
	}
	return had, added
}

// settled matches a resource that has been carried out: its latest change is answered, and it works.
func settled(ctx context.Context, k kind, object client.Object) error {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	generation, conditions := k.seen(object)
	if generation != object.GetGeneration() {
		return fmt.Errorf("%s %s: generation %d is not answered yet, %d is", k.name, object.GetName(), object.GetGeneration(), generation)
	}
	for condition, want := range map[string]metav1.ConditionStatus{"Available": metav1.ConditionTrue, "Progressing": metav1.ConditionFalse, "Degraded": metav1.ConditionFalse} {
		if !meta.IsStatusConditionPresentAndEqual(conditions, condition, want) {
			return fmt.Errorf("%s %s: %s is not %s: %+v", k.name, object.GetName(), condition, want, meta.FindStatusCondition(conditions, condition))
		}
	}
	return nil
}

// awaitSettled waits until resources have been carried out.
func awaitSettled(ctx context.Context, k kind, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(settled).WithContext(ctx).WithArguments(k, object).Should(Succeed())
	}
}

// change writes into a resource as somebody would who only cares for that change.
func change(ctx context.Context, object client.Object, do func()) {
	GinkgoHelper()
	before := object.DeepCopyObject().(client.Object)
	do()
	Expect(kube.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// made are the names of the Deployments and Jobs that belong to a resource.
func made(ctx context.Context, object client.Object) ([]string, error) {
	var deployments appsv1.DeploymentList
	var jobs batchv1.JobList
	for _, list := range []client.ObjectList{&deployments, &jobs} {
		if err := kube.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, deployment := range deployments.Items {
		if metav1.IsControlledBy(&deployment, object) {
			names = append(names, "Deployment "+deployment.Name)
		}
	}
	for _, job := range jobs.Items {
		if metav1.IsControlledBy(&job, object) {
			names = append(names, "Job "+job.Name)
		}
	}
	return names, nil
}

// podsOf are the pods of the Deployment of a resource that are not being stopped.
func podsOf(ctx context.Context, object client.Object) ([]corev1.Pod, error) {
	var deployment appsv1.Deployment
	if err := kube.Get(ctx, client.ObjectKeyFromObject(object), &deployment); err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(&deployment, object) {
		return nil, fmt.Errorf("the Deployment %s is not that of %T %s", deployment.Name, object, object.GetName())
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := kube.List(ctx, &pods, client.InNamespace(object.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	var running []corev1.Pod
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			running = append(running, pod)
		}
	}
	return running, nil
}

// awaitNoChildren waits until nothing that the operator makes is in a namespace any more.
func awaitNoChildren(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (string, error) {
		return try(ctx, os.Getenv("KUBECTL"), "get", "--namespace="+namespace, "--output=name", "pods,jobs,deployments,replicasets,services,poddisruptionbudgets")
	}).WithContext(ctx).WithPolling(time.Second).Should(BeEmpty())
}
