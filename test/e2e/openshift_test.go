package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

const openShiftRules = "test/e2e/testdata/openshift.yaml"

// The policies in testdata/openshift.yaml do to pods what OpenShift does.
var _ = Describe("Under OpenShift's rules for pods", Ordered, func() {
	const firstUser = 1000650000
	namespaces := []string{operatorNamespace, "openshift-"}

	BeforeAll(func(ctx SpecContext) {
		kubectl(ctx, "apply", "--filename="+openShiftRules)
		cleanUp(func(ctx context.Context) { kubectl(ctx, "delete", "--ignore-not-found", "--filename="+openShiftRules) })
		namespaces = newNamespaces(ctx, restrictedLevel, namespaces...)
		for _, namespace := range namespaces {
			kubectl(ctx, "annotate", "namespace", namespace, fmt.Sprintf("openshift.io/sa.scc.uid-range=%d/10000", firstUser))
			kubectl(ctx, "label", "namespace", namespace, "e2e/openshift=true")
		}
		awaitOpenShiftRules(ctx, namespaces[1])
		deploy(ctx)
	}, NodeTimeout(2*stepTimeout))

	It("runs the operator and all samples with the users that the cluster assigns", func(ctx SpecContext) {
		namespace := namespaces[1]
		a := newAuthority(ctx, namespace)
		for _, name := range []string{"memcached-tls", "memcached-mutual-tls"} {
			put(ctx, namespace, name, a.content(issue(&a.ca, time.Hour, namesIn(namespace, name)...)))
		}
		kubectl(ctx, "apply", "--namespace="+namespace, "-k", "config/samples")
		useJobImage(ctx, namespace)

		var caches cachev1alpha1.MemcachedList
		Expect(kube.List(ctx, &caches, client.InNamespace(namespace))).To(Succeed())
		Expect(len(caches.Items)).To(BeNumerically(">", 5))
		for i := range caches.Items {
			awaitSettled(ctx, memcacheds, &caches.Items[i])
		}
		foo := &samplev1alpha1.Foo{ObjectMeta: podNamed(namespace, "foo-sample").ObjectMeta}
		awaitSettled(ctx, foos, foo)
		foos.serve(ctx, foo)
		cj := &tutorialv1.CronJob{ObjectMeta: podNamed(namespace, "cronjob-sample").ObjectMeta}
		awaitSettled(ctx, cronJobs, cj)
		cronJobs.serve(ctx, cj)

		count := 0
		for _, namespace := range namespaces {
			var pods corev1.PodList
			Expect(kube.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
			Expect(pods.Items).NotTo(BeEmpty())
			for _, pod := range pods.Items {
				count++
				for _, container := range append(pod.Spec.Containers, pod.Spec.InitContainers...) {
					Expect(*container.SecurityContext.RunAsUser).To(BeEquivalentTo(firstUser), "%s %s", pod.Name, container.Name)
				}
			}
		}
		By("reading the metrics with the token of config/openshift")
		kubectl(ctx, "apply", "--filename=config/openshift/token.yaml")
		cleanUp(func(ctx context.Context) {
			kubectl(ctx, "delete", "--ignore-not-found", "--filename=config/openshift/token.yaml")
		})
		reader := probe(operatorNamespace, "metrics",
			fmt.Sprintf("https://%s.%s.svc:8443/metrics", metricsService, operatorNamespace), "/token/token")
		reader.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: "memcached-operator-metrics-token"}}}}
		reader.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "token", MountPath: "/token"}}
		Expect(answerOf(ctx, reader)).To(HavePrefix("200 "))
		measure("under OpenShift's rules: %d pods of the operator and of all samples run", count)
	}, SpecTimeout(2*stepTimeout))
})

// awaitOpenShiftRules waits until the API server enforces the policies: it rejects pods that name a user.
func awaitOpenShiftRules(ctx context.Context, namespace string) {
	GinkgoHelper()
	pod := probe(namespace, "crash")
	pod.Name, pod.GenerateName = "named-user", ""
	pod.Spec.Containers[0].SecurityContext.RunAsUser = ptr.To(int64(65534))
	Eventually(func(ctx context.Context) error {
		return kube.Create(ctx, pod.DeepCopy(), client.DryRunAll)
	}).WithContext(ctx).Should(MatchError(ContainSubstring(
		"runAsUser must be in the range 1000650000/10000: named-user")))
}
