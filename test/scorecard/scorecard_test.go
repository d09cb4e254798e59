package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	scorecardv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bundle"
	"github.com/example/memcached-operator/test/testenv"
)

// every returns the results of a test of every kind, all with the same state.
func every(test string, state scorecardv1alpha3.State) map[string]scorecardv1alpha3.State {
	states := map[string]scorecardv1alpha3.State{}
	for _, k := range allKinds {
		states[test+"/"+k.Title()] = state
	}
	return states
}

// defects are ways in which the operator may be broken, each with the test that finds it.
var defects = []struct {
	name     string
	kinds    []kind // those that can have it; variants share the code of the first kind
	test     string
	sabotage func(ctx context.Context, namespace string)
	timeout  time.Duration
	reported string
}{
	{"creates nothing", unvaried, "writing-into-crs-has-effect", rejectCreates, brief,
		"observed last: .* has (no Deployment|0 active Jobs)"},
	{"does not carry out a change", unvaried, "writing-into-crs-has-effect", rejectLaterUpdates, brief,
		`after a write of spec\..*(spec.replicas|observedGeneration) of .* is \d, not \d`},
	{"gives the pods of all resources the same labels", repaired, "crs-are-isolated", shareLabels, ample,
		`its selector "app=shared" selects those of`},
	{"changes one resource's children with another's", repaired, "crs-are-isolated", scaleOthers, ample,
		"had to stay as it was when .* was changed"},
	{"deletes one resource's children when another changes", scheduled, "crs-are-isolated", deleteOthersJobs, ample,
		`had to stay when .* was changed: .* not found`},
	{"does not revert a change of a child", repaired, "drift-is-repaired", rejectUpdates, brief,
		"waited until Deployment .* is reverted; observed last: the labels is .*another-client"},
	{"does not recreate a deleted child", repaired, "drift-is-repaired", rejectRecreation, brief,
		"waited until .* is recreated; observed last: .* has no"},
	{"repeats a run", scheduled, "drift-is-repaired", runAgain, ample,
		"was deleted and must not be created again, and was"},
	{"adopts a child that it does not control", unvaried, "foreign-child-is-refused", adopt, brief,
		"has to stay as it was created: its owners is"},
	{"reports what does not exist", unvaried, "status-is-honest", falsifyStatus, brief,
		`observed last: (the number of ready pods in the status|status.activeJobs) is 99, not \d`},
	{"has no pods that become ready", repaired, "status-is-honest", holdPods, brief,
		"observed last: pod .* is not ready; look at the pods"},
	{"has a sample whose pods do not start", scheduled, "sample-runs", holdPods, brief,
		"observed last: no Job has completed; look at the pods of its Job"},
}

const (
	brief = 45 * time.Second // where the test waits for what never happens
	ample = 90 * time.Second // where it does not
)

var (
	unvaried            = []kind{foos, memcacheds, cronJobs}
	repaired, scheduled = []kind{foos, memcacheds}, []kind{cronJobs}
)

var _ = Describe("The scorecard", Ordered, ContinueOnFailure, func() {
	var bundleDir, ns string
	results := make([]chan scorecardv1alpha3.TestStatus, len(defects))

	// Most of the time passes waiting for what does not happen, so the tests of all defects wait at the same time, and
	// the other specs run meanwhile.
	BeforeAll(func(ctx context.Context) {
		bundleDir, ns = newBundle(), newNamespace(ctx)
		unvaried := newBundle()
		edit(unvaried, "clusterserviceversion", dropExamples("StatefulSet"))
		var sabotaged sync.WaitGroup
		defer sabotaged.Wait()
		for i, defect := range defects {
			results[i] = make(chan scorecardv1alpha3.TestStatus, 1)
			sabotaged.Go(func() {
				defer GinkgoRecover()
				namespace := newNamespace(ctx)
				defect.sabotage(ctx, namespace)
				go func() {
					defer GinkgoRecover()
					results[i] <- scorecard(context.WithoutCancel(ctx), namespace, "--bundle="+unvaried,
						"--timeout="+defect.timeout.String(), defect.test)
				}()
			})
		}
	})

	It("passes on the operator, all tests at once in one namespace, and leaves nothing behind", func(ctx context.Context) {
		released, _ := newReleased()
		label(ctx, ns, testenv.EndPods)
		installed := newManagerDeployment(ctx, ns, bundleDir)
		statuses := make([]scorecardv1alpha3.TestStatus, len(tests))
		var all sync.WaitGroup
		for i, test := range tests {
			all.Go(func() {
				defer GinkgoRecover()
				statuses[i] = scorecard(ctx, ns, "--bundle="+bundleDir, "--released="+released, "--metrics="+manager.MetricsURL,
					test.name)
			})
		}
		all.Wait()
		for i, test := range tests {
			Expect(passed(statuses[i])).To(BeTrue(), describe(statuses[i]))
			for _, result := range statuses[i].Results {
				Expect(result.Name).To(HavePrefix(test.name))
				Expect(result.Suggestions).To(BeEmpty())
				Expect(result.Log).NotTo(BeEmpty())
			}
		}
		Expect(statuses[0].Results).To(HaveLen(len(allKinds)))
		Expect(k8s.Delete(ctx, installed)).To(Succeed())
		Expect(itemsOf(ctx, ns, &samplev1alpha1.FooList{}, &cachev1alpha1.MemcachedList{}, &tutorialv1.CronJobList{},
			&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &batchv1.JobList{})).To(BeEmpty())
	}, NodeTimeout(5*time.Minute)) // the tests have 3 minutes, and one to clean up

	It("fails when a CustomResourceDefinition in the bundle is tighter than in the last release",
		func(ctx context.Context) {
			bundle := newBundle()
			released, _ := newReleased()
			edit(bundle, "memcacheds", setMaximumOfSize(4999))
			status := scorecard(ctx, ns, "--bundle="+bundle, "--released="+released, "crds-are-compatible")
			Expect(summary(status)).To(Equal(map[string]scorecardv1alpha3.State{
				"crds-are-compatible/foos.samplecontroller.k8s.io":           "pass",
				"crds-are-compatible/memcacheds.cache.example.com":           "fail",
				"crds-are-compatible/cronjobs.batch.tutorial.kubebuilder.io": "pass",
			}), describe(status))
			Expect(errorsOf(status, "crds-are-compatible/memcacheds.cache.example.com")).To(ConsistOf(
				MatchRegexp(`the definition of the bundle has to accept all that the one of memcached-operator\.v.* does`),
				HaveSuffix("memcacheds.cache.example.com/v1alpha1 spec.size: maximum: maximum decreased : 5000 -> 4999")))
		})

	It("fails when a CustomResourceDefinition in the cluster is tighter than in the last release",
		func(ctx context.Context) {
			bundle := newBundle()
			released, release := newReleased()
			for _, dir := range []string{bundle, release} {
				edit(dir, "memcacheds", setMaximumOfSize(6000))
			}
			status := scorecard(ctx, ns, "--bundle="+bundle, "--released="+released, "crds-are-compatible")
			Expect(errorsOf(status, "crds-are-compatible/memcacheds.cache.example.com")).
				To(ConsistOf(HavePrefix("the definition of the cluster"), HaveSuffix("maximum decreased : 6000 -> 5000")))
		})

	It("fails when the operator runs another image, and suggests its namespace where it is not",
		func(ctx context.Context) {
			const test = "images-are-those-of-the-bundle"
			other := newNamespace(ctx)
			status := scorecard(ctx, other, "--bundle="+bundleDir, test)
			Expect(passed(status)).To(BeTrue(), describe(status))
			Expect(status.Results[0].Suggestions).To(ConsistOf(
				ContainSubstring("run this test in the namespace of the operator")))
			replaced := newBundle()
			edit(replaced, "clusterserviceversion", func(csv map[string]any) {
				pod := at[map[string]any](csv, "spec", "install", "spec", "deployments", 0, "spec", "template", "spec")
				at[map[string]any](pod, "containers", 0)["image"] = "registry.example.com/another:v1"
			})
			newManagerDeployment(ctx, other, replaced)
			status = scorecard(ctx, other, "--bundle="+bundleDir, test)
			Expect(summary(status)).To(Equal(map[string]scorecardv1alpha3.State{test: "fail"}), describe(status))
			Expect(status.Results[0].Errors).To(HaveEach(HaveSuffix(
				"and runs registry.example.com/another:v1; look at which version is installed")))
		})

	It("fails when the metrics are open to everybody, or do not answer", func(ctx context.Context) {
		open := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for complaint, url := range map[string]string{
			"has to reject a client without a token with 401, and answers 200 OK": open.URL,
			"has to answer, and does not":                                         "https://127.0.0.1:1/metrics",
		} {
			status := scorecard(ctx, ns, "--bundle="+bundleDir, "--metrics="+url, "metrics-need-a-token")
			Expect(summary(status)).To(HaveKeyWithValue("metrics-need-a-token", scorecardv1alpha3.FailState))
			Expect(status.Results[0].Errors).To(ConsistOf(ContainSubstring(complaint)))
		}
		open.Close()
	})

	It("fails when a volume dangles", func(ctx context.Context) {
		bundle := newBundle()
		edit(bundle, "clusterserviceversion", func(csv map[string]any) {
			pod := at[map[string]any](csv, "spec", "install", "spec", "deployments", 0, "spec", "template", "spec")
			pod["volumes"] = []any{map[string]any{"name": "certs", "secret": map[string]any{"secretName": "server-cert"}}}
			manager := at[map[string]any](pod, "containers", 0)
			manager["args"] = append(manager["args"].([]any), "--metrics-cert-dir=/certs")
		})
		status := scorecard(ctx, "", "--bundle="+bundle, "no-dangling-volumes")
		Expect(summary(status)).To(Equal(map[string]scorecardv1alpha3.State{"no-dangling-volumes": "fail"}))
		Expect(status.Results[0].Errors).To(ConsistOf(
			ContainSubstring("no container mounts the volume certs"), ContainSubstring("needs the Secret server-cert"),
			ContainSubstring("--metrics-cert-dir=/certs, which is in no mount")))
	})

	It("fails when an example has a field that its kind does not have", func(ctx context.Context) {
		bundle := newBundle()
		edit(bundle, "clusterserviceversion", func(csv map[string]any) {
			at[map[string]any](csv, "metadata",
				"annotations")["alm-examples"] = `[{"kind": "Foo", "spec": {"deploymentname": "a"}}]`
		})
		status := scorecard(ctx, ns, "--bundle="+bundle, "drift-is-repaired")
		Expect(summary(status)).To(Equal(every("drift-is-repaired", scorecardv1alpha3.FailState)))
		Expect(errorsOf(status, "drift-is-repaired/Foo")).
			To(ContainElement(ContainSubstring(`unknown field "spec.deploymentname"`)))
		Expect(errorsOf(status, "drift-is-repaired/Memcached")).
			To(ContainElement(ContainSubstring("has to offer an example of a Memcached")))
	})

	It("has nothing to compare the first release with", func(ctx context.Context) {
		released, release := newReleased()
		edit(release, "clusterserviceversion", func(csv map[string]any) {
			at[map[string]any](csv, "spec")["version"] = "0.0.9"
		})
		for _, dir := range []string{filepath.Join(released, "none"), released} {
			status := scorecard(ctx, "", "--bundle="+release, "--released="+dir, "crds-are-compatible")
			Expect(passed(status)).To(BeTrue(), describe(status))
			Expect(status.Results[0].Suggestions).To(ConsistOf(ContainSubstring("there is no release before 0.0.9")))
		}
	})

	DescribeTable("reports invalid arguments in a status",
		func(ctx context.Context, state scorecardv1alpha3.State, complaint string, args ...string) {
			status := scorecard(ctx, "", args...)
			Expect(status.Results).To(HaveLen(1))
			Expect(status.Results[0].State).To(Equal(state))
			Expect(status.Results[0].Errors).To(ConsistOf(ContainSubstring(complaint)))
		},
		Entry("with no test", scorecardv1alpha3.FailState, "name one of writing-into-crs-has-effect, crs-are-isolated, "),
		Entry("with a test that does not exist", scorecardv1alpha3.FailState, `there is no test "all-is-well"`,
			"all-is-well"),
		Entry("with two tests", scorecardv1alpha3.FailState, `there is no test "drift-is-repaired no-dangling-volumes"`,
			"drift-is-repaired", "no-dangling-volumes"),
		Entry("with a wrong flag", scorecardv1alpha3.ErrorState, "flag provided but not defined: -bundel",
			"--bundel=/bundle"),
		Entry("without a bundle", scorecardv1alpha3.ErrorState, "/nowhere is no bundle", "--bundle=/nowhere",
			"no-dangling-volumes"),
		Entry("without a namespace", scorecardv1alpha3.ErrorState, "SCORECARD_NAMESPACE is not set", "drift-is-repaired"),
	)

	It("reports missing permissions", func(ctx context.Context) {
		Expect(k8s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
			Name: serviceAccount}})).To(Succeed())
		status := scorecard(ctx, "default", "--bundle="+bundleDir, "drift-is-repaired")
		Expect(summary(status)).To(Equal(every("drift-is-repaired", scorecardv1alpha3.ErrorState)))
	})

	// A test that cannot fail shows nothing.
	for i, defect := range defects {
		It("fails when the operator "+defect.name, func(ctx context.Context) {
			var status scorecardv1alpha3.TestStatus
			Eventually(ctx, results[i]).WithTimeout(2 * time.Minute).Should(Receive(&status))
			for _, k := range defect.kinds {
				name := defect.test + "/" + k.Name
				Expect(summary(status)).To(HaveKeyWithValue(name, scorecardv1alpha3.FailState), describe(status))
				Expect(errorsOf(status, name)).To(ContainElement(MatchRegexp(defect.reported)), describe(status))
			}
		})
	}
})

// newManagerDeployment creates the Deployment of a bundle, whose pods are simulated, and waits for a pod.
func newManagerDeployment(ctx context.Context, namespace, dir string) *appsv1.Deployment {
	GinkgoHelper()
	contents, err := bundle.Read(dir)
	Expect(err).NotTo(HaveOccurred())
	spec := contents.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: spec.Name}, Spec: spec.Spec}
	deployment.Spec.Template.Spec.ServiceAccountName = "default"
	Expect(k8s.Create(ctx, deployment)).To(Succeed())
	Eventually(ctx, func() []client.Object { return itemsOf(ctx, namespace, &corev1.PodList{}) }).ShouldNot(BeEmpty())
	return deployment
}

// dropExamples removes the examples that contain a text. Without them, the tests of a variant fail at once.
func dropExamples(text string) func(csv map[string]any) {
	return func(csv map[string]any) {
		annotations := at[map[string]any](csv, "metadata", "annotations")
		var examples []json.RawMessage
		Expect(json.Unmarshal([]byte(annotations["alm-examples"].(string)), &examples)).To(Succeed())
		examples = slices.DeleteFunc(examples,
			func(example json.RawMessage) bool { return strings.Contains(string(example), text) })
		kept, err := json.Marshal(examples)
		Expect(err).NotTo(HaveOccurred())
		annotations["alm-examples"] = string(kept)
	}
}

func setMaximumOfSize(maximum int) func(crd map[string]any) {
	return func(crd map[string]any) {
		at[map[string]any](crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties",
			"size")["maximum"] = maximum
	}
}
