package scenario

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/reliability/history"
)

func foos() []Scenario {
	return []Scenario{
		{Name: "foo-create", Steps: []Step{createFoo("one", "web", 2)}},
		{Name: "foo-scale", Setup: []Step{createFoo("one", "web", 1)}, Steps: []Step{
			editFoo("up", func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = ptr.To[int32](3) }, FooRuns("one", "web", 3)),
			editFoo("down", func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = ptr.To[int32](0) }, FooRuns("one", "web", 0)),
		}},
		{Name: "foo-rename", Setup: []Step{
			createFoo("one", "web", 1),
			{Name: "a neighbour", Do: neighbouringDeployment, Until: FooRuns("one", "web", 1)},
		}, Steps: []Step{
			editFoo("rename", func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "shop" },
				leaves("web", func(s *Stage, world history.World) string {
					if in[appsv1.Deployment](world, history.Deployments, theirs) == nil {
						return "the neighbour is gone"
					}
					return FooRuns("one", "shop", 1)(s, world)
				})),
		}},
		{Name: "foo-drift", Setup: []Step{createFoo("one", "web", 1)}, Steps: []Step{
			{Name: "change the Deployment", Do: changeDeployment("web"),
				Until: deploymentIsRight("one", "web", FooRuns("one", "web", 1))},
			{Name: "scale the Deployment", Do: scaleDeployment("web"), Until: FooRuns("one", "web", 1)},
			{Name: "change labels", Do: relabel(deployment("web")), Until: isRight(FooRuns("one", "web", 1))},
			{Name: "delete the Deployment", Do: end(deployment("web")), Until: FooRuns("one", "web", 1)},
		}},
		{Name: "foo-delete", IsOpen: true, Steps: []Step{
			{Name: "create", Do: createFoo("one", "web", 1).Do, Until: hasDeployment("web")},
			{Name: "delete", Do: end(foo("one")), Until: nothingLeft},
		}},
		{Name: "foo-recreate", IsPassing: true, Setup: []Step{createFoo("one", "web", 1)}, Steps: []Step{
			{Name: "delete and create", Until: FooRuns("one", "web", 2),
				Do: inTurn(end(foo("one")), createFoo("one", "web", 2).Do)},
		}},
		{Name: "foo-upgrade", Before: asBefore, Setup: []Step{createFoo("one", "web", 2)}, Steps: []Step{
			{Name: "upgrade", Until: keeps("web", 1, FooRuns("one", "web", 2))},
		}},
		{Name: "foo-upgrade-image", Before: otherImages, Setup: []Step{createFoo("one", "web", 2)}, Steps: []Step{
			{Name: "upgrade", Until: keeps("web", 2, FooRuns("one", "web", 2))},
		}},
		{Name: "foo-unseen", Setup: []Step{createFoo("one", "web", 1)}, Steps: []Step{
			{Name: "rename, scale and delete", IsUnseen: true, Do: renameUnseen,
				Until: func(s *Stage, world history.World) string {
					if in[appsv1.Deployment](world, history.Deployments, "web") != nil ||
						in[appsv1.Deployment](world, history.Deployments, "shop") != nil {
						return "there is a Deployment of another name"
					}
					return FooRuns("one", "store", 3)(s, world)
				}},
		}},
		{Name: "foo-foreign", Prepare: foreignDeployment("web"), Steps: []Step{
			{Name: "create", Do: createFoo("one", "web", 1).Do, Until: func(_ *Stage, world history.World) string {
				return says(world, history.Foos, "one", "Degraded=True/NameTaken", "Progressing=False")
			}},
			{Name: "make room", Do: end(deployment("web")), Until: FooRuns("one", "web", 1)},
		}},
		{Name: "foo-blocked", Setup: []Step{
			createFoo("one", "web", 1),
			{Name: "somebody else's", Do: foreignDeployment("shop"), Until: hasDeployment("shop")},
		}, Steps: []Step{
			editFoo("rename", func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "shop" }, isBlocked("one", "web", 1)),
			{Name: "change the Deployment", Do: changeDeployment("web"),
				Until: deploymentIsRight("one", "web", isBlocked("one", "web", 1))},
			{Name: "make room", Do: end(deployment("shop")), Until: leaves("web", FooRuns("one", "shop", 1))},
		}},
		{Name: "foo-namesake", IsPassing: true, Setup: []Step{createMemcached(1)}, Steps: []Step{
			{Name: "create", Do: createFoo("one", "one", 2).Do, Until: func(s *Stage, world history.World) string {
				return first(memcachedRuns(1)(s, world), says(world, history.Foos, "one", "Degraded=True/NameTaken",
					"Progressing=False"))
			}},
			{Name: "make room", Do: deleteMemcached, Until: FooRuns("one", "one", 2)},
		}},
		{Name: "foo-swap", IsPassing: true, Setup: []Step{createFoo("one", "web", 1), createFoo("two", "shop", 2)},
			Steps: []Step{
				{Name: "swap names", Do: func(ctx context.Context, s *Stage) error {
					for name, deployment := range map[string]string{"one": "shop", "two": "web"} {
						err := edit(ctx, s, foo(name), func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = deployment })
						if err != nil {
							return err
						}
					}
					return nil
				}, Until: func(s *Stage, world history.World) string {
					return first(FooRuns("one", "shop", 1)(s, world), FooRuns("two", "web", 2)(s, world))
				}},
			}},
	}
}

func foo(name string) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func createFoo(name, deployment string, replicas int32) Step {
	return Step{
		Name: "create " + name,
		Do: func(ctx context.Context, s *Stage) error {
			foo := foo(name)
			foo.Spec = samplev1alpha1.FooSpec{DeploymentName: deployment, Replicas: &replicas}
			return s.make(ctx, foo)
		},
		Until: FooRuns(name, deployment, replicas),
	}
}

func editFoo(name string, change func(*samplev1alpha1.Foo), until func(*Stage, history.World) string) Step {
	return Step{Name: name, Until: until,
		Do: func(ctx context.Context, s *Stage) error { return edit(ctx, s, foo("one"), change) }}
}

// FooRuns is reached when a Foo has a Deployment of its own of that name, and so many pods of it are available.
func FooRuns(name, deployment string, pods int32) func(*Stage, history.World) string {
	return func(_ *Stage, world history.World) string {
		return first(runs(world, history.Foos, name, deployment, pods), says(world, history.Foos, name, fine...))
	}
}

// leaves is reached when there is no Deployment of the name before any more, and more is reached.
func leaves(before string, also func(*Stage, history.World) string) func(*Stage, history.World) string {
	return func(s *Stage, world history.World) string {
		if in[appsv1.Deployment](world, history.Deployments, before) != nil {
			return "the Deployment of the name before is still there"
		}
		return also(s, world)
	}
}

// isBlocked is reached when a Foo says that the name it wants is taken, and has a Deployment of its own of another
// name, and so many pods of it are available.
func isBlocked(name, deployment string, pods int32) func(*Stage, history.World) string {
	return func(_ *Stage, world history.World) string {
		return first(runs(world, history.Foos, name, deployment, pods),
			says(world, history.Foos, name, "Degraded=True/NameTaken", "Progressing=False", "Available=True"))
	}
}

// runs returns what is missing for a Deployment to be a resource's own and to have so many pods, all of them available.
func runs(world history.World, resource, owner, name string, pods int32) string {
	resourceKey := history.Key{Resource: resource, Name: owner}
	deployment := in[appsv1.Deployment](world, history.Deployments, name)
	switch {
	case world[resourceKey] == nil:
		return resourceKey.String() + " is not there"
	case deployment == nil || deployment.DeletionTimestamp != nil:
		return "there is no Deployment " + name
	case !metav1.IsControlledBy(deployment, world[resourceKey]):
		return fmt.Sprintf("Deployment %s is not %s's", name, owner)
	case deployment.Status.ObservedGeneration != deployment.Generation || ptr.Deref(deployment.Spec.Replicas, 1) != pods ||
		deployment.Status.Replicas != pods || deployment.Status.AvailableReplicas != pods ||
		deployment.Status.UpdatedReplicas != pods:
		return fmt.Sprintf("Deployment %s has not %d pods", name, pods)
	}
	return ""
}

// renameUnseen gives a Foo two names one after the other, takes its Deployment away, and scales it.
func renameUnseen(ctx context.Context, s *Stage) error {
	for _, name := range []string{"shop", "store"} {
		if err := edit(ctx, s, foo("one"), func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = name }); err != nil {
			return err
		}
	}
	if err := end(deployment("web"))(ctx, s); err != nil {
		return err
	}
	return edit(ctx, s, foo("one"), func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = ptr.To[int32](3) })
}

// What the environment of the last release's manager has besides: nothing, or images that are replaced with it.
var (
	asBefore    = []string{}
	otherImages = []string{"RELATED_IMAGE_NGINX=nginx:before", "RELATED_IMAGE_MEMCACHED=memcached:before"}
)

// keeps is reached when a Deployment is of a generation, so has been changed just so often, and more is reached.
func keeps(name string, generation int64, also func(*Stage, history.World) string) func(*Stage, history.World) string {
	return func(s *Stage, world history.World) string {
		if d := in[appsv1.Deployment](world, history.Deployments, name); d == nil || d.Generation != generation {
			return fmt.Sprintf("the Deployment %s is not of generation %d", name, generation)
		}
		return also(s, world)
	}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// changeDeployment changes what is the operator's to say, and adds what is not. It does not scale: pods and their
// number that change together, and back at once, can be a rollout that never ends (kubernetes/kubernetes#138840, found
// here with 1.36.3).
func changeDeployment(name string) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		return edit(ctx, s, deployment(name), func(d *appsv1.Deployment) {
			d.Labels = map[string]string{theirs: theirs}
			d.OwnerReferences = nil
			d.Spec.Template.Spec.Containers[0].Image = "somebody/else:1"
		})
	}
}

func scaleDeployment(name string) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		return edit(ctx, s, deployment(name), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) })
	}
}

// deploymentIsRight is reached when the change is undone too.
func deploymentIsRight(owner, name string, also func(*Stage, history.World) string) func(*Stage, history.World) string {
	return func(s *Stage, world history.World) string {
		d := in[appsv1.Deployment](world, history.Deployments, name)
		if d == nil || d.Spec.Template.Spec.Containers[0].Image == "somebody/else:1" || len(d.OwnerReferences) == 0 ||
			len(d.Labels) < 2 {
			return "the Deployment of " + owner + " is not as it should be"
		}
		return also(s, world)
	}
}

// isRight is reached when labels and annotations are the operator's again too.
func isRight(also func(*Stage, history.World) string) func(*Stage, history.World) string {
	return func(s *Stage, world history.World) string { return first(isRelabelled(world), also(s, world)) }
}

// hasDeployment is reached when there is a Deployment.
func hasDeployment(name string) func(*Stage, history.World) string {
	return func(_ *Stage, world history.World) string {
		if in[appsv1.Deployment](world, history.Deployments, name) == nil {
			return "there is no Deployment " + name
		}
		return ""
	}
}

// nothingLeft is reached when all is gone.
func nothingLeft(_ *Stage, world history.World) string {
	return gone(world, history.Resources()...)
}

// neighbouringDeployment makes one that another resource has lost, whose UID is nearly that of the Foo.
func neighbouringDeployment(ctx context.Context, s *Stage) error {
	foo := foo("one")
	foo.Namespace = s.Namespace
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(foo), foo); err != nil {
		return err
	}
	d := strange(theirs)
	d.Annotations = map[string]string{child.OwnerAnnotation: neighbour(foo.UID)}
	return s.make(ctx, d)
}

// foreignDeployment makes one that is somebody else's, with no pods.
func foreignDeployment(name string) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		return s.make(ctx, strange(name))
	}
}

// strange returns a Deployment that is nobody's, with no pods.
func strange(name string) *appsv1.Deployment {
	labels := map[string]string{"somebody": "else"}
	d := deployment(name)
	d.Spec = appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "it", Image: "it"}}},
		},
	}
	return d
}
