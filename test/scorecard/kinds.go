package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// kind is what the tests have to know of a kind.
type kind struct {
	name string
	crd  string
	// empty returns one to read into.
	empty func() client.Object
	// prepare gives an object a name, and what it makes names of its own. It keeps it from needing what may not be there.
	prepare func(object client.Object, name string)
	// children returns what an object makes under names that its spec says, to be read. Names are all that is set.
	children func(object client.Object) []client.Object
	// contradiction tells what the children, which all exist, or the status do not have as the spec wants it.
	contradiction func(ctx context.Context, reader client.Reader, object client.Object) (wrong string, err error)
	// writes are changes of the fields of the spec, each of which has an effect. They are made one after the other.
	writes []write
	// slow are the fields of the spec whose effect takes longer to be seen than a test should. test/e2e shows it.
	slow []string
	// tries are what the tests do to find out about the kind.
	tries *tries
	// pods returns how many pods an object wants, where the kind keeps any; resize has it want another number.
	pods   func(object client.Object) int32
	resize func(object client.Object, pods int32)
	status func(object client.Object) status
	// nameTaken is the reason of the event that tells of a child of somebody else.
	nameTaken string
}

// tries are what the tests mean for a kind.
type tries struct {
	isolated, drift, foreign, honest func(ctx context.Context, t *trial) error
}

// ofChildren are for kinds whose children stay and are kept as they should be.
var ofChildren = &tries{isolated: areIsolated, drift: driftIsRepaired, foreign: foreignDeploymentIsRefused, honest: statusIsHonest}

// write is a change of one field of a spec.
type write struct {
	field  string // of the spec
	change func(object client.Object)
	// effect tells what has not become of it yet; nil where no contradiction is effect enough.
	effect func(ctx context.Context, t *trial, object client.Object) (wrong string, err error)
}

// status is what the kinds have in common.
type status struct {
	observedGeneration int64
	pods, ready        int32
	nodes              []string // the names of the pods; nil if the kind does not tell them
	selector           string
	conditions         []metav1.Condition
}

// kinds are all there are.
var kinds = []kind{foos, memcacheds, cronJobs}

var (
	foos = kind{
		name:  "Foo",
		crd:   "foos.samplecontroller.k8s.io",
		empty: func() client.Object { return &samplev1alpha1.Foo{} },
		prepare: func(object client.Object, name string) {
			object.SetName(name)
			object.(*samplev1alpha1.Foo).Spec.DeploymentName = name
		},
		children: func(object client.Object) []client.Object {
			return []client.Object{&appsv1.Deployment{ObjectMeta: named(object, object.(*samplev1alpha1.Foo).Spec.DeploymentName)}}
		},
		contradiction: func(ctx context.Context, reader client.Reader, object client.Object) (string, error) {
			foo := object.(*samplev1alpha1.Foo)
			if foo.Spec.Replicas == nil {
				return "", nil
			}
			return hasReplicas(ctx, reader, named(object, foo.Spec.DeploymentName), *foo.Spec.Replicas)
		},
		writes: []write{
			{field: "replicas", change: func(object client.Object) {
				foo := object.(*samplev1alpha1.Foo)
				foo.Spec.Replicas = ptr.To(ptr.Deref(foo.Spec.Replicas, 1) + 1)
			}},
			{field: "deploymentName", change: func(object client.Object) { object.(*samplev1alpha1.Foo).Spec.DeploymentName += "-moved" }},
		},
		tries:  ofChildren,
		pods:   func(object client.Object) int32 { return ptr.Deref(object.(*samplev1alpha1.Foo).Spec.Replicas, 1) },
		resize: func(object client.Object, pods int32) { object.(*samplev1alpha1.Foo).Spec.Replicas = &pods },
		status: func(object client.Object) status {
			s := object.(*samplev1alpha1.Foo).Status
			return status{s.ObservedGeneration, s.Replicas, s.AvailableReplicas, nil, s.Selector, s.Conditions}
		},
		nameTaken: samplev1alpha1.EventErrResourceExists,
	}
	memcacheds = kind{
		name:    "Memcached",
		crd:     "memcacheds.cache.example.com",
		empty:   func() client.Object { return &cachev1alpha1.Memcached{} },
		prepare: func(object client.Object, name string) { object.SetName(name) },
		children: func(object client.Object) []client.Object {
			return []client.Object{
				&appsv1.Deployment{ObjectMeta: named(object, object.GetName())},
				&corev1.Service{ObjectMeta: named(object, object.GetName())},
				&policyv1.PodDisruptionBudget{ObjectMeta: named(object, object.GetName())},
			}
		},
		contradiction: func(ctx context.Context, reader client.Reader, object client.Object) (string, error) {
			return hasReplicas(ctx, reader, named(object, object.GetName()), object.(*cachev1alpha1.Memcached).Spec.Size)
		},
		writes: []write{
			{field: "size", change: func(object client.Object) { object.(*cachev1alpha1.Memcached).Spec.Size++ }},
		},
		tries:  ofChildren,
		pods:   func(object client.Object) int32 { return object.(*cachev1alpha1.Memcached).Spec.Size },
		resize: func(object client.Object, pods int32) { object.(*cachev1alpha1.Memcached).Spec.Size = pods },
		status: func(object client.Object) status {
			s := object.(*cachev1alpha1.Memcached).Status
			return status{s.ObservedGeneration, s.Size, s.ReadyNodes, append([]string{}, s.Nodes...), s.Selector, s.Conditions}
		},
		nameTaken: cachev1alpha1.ReasonNameTaken,
	}
	cronJobs = kind{
		name:  "CronJob",
		crd:   "cronjobs.batch.tutorial.kubebuilder.io",
		empty: func() client.Object { return &tutorialv1.CronJob{} },
		// Nothing is due unless a test writes that it is. Its Jobs make no pods, whose image may not be there: they stay active.
		prepare: func(object client.Object, name string) {
			cj := object.(*tutorialv1.CronJob)
			cj.Name, cj.Spec.Schedule, cj.Spec.ConcurrencyPolicy = name, rarely, tutorialv1.ForbidConcurrent
			cj.Spec.JobTemplate.Spec.Suspend = ptr.To(true)
		},
		children: func(client.Object) []client.Object { return nil }, // names of Jobs come by the clock
		contradiction: func(_ context.Context, _ client.Reader, object client.Object) (string, error) {
			return contradictsSchedule(object.(*tutorialv1.CronJob)), nil
		},
		writes: []write{
			{field: "timeZone", change: func(object client.Object) { object.(*tutorialv1.CronJob).Spec.TimeZone = ptr.To("Etc/GMT-3") }, effect: isDueAt(21)},
			{field: "schedule", change: hurry, effect: hasActive(1)},
			// The Job that is active keeps the next from being in time.
			{field: "startingDeadlineSeconds", change: func(object client.Object) {
				object.(*tutorialv1.CronJob).Spec.StartingDeadlineSeconds = ptr.To(int64(1))
			}, effect: hasMissed},
			{field: "concurrencyPolicy", change: func(object client.Object) {
				object.(*tutorialv1.CronJob).Spec.ConcurrencyPolicy = tutorialv1.AllowConcurrent
			}, effect: hasActive(2)},
			{field: "jobTemplate", change: complete, effect: hasSucceeded},
			{field: "suspend", change: func(object client.Object) { object.(*tutorialv1.CronJob).Spec.Suspend = ptr.To(true) }},
		},
		slow:  []string{"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}, // a Job is kept for a minute at least
		tries: ofRuns,
		status: func(object client.Object) status {
			s := object.(*tutorialv1.CronJob).Status
			return status{observedGeneration: s.ObservedGeneration, conditions: s.Conditions}
		},
		nameTaken: tutorialv1.ReasonNameTaken,
	}
)

func named(object client.Object, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: name}
}

// hasReplicas tells whether a Deployment wants another number of pods.
func hasReplicas(ctx context.Context, reader client.Reader, name metav1.ObjectMeta, want int32) (wrong string, err error) {
	deployment := &appsv1.Deployment{ObjectMeta: name}
	if err := reader.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		return "", err
	}
	if got := ptr.Deref(deployment.Spec.Replicas, 1); got != want {
		return fmt.Sprintf("Deployment %s wants %d pods, and the spec %d", name.Name, got, want), nil
	}
	return "", nil
}
