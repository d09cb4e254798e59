// Package e2e tests the operator as its users install it, by kubectl, by a Subscription and by operator-sdk, on a
// cluster with real pods.
//
// "make e2e" provides a cluster and the images; with KUBECONFIG and TEST_REGISTRY it uses yours. The settings are
// environment variables:
//
//	KUBECONFIG             the cluster, with Operator Lifecycle Manager installed
//	TEST_REGISTRY          the registry that test/cluster/publish has pushed the images to
//	TEST_WORK              the directory that it has built them in
//	RELATED_IMAGE_...      the operands' images, if the cluster cannot pull the default ones
//	MEMCACHED_OLD_IMAGE    an older memcached image, 1.6.18 or later, to test with, too
//	OPM_IMAGE, BUSYBOX_IMAGE   images for operator-sdk and the Jobs, if the cluster cannot pull the default ones
//	OPERATOR_SDK, KUBECTL  the programs
//	TEST_MIRROR            a registry that the nodes use as a mirror of all others, and of digests.invalid for digests
//	                       only: that of TEST_REGISTRY, without its path
//	TEST_RESTART_NODE      a command that kills the nodes, and starts them again when Kubernetes has noticed
//	TEST_CLUSTER           "dedicated" if the cluster has no other users
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/yaml"

	testkinds "github.com/example/memcached-operator/test/kinds"
)

// root is the repository, the working directory of all commands.
const root = "../.."

// stepTimeout is the time limit of a step on a busy machine with two cores.
const stepTimeout = 5 * time.Minute

var (
	registry = os.Getenv("TEST_REGISTRY")
	// first and last are the versions of the first and the last release, tree is that of the next one.
	first, last, tree string

	kube    client.Client
	clients kubernetes.Interface
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(stepTimeout)
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "End to end")
	// Ginkgo prints them only once, thousands of lines above its summary.
	for _, failure := range failures {
		fmt.Printf("\n%s\n", failure)
	}
}

var _ = BeforeSuite(func(ctx SpecContext) {
	for _, variable := range []string{"KUBECONFIG", "TEST_REGISTRY", "TEST_WORK", "OPERATOR_SDK", "KUBECTL"} {
		Expect(os.Getenv(variable)).NotTo(BeEmpty(), "%s is not set; 'make e2e' sets it", variable)
	}
	scheme := clientgoscheme.Scheme
	Expect(errors.Join(testkinds.AddToScheme(scheme), operatorsv1.AddToScheme(scheme),
		operatorsv1alpha1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme))).To(Succeed())
	rest, err := config.GetConfig()
	Expect(err).NotTo(HaveOccurred())
	rest.QPS = -1
	kube, err = client.New(rest, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	clients, err = kubernetes.NewForConfig(rest)
	Expect(err).NotTo(HaveOccurred())

	first, last, tree = versions()
	expectNoDefinitions(ctx, "the operator, or a part of it, is installed: uninstall it as docs/uninstall.md describes, "+
		"or 'make cluster-down' if it is the cluster of 'make demo'", definitions()...)
})

var _ = ReportAfterEach(func(report SpecReport) {
	fmt.Printf("[%s] %s: %s (%.0f s)\n", time.Now().Format(time.TimeOnly), report.State, report.FullText(),
		report.RunTime.Seconds())
	if report.Failed() {
		failures = append(failures, fmt.Sprintf("%s: %s", report.FullText(), report.FailureMessage()))
	}
})

// failures are the failed specs with their messages.
var failures []string

// measured are measurements of specs, for the end of the report.
var measured []string

func measure(format string, args ...any) {
	measured = append(measured, fmt.Sprintf(format, args...))
}

var _ = ReportAfterSuite("what was measured", func(Report) {
	fmt.Printf("\n\nMeasured:\n%s\n", strings.Join(measured, "\n"))
})

// versions returns the versions of the first and the last release, and of the tree.
func versions() (first, last, tree string) {
	releases := releasedVersions()
	return releases[0], releases[len(releases)-1], versionOf(filepath.Join(root, "bundle"))
}

// versionOf returns the version of the bundle in a directory.
func versionOf(bundle string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(bundle, "manifests/memcached-operator.clusterserviceversion.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var csv operatorsv1alpha1.ClusterServiceVersion
	Expect(yaml.Unmarshal(content, &csv)).To(Succeed())
	return csv.Spec.Version.String()
}

// releasedVersions returns the versions of all releases, in their order.
func releasedVersions() []string {
	GinkgoHelper()
	entries, err := os.ReadDir(filepath.Join(root, "config/catalog/released"))
	Expect(err).NotTo(HaveOccurred(), "there is no release: 'make release' first")
	var releases []semver.Version
	for _, entry := range entries {
		releases = append(releases, semver.MustParse(entry.Name()))
	}
	Expect(releases).NotTo(BeEmpty())
	semver.Sort(releases)
	versions := make([]string, 0, len(releases))
	for _, release := range releases {
		versions = append(versions, release.String())
	}
	return versions
}

// image returns one of the operator's images, by default that of the tree.
func image(name string, tag ...string) string {
	return registry + "/memcached-operator" + name + ":" + append(tag, "v"+tree)[0]
}

// operandImages returns the settings of the operator that name images for this cluster.
func operandImages() []corev1.EnvVar {
	var variables []corev1.EnvVar
	for _, name := range []string{"RELATED_IMAGE_MEMCACHED", "RELATED_IMAGE_NGINX"} {
		if value := os.Getenv(name); value != "" {
			variables = append(variables, corev1.EnvVar{Name: name, Value: value})
		}
	}
	return append(variables, corev1.EnvVar{Name: "RELATED_IMAGE_AGENT", Value: agentImage()})
}

// agentImage returns the image of the agent, which has a version of its own.
func agentImage() string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, "cmd/agent/VERSION"))
	Expect(err).NotTo(HaveOccurred())
	return image("-agent", "v"+strings.TrimSpace(string(content)))
}

// run runs a command in the repository and returns its standard output.
func run(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()
	out, err := try(ctx, name, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// try is run for commands that may fail.
func try(ctx context.Context, name string, args ...string) (string, error) {
	By(strings.Join(append([]string{filepath.Base(name)}, args...), " "))
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = root
	var out, stderr bytes.Buffer
	command.Stdout = io.MultiWriter(&out, GinkgoWriter)
	command.Stderr = io.MultiWriter(&stderr, GinkgoWriter)
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s%s", strings.Join(command.Args, " "), err, out.String(), stderr.String())
	}
	return out.String(), err
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, os.Getenv("KUBECTL"), args...)
}

func operatorSDK(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, os.Getenv("OPERATOR_SDK"), args...)
}

// Levels of Pod Security.
const (
	baselineLevel   = "baseline"
	restrictedLevel = "restricted"
)

// newNamespaces creates namespaces that enforce a level of Pod Security, and deletes all at once when the spec ends:
// the pods of a Memcached take a while to terminate. A name that ends with a hyphen is a prefix.
func newNamespaces(ctx context.Context, level string, names ...string) []string {
	GinkgoHelper()
	var created []string
	var objects []client.Object
	cleanUp(func(ctx context.Context) { deleteAll(ctx, objects...) })
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
		if strings.HasSuffix(name, "-") {
			namespace.Name, namespace.GenerateName = "", name
		}
		create(ctx, namespace)
		DeferOnFailure(func(ctx SpecContext) { dump(ctx, namespace.Name) }, NodeTimeout(time.Minute))
		created, objects = append(created, namespace.Name), append(objects, namespace)
	}
	return created
}

// cleanUp registers a function to be called when the spec ends.
func cleanUp(do func(ctx context.Context)) {
	DeferCleanup(func(ctx SpecContext) { do(ctx) }, NodeTimeout(2*stepTimeout))
}

// deleteAll deletes the objects that exist and waits until they are deleted.
func deleteAll(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(client.IgnoreNotFound(kube.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))).
			To(Succeed())
	}
	for _, object := range objects {
		awaitDeleted(ctx, object)
	}
}

// awaitDeleted waits until an object is deleted.
func awaitDeleted(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(kube.Get).WithContext(ctx).WithArguments(client.ObjectKeyFromObject(object), object).
		Should(MatchError(apierrors.IsNotFound, "IsNotFound"), "%T %s is not deleted", object, object.GetName())
}

// expectNoDefinitions checks that CustomResourceDefinitions do not exist.
func expectNoDefinitions(ctx context.Context, explanation string, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(kube.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})).
			To(MatchError(apierrors.IsNotFound, "IsNotFound"), "%s: %s", name, explanation)
	}
}

// create creates objects.
func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(kube.Create(ctx, object)).To(Succeed())
	}
}

// deleteDefinitions deletes the CustomResourceDefinitions and all their resources.
func deleteDefinitions(ctx context.Context) {
	GinkgoHelper()
	var all []client.Object
	for _, name := range definitions() {
		all = append(all, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	deleteAll(ctx, all...)
}

// deleteOLMLeftovers deletes what OLM leaves in the cluster, as docs/uninstall.md describes: a ClusterRole of the
// bundle; ClusterRoles of the OperatorGroup, which OLM may create again after it has deleted them if it still processes
// the deletion of the ClusterServiceVersion; and the Operator object, which OLM recreates while a component of the
// operator exists.
func deleteOLMLeftovers(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "clusterrole", metricsReader, "--ignore-not-found")
	kubectl(ctx, "delete", "clusterroles", "--selector=olm.owner.kind=OperatorGroup,olm.owner="+packageName+
		",olm.owner.namespace="+operatorNamespace)
	kubectl(ctx, "delete", "operators.operators.coreos.com", packageName+"."+operatorNamespace, "--ignore-not-found")
}

// dump prints the objects of a namespace after a failure.
func dump(ctx context.Context, namespace string) {
	for _, args := range [][]string{
		{"get", "pods,jobs,deployments," + strings.Join(definitions(), ","), "-o", "wide"},
		{"get", "catalogsources,subscriptions,installplans,clusterserviceversions", "-o", "yaml"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "-l", "control-plane=controller-manager", "--tail=60", "--prefix"},
	} {
		command := exec.CommandContext(ctx, os.Getenv("KUBECTL"), append([]string{"--namespace=" + namespace}, args...)...)
		out, _ := command.CombinedOutput()
		GinkgoWriter.Printf("--- %s\n%s\n", strings.Join(command.Args[1:], " "), out)
	}
}

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
		if os.Getenv("TEST_CLUSTER") == "dedicated" || relevant.MatchString(line) {
			names.Insert(strings.Join(strings.Fields(line), " "))
		}
	}
	return names, nil
}
