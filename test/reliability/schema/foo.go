package schema

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/history"
)

var fooTable = table{
	base: map[string]any{"deploymentName": "web", "replicas": int64(2)},
	fields: map[string]special{
		"spec.deploymentName": {
			values: []Class{
				{"other", "web", legal}, {"longer", "web-2.example", legal}, {"shortest", "a", legal},
				{"longest", strings.Repeat("a", validation.DNS1123SubdomainMaxLength), legal},
				{"upper case", "Web", rejected}, {"dash at the end", "web-", rejected}, {"space", "a b", rejected},
			},
			expect: func(class Class, _ map[string]any, end history.Normal) error {
				return expect(namesOf(end, history.Deployments) == class.value, "one Deployment of that name")
			},
		},
		"spec.replicas": {
			pods: podRoom, carried: countCarried, carry: scale,
			expect: func(class Class, resource map[string]any, end history.Normal) error {
				count, isCount := class.value.(int64)
				if !isCount {
					count = 1
				}
				// Of 2^31-1 replicas the Deployment controller creates no pods, because its surge overflows.
				return expect(at(objectsOf(end, history.Deployments)[0], "spec", "replicas") == float64(count) &&
					(count > podRoom || at(resource, "status", "replicas") == float64(count)),
					"a Deployment of that many replicas, and a status that counts the pods")
			},
		},
	},
}

// countCarried: without spec.replicas the Deployment keeps its count.
func countCarried(before string, class Class) string {
	if class.value == absent || class.value == nil {
		return before
	}
	return fmt.Sprintf(`{"replicas":%d}`, class.value)
}

// isCarried returns whether the Deployment of a Foo has what is carried.
func isCarried(carried string, end history.Normal) bool {
	deployments := objectsOf(end, history.Deployments)
	return len(deployments) == 1 && at(deployments[0], "spec", "replicas") == decodeObject(carried)["replicas"]
}

// scale sets the count of the Deployment of a Foo, as an autoscaler does.
func scale(ctx context.Context, s *subject, count string) error {
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	deployment.SetNamespace(s.namespace)
	deployment.SetName("web")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":`+count+`}`))
	return s.world.ControlPlane.Client.Patch(ctx, deployment, patch)
}
