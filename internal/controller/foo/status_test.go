package foo

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
)

func TestStatusOf(t *testing.T) {
	deployment := func(desired, total, updated, available int32,
		conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
			Spec:       appsv1.DeploymentSpec{Replicas: &desired},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: total, UpdatedReplicas: updated,
				AvailableReplicas: available, Conditions: conditions},
		}
	}
	unobserved := deployment(3, 3, 3, 3)
	unobserved.Status.ObservedGeneration = 1
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web",
		errors.New("exceeded quota: q"))

	for _, test := range []struct {
		name                             string
		deployment                       *appsv1.Deployment
		err                              error
		available, progressing, degraded string
		degradedMessage                  string
		replicas, availableReplicas      int32
		wanted                           *int32 // what the Deployment has, if nil
	}{
		{"nothing is wrong", deployment(3, 3, 3, 3), nil,
			"True/AllReplicasAvailable", "False/RolloutComplete", "False/AsExpected", "nothing is wrong", 3, 3, nil},
		{"no pods yet", deployment(3, 0, 0, 0), nil,
			"False/NoReplicasAvailable", "True/RollingOut", "False/AsExpected", "nothing is wrong", 0, 0, nil},
		{"some pods are available", deployment(3, 3, 3, 1), nil,
			"True/SomeReplicasAvailable", "True/RollingOut", "False/AsExpected", "nothing is wrong", 3, 1, nil},
		{"old pods still exist", deployment(3, 4, 3, 3), nil,
			"True/AllReplicasAvailable", "True/RollingOut", "False/AsExpected", "nothing is wrong", 4, 3, nil},
		{"the Deployment controller has not observed the change", unobserved, nil,
			"True/AllReplicasAvailable", "True/RollingOut", "False/AsExpected", "nothing is wrong", 3, 3, nil},
		{"no replicas", deployment(0, 0, 0, 0), nil,
			"True/ScaledToZero", "False/RolloutComplete", "False/AsExpected", "nothing is wrong", 0, 0, nil},
		{"the rollout is stuck", deployment(1, 1, 1, 0, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
			Message: "it has timed out"}), nil,
			"False/NoReplicasAvailable", "True/RollingOut", "True/RolloutStuck",
			"Deployment web: ProgressDeadlineExceeded: it has timed out", 1, 0, nil},
		{"the name is taken by an object without a controller", nil,
			&child.NotControlledError{Kind: "Deployment", Name: "web"},
			"Unknown/NotObserved", "False/Blocked", "True/NameTaken",
			`Deployment "web" exists and is not controlled by anything; delete it (kubectl -n default delete ` +
				`deployment web) or choose another spec.deploymentName`, 0, 0, nil},
		{"the name is taken, and the old Deployment is still available", deployment(1, 1, 1, 1),
			&child.NotControlledError{Kind: "Deployment", Name: "web",
				Controller: &metav1.OwnerReference{Kind: "Foo", Name: "other"}},
			"True/AllReplicasAvailable", "False/Blocked", "True/NameTaken",
			`Deployment "web" exists and is controlled by Foo "other"; delete it (kubectl -n default delete ` +
				`deployment web) or choose another spec.deploymentName`, 1, 1, nil},
		{"a quota refuses", nil, fmt.Errorf("applying: %w", forbidden),
			"Unknown/NotObserved", "False/Blocked", "True/Refused",
			`applying: deployments "web" is forbidden: exceeded quota: q`, 0, 0, nil},
		{"a request fails", deployment(1, 1, 1, 1), errors.New("connection reset"),
			"True/AllReplicasAvailable", "False/Blocked", "True/Error", "connection reset", 1, 1, nil},
		{"a policy caps the count", deployment(5, 5, 5, 5), nil,
			"True/AllReplicasAvailable", "False/RolloutComplete", "True/Refused",
			"Deployment web was applied with 10 replicas and has 5: a policy or webhook of the cluster changes it", 5, 5,
			ptr.To[int32](10)},
	} {
		t.Run(test.name, func(t *testing.T) {
			foo := &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example", Generation: 4},
				Spec: samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: test.wanted}}
			if test.wanted == nil && test.deployment != nil {
				foo.Spec.Replicas = test.deployment.Spec.Replicas
			}
			got := statusOf(foo, result{deployment: test.deployment, isApplied: test.err == nil, err: test.err})
			if got.ObservedGeneration != 4 || got.Selector != "app=nginx,controller=example" {
				t.Errorf("observedGeneration %d, selector %q", got.ObservedGeneration, got.Selector)
			}
			if got.Replicas != test.replicas || got.AvailableReplicas != test.availableReplicas {
				t.Errorf("replicas %d, availableReplicas %d; want %d, %d", got.Replicas, got.AvailableReplicas, test.replicas,
					test.availableReplicas)
			}
			want := []string{"Available=" + test.available, "Progressing=" + test.progressing, "Degraded=" + test.degraded}
			if len(got.Conditions) != len(want) {
				t.Fatalf("conditions: %v", got.Conditions)
			}
			for i, c := range got.Conditions {
				if actual := fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason); actual != want[i] || c.ObservedGeneration != 4 ||
					c.LastTransitionTime.IsZero() {
					t.Errorf("condition %s of generation %d; want %s of 4", actual, c.ObservedGeneration, want[i])
				}
			}
			if got := got.Conditions[2].Message; got != test.degradedMessage {
				t.Errorf("message: %s\n   want: %s", got, test.degradedMessage)
			}
		})
	}
}
