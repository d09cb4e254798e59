// Package contract tests the operator as a separate process on a real API server: what all kinds have in common
// (contract_test.go), each kind (foo_test.go, memcached_test.go, cronjob_test.go), validation (badinput_test.go), the
// number of requests (requests_test.go), the process (manager_test.go), restarts (restart_test.go), stale caches
// (child_test.go, stale_test.go), webhooks and policies (webhook_test.go), permissions (rbac_test.go), and the optional
// components (components_test.go).
package contract

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/test/testenv"
)

var (
	cp       *testenv.ControlPlane
	k8s      client.WithWatch
	program  string             // the manager, built with the race detector
	manager  *testenv.Manager   // the running one; nil if none is running
	managers []*testenv.Manager // all that have run
	scraper  string             // a token that may read metrics
	// hasDefaults reports whether the running manager has the default environment and flags.
	hasDefaults bool
)

// ownManager labels the specs that start and stop managers themselves, or need none. Containers of such specs are apart
// from others, because each start of a manager takes seconds of CPU.
var ownManager = Label("own-manager")

func TestContract(t *testing.T) {
	RegisterFailHandler(Fail)
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(100 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "Contract")
}

// Each process of the suite has its own control plane and manager, so that specs of different processes share nothing.
var _ = SynchronizedBeforeSuite(func() []byte {
	By("building the manager with the race detector, unless it has been built")
	if path := os.Getenv("MANAGER_LOG"); path != "" {
		Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	}
	program, err := testenv.BuildManager(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	return []byte(program)
}, func(ctx context.Context, path []byte) {
	var err error
	program = string(path)
	By("starting etcd, the API server and the controller manager")
	cp, err = testenv.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return cp.Stop() })
	k8s = cp.Client

	missingCRD = endOf(ctx, "")
	Expect(cp.Install()).To(Succeed())
	kubeletContext, end := context.WithCancel(context.Background())
	DeferCleanup(end)
	go cp.Kubelet(kubeletContext)

	scraper = metricsReader(ctx)
	makeHistory(ctx)
	DeferCleanup(checkEnd)
})

var _ = BeforeEach(func(ctx context.Context) {
	if !slices.Contains(CurrentSpecReport().Labels(), ownManager[0]) {
		startDefault(ctx)
	}
})

var _ = JustAfterEach(func() {
	if !CurrentSpecReport().Failed() || len(managers) == 0 {
		return
	}
	leases, _ := cp.Kubectl("get", "leases.coordination.k8s.io", "--all-namespaces", "--output=yaml")
	AddReportEntry("the manager's log", managers[len(managers)-1].Logs(), ReportEntryVisibilityFailureOrVerbose)
	AddReportEntry("the leases", leases, ReportEntryVisibilityFailureOrVerbose)
})

// startProgram starts a manager that logs its passes, which specs count.
func startProgram(ctx context.Context, environment []string, flags ...string) (*testenv.Manager, error) {
	return cp.StartManager(ctx, program, environment, append([]string{testenv.LogPasses}, flags...)...)
}

// start starts a manager and waits until it is ready.
func start(ctx context.Context, environment []string, flags ...string) {
	GinkgoHelper()
	var err error
	manager, err = startProgram(ctx, environment, flags...)
	Expect(err).NotTo(HaveOccurred())
	hasDefaults = len(environment)+len(flags) == 0
	managers = append(managers, manager)
	Expect(manager.WaitUntilReady(ctx)).To(Succeed())
}

// startDefault replaces the running manager by one with the default environment and flags, if it is another one.
func startDefault(ctx context.Context) {
	GinkgoHelper()
	if manager == nil || !hasDefaults {
		restart(ctx, nil)
	}
}

// restart stops the running manager, if there is one, and starts another one.
func restart(ctx context.Context, environment []string, flags ...string) {
	GinkgoHelper()
	stop()
	start(ctx, environment, flags...)
}

// stop stops the running manager as Kubernetes does.
func stop() {
	GinkgoHelper()
	if manager == nil {
		return
	}
	running := manager
	manager = nil
	// A manager that is stopped while it takes the lease does not release it.
	Eventually(running.Logs).Should(ContainSubstring("Starting workers"))
	Expect(running.Stop()).To(Succeed(), running.Logs())
}

// kill kills the running manager, and deletes its lease, so that the next manager does not wait until it expires.
func kill(ctx context.Context) {
	GinkgoHelper()
	manager.Kill()
	manager = nil
	Expect(client.IgnoreNotFound(k8s.Delete(ctx, lease()))).To(Succeed())
}

// expectedErrors match the errors that specs provoke, and those of a leader that is stopped during a pass or during its
// start. (A manager whose caches do not fill does not become ready, which every start waits for.)
var expectedErrors = regexp.MustCompile("exceeded quota|on Fridays|another writer was first|failed calling " +
	"webhook|context deadline exceeded|error received after stop sequence was engaged|context canceled|" +
	"too many requests|Could not wait for Cache to sync|Informer to sync|" +
	"Server rejected event.*because it is being terminated")

// checkEnd checks the logs of this process's managers when its specs are over: no race, no panic, no unexpected error.
func checkEnd() {
	stop()
	var logs strings.Builder
	for _, manager := range managers {
		manager.Kill() // if it is still running
		logs.WriteString(manager.Logs())
	}
	if path := os.Getenv("MANAGER_LOG"); path != "" {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600) // the other processes append to it, too
		Expect(err).NotTo(HaveOccurred())
		defer file.Close()
		_, err = file.WriteString(logs.String())
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(testenv.Defects(logs.String())).To(BeEmpty())
	for line := range strings.Lines(logs.String()) {
		if strings.Contains(line, `"level":"ERROR"`) {
			Expect(line).To(MatchRegexp(expectedErrors.String()))
		}
	}
}

// metricsReader creates a service account that may read metrics, and returns its token.
func metricsReader(ctx context.Context) string {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "scraper"}})).
		To(Succeed())
	Expect(k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: "memcached-operator-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "scraper"}},
	})).To(Succeed())
	token, err := cp.Token(ctx, "default", "scraper")
	Expect(err).NotTo(HaveOccurred())
	return token
}

// newNamespace creates a namespace that enforces Pod Security "restricted". It stays, because its deletion would
// trigger passes during the next spec.
func newNamespace(ctx context.Context, labels ...string) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	for _, label := range labels {
		namespace.Labels[label] = ""
	}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

// eventsAbout returns "type reason: note" of every event about an object, in no order.
func eventsAbout(ctx context.Context, object client.Object) []string {
	GinkgoHelper()
	var about []string
	for _, event := range eventsOf(ctx, object) {
		about = append(about, fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Note))
	}
	return about
}

func eventsOf(ctx context.Context, object client.Object) []eventsv1.Event {
	GinkgoHelper()
	var events eventsv1.EventList
	Expect(k8s.List(ctx, &events, client.InNamespace(object.GetNamespace()))).To(Succeed())
	return slices.DeleteFunc(events.Items, func(event eventsv1.Event) bool {
		return event.Regarding.UID != object.GetUID()
	})
}

// get reads an object.
func get[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

// unchanging waits until an object has not been written between two reads, and returns it.
func unchanging(ctx context.Context, object client.Object, polling time.Duration) client.Object {
	GinkgoHelper()
	Eventually(ctx, func() bool {
		before := object.GetResourceVersion()
		return get(ctx, object).GetResourceVersion() == before
	}).WithPolling(polling).Should(BeTrue())
	return object.DeepCopyObject().(client.Object)
}

// requests returns the operator's requests in a namespace since a mark that pass all filters.
func requests(mark testenv.Mark, namespace string, filters ...func(testenv.Request) bool) []testenv.Request {
	return cp.Audit.Since(mark, append(filters, testenv.ByOperator, testenv.In(namespace))...)
}

// isOf returns a filter for requests for a resource.
func isOf(resource string) func(testenv.Request) bool {
	return func(r testenv.Request) bool { return r.Resource == resource }
}

// isConflict is a filter for requests that were answered with 409.
func isConflict(r testenv.Request) bool { return r.Code == http.StatusConflict }

// isForbidden is a filter for requests that were answered with 403.
func isForbidden(r testenv.Request) bool { return r.Code == http.StatusForbidden }

// scrape reads the metrics with a token. A manager that is ready may not serve them yet: its key takes a while.
func scrape(token string) (code int, body string) {
	GinkgoHelper()
	Eventually(manager.Logs).Should(ContainSubstring("Serving metrics server"))
	code, body, err := manager.Scrape(token)
	Expect(err).NotTo(HaveOccurred())
	return code, body
}

// passes returns how many passes for objects in a namespace a controller has made. Those for objects of other specs do
// not count: Kubernetes may change their children at any time, and CronJobs have timers.
func passes(controller, namespace string) int {
	return manager.PassesIn(namespace, controller)
}

// laterPass is longer than the second after which a controller retries when its cache is behind.
const laterPass = 1200 * time.Millisecond

// settledPasses waits until a controller makes no pass in a namespace for a while, in which it sees its own writes, and
// returns the number of its passes there.
func settledPasses(controller, namespace string) (n int) {
	GinkgoHelper()
	Eventually(func() bool {
		before := passes(controller, namespace)
		time.Sleep(laterPass)
		n = passes(controller, namespace)
		return n == before
	}).Should(BeTrue(), "the passes do not end")
	return n
}

// edit changes an object by a merge patch.
func edit[T client.Object](ctx context.Context, object T, change func(T)) {
	GinkgoHelper()
	before := get(ctx, object).DeepCopyObject().(client.Object)
	change(object)
	Expect(k8s.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}
