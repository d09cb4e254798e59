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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("With operator-sdk", Ordered, func() {
	in := "--namespace=" + operatorNamespace

	BeforeAll(func(ctx SpecContext) {
		cleanUp(deleteRemains)
		cleanUp(deleteDefinitions)
		// The pods of "run bundle" do not keep to "restricted", whatever --security-context-config says.
		newNamespace(ctx, operatorNamespace, "baseline")
	}, NodeTimeout(patience))

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
	}, SpecTimeout(3*patience))

	It("upgrades to the bundle of the tree, and resources live on", func(ctx SpecContext) {
		k := memcacheds
		object := k.Make(operatorNamespace, "lives-on", 1)
		create(ctx, object)
		cleanUp(func(ctx context.Context) { deleteAll(ctx, object) })
		awaitSettled(ctx, k, object)
		before, err := podsOf(ctx, object)
		Expect(err).NotTo(HaveOccurred())

		upgraded := make(chan error, 1)
		go func() {
			_, err := try(ctx, os.Getenv("OPERATOR_SDK"),
				append([]string{"run", "bundle-upgrade", image("-bundle"), in}, bundleFlags()...)...)
			upgraded <- err
		}()
		if busybox := os.Getenv("BUSYBOX_IMAGE"); busybox != "" {
			useDecompressionImage(ctx, busybox)
		}
		Eventually(ctx, upgraded).WithTimeout(2 * patience).Should(Receive(Succeed()))
		Eventually(phase).WithContext(ctx).WithArguments(tree).Should(Equal(operatorsv1alpha1.CSVPhaseSucceeded))
		awaitSettings(ctx)
		awaitSettledLeader(ctx)
		awaitSettled(ctx, k, object)
		after, err := podsOf(ctx, object)
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(HaveLen(1))
		Expect(after[0].UID).To(Equal(before[0].UID))
	}, SpecTimeout(3*patience))

	It("passes the scorecard, its built-in tests and ours", func(ctx SpecContext) {
		kubectl(ctx, "apply", in, "-k", "config/scorecard/rbac")
		cleanUp(func(ctx context.Context) { kubectl(ctx, "delete", in, "-k", "config/scorecard/rbac") })
		args := []string{"scorecard", filepath.Join(os.Getenv("TEST_WORK"), "tree", "bundle-"+tree), in,
			"--service-account=memcached-operator-scorecard", "--wait-time=10m", "--pod-security=restricted", "--output=json"}
		if busybox := os.Getenv("BUSYBOX_IMAGE"); busybox != "" {
			args = append(args, "--untar-image="+busybox, "--storage-image="+busybox)
		}
		var results scorecardv1alpha3.TestList
		out, failed := try(ctx, os.Getenv("OPERATOR_SDK"), args...)
		Expect(json.Unmarshal([]byte(out), &results)).To(Succeed(), "%s\n%v", out, failed)
		count := 0
		for _, test := range results.Items {
			Expect(test.Status.Results).NotTo(BeEmpty(), "%+v", test.Spec)
			for _, result := range test.Status.Results {
				count++
				Expect(result.State).To(Equal(scorecardv1alpha3.PassState), "%+v", result)
				if test.Spec.Labels["suite"] == "custom" {
					Expect(result.Suggestions).To(BeEmpty(), "ours say so when they had nothing to look at: %+v", result)
				}
			}
		}
		Expect(failed).NotTo(HaveOccurred())
		// 6 of operator-sdk's, 7 of ours.
		Expect(results.Items).To(HaveLen(13))
		measure("scorecard: %d tests with %d results, all passed", len(results.Items), count)
	}, SpecTimeout(3*patience))

	It("cleans up", func(ctx SpecContext) {
		operatorSDK(ctx, "cleanup", packageName, in, "--timeout=3m")
		Eventually(func(ctx context.Context) (string, error) {
			return try(ctx, os.Getenv("KUBECTL"), "get", in, "--output=name",
				"deployments,pods,catalogsources,subscriptions.operators.coreos.com,operatorgroups,clusterserviceversions")
		}).WithContext(ctx).WithPolling(time.Second).Should(BeEmpty())
		expectNoDefinitions(ctx, "cleanup has left it", definitions()...)
	}, SpecTimeout(patience))
})

// bundleFlags are what "run bundle" and "run bundle-upgrade" have to be told of this cluster.
func bundleFlags() []string {
	flags := []string{"--security-context-config=restricted", "--timeout=10m"}
	if os.Getenv("SSL_CERT_FILE") != "" {
		// Its pods do not know the authority that the host has been told of.
		flags = append(flags, "--skip-tls-verify")
	}
	return flags
}

// useDecompressionImage puts an image that this cluster can pull into the pod that "run bundle-upgrade" makes. Unlike
// "run bundle", it has no flag for that.
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
		return errors.New("operator-sdk has not made its pod yet")
	}).WithContext(ctx).Should(Succeed())
}

// useOperandImages has the operator that "run bundle" has installed use this cluster's images of the operands.
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
	awaitSettings(ctx)
}
