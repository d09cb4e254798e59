package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	scorecardv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("With operator-sdk", Ordered, func() {
	in := "--namespace=" + operatorNamespace
	var object client.Object // created before the upgrade
	var pod types.UID

	BeforeAll(func(ctx SpecContext) {
		cleanUp(deleteOLMLeftovers)
		cleanUp(deleteDefinitions)
		// The pods of "run bundle" violate "restricted" even with --security-context-config=restricted.
		newNamespaces(ctx, baselineLevel, operatorNamespace)
	}, NodeTimeout(stepTimeout))

	It("runs the bundle of the last release", func(ctx SpecContext) {
		args := append([]string{"run", "bundle", image("-bundle", "v"+last), in}, bundleFlags()...)
		if opm := os.Getenv("OPM_IMAGE"); opm != "" {
			args = append(args, "--index-image="+opm)
		}
		if busybox := os.Getenv("BUSYBOX_IMAGE"); busybox != "" {
			args = append(args, "--decompression-image="+busybox)
		}
		operatorSDK(ctx, args...)
		useOperandImages(ctx)
		Eventually(phase).WithContext(ctx).WithArguments(last).Should(Equal(operatorsv1alpha1.CSVPhaseSucceeded))
	}, SpecTimeout(3*stepTimeout))

	It("upgrades to the bundle of the tree", func(ctx SpecContext) {
		object = memcacheds.Make(operatorNamespace, "existing", 1)
		create(ctx, object)
		awaitSettled(ctx, memcacheds, object)
		pods, err := podsOf(ctx, object)
		Expect(err).NotTo(HaveOccurred())
		Expect(pods).To(HaveLen(1))
		pod = pods[0].UID

		upgraded := make(chan error, 1)
		go func() {
			_, err := try(ctx, os.Getenv("OPERATOR_SDK"),
				append([]string{"run", "bundle-upgrade", image("-bundle"), in}, bundleFlags()...)...)
			upgraded <- err
		}()
		if busybox := os.Getenv("BUSYBOX_IMAGE"); busybox != "" {
			useDecompressionImage(ctx, busybox)
		}
		Eventually(ctx, upgraded).WithTimeout(2 * stepTimeout).Should(Receive(Succeed()))
		Eventually(phase).WithContext(ctx).WithArguments(tree).Should(Equal(operatorsv1alpha1.CSVPhaseSucceeded))
		awaitSettings(ctx, operandImages())
	}, SpecTimeout(3*stepTimeout))

	It("passes the scorecard tests of operator-sdk, with its defaults", func(ctx SpecContext) {
		Expect(scorecard(ctx)).To(HaveLen(6))
	}, SpecTimeout(stepTimeout))

	It("passes the scorecard tests of this project", func(ctx SpecContext) {
		kubectl(ctx, "apply", in, "-k", "config/scorecard/rbac")
		cleanUp(func(ctx context.Context) { kubectl(ctx, "delete", in, "-k", "config/scorecard/rbac") })
		began, count := time.Now(), 0
		tests := scorecard(ctx, "--config="+filepath.Join(treeBundle(), "tests/scorecard/custom.yaml"), in,
			"--wait-time=10m", "--pod-security=restricted")
		Expect(tests).To(HaveLen(10))
		for _, test := range tests {
			for _, result := range test.Status.Results {
				count++
				Expect(result.Suggestions).To(BeEmpty(), "our tests suggest something if they found nothing to test: %+v", result)
			}
		}
		measure("scorecard: %d tests with %d results, all passed, %.0f s", len(tests), count, time.Since(began).Seconds())
	}, SpecTimeout(3*stepTimeout))

	It("keeps the pods of existing resources after the upgrade", func(ctx SpecContext) {
		awaitSettledLeader(ctx, operandImages())
		awaitSettled(ctx, memcacheds, object)
		Expect(podsOf(ctx, object)).To(ConsistOf(HaveField("UID", pod)))
		deleteAll(ctx, object)
	}, SpecTimeout(stepTimeout))

	It("cleans up", func(ctx SpecContext) {
		operatorSDK(ctx, "cleanup", packageName, in, "--timeout=3m")
		Eventually(func(ctx context.Context) (string, error) {
			return try(ctx, os.Getenv("KUBECTL"), "get", in, "--output=name",
				"deployments,pods,catalogsources,subscriptions.operators.coreos.com,operatorgroups,clusterserviceversions")
		}).WithContext(ctx).WithPolling(time.Second).Should(BeEmpty())
		expectNoDefinitions(ctx, "cleanup did not delete it", definitions()...)
	}, SpecTimeout(stepTimeout))
})

// treeBundle returns the directory of the bundle of the tree, with the images of this cluster.
func treeBundle() string { return filepath.Join(os.Getenv("TEST_WORK"), "tree", "bundle-"+tree) }

// scorecard runs the scorecard tests of the bundle of the tree, which must pass.
func scorecard(ctx context.Context, args ...string) []scorecardv1alpha3.Test {
	GinkgoHelper()
	args = append([]string{"scorecard", treeBundle(), "--output=json"}, args...)
	if busybox := os.Getenv("BUSYBOX_IMAGE"); busybox != "" {
		args = append(args, "--untar-image="+busybox, "--storage-image="+busybox)
	}
	var results scorecardv1alpha3.TestList
	out, failed := try(ctx, os.Getenv("OPERATOR_SDK"), args...)
	Expect(json.Unmarshal([]byte(out), &results)).To(Succeed(), "%s\n%v", out, failed)
	for _, test := range results.Items {
		Expect(test.Status.Results).NotTo(BeEmpty(), "%+v", test.Spec)
		for _, result := range test.Status.Results {
			Expect(result.State).To(Equal(scorecardv1alpha3.PassState), "%+v", result)
		}
	}
	Expect(failed).NotTo(HaveOccurred())
	return results.Items
}

// bundleFlags returns the flags of "run bundle" and "run bundle-upgrade" for this cluster.
func bundleFlags() []string {
	flags := []string{"--security-context-config=restricted", "--timeout=10m"}
	if os.Getenv("SSL_CERT_FILE") != "" {
		// The pods do not trust the authority of the registry.
		flags = append(flags, "--skip-tls-verify")
	}
	return flags
}

// useDecompressionImage sets an image that this cluster can pull in the pod of "run bundle-upgrade", which has no flag
// for it, unlike "run bundle".
func useDecompressionImage(ctx context.Context, image string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		var pods corev1.PodList
		if err := kube.List(ctx, &pods, client.InNamespace(operatorNamespace)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if init := pod.Spec.InitContainers; len(init) == 1 && init[0].Name == "registry-grpc-init" &&
				init[0].Image != image {
				before := pod.DeepCopy()
				pod.Spec.InitContainers[0].Image = image
				return kube.Patch(ctx, &pod, client.MergeFrom(before))
			}
		}
		return errors.New("operator-sdk has not created its pod yet")
	}).WithContext(ctx).Should(Succeed())
}

// useOperandImages sets images that this cluster can pull in the Subscription that "run bundle" has created.
func useOperandImages(ctx context.Context) {
	GinkgoHelper()
	variables := operandImages()
	if len(variables) == 0 {
		return
	}
	var subscriptions operatorsv1alpha1.SubscriptionList
	Expect(kube.List(ctx, &subscriptions, client.InNamespace(operatorNamespace))).To(Succeed())
	Expect(subscriptions.Items).To(HaveLen(1))
	subscription := &subscriptions.Items[0]
	before := subscription.DeepCopy()
	subscription.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{Env: variables}
	Expect(kube.Patch(ctx, subscription, client.MergeFrom(before))).To(Succeed())
	awaitSettings(ctx, operandImages())
}
