package scenario

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/test/reliability/history"
)

func memcacheds() []Scenario {
	return []Scenario{
		{Name: "memcached-create", Steps: []Step{createMemcached(2)}},
		{Name: "memcached-scale", Setup: []Step{createMemcached(1)}, Steps: []Step{resize(3), resize(1)}},
		{Name: "memcached-drift", Setup: []Step{createMemcached(1)}, Steps: []Step{
			{Name: "change the Deployment", Do: changeDeployment("one"),
				Until: deploymentIsRight("one", "one", memcachedRuns(1))},
			{Name: "scale the Deployment", Do: scaleDeployment("one"), Until: memcachedRuns(1)},
			{Name: "change the others", Do: changeOthers, Until: memcachedRuns(1)},
			{Name: "change labels", Do: relabel(deployment("one"), service(), budget()), Until: isRight(memcachedRuns(1))},
			{Name: "delete the children", Do: end(deployment("one"), service(), budget()), Until: memcachedRuns(1)},
		}},
		{Name: "memcached-delete", IsOpen: true, Steps: []Step{
			{Name: "create", Do: createMemcached(1).Do, Until: hasDeployment("one")},
			{Name: "delete", Do: deleteMemcached, Until: nothingLeft},
		}},
		{Name: "memcached-recreate", IsPassing: true, Setup: []Step{createMemcached(1)}, Steps: []Step{
			{Name: "delete and create", Until: memcachedRuns(2), Do: inTurn(deleteMemcached, createMemcached(2).Do)},
		}},
		{Name: "memcached-unseen", IsPassing: true, Setup: []Step{createMemcached(1)}, Steps: []Step{
			{Name: "delete and create", IsUnseen: true, Until: memcachedRuns(2),
				Do: inTurn(deleteMemcached, createMemcached(2).Do)},
		}},
		{Name: "memcached-upgrade", Before: asBefore, Setup: []Step{createMemcached(2)}, Steps: []Step{
			{Name: "upgrade", Until: keeps("one", 1, memcachedRuns(2))},
		}},
		{Name: "memcached-upgrade-image", Before: otherImages, Setup: []Step{createMemcached(2)}, Steps: []Step{
			{Name: "upgrade", Until: keeps("one", 2, memcachedRuns(2))},
		}},
		{Name: "memcached-namesakes", Steps: []Step{{Name: "create both", Do: createNamesakes, Until: namesakesRun}}},
		{Name: "memcached-foreign", Prepare: foreignService, Steps: []Step{
			{Name: "create", Do: createMemcached(1).Do, Until: func(_ *Stage, world history.World) string {
				return first(runs(world, history.Memcacheds, "one", "one", 1),
					says(world, history.Memcacheds, "one", "Available=True", "Degraded=True/NameTaken", "Progressing=False"))
			}},
			{Name: "make room", Until: memcachedRuns(1), Do: end(service())},
		}},
	}
}

func memcached() *cachev1alpha1.Memcached {
	return &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
}

func createMemcached(size int32) Step {
	return Step{
		Name: "create",
		Do: func(ctx context.Context, s *Stage) error {
			mc := memcached()
			mc.Spec.Size = size
			return s.make(ctx, mc)
		},
		Until: memcachedRuns(size),
	}
}

func resize(size int32) Step {
	return Step{
		Name: fmt.Sprintf("scale to %d", size),
		Do: func(ctx context.Context, s *Stage) error {
			return edit(ctx, s, memcached(), func(mc *cachev1alpha1.Memcached) { mc.Spec.Size = size })
		},
		Until: memcachedRuns(size),
	}
}

// namesakes are names that are alike without what a Service's name may not have.
var namesakes = []string{"web.shop", "web-shop"}

func createNamesakes(ctx context.Context, s *Stage) error {
	for _, name := range namesakes {
		mc := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: cachev1alpha1.MemcachedSpec{Size: 1}}
		if err := s.make(ctx, mc); err != nil {
			return err
		}
	}
	return nil
}

// namesakesRun is reached when each has a Service of its own.
func namesakesRun(_ *Stage, world history.World) string {
	for _, name := range namesakes {
		owner := world[history.Key{Resource: history.Memcacheds, Name: name}]
		if owner == nil || !slices.ContainsFunc(world.Of(history.Services),
			func(s *unstructured.Unstructured) bool { return metav1.IsControlledBy(s, owner) }) {
			return name + " has no Service"
		}
		if lacking := says(world, history.Memcacheds, name, fine...); lacking != "" {
			return lacking
		}
	}
	return ""
}

var deleteMemcached = end(memcached())

// memcachedRuns is reached when the Memcached has all its children as they should be, and so many nodes that are ready.
func memcachedRuns(nodes int32) func(*Stage, history.World) string {
	return func(_ *Stage, world history.World) string {
		owner := world[history.Key{Resource: history.Memcacheds, Name: "one"}]
		service := in[corev1.Service](world, history.Services, "one")
		budget := in[policyv1.PodDisruptionBudget](world, history.Budgets, "one")
		switch {
		case owner == nil:
			return "there is no Memcached"
		case service == nil || !metav1.IsControlledBy(service, owner) || len(service.Spec.Selector) != 2:
			return "the Service is not as it should be"
		case budget == nil || !metav1.IsControlledBy(budget, owner) || budget.Spec.MaxUnavailable.IntValue() != 1:
			return "the PodDisruptionBudget is not as it should be"
		}
		if said := in[cachev1alpha1.Memcached](world, history.Memcacheds, "one").Status; said.ReadyNodes != nodes ||
			int32(len(said.Nodes)) != nodes {
			return fmt.Sprintf("it does not say that %d nodes are ready", nodes)
		}
		return first(runs(world, history.Memcacheds, "one", "one", nodes), says(world, history.Memcacheds, "one", fine...))
	}
}

func service() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
}

func budget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
}

func changeOthers(ctx context.Context, s *Stage) error {
	if err := edit(ctx, s, service(), func(service *corev1.Service) {
		service.OwnerReferences = nil
		service.Spec.Selector["somebody"] = "else"
	}); err != nil {
		return err
	}
	return edit(ctx, s, budget(), func(budget *policyv1.PodDisruptionBudget) {
		budget.OwnerReferences = nil
		budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(5))
	})
}

func foreignService(ctx context.Context, s *Stage) error {
	return s.make(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"somebody": "else"}},
	})
}
