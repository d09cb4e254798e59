package schema

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/history"
)

// plan is how the classes of one leaf are tried.
type plan struct {
	base map[string]any
	// pods is how many pods a namespace has room for; 0 is no limit.
	pods int
	// prepare makes what there is beside the resource, when it is new.
	prepare func(context.Context, *subject) error
	// unsettle is done before every change.
	unsettle func(context.Context, *subject) error
	// provoke has the operator do that in which the leaf shows, after every change.
	provoke func(context.Context, *subject) error
	// carried returns what stays of the class before, as the documentation of the field says, when the field changes to a class. What
	// a fresh resource starts with is that of the class before being "".
	carried func(before string, class Class) string
	// carry gives a fresh resource what is carried.
	carry func(ctx context.Context, s *subject, carried string) error
}

// podRoom is how many pods fit into a namespace, where the highest number that a field takes is tried.
const podRoom = 6

// kept is the name of a Job that goes on through all changes.
const kept = "kept"

// planOf returns the plan for a leaf of a kind. One that nothing special is known of has the least that its kind takes for a base.
func planOf(kind *Kind, leaf Leaf) plan {
	switch kind.Name {
	case "Foo":
		return planOfFoo(leaf)
	case "Memcached":
		return planOfMemcached(leaf)
	case "CronJob":
		return planOfCronJob(leaf)
	}
	return plan{base: map[string]any{}}
}

func planOfFoo(leaf Leaf) plan {
	named := map[string]any{"deploymentName": "web"}
	switch leaf.Path {
	case "spec.deploymentName":
		return plan{base: map[string]any{"replicas": int64(2)}}
	case "spec.replicas":
		return plan{base: named, pods: podRoom, carried: countCarried, carry: scale}
	}
	return plan{base: named}
}

func planOfMemcached(leaf Leaf) plan {
	if leaf.Path == "spec.size" {
		return plan{base: map[string]any{}, pods: podRoom}
	}
	return plan{base: map[string]any{"size": int64(1)}}
}

func planOfCronJob(leaf Leaf) plan {
	template := map[string]any{"spec": jobSpec()}
	switch leaf.Path {
	case "spec.schedule", "spec.timeZone":
		return plan{
			base:     map[string]any{"schedule": "0 12 1 1 *", "jobTemplate": template},
			prepare:  func(ctx context.Context, s *subject) error { return s.by(ctx, kept, "") },
			unsettle: func(ctx context.Context, s *subject) error { return s.age(ctx) },
		}
	case "spec.concurrencyPolicy":
		return plan{base: every(template), provoke: twice}
	}
	return plan{base: every(template), provoke: once}
}

func every(template map[string]any) map[string]any {
	return map[string]any{"schedule": "@every 1h", "jobTemplate": template}
}

// once has a CronJob be due, without Jobs from before.
func once(ctx context.Context, s *subject) error {
	if err := s.clear(ctx); err != nil {
		return err
	}
	if err := s.due(ctx); err != nil {
		return err
	}
	return s.handled(ctx)
}

// twice has it be due again while the Job of the first time is active.
func twice(ctx context.Context, s *subject) error {
	if err := once(ctx, s); err != nil {
		return err
	}
	if err := s.due(ctx); err != nil {
		return err
	}
	return s.handled(ctx)
}

// countCarried: without spec.replicas the count of the Deployment stays as it is.
func countCarried(before string, class Class) string {
	if class.value == absent || class.value == nil {
		return before
	}
	return fmt.Sprintf(`{"replicas":%d}`, class.value)
}

// isCarried tells whether the Deployment of a Foo has what is carried.
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
	return s.world.ControlPlane.Client.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+count+`}`)))
}
