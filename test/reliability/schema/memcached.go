package schema

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/test/reliability/history"
)

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
