package e2e

import (
	"context"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resource is a resource and its kind.
type resource struct {
	client.Object
	kind
}

// subscribed is an operator that a Subscription installs, with resources in the namespaces that it watches and in
// others.
type subscribed struct {
	*installation
	namespaces      []string // the operator's and two others
	inside, outside []resource
}

// Each install mode is combined with one order of uninstalling, so that the operator is installed only once for both.
var _ = Describe("Installed by a Subscription", func() {
	for _, mode := range []struct {
		name    string
		watched []int // indexes of the namespaces; none for all
		order   string
		steps   []func(ctx context.Context, s *subscribed)
	}{
		{"AllNamespaces", nil, "as docs/uninstall.md describes it", steps{runDocumented, awaitCollected, deleteNamespaces}},
		{"OwnNamespace", []int{0}, "with the namespaces first", steps{deleteNamespaces, deleteKinds, deleteLeftovers}},
		{"SingleNamespace", []int{1}, "with the definitions first",
			steps{awaitCollector, deleteKinds, awaitCollected, removeOperator, deleteNamespaces, deleteLeftovers}},
		{"MultiNamespace", []int{0, 1}, "with the operator first",
			steps{awaitCollector, removeOperator, deleteKinds, awaitCollected, deleteNamespaces, deleteLeftovers}},
	} {
		Describe("for "+mode.name, Ordered, func() {
			var before sets.Set[string]
			s := &subscribed{}

			BeforeAll(func(ctx SpecContext) {
				var err error
				before, err = inventory(ctx)
				Expect(err).NotTo(HaveOccurred())
				for _, name := range sets.List(before) {
					Expect(name).NotTo(ContainSubstring(packageName), "it would hide what uninstalling leaves behind")
				}
				cleanUp(deleteOLMLeftovers)
				cleanUp(deleteDefinitions)
				s.namespaces = newNamespaces(ctx, restrictedLevel, operatorNamespace, "one-", "two-")
				var targets []string
				for _, index := range mode.watched {
					targets = append(targets, s.namespaces[index])
				}
				w := wanted{catalog: "tree", version: tree, approval: operatorsv1alpha1.ApprovalAutomatic,
					settings: operandImages(), watched: targets}
				if mode.name == "SingleNamespace" && os.Getenv("TEST_MIRROR") != "" {
					w.catalog, w.settings = "mirrored", deadProxy(ctx) // with the images in the bundle
				}
				s.installation = subscribe(ctx, w)
				cleanUp(s.remove)
				s.awaitInstalled(ctx, tree)
				s.createResources(ctx, targets)
			}, NodeTimeout(2*stepTimeout))

			It("reconciles the watched namespaces and no others", func(ctx SpecContext) {
				for _, r := range s.inside {
					awaitSettled(ctx, r.kind, r.Object)
					r.serve(ctx, r.Object)
				}
				for _, r := range s.outside {
					Expect(kube.Get(ctx, client.ObjectKeyFromObject(r), r.Object)).To(Succeed())
					Expect(r.Conditions(r.Object)).To(BeEmpty(), "%s %s has a status", r.Name, r.GetNamespace())
					Expect(childrenOf(ctx, r.Object)).To(BeEmpty(), "%s in %s has children", r.Name, r.GetNamespace())
				}
			}, SpecTimeout(2*stepTimeout))

			if mode.name == "SingleNamespace" {
				It("needs no images but those that it names by digest, from a mirror", func(ctx SpecContext) {
					if os.Getenv("TEST_MIRROR") == "" {
						Skip("the nodes have no mirror of digests")
					}
					expectPinned(ctx, s.namespaces[0], "control-plane=controller-manager",
						"digests.invalid/example/memcached-operator@sha256:")
					expectPinned(ctx, s.namespaces[1], "app=memcached", "docker.io/library/memcached@sha256:")
					expectPinned(ctx, s.namespaces[1], "app=nginx", "docker.io/library/nginx@sha256:")
				}, SpecTimeout(stepTimeout))
			}

			It("leaves nothing behind when it is uninstalled "+mode.order, func(ctx SpecContext) {
				for _, r := range s.inside { // CronJobs continue to create Jobs while everything is deleted
					Eventually(childrenOf).WithContext(ctx).WithArguments(r.Object).ShouldNot(BeEmpty())
				}
				for _, step := range mode.steps {
					step(ctx, s)
				}
				awaitNothingBut(ctx, before)
			}, SpecTimeout(2*stepTimeout))
		})
	}
})

// expectPinned checks that the pods with some labels run an image by its digest.
func expectPinned(ctx context.Context, namespace, selected, image string) {
	GinkgoHelper()
	selector, err := labels.Parse(selected)
	Expect(err).NotTo(HaveOccurred())
	var pods corev1.PodList
	Expect(kube.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})).
		To(Succeed())
	Expect(pods.Items).NotTo(BeEmpty())
	for _, pod := range pods.Items {
		Expect(pod.Spec.Containers[0].Image).To(HavePrefix(image))
		Expect(pod.Status.ContainerStatuses).To(HaveEach(HaveField("Ready", true)))
	}
}

// deadProxy returns the settings with which OLM names a proxy to an operator, one that does not answer. Only the API
// server is reached without it.
func deadProxy(ctx context.Context) []corev1.EnvVar {
	GinkgoHelper()
	var api corev1.Service
	Expect(kube.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &api)).To(Succeed())
	const proxy = "http://127.0.0.1:9"
	return []corev1.EnvVar{{Name: "HTTP_PROXY", Value: proxy}, {Name: "HTTPS_PROXY", Value: proxy},
		{Name: "NO_PROXY", Value: api.Spec.ClusterIP}}
}

// createResources creates a resource of each kind in each namespace, first outside of the watched namespaces: when the
// others settle, the operator would have reconciled these, too.
func (s *subscribed) createResources(ctx context.Context, watched []string) {
	GinkgoHelper()
	for _, namespace := range s.namespaces {
		for _, k := range kinds {
			r := resource{kind: k, Object: k.Make(namespace, strings.ToLower(k.Name)+"-sample", 1)}
			if k.hurry != nil {
				k.hurry(r.Object) // otherwise nothing is due during the specs
			}
			if len(watched) == 0 || slices.Contains(watched, namespace) {
				s.inside = append(s.inside, r)
			} else {
				s.outside = append(s.outside, r)
			}
		}
	}
	for _, r := range slices.Concat(s.outside, s.inside) {
		create(ctx, r.Object)
	}
}

// steps are what an administrator may do to uninstall the operator, in any order. No order may hang or leave objects.
type steps = []func(ctx context.Context, s *subscribed)

// runDocumented runs the commands of docs/uninstall.md.
func runDocumented(ctx context.Context, _ *subscribed) { follow(ctx, root, "docs/uninstall.md") }

func removeOperator(ctx context.Context, s *subscribed)  { s.remove(ctx) }
func deleteKinds(ctx context.Context, _ *subscribed)     { deleteDefinitions(ctx) }
func deleteLeftovers(ctx context.Context, _ *subscribed) { deleteOLMLeftovers(ctx) }

// awaitCollector waits until the garbage collector observes the resources of each kind: it alone ends a deletion in the
// foreground. It notices a definition up to a minute after its creation. When a definition is deleted, the collector
// does not learn of the deletion of a resource that it has never observed, and keeps its children.
func awaitCollector(ctx context.Context, s *subscribed) {
	for _, k := range kinds {
		probe := k.Make(s.namespaces[2], "collected", 0)
		create(ctx, probe)
		Expect(kube.Delete(ctx, probe, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		awaitDeleted(ctx, probe)
	}
}

// awaitCollected waits until the children are deleted, outside of the operator's namespace, which has other objects.
func awaitCollected(ctx context.Context, s *subscribed) {
	for _, namespace := range s.namespaces[1:] {
		awaitNoChildren(ctx, namespace)
	}
}

func deleteNamespaces(ctx context.Context, s *subscribed) {
	var namespaces []client.Object
	for _, name := range s.namespaces {
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	deleteAll(ctx, namespaces...)
}
