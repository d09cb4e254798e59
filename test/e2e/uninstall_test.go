package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

var _ = Describe("Uninstalled", func() {
	type scene struct {
		installation *installation
		namespace    string // of the resources
	}
	// Each step is what an administrator may do; whatever comes first, nothing hangs and nothing is left.
	documented := func(ctx context.Context, _ scene) {
		follow(ctx, root, "docs/uninstall.md")
	}
	operator := func(ctx context.Context, s scene) { s.installation.remove(ctx) }
	kindsOfOurs := func(ctx context.Context, _ scene) { deleteDefinitions(ctx) }
	collected := func(ctx context.Context, s scene) { awaitNoChildren(ctx, s.namespace) }
	namespaces := func(ctx context.Context, s scene) {
		for _, name := range []string{s.namespace, operatorNamespace} {
			deleteAll(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	remains := func(ctx context.Context, _ scene) { deleteRemains(ctx) }

	DescribeTable("leaves nothing behind and does not hang",
		func(ctx SpecContext, steps ...func(context.Context, scene)) {
			before, err := inventory(ctx)
			Expect(err).NotTo(HaveOccurred())
			for _, name := range sets.List(before) {
				Expect(name).NotTo(ContainSubstring(packageName), "it would hide what is left")
			}
			cleanUp(deleteRemains)
			cleanUp(deleteDefinitions)
			newNamespace(ctx, operatorNamespace)
			s := scene{namespace: newNamespace(ctx, "used-")}
			s.installation = subscribe(ctx, "tree", operatorsv1alpha1.ApprovalAutomatic)
			cleanUp(s.installation.remove)
			s.installation.awaitInstalled(ctx, tree)
			for _, k := range kinds {
				object := k.Make(s.namespace, strings.ToLower(k.Name)+"-sample", 1)
				if k.hurry != nil {
					k.hurry(object) // it goes on to make something while all is taken away
				}
				create(ctx, object)
				Eventually(made).WithContext(ctx).WithArguments(object).ShouldNot(BeEmpty())
				awaitSettled(ctx, k, object)
			}
			for _, step := range steps {
				step(ctx, s)
			}
			awaitNothingBut(ctx, before)
		},
		Entry("as docs/uninstall.md describes it", SpecTimeout(2*patience), documented, collected, namespaces),
		Entry("with the operator first", SpecTimeout(2*patience), operator, kindsOfOurs, collected, namespaces, remains),
		Entry("with the definitions first", SpecTimeout(2*patience), kindsOfOurs, collected, operator, namespaces, remains),
		Entry("with the namespaces first", SpecTimeout(2*patience), namespaces, kindsOfOurs, remains),
	)
})

// awaitNothingBut waits until there is nothing in the cluster that was not there before.
func awaitNothingBut(ctx context.Context, before sets.Set[string]) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) ([]string, error) {
		now, err := inventory(ctx)
		return sets.List(now.Difference(before)), err
	}).WithContext(ctx).WithPolling(2*time.Second).Should(BeEmpty(), "what was not there before")
}

// inventory is the names of all that is in the cluster, but for what comes and goes by itself. In a cluster that others
// use too, it is what speaks of the operator.
func inventory(ctx context.Context) (sets.Set[string], error) {
	passing := []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io",
		"packagemanifests.packages.operators.coreos.com",
		"componentstatuses", "pods", "endpointslices.discovery.k8s.io"}
	kubectl := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, os.Getenv("KUBECTL"), args...).Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("kubectl %s: %w: %s", args[0], err, exit.Stderr)
		}
		return string(out), err
	}
	types, err := kubectl("api-resources", "--verbs=list,delete", "--output=name")
	if err != nil {
		return nil, err
	}
	resources := slices.DeleteFunc(strings.Fields(types), func(name string) bool { return slices.Contains(passing, name) })
	all, err := kubectl("get", strings.Join(resources, ","), "--all-namespaces", "--ignore-not-found", "--no-headers",
		"--output=custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name")
	if err != nil {
		return nil, err
	}
	ours := regexp.MustCompile(packageName + "|" + strings.Join(definitions(), "|"))
	names := sets.New[string]()
	for _, line := range lines(all) {
		if os.Getenv("TEST_CLUSTER") == "ours" || ours.MatchString(line) {
			names.Insert(strings.Join(strings.Fields(line), " "))
		}
	}
	return names, nil
}
