package scenario

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

func foos() []Scenario {
	one, runsOne := createFoo("one", "web", 1), FooRuns("one", "web", 1)
	return []Scenario{
		{Name: "foo-create", Steps: []Step{createFoo("one", "web", 2)}},
		{Name: "foo-scale", Setup: []Step{one}, Steps: []Step{
			{Name: "up", Do: scaleFoo(3), Until: FooRuns("one", "web", 3)},
			{Name: "down", Do: scaleFoo(0), Until: FooRuns("one", "web", 0)},
		}},
		{Name: "foo-rename", Setup: []Step{
			one, {Name: "create a neighbor", Do: createNeighbor(newFoo("one"), newDeployment(unmanaged)), Until: runsOne},
		}, Steps: []Step{
			{Name: "rename", Do: renameFoo("one", "shop"), Until: all(isGone(history.Deployments, "web"),
				exists(history.Deployments, unmanaged), FooRuns("one", "shop", 1))},
		}},
		{Name: "foo-drift", Setup: []Step{one}, Steps: []Step{
			{Name: "change the Deployment", Do: changeDeployment("web"), Until: all(isRepaired, runsOne)},
			{Name: "scale the Deployment", Do: scaleDeployment("web"), Until: runsOne},
			{Name: "change labels", Do: relabel(newDeployment("web")), Until: all(isRepaired, runsOne)},
			{Name: "delete the Deployment", Do: remove(newDeployment("web")), Until: runsOne},
		}},
		{Name: "foo-scaled-by-others", Setup: []Step{createUnscaledFoo("one", "web")}, Steps: []Step{
			{Name: "scale", Do: inTurn(relabel(newDeployment("web")), scaleDeployment("web")),
				Until: all(isRepaired, FooRuns("one", "web", 2))},
		}},
		{Name: "foo-delete", IsOpen: true, Steps: []Step{
			{Name: "create", Do: one.Do, Until: exists(history.Deployments, "web")},
			{Name: "delete", Do: remove(newFoo("one")), Until: isEmpty},
		}},
		{Name: "foo-hidden-delete", IsOpen: true, Steps: []Step{
			{Name: "create", Do: one.Do, Until: exists(history.Deployments, "web")},
			{Name: "delete", Hidden: history.IsOwnKind, Do: inTurn(remove(newFoo("one")), awaitGone(newDeployment("web"))),
				Until: isEmpty},
		}},
		{Name: "foo-recreate", IsPassing: true, Setup: []Step{one}, Steps: []Step{
			{Name: "delete and create", Do: inTurn(remove(newFoo("one")), createFoo("one", "web", 2).Do),
				Until: FooRuns("one", "web", 2)},
		}},
		upgrade("foo-upgrade", unchanged, createFoo("one", "web", 2), "web", 1),
		upgrade("foo-upgrade-image", otherImages, createFoo("one", "web", 2), "web", 2),
		{Name: "foo-unseen", Setup: []Step{one}, Steps: []Step{
			{Name: "rename, scale and delete", IsUnseen: true, Do: inTurn(renameFoo("one", "shop"), renameFoo("one", "store"),
				remove(newDeployment("web")), scaleFoo(3)),
				Until: all(isGone(history.Deployments, "web"), isGone(history.Deployments, "shop"), FooRuns("one", "store", 3))},
		}},
		{Name: "foo-hidden", Setup: []Step{one}, Steps: []Step{
			{Name: "delete the Deployment", Hidden: isChild, Do: remove(newDeployment("web")), Until: runsOne},
		}},
		// The operator trusts its own write, more than a cache that does not show it, for half a minute.
		{Name: "foo-hidden-create", IsSlow: true, Setup: []Step{one}, Steps: []Step{
			{Name: "create another one, and delete its Deployment", Hidden: isChild,
				Do:    inTurn(createFoo("two", "shop", 1).Do, await(newDeployment("shop")), remove(newDeployment("shop"))),
				Until: FooRuns("two", "shop", 1)},
		}},
		{Name: "foo-orphan", Setup: []Step{one}, Steps: []Step{
			{Name: "delete the Foo alone", Hidden: history.IsOwnKind,
				Do: inTurn(orphan(newFoo("one")), awaitThat(newDeployment("web"), hasNoOwner)),
				Until: all(isGone(history.Foos, "one"), holds(history.Deployments, "web", "no owner",
					func(d *appsv1.Deployment) bool { return hasNoOwner(d) }))},
		}},
		{Name: "foo-foreign", Prepare: create(newDeployment("web")), Steps: []Step{
			{Name: "create", Do: one.Do, Until: reports(fooKey("one"), "Degraded=True/NameTaken", "Progressing=False")},
			{Name: "make room", Do: remove(newDeployment("web")), Until: runsOne},
		}},
		{Name: "foo-handover", IsPassing: true, Prepare: create(newDeployment("shop")), Setup: []Step{
			{Name: "create", Do: createFoo("one", "shop", 1).Do,
				Until: reports(fooKey("one"), "Degraded=True/NameTaken", "Progressing=False")},
		}, Steps: []Step{
			{Name: "hand over the name", Do: inTurn(renameFoo("one", "web"), createFoo("two", "shop", 1).Do,
				remove(newDeployment("shop"))), Until: all(runsOne, FooRuns("two", "shop", 1))},
		}},
		fooBlocked(one),
		{Name: "foo-namesake", IsPassing: true, Setup: []Step{createMemcached(1)}, Steps: []Step{
			{Name: "create", Do: createFoo("one", "one", 2).Do, Until: all(memcachedRuns(1),
				reports(fooKey("one"), "Degraded=True/NameTaken", "Progressing=False"))},
			{Name: "make room", Do: remove(newMemcached("one", 1)), Until: FooRuns("one", "one", 2)},
		}},
		{Name: "foo-swap", IsPassing: true, Setup: []Step{one, createFoo("two", "shop", 2)}, Steps: []Step{
			{Name: "swap names", Do: inTurn(renameFoo("one", "shop"), renameFoo("two", "web")),
				Until: all(FooRuns("one", "shop", 1), FooRuns("two", "web", 2))},
		}},
	}
}

// fooBlocked is a scenario in which the new name is taken; the current Deployment must still be kept in line.
func fooBlocked(one Step) Scenario {
	isBlocked := all(runs(fooKey("one"), "web", 1),
		reports(fooKey("one"), "Degraded=True/NameTaken", "Progressing=False", "Available=True"))
	return Scenario{Name: "foo-blocked", Setup: []Step{one, {Name: "take the name", Do: create(newDeployment("shop")),
		Until: exists(history.Deployments, "shop")}}, Steps: []Step{
		{Name: "rename", Do: renameFoo("one", "shop"), Until: isBlocked},
		{Name: "change the Deployment", Do: changeDeployment("web"), Until: all(isRepaired, isBlocked)},
		{Name: "make room", Do: remove(newDeployment("shop")),
			Until: all(isGone(history.Deployments, "web"), FooRuns("one", "shop", 1))},
	}}
}

func fooKey(name string) history.Key { return history.Key{Resource: history.Foos, Name: name} }

func newFoo(name string) *samplev1alpha1.Foo {
	return kinds.Foo.Make("", name, 1).(*samplev1alpha1.Foo)
}

func createFoo(name, deployment string, replicas int32) Step {
	foo := newFoo(name)
	foo.Spec = samplev1alpha1.FooSpec{DeploymentName: deployment, Replicas: &replicas}
	return Step{Name: "create " + name, Do: create(foo), Until: FooRuns(name, deployment, replicas)}
}

// createUnscaledFoo creates a Foo that leaves the number of pods to others.
func createUnscaledFoo(name, deployment string) Step {
	foo := newFoo(name)
	foo.Spec = samplev1alpha1.FooSpec{DeploymentName: deployment}
	return Step{Name: "create " + name, Do: create(foo), Until: FooRuns(name, deployment, 1)}
}

func scaleFoo(replicas int32) Action {
	return edit(newFoo("one"), func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = &replicas })
}

func renameFoo(name, deployment string) Action {
	return edit(newFoo(name), func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = deployment })
}

// FooRuns checks that a Foo controls a Deployment of that name with this number of available pods, and reports that.
func FooRuns(name, deployment string, pods int32) Check {
	return all(runs(fooKey(name), deployment, pods), reports(fooKey(name), fine...))
}

// The environment of the last release's manager either sets no images, or images that the upgrade replaces.
var (
	unchanged   = []string{}
	otherImages = []string{"RELATED_IMAGE_NGINX=nginx:before", "RELATED_IMAGE_MEMCACHED=memcached:before"}
)

// upgrade is a scenario that replaces the manager of the last release. The Deployment must have this generation after
// it: 1 if the upgrade does not change its spec, 2 if it does so in one write.
func upgrade(name string, before []string, created Step, deployment string, generation int64) Scenario {
	isKept := holds(history.Deployments, deployment, "been written once per change",
		func(d *appsv1.Deployment) bool { return d.Generation == generation })
	return Scenario{Name: name, Before: before, Setup: []Step{created},
		Steps: []Step{{Name: "upgrade", Until: all(isKept, created.Until)}}}
}

// newDeployment returns a Deployment that the operator does not control.
func newDeployment(name string) *appsv1.Deployment { return kinds.NewDeployment("", name, 0) }

const otherImage = "unmanaged/image:1"

// changeDeployment changes fields that the operator applies, and adds a label that it does not apply. It does not
// scale: if the template and the replicas change together and are reverted at once, the rollout may never complete in
// Kubernetes 1.36 (kubernetes/kubernetes#138840).
func changeDeployment(name string) Action {
	return edit(newDeployment(name), func(d *appsv1.Deployment) {
		d.Labels = map[string]string{unmanaged: unmanaged}
		d.OwnerReferences = nil
		d.Spec.Template.Spec.Containers[0].Image = otherImage
	})
}

func hasNoOwner(object client.Object) bool {
	return object != nil && len(object.GetOwnerReferences()) == 0
}

func scaleDeployment(name string) Action {
	return edit(newDeployment(name), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) })
}

// isRepaired checks that the changes of relabel and changeDeployment are reverted, except for the added label.
func isRepaired(_ *Stage, state history.State) string {
	for key, object := range state {
		for _, set := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
			for name, value := range set {
				if value == unmanaged && name != unmanaged {
					return key.String() + " still has another client's " + name
				}
			}
		}
	}
	for _, object := range state.Of(history.Deployments) {
		d := history.As[appsv1.Deployment](object)
		if d.Labels[unmanaged] != "" && len(d.Labels) < 2 || d.Spec.Template.Spec.Containers[0].Image == otherImage {
			return d.Name + " is not repaired"
		}
	}
	return ""
}
