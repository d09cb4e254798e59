package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// The bundle that test/cluster/publish/next.go makes from that of the tree has what no release has brought yet. The
// nodes have to pull the images that the bundles name.
var _ = Describe("A release with another image of memcached and a second version of its kind", func() {
	It("replaces memcached nodes one at a time and nothing else, and both versions work", func(ctx SpecContext) {
		if os.Getenv("TEST_MIRROR") == "" || os.Getenv(oldImage) == "" {
			Skip("there is no mirror with two images of memcached")
		}
		cleanUp(deleteOLMLeftovers)
		cleanUp(deleteDefinitions)
		namespace := newNamespaces(ctx, restrictedLevel, operatorNamespace, "next-")[1]
		i := subscribe(ctx, wanted{catalog: "tree", version: tree, approval: operatorsv1alpha1.ApprovalAutomatic})
		cleanUp(i.remove)
		i.awaitInstalled(ctx, tree)

		plain, ring := newMemcached(namespace, "plain", 3), newMemcached(namespace, "ring", 2)
		ring.Spec.WorkloadType, ring.Spec.WarmupSeconds = cachev1alpha1.StatefulSetWorkload, ptr.To[int32](0)
		foo := foos.Make(namespace, "foo", 1)
		create(ctx, plain, ring, foo)
		awaitSettled(ctx, memcacheds, plain, ring)
		awaitSettled(ctx, foos, foo)
		before := imagesOf(ctx, namespace)
		fewest := watchReady(ctx, plain)

		i.offer(ctx, "next")
		i.awaitInstalled(ctx, nextVersion())
		Eventually(imagesOf).WithContext(ctx).WithArguments(namespace).Should(And(HaveLen(len(before)), WithTransform(
			func(pods map[types.UID]string) (replaced int) {
				for _, image := range pods {
					if strings.HasSuffix(image, "/memcached:next") {
						replaced++
					}
				}
				return replaced
			}, Equal(5))))
		awaitSettled(ctx, memcacheds, plain, ring)
		Expect(fewest()).To(BeEquivalentTo(2), "of 3 nodes are ready at any time")
		rolledOut := imagesOf(ctx, namespace)
		for pod, image := range before {
			if !strings.Contains(image, "memcached") {
				Expect(rolledOut).To(HaveKeyWithValue(pod, image))
			}
		}

		expectBothVersions(ctx, plain)
		after := imagesOf(ctx, namespace)

		By("going back to a release whose definition lacks the stored version")
		i.replace(ctx, tree)
		Eventually(failedPlans).WithContext(ctx).Should(ContainElement(ContainSubstring("risk of data loss updating \"" +
			memcacheds.CRD() + "\": new CRD removes version v1 that is listed as a stored version on the existing CRD")))
		Expect(imagesOf(ctx, namespace)).To(Equal(after), "no node is touched")
		i.replace(ctx, nextVersion())
		i.awaitInstalled(ctx, nextVersion())
		awaitSettled(ctx, memcacheds, plain, ring)
		Expect(imagesOf(ctx, namespace)).To(Equal(after), "no node is touched")
	}, SpecTimeout(4*stepTimeout))
})

// failedPlans returns why InstallPlans have failed.
func failedPlans(ctx context.Context) (messages []string, err error) {
	var plans operatorsv1alpha1.InstallPlanList
	err = kube.List(ctx, &plans, client.InNamespace(operatorNamespace))
	for _, plan := range plans.Items {
		for _, condition := range plan.Status.Conditions {
			if plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
				messages = append(messages, condition.Message)
			}
		}
	}
	return messages, err
}

// nextVersion returns the version of the bundle that follows that of the tree.
func nextVersion() string {
	GinkgoHelper()
	return versionOf(filepath.Join(os.Getenv("TEST_WORK"), "bundle-next"))
}

// imagesOf returns the image of the first container of each pod in a namespace that is not being deleted.
func imagesOf(ctx context.Context, namespace string) map[types.UID]string {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(kube.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
	images := map[types.UID]string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			images[pod.UID] = pod.Spec.Containers[0].Image
		}
	}
	return images
}

// watchReady returns a function that returns the smallest number of ready nodes since the call of watchReady.
func watchReady(ctx context.Context, mc *cachev1alpha1.Memcached) (fewest func() int32) {
	GinkgoHelper()
	least := mc.Status.ReadyNodes
	observed := mc.DeepCopy()
	stop := inBackground(ctx, func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := kube.Get(ctx, client.ObjectKeyFromObject(observed), observed); err != nil && ctx.Err() == nil {
				return err
			}
			least = min(least, observed.Status.ReadyNodes)
			time.Sleep(50 * time.Millisecond)
		}
		return nil
	})
	return func() int32 {
		GinkgoHelper()
		stop()
		return least
	}
}

// expectBothVersions checks that a Memcached can be read and written by both versions of its kind.
func expectBothVersions(ctx context.Context, mc *cachev1alpha1.Memcached) {
	GinkgoHelper()
	var crd apiextensionsv1.CustomResourceDefinition
	Expect(kube.Get(ctx, client.ObjectKey{Name: memcacheds.CRD()}, &crd)).To(Succeed())
	Expect(crd.Status.StoredVersions).To(ConsistOf("v1alpha1", "v1"))
	in, name := "--namespace="+mc.Namespace, "memcacheds.v1.cache.example.com/"+mc.Name
	Expect(kubectl(ctx, "get", in, name, "--output=jsonpath={.apiVersion} {.spec.size}")).To(
		Equal(fmt.Sprintf("cache.example.com/v1 %d", mc.Spec.Size)))
	kubectl(ctx, "patch", in, name, "--type=merge", fmt.Sprintf(`--patch={"spec":{"size":%d}}`, mc.Spec.Size+1))
	awaitSettled(ctx, memcacheds, mc)
	Expect(mc.Spec.Size).To(Equal(mc.Status.ReadyNodes), "the manager, which knows v1alpha1, has carried it out")
	kubectl(ctx, "scale", in, name, "--replicas=1")
	awaitSettled(ctx, memcacheds, mc)
	Expect(mc.Status.ReadyNodes).To(BeEquivalentTo(1))
}
