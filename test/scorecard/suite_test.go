package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	scorecardv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/test/testenv"
)

// The service account that config/scorecard/rbac makes.
const serviceAccount = "memcached-operator-scorecard"

var (
	cp      *testenv.ControlPlane
	k8s     client.WithWatch
	program string // the tests, as the image has them
	manager *testenv.Manager
)

func TestScorecard(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Scorecard")
}

var _ = BeforeSuite(func(ctx context.Context) {
	By("building the tests with the race detector, and the manager unless it has been built")
	operator, err := testenv.BuildManager(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	program, err = gexec.Build("github.com/example/memcached-operator/test/scorecard", "-race", "-buildvcs=false")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)

	By("starting the control plane and the manager")
	cp, err = testenv.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return cp.Stop() })
	k8s = cp.Client
	Expect(cp.Install()).To(Succeed())
	kubeletContext, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go cp.Kubelet(kubeletContext)
	manager, err = cp.StartManager(ctx, operator, nil)
	Expect(err).NotTo(HaveOccurred())
	Expect(manager.WaitUntilReady(ctx)).To(Succeed())
	DeferCleanup(func() { Expect(manager.Stop()).To(Succeed()) })
})

// newNamespace makes a namespace in which the tests may run.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scorecard-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	manifests, err := cp.Kubectl("kustomize", filepath.Join(testenv.Root(), "config", "scorecard", "rbac"))
	Expect(err).NotTo(HaveOccurred(), manifests)
	path := filepath.Join(GinkgoT().TempDir(), "rbac.yaml")
	Expect(os.WriteFile(path,
		[]byte(strings.ReplaceAll(manifests, "namespace: "+testenv.OperatorNamespace, "namespace: "+namespace.Name)), 0o600)).
		To(Succeed())
	out, err := cp.Kubectl("apply", "-f", path)
	Expect(err).NotTo(HaveOccurred(), out)
	return namespace.Name
}

// scorecard runs the program as scorecard does: with the rights of its service account, and with one log for all it
// writes.
func scorecard(ctx context.Context, namespace string, args ...string) scorecardv1alpha3.TestStatus {
	GinkgoHelper()
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(testenv.Environment(), "SCORECARD_NAMESPACE="+namespace)
	if namespace != "" {
		kubeconfig, err := cp.Kubeconfig(ctx, namespace, serviceAccount)
		Expect(err).NotTo(HaveOccurred())
		command.Env = append(command.Env, "KUBECONFIG="+kubeconfig)
	}
	out, err := command.CombinedOutput()
	var status scorecardv1alpha3.TestStatus
	Expect(json.Unmarshal(out, &status)).To(Succeed(), "%v\n%s", err, out)
	Expect(status.Results).NotTo(BeEmpty())
	Expect(err == nil).To(Equal(passed(status)), "exit status: %v\n%s", err, out)
	return status
}

// summary returns the state of each result, by its name.
func summary(status scorecardv1alpha3.TestStatus) map[string]scorecardv1alpha3.State {
	states := map[string]scorecardv1alpha3.State{}
	for _, result := range status.Results {
		states[result.Name] = result.State
	}
	return states
}

// errorsOf returns the errors of the result of a name.
func errorsOf(status scorecardv1alpha3.TestStatus, name string) []string {
	GinkgoHelper()
	for _, result := range status.Results {
		if result.Name == name {
			return result.Errors
		}
	}
	Fail("there is no result " + name)
	return nil
}

// describe returns all that a status says, for who wants to know why it is not as expected.
func describe(status scorecardv1alpha3.TestStatus) func() string {
	return func() string {
		var text strings.Builder
		for _, result := range status.Results {
			fmt.Fprintf(&text, "%s: %s\n%s\n%s\n", result.Name, result.State, strings.Join(result.Errors, "\n"), result.Log)
		}
		return text.String()
	}
}
