package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/kinds"
)

// kind is a kind and what the tests do with it.
type kind struct {
	kinds.Kind
	// prepare gives an object a name, and what it makes names of its own. It keeps it from needing what may not be there.
	prepare func(object client.Object, name string)
	// contradiction tells what the children, which all exist, or the status do not have as the spec wants it.
	contradiction func(ctx context.Context, reader client.Reader, object client.Object) (wrong string, err error)
	// writes are changes of fields of the spec that take more than another value to be observed, such as a Job that
	// becomes due. They are made one after the other; the other fields are written after them: one more pod, and values
	// from the schema.
	writes []write
	// slow are the fields of the spec whose effect takes longer to be seen than a test should. test/e2e shows it.
	slow []string
	// tries are what the tests do to find out about the kind.
	tries *tries
}

// tries are what the tests do for a kind.
type tries struct {
	drift, honest func(ctx context.Context, t *trial)
	// grow changes a spec so that the object gets another pod or Job, and touch so that there is another pass.
	grow, touch func(object client.Object)
}

// ofChildren returns those for a kind that repairs its children.
func ofChildren(k kinds.Kind) *tries {
	return &tries{drift: driftIsRepaired, honest: statusIsHonest, grow: addPod(k), touch: addPod(k)}
}

// ofRuns are for a kind that creates a Job at each time of a schedule, once, and leaves it alone.
var ofRuns = &tries{drift: noRunIsRepeated, honest: statusOfRunsIsHonest, grow: growRuns, touch: touchRuns}

// write is a change of one field of a spec.
type write struct {
	field  string // of the spec
	change func(object client.Object)
	// value is for a write that is derived from the schema: it returns what to set the field to. Its effect shows in the
	// children.
	value func(object client.Object) any
	// effect tells what has not become of it yet; nil where no contradiction is effect enough.
	effect func(t *trial, object client.Object) check
}

// allKinds are all there are.
var allKinds = []kind{foos, memcacheds, cronJobs}

var (
	foos = kind{
		Kind: kinds.Foo,
		prepare: func(object client.Object, name string) {
			object.SetName(name)
			object.(*samplev1alpha1.Foo).Spec.DeploymentName = name
		},
		contradiction: hasReplicas(kinds.Foo),
		writes: []write{
			{field: "deploymentName", change: func(object client.Object) {
				object.(*samplev1alpha1.Foo).Spec.DeploymentName += "-moved"
			}},
		},
		tries: ofChildren(kinds.Foo),
	}
	memcacheds = kind{
		Kind:          kinds.Memcached,
		prepare:       func(object client.Object, name string) { object.SetName(name) },
		contradiction: hasReplicas(kinds.Memcached),
		tries:         ofChildren(kinds.Memcached),
	}
	cronJobs = kind{
		Kind: kinds.CronJob,
		// Nothing is due unless a test writes that it is. Its Jobs make no pods, whose image may not be there: they stay
		// active.
		prepare: func(object client.Object, name string) {
			cj := object.(*tutorialv1.CronJob)
			cj.Name, cj.Spec.Schedule, cj.Spec.ConcurrencyPolicy = name, rarely, tutorialv1.ForbidConcurrent
			cj.Spec.JobTemplate.Spec.Suspend = ptr.To(true)
		},
		contradiction: func(_ context.Context, _ client.Reader, object client.Object) (string, error) {
			return contradictsSchedule(object.(*tutorialv1.CronJob)), nil
		},
		writes: []write{
			{field: "timeZone", change: func(object client.Object) {
				object.(*tutorialv1.CronJob).Spec.TimeZone = ptr.To("Etc/GMT-3")
			}, effect: isDueAt(21)},
			{field: "schedule", change: hurry, effect: activeJobs(1)},
			// The Job that is active keeps the next from being in time.
			{field: "startingDeadlineSeconds", change: func(object client.Object) {
				object.(*tutorialv1.CronJob).Spec.StartingDeadlineSeconds = ptr.To(int64(1))
			}, effect: hasMissed},
			{field: "concurrencyPolicy", change: func(object client.Object) {
				object.(*tutorialv1.CronJob).Spec.ConcurrencyPolicy = tutorialv1.AllowConcurrent
			}, effect: activeJobs(2)},
			{field: "jobTemplate", change: complete, effect: hasSucceeded},
			{field: "suspend", change: suspend},
		},
		slow:  []string{"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}, // a Job is kept for a minute at least
		tries: ofRuns,
	}
)

// addPod returns a change that asks for one pod more.
func addPod(k kinds.Kind) func(client.Object) {
	return func(object client.Object) { k.Resize(object, k.Pods(object)+1) }
}

// hasReplicas returns a contradiction: the Deployment of an object wants another number of pods than its spec.
func hasReplicas(k kinds.Kind) func(ctx context.Context, reader client.Reader, object client.Object) (wrong string,
	err error) {
	return func(ctx context.Context, reader client.Reader, object client.Object) (string, error) {
		if foo, ok := object.(*samplev1alpha1.Foo); ok && foo.Spec.Replicas == nil {
			return "", nil
		}
		deployment := k.ChildrenOf(object)[0].(*appsv1.Deployment)
		if err := reader.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return "", err
		}
		if got, want := ptr.Deref(deployment.Spec.Replicas, 1), k.Pods(object); got != want {
			return fmt.Sprintf("Deployment %s wants %d pods, and the spec %d", deployment.Name, got, want), nil
		}
		return "", nil
	}
}
