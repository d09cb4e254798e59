package foo

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

func TestIndexName(t *testing.T) {
	progressing := func(reason string, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: samplev1alpha1.ConditionProgressing, Reason: reason, ObservedGeneration: generation}}
	}
	for _, test := range []struct {
		name       string
		conditions []metav1.Condition
		isFound    bool
	}{
		{"a new one", nil, true},
		{"one whose Deployment is being rolled out", progressing(samplev1alpha1.ReasonRollingOut, 2), true},
		{"one whose name is taken", progressing(samplev1alpha1.ReasonBlocked, 2), true},
		{"one whose rollout is complete", progressing(samplev1alpha1.ReasonRolloutComplete, 2), false},
		{"one whose rollout was complete before a change", progressing(samplev1alpha1.ReasonRolloutComplete, 1), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			foo := &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Generation: 2},
				Spec: samplev1alpha1.FooSpec{DeploymentName: "web"}}
			foo.Status.Conditions = test.conditions
			found := indexName(foo)
			if isFound := len(found) == 1 && found[0] == "web"; isFound != test.isFound || len(found) > 1 {
				t.Errorf("it is found by %q", found)
			}
		})
	}
}
