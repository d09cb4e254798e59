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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/testenv"
)

// The service account of config/scorecard/rbac.
const serviceAccount = "memcached-operator-scorecard"

// runProgram is an environment variable that makes the test binary the program, which saves linking it twice.
const runProgram = "RUN_SCORECARD"

var (
	cp       *testenv.ControlPlane
	k8s      client.WithWatch
	operator client.Client // with the permissions of the operator
	manager  *testenv.Manager
	rbac     string // the manifests of config/scorecard/rbac
)

func TestMain(m *testing.M) {
	if os.Getenv(runProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestScorecard(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Scorecard")
}

// The race detector runs in other suites: here it would only take CPU time from the many programs that run together.
var _ = BeforeSuite(func(ctx context.Context) {
	program := os.Getenv("MANAGER")
	if program == "" {
		var err error
		program, err = gexec.Build("github.com/example/memcached-operator/cmd", "-buildvcs=false")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(gexec.CleanupBuildArtifacts)
	}
	var err error
	cp, err = testenv.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return cp.Stop() })
	k8s = cp.Client
	operator, err = cp.ClientAs(testenv.OperatorUser)
	Expect(err).NotTo(HaveOccurred())
	Expect(cp.Install()).To(Succeed())
	kubeletContext, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go cp.Kubelet(kubeletContext)
	manager, err = cp.StartManager(ctx, program, nil)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(manager.Stop()).To(Succeed()) })
	rbac, err = cp.Kubectl("kustomize", filepath.Join(testenv.Root(), "config", "scorecard", "rbac"))
	Expect(err).NotTo(HaveOccurred(), rbac)
	Expect(manager.WaitUntilReady(ctx)).To(Succeed())
})

// newNamespace creates a namespace with the permissions of config/scorecard/rbac.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scorecard-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	for document := range strings.SplitSeq(rbac, "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(strings.ReplaceAll(document, testenv.OperatorNamespace, namespace.Name)),
			&object.Object)).To(Succeed())
		if object.GetKind() == "ClusterRoleBinding" {
			object.SetName(namespace.Name)
		}
		Expect(k8s.Create(ctx, object)).To(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
	}
	return namespace.Name
}

// scorecard runs the program as operator-sdk does: with the permissions of its service account, and with one log for
// standard output and standard error.
func scorecard(ctx context.Context, namespace string, args ...string) scorecardv1alpha3.TestStatus {
	GinkgoHelper()
	command := exec.CommandContext(ctx, os.Args[0], args...)
	command.Env = append(testenv.Environment(), runProgram+"=yes", "SCORECARD_NAMESPACE="+namespace)
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

// errorsOf returns the errors of a result.
func errorsOf(status scorecardv1alpha3.TestStatus, name string) (errors []string) {
	for _, result := range status.Results {
		if result.Name == name {
			errors = append(errors, result.Errors...)
		}
	}
	return errors
}

// describe returns all of a status, for failure messages.
func describe(status scorecardv1alpha3.TestStatus) func() string {
	return func() string {
		var text strings.Builder
		for _, result := range status.Results {
			fmt.Fprintf(&text, "%s: %s\n%s\n%s\n", result.Name, result.State, strings.Join(result.Errors, "\n"), result.Log)
		}
		return text.String()
	}
}
