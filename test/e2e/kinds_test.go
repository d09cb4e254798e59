package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// kind is what the specs have to know of a kind. Its Deployment has the name of the resource.
type kind struct {
	name  string
	make  func(namespace, name string, pods int32) client.Object
	grow  func(object client.Object) // by one pod
	seen  func(object client.Object) (observedGeneration int64, conditions []metav1.Condition)
	serve func(ctx context.Context, object client.Object) // asks the operands
}

var kinds = []kind{
	{
		name: "Foo",
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
	},
	{
		name: "Memcached",
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
	},
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
		return try(ctx, os.Getenv("KUBECTL"), "get", "--namespace="+namespace, "--output=name", "pods,deployments,replicasets,services,poddisruptionbudgets")
	}).WithContext(ctx).WithPolling(time.Second).Should(BeEmpty())
}
