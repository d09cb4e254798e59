package main

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	scorecardv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// every returns the results of a test of every kind, all with the same state.
func every(test string, state scorecardv1alpha3.State) map[string]scorecardv1alpha3.State {
	states := map[string]scorecardv1alpha3.State{}
	for _, k := range allKinds {
		states[test+"/"+k.Name] = state
	}
	return states
}

var _ = Describe("The scorecard", func() {
	It("passes on the operator, all tests at once in one namespace, and leaves nothing behind", func(ctx context.Context) {
		ns, bundle := newNamespace(ctx), newBundle()
		released, _ := newReleased()
		statuses := make([]scorecardv1alpha3.TestStatus, len(tests))
		var all sync.WaitGroup
		for i, test := range tests {
			all.Go(func() {
				defer GinkgoRecover()
				statuses[i] = scorecard(ctx, ns, "--bundle="+bundle, "--released="+released, test.name)
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
		for _, list := range []client.ObjectList{&samplev1alpha1.FooList{}, &cachev1alpha1.MemcachedList{},
			&tutorialv1.CronJobList{}, &appsv1.DeploymentList{}, &batchv1.JobList{}} {
			Expect(k8s.List(ctx, list, client.InNamespace(ns))).To(Succeed())
			Expect(list).To(HaveField("Items", BeEmpty()))
		}
	}, NodeTimeout(90*time.Second))

	// A test that cannot fail shows nothing. Here every one of them meets the defect that it is there to find.
	Describe("fails when the operator", Ordered, ContinueOnFailure, func() {
		repaired, scheduled := []kind{foos, memcacheds}, []kind{cronJobs}
		defects := []struct {
			name      string
			kinds     []kind // those that can have it
			test      string
			sabotage  func(ctx context.Context, namespace string)
			complaint string
		}{
			{"makes nothing", allKinds, "writing-into-crs-has-effect", doNotMake,
				"seen last: .* has (no Deployment|0 active Jobs)"},
			{"does not carry out a change", allKinds, "writing-into-crs-has-effect", doNotAnswer,
				`after a write of spec\..* (wants \d pods, and the spec \d|status.observedGeneration of .* is \d, its generation is \d)`},
			{"gives the pods of all resources the same labels", repaired, "crs-are-isolated", labelAllAlike,
				`its selector "app=shared" selects those of`},
			{"changes one resource's children with another's", repaired, "crs-are-isolated", scaleAllAlike,
				"had to stay as it was when"},
			{"deletes one resource's children when another changes", scheduled, "crs-are-isolated", clearOthers,
				`had to stay when .* was changed: .* not found`},
			{"does not repair what was changed", repaired, "drift-is-repaired", doNotChange,
				"waited until Deployment .* is put right; seen last: .*(somebody-else|is not as the operator had made it)"},
			{"does not repair what was deleted", repaired, "drift-is-repaired", doNotMakeAgain,
				"waited until .* is made again; seen last: .* has no"},
			{"repeats what was run", scheduled, "drift-is-repaired", runAgain,
				"was deleted and must not be made again, and was"},
			{"adopts what is not its own", allKinds, "foreign-child-is-refused", adopt,
				"belongs to somebody else and had to stay|says that the name is taken|says so of its new spec"},
			{"tells of what is not there", allKinds, "status-is-honest", exaggerate,
				`seen last: the status tells of 99 (ready pods|active Jobs), and there are \d`},
			{"has no pods that come up", repaired, "status-is-honest", holdPods,
				"seen last: pod .* is not ready; look at the pods"},
		}
		// Most of the time goes by waiting for what does not happen, so they wait together.
		results := make([]chan scorecardv1alpha3.TestStatus, len(defects))
		BeforeAll(func(ctx context.Context) {
			bundle := newBundle()
			for i, defect := range defects {
				ns := newNamespace(ctx)
				defect.sabotage(ctx, ns)
				results[i] = make(chan scorecardv1alpha3.TestStatus, 1)
				go func() {
					defer GinkgoRecover()
					results[i] <- scorecard(context.WithoutCancel(ctx), ns, "--bundle="+bundle, "--timeout=30s", defect.test)
				}()
			}
		})
		for i, defect := range defects {
			It(defect.name, func(ctx context.Context) {
				var status scorecardv1alpha3.TestStatus
				Eventually(ctx, results[i]).WithTimeout(2 * time.Minute).Should(Receive(&status))
				for _, k := range defect.kinds {
					name := defect.test + "/" + k.Name
					Expect(summary(status)).To(HaveKeyWithValue(name, scorecardv1alpha3.FailState), describe(status))
					Expect(errorsOf(status, name)).To(ContainElement(MatchRegexp(defect.complaint)), describe(status))
				}
			})
		}
	})

	Describe("fails when", func() {
		It("a CustomResourceDefinition in the bundle is tighter than in the last release", func(ctx context.Context) {
			bundle := newBundle()
			released, _ := newReleased()
			edit(bundle, "memcacheds", func(crd map[string]any) { setMaximumOfSize(crd, 4999) })
			status := scorecard(ctx, newNamespace(ctx), "--bundle="+bundle, "--released="+released, "crds-are-compatible")
			Expect(summary(status)).To(Equal(map[string]scorecardv1alpha3.State{
				"crds-are-compatible/foos.samplecontroller.k8s.io":           "pass",
				"crds-are-compatible/memcacheds.cache.example.com":           "fail",
				"crds-are-compatible/cronjobs.batch.tutorial.kubebuilder.io": "pass",
			}), describe(status))
			Expect(errorsOf(status, "crds-are-compatible/memcacheds.cache.example.com")).To(ConsistOf(
				MatchRegexp(`the definition of the bundle has to accept all that the one of memcached-operator\.v.* does`),
				ContainSubstring("memcacheds.cache.example.com/v1alpha1 spec.size: maximum: maximum decreased : 5000 -> 4999")))
		})

		It("a CustomResourceDefinition on the cluster is tighter than in the last release", func(ctx context.Context) {
			bundle := newBundle()
			released, release := newReleased()
			for _, dir := range []string{bundle, release} {
				edit(dir, "memcacheds", func(crd map[string]any) { setMaximumOfSize(crd, 6000) })
			}
			status := scorecard(ctx, newNamespace(ctx), "--bundle="+bundle, "--released="+released, "crds-are-compatible")
			Expect(summary(status)).
				To(HaveKeyWithValue("crds-are-compatible/memcacheds.cache.example.com", scorecardv1alpha3.FailState),
					describe(status))
			Expect(errorsOf(status, "crds-are-compatible/memcacheds.cache.example.com")).
				To(ConsistOf(HavePrefix("the definition of the cluster"), ContainSubstring("maximum decreased : 6000 -> 5000")))
		})

		It("a volume dangles", func(ctx context.Context) {
			bundle := newBundle()
			edit(bundle, "clusterserviceversion", func(csv map[string]any) {
				pod := at[map[string]any](csv, "spec", "install", "spec", "deployments", 0, "spec", "template", "spec")
				pod["volumes"] = []any{map[string]any{"name": "metrics-certs",
					"secret": map[string]any{"secretName": "metrics-server-cert"}}}
				manager := at[map[string]any](pod, "containers", 0)
				manager["args"] = append(manager["args"].([]any), "--metrics-cert-dir=/certs")
			})
			status := scorecard(ctx, "", "--bundle="+bundle, "no-dangling-volumes")
			Expect(summary(status)).To(Equal(map[string]scorecardv1alpha3.State{"no-dangling-volumes": "fail"}))
			Expect(status.Results[0].Errors).To(ConsistOf(
				ContainSubstring("no container mounts the volume metrics-certs"),
				ContainSubstring("needs the Secret metrics-server-cert"),
				ContainSubstring("--metrics-cert-dir=/certs, which lies in no mount")))
		})

		It("an example has a field that its kind does not have", func(ctx context.Context) {
			bundle := newBundle()
			edit(bundle, "clusterserviceversion", func(csv map[string]any) {
				at[map[string]any](csv, "metadata",
					"annotations")["alm-examples"] = `[{"kind": "Foo", "spec": {"deploymentname": "a"}}]`
			})
			status := scorecard(ctx, newNamespace(ctx), "--bundle="+bundle, "drift-is-repaired")
			Expect(summary(status)).To(Equal(every("drift-is-repaired", scorecardv1alpha3.FailState)))
			Expect(errorsOf(status, "drift-is-repaired/Foo")).
				To(ContainElement(ContainSubstring(`unknown field "spec.deploymentname"`)))
			Expect(errorsOf(status, "drift-is-repaired/Memcached")).
				To(ContainElement(ContainSubstring("has to offer an example of a Memcached")))
		})
	})

	It("has nothing to compare the first release with", func(ctx context.Context) {
		released, _ := newReleased()
		bundle := filepath.Join(released, "0.0.9")
		for _, dir := range []string{filepath.Join(released, "none"), released} {
			edit(bundle, "clusterserviceversion", func(csv map[string]any) {
				at[map[string]any](csv, "spec")["version"] = "0.0.9"
			})
			status := scorecard(ctx, "", "--bundle="+bundle, "--released="+dir, "crds-are-compatible")
			Expect(passed(status)).To(BeTrue(), describe(status))
			Expect(status.Results[0].Suggestions).To(ConsistOf(ContainSubstring("there is no release before 0.0.9")))
		}
	})

	DescribeTable("says, in a status, what is wrong with how it was called",
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

	It("says what it may not do", func(ctx context.Context) {
		ns := newNamespace(ctx)
		out, err := cp.Kubectl("-n", ns, "delete", "rolebinding", serviceAccount)
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(ctx, func() map[string]scorecardv1alpha3.State {
			return summary(scorecard(ctx, ns, "--bundle="+newBundle(), "drift-is-repaired"))
		}).Should(Equal(every("drift-is-repaired", scorecardv1alpha3.ErrorState)))
	})
})

func setMaximumOfSize(crd map[string]any, maximum int) {
	at[map[string]any](crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties",
		"size")["maximum"] = maximum
}
