package e2e

import (
	"context"
	"fmt"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What keeps OLM from installing the operator, and where docs/troubleshooting.md says that it shows.
var _ = Describe("A Subscription that cannot be carried out", Ordered, func() {
	cases := []struct {
		name     string
		groups   int
		catalog  string
		approval operatorsv1alpha1.Approval
		state    operatorsv1alpha1.SubscriptionState
		// problems are conditions that may be true, by reason; the second is that of OLM 0.28. None is for no condition.
		problems map[string]string
	}{
		{name: "approval", groups: 1, catalog: "tree", approval: operatorsv1alpha1.ApprovalManual,
			state:    operatorsv1alpha1.SubscriptionStateUpgradePending,
			problems: map[string]string{"RequiresApproval": ""}},
		{name: "catalog", groups: 1, catalog: "missing", approval: operatorsv1alpha1.ApprovalAutomatic,
			problems: map[string]string{
				"ErrorPreventedResolution":  "failed to list bundles: rpc error: code = Unavailable",
				"ConstraintsNotSatisfiable": "no operators found from catalog " + packageName}},
		{name: "bundle", groups: 1, catalog: "broken", approval: operatorsv1alpha1.ApprovalAutomatic,
			problems: map[string]string{"BundleUnpackFailed": "Job was active longer than specified deadline"}},
		{name: "nogroup", groups: 0, catalog: "tree", approval: operatorsv1alpha1.ApprovalAutomatic},
		{name: "groups", groups: 2, catalog: "tree", approval: operatorsv1alpha1.ApprovalAutomatic},
	}
	var namespaces []string

	BeforeAll(func(ctx SpecContext) {
		var prefixes []string
		for _, c := range cases {
			prefixes = append(prefixes, c.name+"-")
		}
		cleanUp(func(ctx context.Context) { // OLM leaves them
			for _, ns := range namespaces {
				kubectl(ctx, "delete", "operators.operators.coreos.com", packageName+"."+ns, "--ignore-not-found")
			}
		})
		namespaces = newNamespaces(ctx, restrictedLevel, prefixes...)
		for i, c := range cases {
			in := metav1.ObjectMeta{Namespace: namespaces[i], Name: packageName}
			create(ctx, &operatorsv1alpha1.CatalogSource{ObjectMeta: in, Spec: operatorsv1alpha1.CatalogSourceSpec{
				SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: image("-catalog", c.catalog),
				GrpcPodConfig: &operatorsv1alpha1.GrpcPodConfig{SecurityContextConfig: operatorsv1alpha1.Restricted}}})
			for n := range c.groups {
				create(ctx, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace,
					Name:        fmt.Sprintf("%s-%d", in.Namespace, n),
					Annotations: map[string]string{"operatorframework.io/bundle-unpack-timeout": "20s"}}}) // 10 minutes else
			}
			create(ctx, &operatorsv1alpha1.Subscription{ObjectMeta: in, Spec: &operatorsv1alpha1.SubscriptionSpec{
				CatalogSource: packageName, CatalogSourceNamespace: in.Namespace, Package: packageName, Channel: "candidate",
				InstallPlanApproval: c.approval}})
		}
	}, NodeTimeout(stepTimeout))

	for n, c := range cases {
		It("says so: "+c.name, func(ctx SpecContext) {
			ns := namespaces[n]
			i := installation{subscription: &operatorsv1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: packageName}}}
			Eventually(func(g Gomega) {
				problems, err := i.problems(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(i.subscription.Status.State).To(Equal(c.state))
				var known []types.GomegaMatcher
				for reason, message := range c.problems {
					known = append(known, HaveKeyWithValue(reason, ContainSubstring(message)))
				}
				if known == nil {
					g.Expect(i.subscription.Status.Conditions).NotTo(BeEmpty(), "OLM has observed it")
					g.Expect(problems).To(BeEmpty(), "OLM says it in a condition now: document that")
				} else {
					g.Expect(problems).To(Or(known...))
				}
			}).WithContext(ctx).Should(Succeed())
			if c.problems != nil || os.Getenv("TEST_CLUSTER") != "dedicated" {
				return
			}
			Eventually(kubectl).WithContext(ctx).WithArguments("logs", "--namespace=olm", "deployment/catalog-operator").
				Should(MatchRegexp(`%s\\?" failed: found %d operatorGroups, expected 1`, ns, c.groups))
		}, SpecTimeout(stepTimeout))
	}
})
