package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// extension is what an administrator creates to install the operator with OLM v1.
type extension struct {
	catalog, extension *unstructured.Unstructured
}

// The bundles name images on docker.io, which OLM v1 has no setting to replace: the nodes need a mirror, such as that
// of the test cluster.
var _ = Describe("Installed by a ClusterExtension", Ordered, func() {
	var (
		before    sets.Set[string]
		namespace string
		e         extension
		objects   = map[string]client.Object{} // by kind
	)

	BeforeAll(func(ctx SpecContext) {
		var crd apiextensionsv1.CustomResourceDefinition
		err := kube.Get(ctx, client.ObjectKey{Name: "clusterextensions.olm.operatorframework.io"}, &crd)
		if apierrors.IsNotFound(err) {
			Skip("the cluster has no OLM v1")
		}
		Expect(err).NotTo(HaveOccurred())
		before, err = inventory(ctx)
		Expect(err).NotTo(HaveOccurred())
		namespace = newNamespaces(ctx, restrictedLevel, operatorNamespace, "extended-")[1]
		e = extend(ctx, first)
		cleanUp(func(ctx context.Context) { e.remove(ctx) })
	}, NodeTimeout(stepTimeout))

	// upgrade_test.go upgrades the first and the last release directly.
	It("upgrades each other release directly", func(ctx SpecContext) {
		releases := releasedVersions()
		for _, version := range releases[1 : len(releases)-1] {
			e.request(ctx, version)
			e.awaitInstalled(ctx, version)
			mc := memcacheds.Make(namespace, "direct", 1)
			create(ctx, mc)
			awaitSettled(ctx, memcacheds, mc)
			before := takeSnapshot(ctx, namespace)
			e.request(ctx, tree)
			e.awaitInstalled(ctx, tree)
			awaitSettled(ctx, memcacheds, mc)
			before.expectOnlyGrown(takeSnapshot(ctx, namespace), nil)
			// Before the definitions, which the garbage collector may not have observed yet.
			deleteAll(ctx, mc)
			awaitNoChildren(ctx, namespace)
			e.remove(ctx)
			e = extend(ctx, first)
		}
	}, SpecTimeout(4*stepTimeout))

	It("works in the first release, each later one and the tree, and no pod restarts", func(ctx SpecContext) {
		var snapshots []snapshot
		for _, version := range append(releasedVersions(), tree) {
			e.request(ctx, version)
			e.awaitInstalled(ctx, version)
			had := kinds
			if version != tree {
				had, _ = kindsOf(version)
			}
			for _, k := range had {
				if objects[k.Name] == nil {
					objects[k.Name] = k.Make(namespace, strings.ToLower(k.Name), 1)
					create(ctx, objects[k.Name])
					snapshots = nil
				}
				awaitSettled(ctx, k, objects[k.Name])
				k.serve(ctx, objects[k.Name])
			}
			snapshots = append(snapshots, takeSnapshot(ctx, namespace))
			if len(snapshots) > 1 {
				snapshots[0].expectOnlyGrown(snapshots[len(snapshots)-1], nil)
			}
		}
	}, SpecTimeout(4*stepTimeout))

	It("upgrades to a release with a second version of Memcached", func(ctx SpecContext) {
		Expect(kube.Patch(ctx, e.catalog, client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
			`{"spec":{"source":{"image":{"ref":%q}}}}`, image("-catalog", "next"))))).To(Succeed())
		e.request(ctx, nextVersion())
		e.awaitInstalled(ctx, nextVersion())
		expectBothVersions(ctx, objects[memcacheds.Name].(*cachev1alpha1.Memcached))
	}, SpecTimeout(2*stepTimeout))

	It("is not replaced by an earlier release, whose definitions lack fields", func(ctx SpecContext) {
		e.request(ctx, first)
		Eventually(e.problem).WithContext(ctx).Should(Equal(fmt.Sprintf("error upgrading from currently installed "+
			"version %q: no bundles found for package %q matching version %q in channels [candidate]",
			nextVersion(), packageName, first)))
		e.patch(ctx, `{"spec":{"source":{"catalog":{"upgradeConstraintPolicy":"SelfCertified"}}}}`)
		Eventually(e.problem).WithContext(ctx).Should(And(
			ContainSubstring(`validating upgrade for CRD "memcacheds.cache.example.com": `),
			ContainSubstring("existingFieldRemoval: ")))
		Expect(e.installed(ctx)).To(Equal(nextVersion()))
	}, SpecTimeout(stepTimeout))

	It("leaves nothing behind when the resources and the ClusterExtension are deleted", func(ctx SpecContext) {
		// As docs/olm-v1.md says: when a resource goes with its definition, the garbage collector may miss it.
		deleteAll(ctx, slices.Collect(maps.Values(objects))...)
		awaitNoChildren(ctx, namespace)
		last := memcacheds.Make(namespace, "last", 1)
		create(ctx, last)
		e.remove(ctx)
		for _, name := range definitions() {
			awaitDeleted(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		deleteAll(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})
		awaitNothingBut(ctx, before)
	}, SpecTimeout(2*stepTimeout))
})

// extend applies config/catalog/install-olmv1.yaml, as docs/olm-v1.md describes, for the catalog with the tree and a
// version to start with.
func extend(ctx context.Context, version string) extension {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, "config/catalog/install-olmv1.yaml"))
	Expect(err).NotTo(HaveOccurred())
	documents := strings.Split(string(content), "\n---\n")
	Expect(documents).To(HaveLen(3), "the first is the namespace")
	e := extension{catalog: &unstructured.Unstructured{}, extension: &unstructured.Unstructured{}}
	Expect(yaml.Unmarshal([]byte(documents[1]), e.catalog)).To(Succeed())
	Expect(yaml.Unmarshal([]byte(documents[2]), e.extension)).To(Succeed())
	Expect(unstructured.SetNestedField(e.catalog.Object, image("-catalog", "tree"), "spec", "source", "image", "ref")).
		To(Succeed())
	catalog := e.source()
	catalog["channels"], catalog["version"] = []any{"candidate"}, version // which has every release
	create(ctx, e.catalog, e.extension)
	return e
}

// source returns where the ClusterExtension takes the bundle from.
func (e extension) source() map[string]any {
	return e.extension.Object["spec"].(map[string]any)["source"].(map[string]any)["catalog"].(map[string]any)
}

// request sets the version to install.
func (e extension) request(ctx context.Context, version string) {
	GinkgoHelper()
	By("requesting " + version)
	e.patch(ctx, fmt.Sprintf(`{"spec":{"source":{"catalog":{"version":%q}}}}`, version))
}

// patch patches the ClusterExtension.
func (e extension) patch(ctx context.Context, patch string) {
	GinkgoHelper()
	Expect(kube.Patch(ctx, e.extension, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// installed returns the version that is installed.
func (e extension) installed(ctx context.Context) (string, error) {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(e.extension), e.extension); err != nil {
		return "", err
	}
	version, _, err := unstructured.NestedString(e.extension.Object, "status", "install", "bundle", "version")
	return version, err
}

// progress returns the condition Progressing of the ClusterExtension, if it is about the latest change.
func (e extension) progress(ctx context.Context) (metav1.Condition, error) {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(e.extension), e.extension); err != nil {
		return metav1.Condition{}, err
	}
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	found, _, _ := unstructured.NestedMap(e.extension.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &status); err != nil {
		return metav1.Condition{}, err
	}
	condition := meta.FindStatusCondition(status.Conditions, "Progressing")
	if condition == nil || condition.ObservedGeneration != e.extension.GetGeneration() {
		return metav1.Condition{}, nil
	}
	return *condition, nil
}

// problem returns the message of a ClusterExtension that OLM cannot install, and retries.
func (e extension) problem(ctx context.Context) (string, error) {
	condition, err := e.progress(ctx)
	if condition.Reason != "Retrying" {
		return "", err
	}
	return condition.Message, err
}

// awaitInstalled waits until a version is installed and its Deployment is rolled out.
func (e extension) awaitInstalled(ctx context.Context, version string) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		condition, err := e.progress(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e.installed(ctx)).To(Equal(version), condition.Message)
		g.Expect(condition.Reason).To(Equal("Succeeded"), condition.Message)
	}).WithContext(ctx).Should(Succeed())
	kubectl(ctx, "rollout", "status", "--namespace="+operatorNamespace, "--timeout=120s", "deployment/"+managerName)
}

// remove deletes what extend has created, and thereby the operator.
func (e extension) remove(ctx context.Context) {
	GinkgoHelper()
	deleteAll(ctx, e.extension, e.catalog)
}
