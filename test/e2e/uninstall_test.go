package e2e

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("Uninstalled", func() {
	// Each step is what an administrator may do; whatever comes first, nothing hangs and nothing is left.
	type world struct {
		installation *installation
		namespace    string // of the resources
		objects      []client.Object
	}
	resources := func(ctx context.Context, w world) { deleteAll(ctx, w.objects...) }
	operator := func(ctx context.Context, w world) { w.installation.remove(ctx) }
	definitions := func(ctx context.Context, _ world) { deleteDefinitions(ctx) }
	namespaces := func(ctx context.Context, w world) {
		for _, name := range []string{w.namespace, operatorNamespace} {
			deleteAll(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	remains := func(ctx context.Context, _ world) { deleteRemains(ctx) }

	DescribeTable("leaves nothing behind and does not hang",
		func(ctx SpecContext, steps ...func(context.Context, world)) {
			before := inventory(ctx)
			for _, name := range sets.List(before) {
				Expect(name).NotTo(ContainSubstring(packageName), "it would hide what is left")
			}
			DeferCleanup(func(ctx SpecContext) {
				deleteDefinitions(ctx)
				deleteRemains(ctx)
			})
			newNamespace(ctx, operatorNamespace)
			w := world{namespace: newNamespace(ctx, "used-")}
			w.installation = subscribe(ctx, operatorNamespace, "tree", operatorsv1alpha1.ApprovalAutomatic)
			DeferCleanup(func(ctx SpecContext) { w.installation.remove(ctx) })
			w.installation.awaitInstalled(ctx, tree)
			for _, k := range kinds {
				object := k.make(w.namespace, strings.ToLower(k.name)+"-sample", 1)
				Expect(kube.Create(ctx, object)).To(Succeed())
				awaitSettled(ctx, k, object)
				w.objects = append(w.objects, object)
			}
			for _, step := range steps {
				step(ctx, w)
			}
			Eventually(func(ctx context.Context) []string {
				return sets.List(inventory(ctx).Difference(before))
			}).WithContext(ctx).Should(BeEmpty(), "what was not there before")
		},
		Entry("in the documented order", SpecTimeout(2*patience), resources, operator, definitions, namespaces, remains),
		Entry("with the operator first", SpecTimeout(2*patience), operator, definitions, namespaces, remains),
		Entry("with the definitions first", SpecTimeout(2*patience), definitions, operator, namespaces, remains),
		Entry("with the namespaces first", SpecTimeout(2*patience), namespaces, definitions, remains),
	)
})

// inventory is the names of all that is in the cluster, but for what comes and goes by itself.
func inventory(ctx context.Context) sets.Set[string] {
	GinkgoHelper()
	passing := []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io", "packagemanifests.packages.operators.coreos.com",
		"componentstatuses", "pods", "endpointslices.discovery.k8s.io"}
	out, err := exec.CommandContext(ctx, os.Getenv("KUBECTL"), "api-resources", "--verbs=list,delete", "--output=name").Output()
	Expect(err).NotTo(HaveOccurred())
	resources := slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool { return slices.Contains(passing, name) })
	// One that has just been deleted is no error: what it was, is not there.
	all, err := exec.CommandContext(ctx, os.Getenv("KUBECTL"), "get", strings.Join(resources, ","), "--all-namespaces", "--ignore-not-found",
		"--output=custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name", "--no-headers").CombinedOutput()
	if err != nil {
		return sets.New("kubectl: " + string(all))
	}
	names := sets.New[string]()
	for _, line := range lines(string(all)) {
		names.Insert(strings.Join(strings.Fields(line), " "))
	}
	return names
}
