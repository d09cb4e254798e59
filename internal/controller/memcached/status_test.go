package memcached

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
)

func TestStatusOf(t *testing.T) {
	deployment := func(desired, total, updated, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "mc"},
			Spec:       appsv1.DeploymentSpec{Replicas: &desired},
			Status:     appsv1.DeploymentStatus{Replicas: total, UpdatedReplicas: updated, AvailableReplicas: available},
		}
	}
	stuck := deployment(2, 1, 1, 1)
	stuck.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure,
		Status: corev1.ConditionTrue,
		Reason: "FailedCreate", Message: "exceeded quota"}}
	a, b := pod("a", true), pod("b", true)
	bStarting := pod("b", false)
	bCrashed := pod("b", false, corev1.ContainerStatus{State: terminated("Error", 64, "bad option")})
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "mc", nil)

	for _, test := range []struct {
		name                             string
		size                             int32
		done                             result
		err                              error
		available, progressing, degraded string
		ready                            int32
	}{
		{"nothing is wrong", 2,
			result{workload: deployment(2, 2, 2, 2), isApplied: true, nodes: nodes{pods: []corev1.Pod{a, b}}}, nil,
			"True/AllNodesReady", "False/RolloutComplete", "False/AsExpected", 2},
		{"no pods yet", 2, result{workload: deployment(2, 0, 0, 0), isApplied: true, nodes: nodes{pods: nil}}, nil,
			"False/NoNodesReady", "True/RollingOut", "False/AsExpected", 0},
		{"one is starting", 2,
			result{workload: deployment(2, 2, 2, 1), isApplied: true, nodes: nodes{pods: []corev1.Pod{a, bStarting}}}, nil,
			"True/SomeNodesReady", "True/RollingOut", "False/AsExpected", 1},
		{"the rollout is complete, but not all pods are observed", 2,
			result{workload: deployment(2, 2, 2, 2), isApplied: true, nodes: nodes{pods: []corev1.Pod{a}}}, nil,
			"True/SomeNodesReady", "True/RollingOut", "False/AsExpected", 1},
		{"the pods are ready, but the Deployment does not count them yet", 2,
			result{workload: deployment(2, 2, 2, 1), isApplied: true, nodes: nodes{pods: []corev1.Pod{a, b}}}, nil,
			"True/AllNodesReady", "True/RollingOut", "False/AsExpected", 2},
		{"one more than spec.size", 1,
			result{workload: deployment(1, 2, 1, 2), isApplied: true, nodes: nodes{pods: []corev1.Pod{a, b}}}, nil,
			"True/AllNodesReady", "True/RollingOut", "False/AsExpected", 2},
		{"spec.size is 0", 0, result{workload: deployment(0, 0, 0, 0), isApplied: true, nodes: nodes{pods: nil}}, nil,
			"True/ScaledToZero", "False/RolloutComplete", "False/AsExpected", 0},
		{"one has crashed", 2,
			result{workload: deployment(2, 2, 2, 1), isApplied: true, nodes: nodes{pods: []corev1.Pod{a, bCrashed}}}, nil,
			"True/SomeNodesReady", "True/RollingOut", "True/NodeCrashing", 1},
		{"pods are refused", 2, result{workload: stuck, isApplied: true, nodes: nodes{pods: []corev1.Pod{a}}}, nil,
			"True/SomeNodesReady", "True/RollingOut", "True/RolloutStuck", 1},
		{"the Deployment's name is taken", 2, result{}, &child.NotControlledError{Kind: "Deployment", Name: "mc"},
			"Unknown/NotObserved", "False/Blocked", "True/NameTaken", 0},
		{"the Service's name is taken, and the nodes are ready", 2,
			result{workload: deployment(2, 2, 2, 2), isApplied: true, nodes: nodes{pods: []corev1.Pod{a, b}}},
			errors.Join(nil, &child.NotControlledError{Kind: "Service", Name: "mc"}),
			"True/AllNodesReady", "False/RolloutComplete", "True/NameTaken", 2},
		{"the Service's name is taken, and a node is starting", 2,
			result{workload: deployment(2, 2, 2, 1), isApplied: true, nodes: nodes{pods: []corev1.Pod{a, bStarting}}},
			&child.NotControlledError{Kind: "Service", Name: "mc"},
			"True/SomeNodesReady", "True/RollingOut", "True/NameTaken", 1},
		{"the Service's name is taken, and a node has crashed", 2,
			result{workload: deployment(2, 2, 2, 1), isApplied: true, nodes: nodes{pods: []corev1.Pod{a, bCrashed}}},
			&child.NotControlledError{Kind: "Service", Name: "mc"},
			"True/SomeNodesReady", "True/RollingOut", "True/NameTaken", 1},
		{"a child is refused", 2,
			result{workload: deployment(2, 2, 2, 2), isApplied: false, nodes: nodes{pods: []corev1.Pod{a, b}}},
			fmt.Errorf("applying: %w", invalid),
			"True/AllNodesReady", "False/Blocked", "True/Refused", 2},
		{"a policy caps the count", 3,
			result{workload: deployment(2, 2, 2, 2), isApplied: true, nodes: nodes{pods: []corev1.Pod{a, b}}}, nil,
			"True/SomeNodesReady", "True/RollingOut", "True/Refused", 2},
		{"a request fails", 2,
			result{workload: deployment(2, 2, 2, 2), isApplied: false, nodes: nodes{pods: []corev1.Pod{a, b}}},
			errors.New("connection reset"),
			"True/AllNodesReady", "False/Blocked", "True/Error", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			mc := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mc", Generation: 4},
				Spec: cachev1alpha1.MemcachedSpec{Size: test.size}}
			done := test.done
			done.err = test.err
			got := statusOf(mc, done)
			var names []string
			for _, pod := range test.done.nodes.pods {
				names = append(names, pod.Name)
			}
			if got.Nodes == nil || !slices.Equal(got.Nodes, names) || int(got.Size) != len(names) ||
				got.ReadyNodes != test.ready {
				t.Errorf("nodes %v, size %d, readyNodes %d; want %v, %d, %d", got.Nodes, got.Size, got.ReadyNodes, names,
					len(names), test.ready)
			}
			if got.ObservedGeneration != 4 || got.Selector != "app=memcached,memcached_cr=mc" || got.ServiceName != "mc" {
				t.Errorf("observedGeneration %d, selector %q, serviceName %q", got.ObservedGeneration, got.Selector,
					got.ServiceName)
			}
			want := []string{"Available=" + test.available, "Progressing=" + test.progressing, "Degraded=" + test.degraded,
				"MemorySufficient=True/LimitSufficient"}
			if len(got.Conditions) != len(want) {
				t.Fatalf("conditions: %v", got.Conditions)
			}
			for i, c := range got.Conditions {
				if actual := fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason); actual != want[i] || c.ObservedGeneration != 4 {
					t.Errorf("condition %s of generation %d; want %s of 4", actual, c.ObservedGeneration, want[i])
				}
			}
		})
	}
}

// No problem hides another one.
func TestDegradedListsEveryProblem(t *testing.T) {
	mc := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mc"},
		Spec: cachev1alpha1.MemcachedSpec{Size: 2}}
	stuck := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "mc"},
		Spec: appsv1.DeploymentSpec{Replicas: &mc.Spec.Size}}
	stuck.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure,
		Status: corev1.ConditionTrue,
		Reason: "FailedCreate", Message: "exceeded quota"}}
	got := problems(mc, result{workload: stuck, isApplied: true,
		nodes: nodes{pods: []corev1.Pod{
			pod("a", false, corev1.ContainerStatus{State: terminated("Error", 64, "bad option")})}},
		err: errors.Join(errors.New("connection reset"), &child.NotControlledError{Kind: "Service", Name: "mc"}),
	})
	var reasons []string
	for _, problem := range got {
		reasons = append(reasons, problem.Reason)
	}
	want := []string{"NameTaken", "Error", "NodeCrashing", "RolloutStuck"}
	if !slices.Equal(reasons, want) {
		t.Errorf("problems: %v; want %v, the worst first", reasons, want)
	}
}
