package e2e

import (
	"cmp"
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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// packageName is the name of the operator in catalogs and of the objects that install it.
const packageName = "memcached-operator"

// installation is what an administrator creates to install the operator by a Subscription.
type installation struct {
	catalog      *operatorsv1alpha1.CatalogSource
	group        *operatorsv1.OperatorGroup
	subscription *operatorsv1alpha1.Subscription
}

// wanted is what an administrator wants OLM to install, and how.
type wanted struct {
	catalog  string // a tag
	channel  string // by default candidate, which has every release
	version  string // to start with
	approval operatorsv1alpha1.Approval
	settings []corev1.EnvVar // of the operator
	watched  []string        // namespaces; all, if there is none
}

// subscribe applies config/catalog/install.yaml, as docs/install.md describes, for what is wanted.
func subscribe(ctx context.Context, w wanted) *installation {
	GinkgoHelper()
	i := &installation{
		catalog:      &operatorsv1alpha1.CatalogSource{},
		group:        &operatorsv1.OperatorGroup{},
		subscription: &operatorsv1alpha1.Subscription{},
	}
	content, err := os.ReadFile(filepath.Join(root, "config/catalog/install.yaml"))
	Expect(err).NotTo(HaveOccurred())
	documents := strings.Split(string(content), "\n---\n")
	Expect(documents).To(HaveLen(4), "the first is the namespace")
	for n, object := range []client.Object{i.catalog, i.group, i.subscription} {
		Expect(yaml.UnmarshalStrict([]byte(documents[n+1]), object)).To(Succeed())
		Expect(object.GetNamespace()).To(Equal(operatorNamespace))
	}
	// OLM caches the content of a catalog by name for some minutes.
	i.catalog.Name = fmt.Sprintf("%s-%d", packageName, time.Now().Unix())
	i.subscription.Spec.CatalogSource = i.catalog.Name
	i.catalog.Spec.Image = image("-catalog", w.catalog)
	i.subscription.Spec.Channel = cmp.Or(w.channel, "candidate")
	i.subscription.Spec.StartingCSV = csvName(w.version)
	i.group.Spec.TargetNamespaces = w.watched
	i.subscription.Spec.InstallPlanApproval = w.approval
	i.subscription.Spec.Config = &operatorsv1alpha1.SubscriptionConfig{Env: w.settings}
	create(ctx, i.catalog, i.group, i.subscription)
	return i
}

// replace removes the operator, as docs/upgrade.md describes for a downgrade, and installs another version.
func (i *installation) replace(ctx context.Context, version string) {
	GinkgoHelper()
	By("installing " + version + " in its place")
	i.removeOperator(ctx)
	i.subscription.ObjectMeta = metav1.ObjectMeta{Namespace: i.subscription.Namespace, Name: i.subscription.Name}
	i.subscription.Spec.StartingCSV = csvName(version)
	i.subscription.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
	create(ctx, i.subscription)
	i.approve(ctx, version)
}

// csvName returns the name of the ClusterServiceVersion of a version.
func csvName(version string) string {
	return packageName + ".v" + version
}

// phase returns the phase of the ClusterServiceVersion of a version.
func phase(ctx context.Context, version string) (operatorsv1alpha1.ClusterServiceVersionPhase, error) {
	var csv operatorsv1alpha1.ClusterServiceVersion
	err := kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: csvName(version)}, &csv)
	return csv.Status.Phase, err
}

// awaitInstalled waits until a version is installed and its Deployment is rolled out.
func (i *installation) awaitInstalled(ctx context.Context, version string) {
	GinkgoHelper()
	By(fmt.Sprintf("waiting until OLM has installed %s", version))
	Eventually(func(g Gomega, ctx context.Context) {
		g.Expect(kube.Get(ctx, client.ObjectKeyFromObject(i.subscription), i.subscription)).To(Succeed())
		g.Expect(i.subscription.Status.InstalledCSV).To(Equal(csvName(version)))
		g.Expect(phase(ctx, version)).To(Equal(operatorsv1alpha1.CSVPhaseSucceeded))
	}).WithContext(ctx).Should(Succeed())
	awaitSettings(ctx, i.subscription.Spec.Config.Env)
}

// awaitSettings waits until the manager runs with the settings of the Subscription. OLM creates its Deployment without
// them first, and reports that as success.
func awaitSettings(ctx context.Context, settings []corev1.EnvVar) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		var manager appsv1.Deployment
		g.Expect(kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: managerName}, &manager)).To(Succeed())
		g.Expect(manager.Spec.Template.Spec.Containers[0].Env).To(ContainElements(settings))
	}).WithContext(ctx).Should(Succeed())
	kubectl(ctx, "rollout", "status", "--namespace="+operatorNamespace, "--timeout=120s", "deployment/"+managerName)
}

// problems returns the messages of the conditions of the Subscription that are true, by reason.
func (i *installation) problems(ctx context.Context) (map[string]string, error) {
	err := kube.Get(ctx, client.ObjectKeyFromObject(i.subscription), i.subscription)
	problems := map[string]string{}
	for _, condition := range i.subscription.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			problems[condition.Reason] = condition.Message
		}
	}
	return problems, err
}

// approve approves the InstallPlan of a version when it exists.
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
		if problems, err := i.problems(ctx); err == nil && problems["ConstraintsNotSatisfiable"] != "" {
			kubectl(ctx, "annotate", "--overwrite", "--namespace="+operatorNamespace, "subscriptions.operators.coreos.com",
				i.subscription.Name, "retried="+time.Now().Format("15.04")) // as docs/troubleshooting.md says
		}
		return fmt.Errorf("none of %d InstallPlans is of %s and requires approval", len(plans.Items), version)
	}).WithContext(ctx).Should(Succeed())
}

// offer replaces the content of the catalog.
func (i *installation) offer(ctx context.Context, catalogTag string) {
	GinkgoHelper()
	Expect(kube.Patch(ctx, i.catalog,
		client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"spec":{"image":%q}}`, image("-catalog", catalogTag))))).To(Succeed())
}

// remove deletes what subscribe and OLM have created.
func (i *installation) remove(ctx context.Context) {
	GinkgoHelper()
	i.removeOperator(ctx)
	deleteAll(ctx, i.group, i.catalog)
}

// removeOperator deletes the Subscription first, so that nothing is installed again.
func (i *installation) removeOperator(ctx context.Context) {
	GinkgoHelper()
	deleteAll(ctx, i.subscription)
	var csvs operatorsv1alpha1.ClusterServiceVersionList
	Expect(kube.List(ctx, &csvs, client.InNamespace(operatorNamespace))).To(Succeed())
	for _, csv := range csvs.Items {
		if !csv.IsCopied() {
			deleteAll(ctx, &csv)
		}
	}
}
