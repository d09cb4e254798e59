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
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// packageName is the operator's name in catalogs, and that of all objects here that install it.
const packageName = "memcached-operator"

// installation is an operator that is installed by a Subscription.
type installation struct {
	catalog      *operatorsv1alpha1.CatalogSource
	group        *operatorsv1.OperatorGroup
	subscription *operatorsv1alpha1.Subscription
}

// subscribe installs from a catalog, for the namespaces that are to be watched (all, if none is named), as the README
// says it.
func subscribe(ctx context.Context, catalogTag string, approval operatorsv1alpha1.Approval,
	watched ...string) *installation {
	GinkgoHelper()
	i := &installation{
		catalog:      &operatorsv1alpha1.CatalogSource{},
		group:        &operatorsv1.OperatorGroup{},
		subscription: &operatorsv1alpha1.Subscription{},
	}
	// What the README has administrators apply, and what they may change of it.
	content, err := os.ReadFile(filepath.Join(root, "config/catalog/install.yaml"))
	Expect(err).NotTo(HaveOccurred())
	documents := strings.Split(string(content), "\n---\n")
	Expect(documents).To(HaveLen(4), "the first is the namespace")
	for n, object := range []client.Object{i.catalog, i.group, i.subscription} {
		Expect(yaml.UnmarshalStrict([]byte(documents[n+1]), object)).To(Succeed())
		Expect(object.GetNamespace()).To(Equal(operatorNamespace))
	}
	// OLM remembers for some minutes what a catalog of this name had.
	i.catalog.Name = fmt.Sprintf("%s-%d", packageName, time.Now().Unix())
	i.subscription.Spec.CatalogSource = i.catalog.Name
	i.catalog.Spec.Image = image("-catalog", catalogTag)
	i.subscription.Spec.Channel = "candidate" // which has every release, also those that are not in stable yet
	i.group.Spec.TargetNamespaces = watched
	i.subscription.Spec.InstallPlanApproval = approval
	i.subscription.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{Env: operandImages()}
	for _, object := range []client.Object{i.catalog, i.group, i.subscription} {
		create(ctx, object)
	}
	return i
}

// csvName is the name of a version's ClusterServiceVersion.
func csvName(version string) string {
	return packageName + ".v" + version
}

// phase is the phase of a version's ClusterServiceVersion.
func phase(ctx context.Context, version string) (operatorsv1alpha1.ClusterServiceVersionPhase, error) {
	var csv operatorsv1alpha1.ClusterServiceVersion
	err := kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: csvName(version)}, &csv)
	return csv.Status.Phase, err
}

// awaitInstalled waits until a version is installed and its Deployment is what it should be.
func (i *installation) awaitInstalled(ctx context.Context, version string) {
	GinkgoHelper()
	By(fmt.Sprintf("waiting until OLM has installed %s", version))
	Eventually(func(g Gomega, ctx context.Context) {
		g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(i.subscription), i.subscription)).To(Succeed())
		g.Expect(i.subscription.Status.InstalledCSV).To(Equal(csvName(version)))
		g.Expect(phase(ctx, version)).To(Equal(operatorsv1alpha1.CSVPhaseSucceeded))
	}).WithContext(ctx).Should(Succeed())
	awaitSettings(ctx)
}

// awaitSettings waits until the manager has the settings of the Subscription. OLM makes its Deployment without them
// first, and says that this has succeeded.
func awaitSettings(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		var manager appsv1.Deployment
		g.Expect(kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: managerName}, &manager)).To(Succeed())
		g.Expect(manager.Spec.Template.Spec.Containers[0].Env).To(ContainElements(operandImages()))
	}).WithContext(ctx).Should(Succeed())
	kubectl(ctx, "rollout", "status", "--namespace="+operatorNamespace, "--timeout=120s", "deployment/"+managerName)
}

// approve approves the InstallPlan of a version as soon as there is one.
func (i *installation) approve(ctx context.Context, version string) {
	GinkgoHelper()
	By(fmt.Sprintf("approving the InstallPlan of %s", version))
	Eventually(func(ctx context.Context) error {
		var plans operatorsv1alpha1.InstallPlanList
		if err := kube.List(ctx, &plans, client.InNamespace(operatorNamespace)); err != nil {
			return err
		}
		for _, plan := range plans.Items {
			if names := plan.Spec.ClusterServiceVersionNames; len(names) == 1 && names[0] == csvName(version) &&
				plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
				plan.Spec.Approved = true
				return kube.Update(ctx, &plan)
			}
		}
		return fmt.Errorf("none of %d InstallPlans is of %s and waits for approval", len(plans.Items), version)
	}).WithContext(ctx).Should(Succeed())
}

// offer has the catalog serve something else.
func (i *installation) offer(ctx context.Context, catalogTag string) {
	GinkgoHelper()
	Expect(kube.Patch(ctx, i.catalog,
		client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"spec":{"image":%q}}`, image("-catalog", catalogTag))))).To(Succeed())
}

// remove removes what subscribe has made and what OLM has made of it, as the README says it: first the Subscription, so
// that nothing is installed again.
func (i *installation) remove(ctx context.Context) {
	GinkgoHelper()
	deleteAll(ctx, i.subscription)
	var csvs operatorsv1alpha1.ClusterServiceVersionList
	Expect(kube.List(ctx, &csvs, client.InNamespace(operatorNamespace))).To(Succeed())
	for _, csv := range csvs.Items {
		if !csv.IsCopied() {
			deleteAll(ctx, &csv)
		}
	}
	deleteAll(ctx, i.group, i.catalog)
}
