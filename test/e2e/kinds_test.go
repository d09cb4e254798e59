package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/test/jobstate"
	testkinds "github.com/example/memcached-operator/test/kinds"
)

// kind is a kind and what the specs do with it.
type kind struct {
	testkinds.Kind
	// hurry has it do every few seconds what it does by the hour; nil for a kind that does at once all there is to do.
	hurry func(object client.Object)
	// serve shows that its pods do what they are there for.
	serve func(ctx context.Context, object client.Object)
}

var kinds = []kind{foos, memcacheds, cronJobs}

// foos have a Deployment of the same name here.
var foos = kind{
	Kind: testkinds.Foo,
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
	Kind: testkinds.Memcached,
	serve: func(ctx context.Context, object client.Object) {
		GinkgoHelper()
		mc := object.(*cachev1alpha1.Memcached)
		answer := ask(ctx, mc.Namespace, "", "memcached", fmt.Sprintf("%s.%s.svc", mc.Status.ServiceName, mc.Namespace))
		Expect(lines(answer)).To(HaveLen(int(mc.Spec.Size)), "each node answers by its own name")
	},
}

// cronJobs have nothing to do within an hour, unless they are hurried. The sample of config/samples says hello too.
var cronJobs = func() kind {
	k := kind{
		Kind:  testkinds.CronJob,
		hurry: func(object client.Object) { object.(*tutorialv1.CronJob).Spec.Schedule = "@every 10s" },
		serve: func(ctx context.Context, object client.Object) {
			GinkgoHelper()
			cj := object.(*tutorialv1.CronJob)
			calm := cj.Spec.Schedule
			change(ctx, cj, func() { cj.Spec.Schedule = "@every 10s" })
			Expect(logOf(ctx, awaitJob(ctx, cj, jobstate.IsComplete))).To(ContainSubstring("hello\n"))
			change(ctx, cj, func() { cj.Spec.Schedule = calm })
		},
	}
	k.Make = func(namespace, name string, _ int32) client.Object {
		return newCronJob(namespace, name, "@every 1h", "echo hello")
	}
	return k
}()

// definitions are the CustomResourceDefinitions of the operator.
func definitions() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.CRD())
	}
	return names
}

// kindsOf are the kinds that a release has, and those that have come since.
func kindsOf(release string) (had, added []kind) {
	GinkgoHelper()
	for _, k := range kinds {
		_, err := os.Stat(filepath.Join(root, "config/catalog/released", release, "manifests",
			k.GroupVersion.Group+"_"+k.Resource+".yaml"))
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
	generation, conditions := k.Status(object).ObservedGeneration, k.Conditions(object)
	if generation != object.GetGeneration() {
		return fmt.Errorf("%s %s: generation %d is not answered yet, %d is", k.Name, object.GetName(), object.GetGeneration(),
			generation)
	}
	for condition, want := range map[string]metav1.ConditionStatus{
		"Available": metav1.ConditionTrue, "Progressing": metav1.ConditionFalse, "Degraded": metav1.ConditionFalse,
	} {
		if !meta.IsStatusConditionPresentAndEqual(conditions, condition, want) {
			return fmt.Errorf("%s %s: %s is not %s: %+v", k.Name, object.GetName(), condition, want,
				meta.FindStatusCondition(conditions, condition))
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

// children returns what there is in a namespace of all kinds that the operator creates.
func children(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	for _, child := range testkinds.ChildResources() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(child.GroupVersion().WithKind(child.Kind + "List"))
		if err := kube.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			item.SetGroupVersionKind(child.GroupVersion().WithKind(child.Kind))
			all = append(all, item)
		}
	}
	return all, nil
}

// made returns what the operator has created for a resource.
func made(ctx context.Context, object client.Object) ([]metav1.PartialObjectMetadata, error) {
	all, err := children(ctx, object.GetNamespace())
	return slices.DeleteFunc(all, func(child metav1.PartialObjectMetadata) bool {
		return !metav1.IsControlledBy(&child, object)
	}), err
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
	if err := kube.List(ctx, &pods, client.InNamespace(object.GetNamespace()),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }), nil
}

// awaitNoChildren waits until nothing that the operator makes is in a namespace any more.
func awaitNoChildren(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (string, error) {
		return try(ctx, os.Getenv("KUBECTL"), "get", "--namespace="+namespace, "--output=name",
			"pods,jobs,deployments,replicasets,services,poddisruptionbudgets")
	}).WithContext(ctx).WithPolling(time.Second).Should(BeEmpty())
}
