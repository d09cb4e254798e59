package main

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/kinds"
)

// kind is a kind and what the tests do with it.
type kind struct {
	kinds.Kind
	// isSample accepts the example that the tests use; nil for the first one of the kind.
	isSample func(example client.Object) bool
	// prepare sets the names that an object has besides its own, and avoids needing what may not be there; nil if there
	// is nothing to set.
	prepare func(object client.Object)
	// writes are changes of fields of the spec that take more than another value to be observed, such as a Job that
	// becomes due. They are made one after the other; the other fields are written after them: one more pod, and values
	// from the schema.
	writes []write
	// slow are the fields of the spec whose effect takes longer to be observed than a test should. test/e2e shows it.
	slow []string
}

// write is a change of one field of a spec.
type write struct {
	field  string // of the spec
	change func(object client.Object)
	// value is for a write that is derived from the schema: it returns what to set the field to. Its effect shows in the
	// children.
	value func(object client.Object) any
	// effect returns a check of the effect; nil where [trial.isReconciled] is enough.
	effect func(t *trial, object client.Object) check
}

var allKinds = []kind{foos, memcacheds, memcachedSets, cronJobs}

var (
	foos = kind{
		Kind: kinds.Foo,
		prepare: func(object client.Object) {
			object.(*samplev1alpha1.Foo).Spec.DeploymentName = object.GetName()
		},
		writes: []write{
			{field: "deploymentName", change: func(object client.Object) {
				object.(*samplev1alpha1.Foo).Spec.DeploymentName += "-moved"
			}},
		},
	}
	// The example with metrics, whose pods have a sidecar.
	memcacheds = kind{
		Kind: kinds.Memcached,
		isSample: func(example client.Object) bool {
			spec := example.(*cachev1alpha1.Memcached).Spec
			return spec.Metrics != nil && spec.TLS.SecretName == ""
		},
		// Two ports must differ, so it is not the value that tls.port gets.
		writes: []write{{field: "containerPort", value: func(client.Object) any { return int64(11311) }}},
	}
	// The example with all fields except image, tls and metrics.
	memcachedSets = kind{Kind: kinds.MemcachedSet, isSample: func(example client.Object) bool {
		spec := example.(*cachev1alpha1.Memcached).Spec
		return spec.WorkloadType == cachev1alpha1.StatefulSetWorkload && spec.PodTemplate != nil
	}}
	cronJobs = kind{
		Kind: kinds.CronJob,
		// Nothing is due unless a test writes that it is. Its Jobs make no pods, whose image may not be there: they stay
		// active.
		prepare: func(object client.Object) {
			cj := object.(*tutorialv1.CronJob)
			cj.Spec.Schedule, cj.Spec.ConcurrencyPolicy = rarely, tutorialv1.ForbidConcurrent
			cj.Spec.JobTemplate.Spec.Suspend = ptr.To(true)
		},
		writes: []write{
			{field: "timeZone", change: func(object client.Object) {
				object.(*tutorialv1.CronJob).Spec.TimeZone = ptr.To("Etc/GMT-3")
			}, effect: isDueAt(21)},
			{field: "schedule", change: hurry, effect: activeJobs(1)},
			// The active Job keeps the next one from starting in time.
			{field: "startingDeadlineSeconds", change: func(object client.Object) {
				object.(*tutorialv1.CronJob).Spec.StartingDeadlineSeconds = ptr.To(int64(1))
			}, effect: hasMissed},
			{field: "concurrencyPolicy", change: func(object client.Object) {
				object.(*tutorialv1.CronJob).Spec.ConcurrencyPolicy = tutorialv1.AllowConcurrent
			}, effect: activeJobs(2)},
			{field: "jobTemplate", change: complete, effect: hasSucceeded},
			{field: "suspend", change: suspend},
		},
		slow: []string{"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}, // a Job is kept for a minute at least
	}
)

// addPod returns a change that asks for one pod more.
func addPod(k kinds.Kind) func(client.Object) {
	return func(object client.Object) { k.Resize(object, k.Pods(object)+1) }
}

// grow changes a spec so that the object gets another pod or Job.
func (k kind) grow(object client.Object) {
	if k.Deploys {
		addPod(k.Kind)(object)
		return
	}
	growRuns(object)
}

// contradiction returns what the children, which all exist, or the status do not have as the spec wants it.
func (t *trial) contradiction(ctx context.Context, object client.Object) (wrong string, err error) {
	if cronJob, ok := object.(*tutorialv1.CronJob); ok {
		return contradictsSchedule(cronJob), nil
	}
	if foo, ok := object.(*samplev1alpha1.Foo); ok && foo.Spec.Replicas == nil {
		return "", nil
	}
	workload := t.ChildrenOf(object)[0]
	err = t.Get(ctx, client.ObjectKeyFromObject(workload), workload)
	replicas, _ := kinds.Workload(workload)
	return differs("spec.replicas of "+t.called(workload), ptr.Deref(*replicas, 1), t.Pods(object)), err
}
