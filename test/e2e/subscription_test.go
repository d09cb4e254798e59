package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
			i := subscribe(ctx, operatorNamespace, "tree", operatorsv1alpha1.ApprovalAutomatic, targets...)
			cleanUp(i.remove)
			i.awaitInstalled(ctx, tree)

			// Those that are to be left alone first: when the others are done, these would have been too.
			var inside, outside []func(context.Context)
			for _, namespace := range namespaces {
				for _, k := range kinds {
					object := k.make(namespace, strings.ToLower(k.name)+"-sample", 1)
					if len(targets) == 0 || in[namespace] {
						inside = append(inside, func(ctx context.Context) {
							Expect(kube.Create(ctx, object)).To(Succeed())
							awaitSettled(ctx, k, object)
							k.serve(ctx, object)
						})
						continue
					}
					if k.hurry != nil {
						k.hurry(object) // or nothing would be due before the spec has ended
					}
					Expect(kube.Create(ctx, object)).To(Succeed())
					outside = append(outside, func(ctx context.Context) {
						Expect(kube.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
						_, conditions := k.seen(object)
						Expect(conditions).To(BeEmpty(), "%s %s has a status", k.name, namespace)
						Expect(made(ctx, object)).To(BeEmpty(), "%s in %s has children", k.name, namespace)
					})
				}
			}
			for _, check := range append(inside, outside...) {
				check(ctx)
			}
		},
		Entry("AllNamespaces", []int{}, SpecTimeout(2*patience)),
		Entry("OwnNamespace", []int{0}, SpecTimeout(2*patience)),
		Entry("SingleNamespace", []int{1}, SpecTimeout(2*patience)),
		Entry("MultiNamespace", []int{0, 1}, SpecTimeout(2*patience)),
	)
})
