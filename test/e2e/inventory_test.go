package e2e

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
)

// awaitNothingBut waits until all objects in the cluster are among those of an earlier inventory.
func awaitNothingBut(ctx context.Context, before sets.Set[string]) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) ([]string, error) {
		now, err := inventory(ctx)
		return sets.List(now.Difference(before)), err
	}).WithContext(ctx).WithPolling(time.Second).Should(BeEmpty(), "objects that are left behind")
}

// inventory returns the names of all objects in the cluster, except those that come and go on their own. In a cluster
// that others use too, it returns only the names that mention the operator.
func inventory(ctx context.Context) (sets.Set[string], error) {
	passing := []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io",
		"packagemanifests.packages.operators.coreos.com",
		"componentstatuses", "pods", "endpointslices.discovery.k8s.io"}
	kubectl := os.Getenv("KUBECTL")
	types, err := try(ctx, kubectl, "api-resources", "--verbs=list,delete", "--output=name")
	if err != nil {
		return nil, err
	}
	resources := slices.DeleteFunc(strings.Fields(types), func(name string) bool { return slices.Contains(passing, name) })
	all, err := try(ctx, kubectl, "get", strings.Join(resources, ","), "--all-namespaces", "--ignore-not-found",
		"--no-headers", "--output=custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name")
	if err != nil {
		return nil, err
	}
	relevant := regexp.MustCompile(packageName + "|" + strings.Join(definitions(), "|"))
	names := sets.New[string]()
	for _, line := range lines(all) {
		if os.Getenv("TEST_CLUSTER") == "ours" || relevant.MatchString(line) {
			names.Insert(strings.Join(strings.Fields(line), " "))
		}
	}
	return names, nil
}
