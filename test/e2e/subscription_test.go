package e2e

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resource is a resource with what is known of its kind.
type resource struct {
	client.Object
	kind
}

var _ = Describe("Installed by a Subscription", func() {
	DescribeTable("works where it is told to, and nowhere else",
		// The namespaces are the operator's own and two more; the last is never watched but by all.
		func(ctx SpecContext, watched []int) {
			cleanUp(deleteRemains)
			cleanUp(deleteDefinitions)
			namespaces := []string{newNamespace(ctx, operatorNamespace), newNamespace(ctx, "one-"), newNamespace(ctx, "two-")}
			var targets []string
			in := map[string]bool{}
			for _, index := range watched {
				targets = append(targets, namespaces[index])
				in[namespaces[index]] = true
			}
			i := subscribe(ctx, "tree", operatorsv1alpha1.ApprovalAutomatic, targets...)
			cleanUp(i.remove)
			i.awaitInstalled(ctx, tree)

			// Those that are to be left alone first: when the others are done, these would have been too.
			var inside, outside []resource
			for _, namespace := range namespaces {
				for _, k := range kinds {
					r := resource{kind: k, Object: k.Make(namespace, strings.ToLower(k.Name)+"-sample", 1)}
					if len(targets) == 0 || in[namespace] {
						inside = append(inside, r)
						continue
					}
					if k.hurry != nil {
						k.hurry(r.Object) // or nothing would be due before the spec has ended
					}
					outside = append(outside, r)
				}
			}
			for _, r := range slices.Concat(outside, inside) {
				create(ctx, r.Object)
			}
			for _, r := range inside {
				awaitSettled(ctx, r.kind, r.Object)
				r.serve(ctx, r.Object)
			}
			for _, r := range outside {
				Expect(kube.Get(ctx, client.ObjectKeyFromObject(r), r.Object)).To(Succeed())
				conditions := r.Conditions(r.Object)
				Expect(conditions).To(BeEmpty(), "%s %s has a status", r.Name, r.GetNamespace())
				Expect(made(ctx, r.Object)).To(BeEmpty(), "%s in %s has children", r.Name, r.GetNamespace())
			}
		},
		Entry("AllNamespaces", []int{}, SpecTimeout(2*patience)),
		Entry("OwnNamespace", []int{0}, SpecTimeout(2*patience)),
		Entry("SingleNamespace", []int{1}, SpecTimeout(2*patience)),
		Entry("MultiNamespace", []int{0, 1}, SpecTimeout(2*patience)),
	)
})
