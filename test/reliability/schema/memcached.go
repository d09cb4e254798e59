package schema

import (
	"context"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/history"
)

// Fields that have specs of their own (kinds.Kind.OwnSpecs) are tried here where Kubernetes accepts some values.
var (
	priorityClassName = special{values: []class{{"one", "system-cluster-critical", legal, nil},
		{"other", "system-node-critical", legal, nil}}}
	runtimeClassName = special{values: []class{{"one", "one", legal, nil}, {"other", "other", legal, nil}},
		prepare: func(ctx context.Context, s *subject) error {
			for _, name := range []string{"one", "other"} {
				class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "runc"}
				err := client.IgnoreAlreadyExists(s.Cluster.ControlPlane.Client.Create(ctx, class))
				if err != nil {
					return err
				}
			}
			return nil
		}}
)

var paused = special{
	isLate: true,
	expect: func(c class, resource map[string]any, _ history.Normal) error {
		_, reason, _ := conditionOf(&unstructured.Unstructured{Object: resource}, "Progressing")
		return expect((reason == "Paused") == (c.value == true),
			"the reason Paused if it is paused, and another reason otherwise")
	},
}

// The default is Deployment.
var workloadType = special{
	values:  []class{{"Deployment", "Deployment", legal, nil}},
	onlyNew: []class{{"StatefulSet", "StatefulSet", legal, []string{"cannot be changed"}}},
	expect: func(c class, _ map[string]any, end history.Normal) error {
		deployments, sets := namesOf(end, history.Deployments), namesOf(end, history.StatefulSets)
		if c.value == "StatefulSet" {
			deployments, sets = sets, deployments
		}
		return expect(deployments == objectName && sets == "", "one workload, of the type %v", c.value)
	},
}

var size = special{
	pods: podRoom,
	expect: func(c class, resource map[string]any, end history.Normal) error {
		size := c.value.(int64)
		pods := float64(min(size, podRoom))
		nodes, _ := at(resource, "status", "nodes").([]any)
		_, reason, _ := conditionOf(&unstructured.Unstructured{Object: resource}, "Available")
		want := "AllNodesReady"
		switch {
		case size == 0:
			want = "ScaledToZero"
		case size > podRoom:
			want = "SomeNodesReady"
		}
		hasChildren := namesOf(end, history.Deployments) == objectName && namesOf(end, history.Services) == objectName &&
			namesOf(end, history.Budgets) == objectName
		return expect(hasChildren && at(objectsOf(end, history.Deployments)[0], "spec", "replicas") == float64(size) &&
			float64(len(nodes)) == pods && at(resource, "status", "readyNodes") == pods && reason == want,
			"the reason %s, a Deployment with %d replicas, a Service, a PodDisruptionBudget, and a status that counts the nodes",
			want, size)
	},
}
