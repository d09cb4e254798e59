// Package e2e shows the operator as its users meet it: installed by kubectl, by a Subscription and by operator-sdk, on
// a cluster with real pods, where memcached and nginx answer, and Jobs run.
//
// "make e2e" brings up such a cluster and the images; with KUBECONFIG and TEST_REGISTRY it uses yours. The settings are
// environment variables:
//
//	KUBECONFIG             the cluster, with Operator Lifecycle Manager installed
//	TEST_REGISTRY          where test/cluster/publish has pushed the images to
//	TEST_WORK              the directory that it has built them in
//	RELATED_IMAGE_...      the operands' images, if the cluster cannot pull the default ones
//	OPM_IMAGE, BUSYBOX_IMAGE   what operator-sdk and the Jobs run in the cluster, if it cannot pull the default ones
//	OPERATOR_SDK, KUBECTL  the programs
//	TEST_CLUSTER           "ours" if nobody else uses the cluster
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/yaml"

	testkinds "github.com/example/memcached-operator/test/kinds"
)

// root is the repository, where the commands of the documentation are run.
const root = "../.."

// patience is how long anything may take on a machine with two cores that does something else besides.
const patience = 5 * time.Minute

var (
	registry = os.Getenv("TEST_REGISTRY")
	// last is the last release, tree is what becomes the next one.
	last, tree string

	kube    client.Client
	clients kubernetes.Interface
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "End to end")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	for _, variable := range []string{"KUBECONFIG", "TEST_REGISTRY", "TEST_WORK", "OPERATOR_SDK", "KUBECTL"} {
		Expect(os.Getenv(variable)).NotTo(BeEmpty(), "%s is not set; 'make e2e' sets all that is needed", variable)
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

	tree, last = versions()
	expectNoDefinitions(ctx, "the cluster has the operator, or remains of it: uninstall it, as the README says, or "+
		"'make cluster-down' if it is the cluster of 'make demo'", definitions()...)
})

// A suite of minutes tells how far it is.
var _ = ReportAfterEach(func(report SpecReport) {
	fmt.Printf("[%s] %s: %s (%.0f s)\n", time.Now().Format(time.TimeOnly), report.State, report.FullText(),
		report.RunTime.Seconds())
})

// measured are the numbers that specs have found, for the end of the report.
var measured []string

func measure(format string, args ...any) {
	measured = append(measured, fmt.Sprintf(format, args...))
}

var _ = ReportAfterSuite("what was measured", func(Report) {
	fmt.Printf("\n\nMeasured:\n%s\n", strings.Join(measured, "\n"))
})

// versions are the version of the tree and that of the last release.
func versions() (tree, last string) {
	content, err := os.ReadFile(filepath.Join(root, "bundle/manifests/memcached-operator.clusterserviceversion.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var csv operatorsv1alpha1.ClusterServiceVersion
	Expect(yaml.Unmarshal(content, &csv)).To(Succeed())

	entries, err := os.ReadDir(filepath.Join(root, "config/catalog/released"))
	Expect(err).NotTo(HaveOccurred(), "nothing is released yet: 'make release' first")
	var releases []semver.Version
	for _, entry := range entries {
		releases = append(releases, semver.MustParse(entry.Name()))
	}
	Expect(releases).NotTo(BeEmpty())
	newest := slices.MaxFunc(releases, semver.Version.Compare)
	return csv.Spec.Version.String(), newest.String()
}

// image is one of our own images, of the tree unless a tag says otherwise.
func image(name string, tag ...string) string {
	return registry + "/memcached-operator" + name + ":" + append(tag, "v"+tree)[0]
}

// operandImages are the settings of the operator's images for this cluster, if it needs any.
func operandImages() []corev1.EnvVar {
	var variables []corev1.EnvVar
	for _, name := range []string{"RELATED_IMAGE_MEMCACHED", "RELATED_IMAGE_NGINX"} {
		if value := os.Getenv(name); value != "" {
			variables = append(variables, corev1.EnvVar{Name: name, Value: value})
		}
	}
	return variables
}

// run runs a command of the documentation in the repository and returns what it printed to standard output.
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
	var out, all bytes.Buffer
	command.Stdout = &out
	command.Stderr = &all
	err := command.Run()
	GinkgoWriter.Printf("%s%s", out.String(), all.String())
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), all.String())
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

// newNamespace makes a namespace for a spec, which must go away again when the spec has ended. It enforces the
// strictest Pod Security unless another one is named.
func newNamespace(ctx context.Context, name string, security ...string) string {
	GinkgoHelper()
	level := append(security, "restricted")[0]
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
	if strings.HasSuffix(name, "-") {
		namespace.Name, namespace.GenerateName = "", name
	}
	Expect(kube.Create(ctx, namespace)).To(Succeed())
	DeferOnFailure(func(ctx SpecContext) { dump(ctx, namespace.Name) }, NodeTimeout(time.Minute))
	cleanUp(func(ctx context.Context) { deleteAll(ctx, namespace) })
	return namespace.Name
}

// cleanUp has something done when the spec has ended, with as much patience as anything else has.
func cleanUp(do func(ctx context.Context)) {
	DeferCleanup(func(ctx SpecContext) { do(ctx) }, NodeTimeout(2*patience))
}

// deleteAll deletes objects and waits until they are gone. What is gone already is no error.
func deleteAll(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(client.IgnoreNotFound(kube.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))).
			To(Succeed())
	}
	for _, object := range objects {
		awaitGone(ctx, object)
	}
}

// awaitGone waits until an object is deleted.
func awaitGone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(kube.Get).WithContext(ctx).WithArguments(client.ObjectKeyFromObject(object), object).
		Should(MatchError(apierrors.IsNotFound, "IsNotFound"), "%T %s does not go away", object, object.GetName())
}

// expectNoDefinitions checks that the cluster does not have any of some CustomResourceDefinitions.
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

// deleteDefinitions deletes the CustomResourceDefinitions, and with them all resources of our kinds.
func deleteDefinitions(ctx context.Context) {
	GinkgoHelper()
	for _, name := range definitions() {
		deleteAll(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

// deleteRemains deletes what OLM leaves in the cluster: a role of the bundle's, and a summary of everything that it has
// installed of the package, which it makes anew while any of that is there.
func deleteRemains(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "clusterrole", metricsReader, "--ignore-not-found")
	kubectl(ctx, "delete", "operators.operators.coreos.com", packageName+"."+operatorNamespace, "--ignore-not-found")
}

// dump tells of a namespace what helps to understand a failure.
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
