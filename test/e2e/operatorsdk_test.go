package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	scorecardv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("With operator-sdk", Ordered, func() {
	in := "--namespace=" + operatorNamespace

	BeforeAll(func(ctx SpecContext) {
		DeferCleanup(deleteRemains)
		DeferCleanup(deleteDefinitions)
		newNamespace(ctx, operatorNamespace)
	}, NodeTimeout(patience))

	It("runs the bundle of the last release", func(ctx SpecContext) {
		operatorSDK(ctx, append([]string{"run", "bundle", image("-bundle", "v"+last), in}, bundleFlags()...)...)
		useOperandImages(ctx)
		Expect(phase(ctx, last)).To(Equal(operatorsv1alpha1.CSVPhaseSucceeded))
	}, SpecTimeout(3*patience))

	It("upgrades to the bundle of the tree, and resources live on", func(ctx SpecContext) {
		k := kinds[1]
		object := k.make(operatorNamespace, "lives-on", 1)
		Expect(kube.Create(ctx, object)).To(Succeed())
		DeferCleanup(deleteAll, object)
		awaitSettled(ctx, k, object)
		before := podsOf(ctx, object)

		operatorSDK(ctx, append([]string{"run", "bundle-upgrade", image("-bundle"), in}, bundleFlags()...)...)
		Expect(phase(ctx, tree)).To(Equal(operatorsv1alpha1.CSVPhaseSucceeded))
		awaitSettled(ctx, k, object)
		after := podsOf(ctx, object)
		Expect(after).To(HaveLen(1))
		Expect(after[0].UID).To(Equal(before[0].UID))
	}, SpecTimeout(3*patience))

	It("passes the scorecard, its built-in tests and ours", func(ctx SpecContext) {
		kubectl(ctx, "apply", in, "-k", "config/scorecard/rbac")
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", in, "-k", "config/scorecard/rbac") })
		args := []string{"scorecard", filepath.Join(os.Getenv("TEST_WORK"), "tree", "bundle-"+tree), in,
			"--service-account=memcached-operator-scorecard", "--wait-time=10m", "--pod-security=restricted", "--output=json"}
		if busybox := os.Getenv("BUSYBOX_IMAGE"); busybox != "" {
			args = append(args, "--untar-image="+busybox, "--storage-image="+busybox)
		}
		var results scorecardv1alpha3.TestList
		out, failed := try(ctx, os.Getenv("OPERATOR_SDK"), args...)
		Expect(json.Unmarshal([]byte(out), &results)).To(Succeed(), "%s\n%v", out, failed)
		states := map[string]scorecardv1alpha3.State{}
		for _, test := range results.Items {
			for _, result := range test.Status.Results {
				states[test.Spec.Labels["suite"]+": "+result.Name] = result.State
				Expect(result.State).To(Equal(scorecardv1alpha3.PassState), "%+v", result)
			}
		}
		Expect(failed).NotTo(HaveOccurred())
		// 6 of operator-sdk's, 7 of ours.
		Expect(results.Items).To(HaveLen(13))
		measure("scorecard: %d tests with %d results, all passed", len(results.Items), len(states))
	}, SpecTimeout(3*patience))

	It("cleans up", func(ctx SpecContext) {
		operatorSDK(ctx, "cleanup", packageName, in, "--timeout=3m")
		Eventually(func(ctx context.Context) bool {
			err := kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: managerName}, &appsv1.Deployment{})
			return apierrors.IsNotFound(err)
		}).WithContext(ctx).Should(BeTrue())
		var csvs operatorsv1alpha1.ClusterServiceVersionList
		Expect(kube.List(ctx, &csvs, client.InNamespace(operatorNamespace))).To(Succeed())
		for _, csv := range csvs.Items {
			Expect(csv.Name).NotTo(HavePrefix(packageName))
		}
	}, SpecTimeout(patience))
})

// bundleFlags are what "run bundle" and "run bundle-upgrade" have to be told of this cluster.
func bundleFlags() []string {
	flags := []string{"--security-context-config=restricted", "--timeout=10m"}
	if os.Getenv("SSL_CERT_FILE") != "" {
		// Its pods do not know the authority that the host has been told of.
		flags = append(flags, "--skip-tls-verify")
	}
	if opm := os.Getenv("OPM_IMAGE"); opm != "" {
		flags = append(flags, "--index-image="+opm)
	}
	if busybox := os.Getenv("BUSYBOX_IMAGE"); busybox != "" {
		flags = append(flags, "--decompression-image="+busybox)
	}
	return flags
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
	Eventually(func(g Gomega, ctx context.Context) {
		manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: managerName}}
		g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(manager), manager)).To(Succeed())
		g.Expect(manager.Spec.Template.Spec.Containers[0].Env).To(ContainElements(toAny(variables)...))
	}).WithContext(ctx).Should(Succeed())
	kubectl(ctx, "rollout", "status", "--namespace="+operatorNamespace, "--timeout=120s", "deployment/"+managerName)
}

func toAny(variables []corev1.EnvVar) []any {
	var list []any
	for _, variable := range variables {
		list = append(list, variable)
	}
	return list
}

// phase is the phase of a version's ClusterServiceVersion.
func phase(ctx context.Context, version string) operatorsv1alpha1.ClusterServiceVersionPhase {
	GinkgoHelper()
	var csv operatorsv1alpha1.ClusterServiceVersion
	Expect(kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: csvName(version)}, &csv)).To(Succeed())
	return csv.Status.Phase
}
