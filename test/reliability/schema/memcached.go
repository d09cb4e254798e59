package schema

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/test/reliability/history"
)

var memcachedTable = table{
	base: map[string]any{"size": int64(1)},
	fields: map[string]special{
		"spec.size": {
			pods: podRoom,
			expect: func(class Class, resource map[string]any, end history.Normal) error {
				size := class.value.(int64)
				pods := float64(min(size, podRoom))
				nodes, _ := at(resource, "status", "nodes").([]any)
				_, reason, _ := conditionOf(&unstructured.Unstructured{Object: resource}, "Available")
				want := map[bool]string{true: "AllNodesReady", false: "SomeNodesReady"}[size <= podRoom]
				if size == 0 {
					want = "ScaledToZero"
				}
				hasChildren := namesOf(end, history.Deployments) == objectName && namesOf(end, history.Services) == objectName &&
					namesOf(end, history.Budgets) == objectName
				return expect(hasChildren && at(objectsOf(end, history.Deployments)[0], "spec", "replicas") == float64(size) &&
					float64(len(nodes)) == pods && at(resource, "status", "readyNodes") == pods && reason == want,
					want+", a Deployment of that size, a Service, a PodDisruptionBudget, and a status that counts the nodes")
			},
		},
	},
}
