package schema

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

var deploymentName = special{
	values: []class{
		{"other", "web", legal, nil}, {"longer", "web-2.example", legal, nil}, {"shortest", "a", legal, nil},
		{"longest", strings.Repeat("a", validation.DNS1123SubdomainMaxLength), legal, nil},
	},
	expect: func(c class, _ map[string]any, end history.Normal) error {
		return expect(namesOf(end, history.Deployments) == c.value, "one Deployment of that name")
	},
}

var replicas = special{
	// The maximum, 2^31-1, is not tested: the Deployment controller creates no pods then, because its surge overflows.
	values: []class{{"none", int64(0), legal, nil}, {"one", int64(1), legal, nil}, {"two", int64(2), legal, nil},
		{"more than the quota", int64(1000), legal, nil}},
	pods: podRoom, carry: scale,
	expect: func(c class, resource map[string]any, end history.Normal) error {
		count, isCount := c.value.(int64)
		if !isCount {
			count = 1
		}
		return expect(at(objectsOf(end, history.Deployments)[0], "spec", "replicas") == float64(count) &&
			at(resource, "status", "replicas") == float64(min(count, podRoom)),
			"a Deployment with %d replicas, and a status that counts the pods", count)
	},
}

// scale sets the replicas of the Deployment of a Foo, as an autoscaler does.
func scale(ctx context.Context, s *subject, count any) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count))
	return s.Cluster.ControlPlane.Client.Patch(ctx, kinds.NewDeployment(s.Name, objectName, 0), patch)
}
