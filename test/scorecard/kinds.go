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

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// kind is what the tests have to know of a kind.
type kind struct {
	name string
	crd  string
	// empty returns one to read into.
	empty func() client.Object
	// rename gives an object a name, and what it makes names of its own.
	rename func(object client.Object, name string)
	// children returns what an object makes, to be read. Names are all that is set.
	children func(object client.Object) []client.Object
	// contradiction tells what children, which all exist, do not have as the spec wants it.
	contradiction func(ctx context.Context, reader client.Reader, object client.Object) (wrong string, err error)
	// writes are changes of the fields of the spec, each of which has an effect on the children.
	writes []write
	// pods returns how many pods an object wants; resize has it want another number.
	pods   func(object client.Object) int32
	resize func(object client.Object, pods int32)
	status func(object client.Object) status
	// nameTaken is the reason of the event that tells of a Deployment of somebody else.
	nameTaken string
}

// write is a change of one field of a spec.
type write struct {
	field  string // of the spec
	change func(object client.Object)
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
var kinds = []kind{
	{
		name:  "Foo",
		crd:   "foos.samplecontroller.k8s.io",
		empty: func() client.Object { return &samplev1alpha1.Foo{} },
		rename: func(object client.Object, name string) {
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
			{"replicas", func(object client.Object) {
				foo := object.(*samplev1alpha1.Foo)
				foo.Spec.Replicas = ptr.To(ptr.Deref(foo.Spec.Replicas, 1) + 1)
			}},
			{"deploymentName", func(object client.Object) { object.(*samplev1alpha1.Foo).Spec.DeploymentName += "-moved" }},
		},
		pods:   func(object client.Object) int32 { return ptr.Deref(object.(*samplev1alpha1.Foo).Spec.Replicas, 1) },
		resize: func(object client.Object, pods int32) { object.(*samplev1alpha1.Foo).Spec.Replicas = &pods },
		status: func(object client.Object) status {
			s := object.(*samplev1alpha1.Foo).Status
			return status{s.ObservedGeneration, s.Replicas, s.AvailableReplicas, nil, s.Selector, s.Conditions}
		},
		nameTaken: samplev1alpha1.EventErrResourceExists,
	},
	{
		name:   "Memcached",
		crd:    "memcacheds.cache.example.com",
		empty:  func() client.Object { return &cachev1alpha1.Memcached{} },
		rename: func(object client.Object, name string) { object.SetName(name) },
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
			{"size", func(object client.Object) { object.(*cachev1alpha1.Memcached).Spec.Size++ }},
		},
		pods:   func(object client.Object) int32 { return object.(*cachev1alpha1.Memcached).Spec.Size },
		resize: func(object client.Object, pods int32) { object.(*cachev1alpha1.Memcached).Spec.Size = pods },
		status: func(object client.Object) status {
			s := object.(*cachev1alpha1.Memcached).Status
			return status{s.ObservedGeneration, s.Size, s.ReadyNodes, append([]string{}, s.Nodes...), s.Selector, s.Conditions}
		},
		nameTaken: cachev1alpha1.ReasonNameTaken,
	},
}

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
