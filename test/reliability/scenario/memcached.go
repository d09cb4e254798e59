package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

var memcachedKey = history.Key{Resource: history.Memcacheds, Name: "one"}

func memcacheds() []Scenario {
	runsOne, recreate := memcachedRuns(1), inTurn(remove(newMemcached("one", 1)), create(newMemcached("one", 2)))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	children := []client.Object{newDeployment("one"), service, budget}
	unowned := service.DeepCopy()
	unowned.Spec = corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{unmanaged: unmanaged}}
	changeService := edit(service, func(service *corev1.Service) {
		service.OwnerReferences = nil
		service.Spec.Selector[unmanaged] = unmanaged
	})
	changeBudget := edit(budget, func(budget *policyv1.PodDisruptionBudget) {
		budget.OwnerReferences = nil
		budget.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(5))
	})
	return append(memcachedSets(), []Scenario{
		{Name: "memcached-create", Steps: []Step{createMemcached(2)}},
		{Name: "memcached-scale", Setup: []Step{createMemcached(1)}, Steps: []Step{resize(3), resize(1)}},
		{Name: "memcached-drift", Setup: []Step{createMemcached(1)}, Steps: []Step{
			{Name: "change the Deployment", Do: changeDeployment("one"), Until: all(isRepaired, runsOne)},
			{Name: "scale the Deployment", Do: scaleDeployment("one"), Until: runsOne},
			{Name: "change the Service", Do: changeService, Until: runsOne},
			{Name: "change the PodDisruptionBudget", Do: changeBudget, Until: runsOne},
			{Name: "change labels", Do: relabel(children...), Until: all(isRepaired, runsOne)},
			{Name: "delete the children", Do: remove(children...), Until: runsOne},
		}},
		{Name: "memcached-tls", Setup: []Step{createMemcached(1)}, Steps: []Step{
			{Name: "add TLS and metrics", Until: all(runsOne, hasSidecar), Do: encrypt(cachev1alpha1.TLS{SecretName: "web"})},
			{Name: "remove TLS", Until: all(runsOne, hasSidecar), Do: encrypt(cachev1alpha1.TLS{})},
		}},
		{Name: "memcached-paused", Setup: []Step{createMemcached(1)}, Steps: []Step{
			{Name: "pause", Do: pause(true), Until: isPaused},
			{Name: "scale while it is paused", Do: resize(2).Do, Until: isPaused},
			{Name: "resume", Do: pause(false), Until: memcachedRuns(2)},
		}},
		{Name: "memcached-evict", Setup: []Step{createMemcached(2)}, Steps: []Step{
			{Name: "evict a node", Do: evictNode, Until: all(memcachedRuns(2), nodesExist)},
		}},
		{Name: "memcached-crash", Setup: []Step{createMemcached(2)}, Steps: []Step{
			{Name: "crash a node", Do: setNode(crashed), Until: reports(memcachedKey, "Available=True",
				"Degraded=True/NodeCrashing")},
			{Name: "run it again", Do: setNode(ready), Until: memcachedRuns(2)},
		}},
		{Name: "memcached-invalid", Setup: []Step{createMemcached(1)}, Steps: []Step{
			{Name: "limit the memory to less than that for items", Do: limitMemory("32Mi"),
				Until: reports(memcachedKey, "Available=True", "Degraded=True/InvalidSpec")},
			{Name: "raise the limit", Do: limitMemory("256Mi"), Until: runsOne},
		}},
		{Name: "memcached-delete", IsOpen: true, Steps: []Step{
			{Name: "create", Do: create(newMemcached("one", 1)), Until: exists(history.Deployments, "one")},
			{Name: "delete", Do: remove(newMemcached("one", 1)), Until: isEmpty},
		}},
		{Name: "memcached-recreate", IsPassing: true, Setup: []Step{createMemcached(1)},
			Steps: []Step{{Name: "delete and create", Do: recreate, Until: memcachedRuns(2)}}},
		{Name: "memcached-unseen", IsPassing: true, Setup: []Step{createMemcached(1)},
			Steps: []Step{{Name: "delete and create", IsUnseen: true, Do: recreate, Until: memcachedRuns(2)}}},
		upgrade("memcached-upgrade", unchanged, createMemcached(2), "one", 1),
		upgrade("memcached-upgrade-image", otherImages, createMemcached(2), "one", 2),
		// These names are the same without the dot, which the name of a Service may not contain.
		{Name: "memcached-namesakes", Steps: []Step{{Name: "create both",
			Do:    inTurn(create(newMemcached("web.shop", 1)), create(newMemcached("web-shop", 1))),
			Until: all(hasService("web.shop"), hasService("web-shop"))}}},
		{Name: "memcached-foreign", Prepare: create(unowned), Steps: []Step{
			{Name: "create", Do: create(newMemcached("one", 1)), Until: all(runs(memcachedKey, "one", 1),
				reports(memcachedKey, "Available=True", "Degraded=True/NameTaken", "Progressing=False"))},
			{Name: "make room", Do: remove(service), Until: runsOne},
		}},
	}...)
}

// memcachedSets returns what differs with a StatefulSet.
func memcachedSets() []Scenario {
	set, runsTwo := kinds.MemcachedSet.Make("", "one", 2).(*cachev1alpha1.Memcached), memcachedSetRuns(2)
	workload := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	nodes := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "one-nodes"}}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "one-pod"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}}
	lookAgain := edit(workload, func(s *appsv1.StatefulSet) { // its controller backs off
		s.Annotations[unmanaged] = unmanaged
	})
	taken := nodes.DeepCopy()
	taken.Spec = corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{unmanaged: unmanaged}}
	created := Step{Name: "create", Do: create(set), Until: runsTwo}
	return []Scenario{
		{Name: "memcached-set-scale", Steps: []Step{created,
			{Name: "scale to 3", Do: edit(set, func(mc *cachev1alpha1.Memcached) { mc.Spec.Size = 3 }),
				Until: memcachedSetRuns(3)}}},
		{Name: "memcached-set-quota", IsSlow: true, Prepare: limitPods(quota), Steps: []Step{
			{Name: "create", Do: create(set), Until: all(reports(memcachedKey, "Degraded=True/RolloutStuck"),
				explains(memcachedKey, "exceeded quota"))},
			{Name: "allow more pods", Do: inTurn(remove(quota), lookAgain), Until: runsTwo},
		}},
		{Name: "memcached-set-drift", Setup: []Step{created}, Steps: []Step{
			{Name: "change the template", Until: runsTwo, Do: edit(workload, func(s *appsv1.StatefulSet) {
				s.OwnerReferences = nil
				s.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](60)
			})},
			{Name: "scale the StatefulSet", Until: runsTwo,
				Do: edit(workload, func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](1) })},
			{Name: "hide nodes that are not ready", Until: runsTwo,
				Do: edit(nodes, func(service *corev1.Service) { service.Spec.PublishNotReadyAddresses = false })},
			{Name: "delete the children", Do: remove(workload, nodes), Until: runsTwo},
		}},
		{Name: "memcached-set-tls", Setup: []Step{created}, Steps: []Step{
			{Name: "add TLS, metrics and other settings", Until: all(runsTwo, setHasSidecar),
				Do: edit(set, func(mc *cachev1alpha1.Memcached) {
					mc.Spec.TLS = cachev1alpha1.TLS{SecretName: "web", ClientCertificates: cachev1alpha1.ClientCertificates{
						Mode: cachev1alpha1.ClientCertificatesRequired, CASecretName: "clients"}}
					mc.Spec.Metrics = &cachev1alpha1.Metrics{Mode: cachev1alpha1.MetricsExporter}
					mc.Spec.Config = &cachev1alpha1.MemcachedConfig{Threads: 2}
					labels := map[string]string{"team": "web"}
					mc.Spec.PodTemplate = &cachev1alpha1.PodTemplate{Metadata: &cachev1alpha1.PodMetadata{Labels: labels}}
					mc.Spec.Service = &cachev1alpha1.ServiceTemplate{Metadata: &cachev1alpha1.ServiceMetadata{Labels: labels}}
				})},
		}},
		{Name: "memcached-set-upgrade", Before: unchanged, Setup: []Step{created}, Steps: []Step{
			{Name: "upgrade", Until: all(runsTwo, holds(history.StatefulSets, "one", "been written once",
				func(s *appsv1.StatefulSet) bool { return s.Generation == 1 }))},
		}},
		{Name: "memcached-set-foreign", Prepare: create(taken), Steps: []Step{
			{Name: "create", Do: create(set), Until: reports(memcachedKey, "Available=True", "Degraded=True/NameTaken")},
			{Name: "make room", Do: remove(nodes), Until: runsTwo},
		}},
	}
}

// limitPods creates a quota, and waits until it is in force.
func limitPods(quota *corev1.ResourceQuota) Action {
	return func(ctx context.Context, s *Stage) error {
		created := localCopy(s, quota)
		if err := s.Client.Create(ctx, created); err != nil {
			return err
		}
		return poll(ctx, func(ctx context.Context) (bool, error) {
			err := s.Client.Get(ctx, client.ObjectKeyFromObject(created), created)
			return err == nil && created.Status.Used != nil, err
		})
	}
}

// explains checks that the condition Degraded has a text.
func explains(key history.Key, text string) Check {
	return func(_ *Stage, state history.State) string {
		object, ok := state[key]
		if !ok || !strings.Contains(history.As[history.Reported](object).Condition("Degraded").Message, text) {
			return fmt.Sprintf("%s does not report %q", key, text)
		}
		return ""
	}
}

// memcachedSetRuns checks that the Memcached has a StatefulSet with this number of ready pods, and the Service that
// lists them all.
func memcachedSetRuns(nodes int32) Check {
	return all(
		controlledBy(memcachedKey)(history.Services, "one"), controlledBy(memcachedKey)(history.Services, "one-nodes"),
		holds(history.Services, "one-nodes", "all nodes",
			func(service *corev1.Service) bool { return service.Spec.PublishNotReadyAddresses }),
		controlledBy(memcachedKey)(history.Budgets, "one"), controlledBy(memcachedKey)(history.StatefulSets, "one"),
		holds(history.StatefulSets, "one", fmt.Sprintf("%d available pods", nodes), func(s *appsv1.StatefulSet) bool {
			return s.DeletionTimestamp == nil && history.IsSetRolledOut(s, nodes) &&
				ptr.Deref(s.Spec.Template.Spec.TerminationGracePeriodSeconds, 0) == 30
		}),
		holds(history.Memcacheds, "one", fmt.Sprintf("%d ready nodes in its status", nodes),
			func(mc *cachev1alpha1.Memcached) bool {
				return mc.Status.ReadyNodes == nodes && int32(len(mc.Status.Servers)) == nodes
			}),
		reports(memcachedKey, fine...))
}

func newMemcached(name string, size int32) *cachev1alpha1.Memcached {
	return kinds.Memcached.Make("", name, size).(*cachev1alpha1.Memcached)
}

func createMemcached(size int32) Step {
	return Step{Name: "create", Do: create(newMemcached("one", size)), Until: memcachedRuns(size)}
}

func resize(size int32) Step {
	return Step{Name: fmt.Sprintf("scale to %d", size), Until: memcachedRuns(size),
		Do: edit(newMemcached("one", 1), func(mc *cachev1alpha1.Memcached) { mc.Spec.Size = size })}
}

// pause sets spec.paused.
func pause(isPaused bool) Action {
	return edit(newMemcached("one", 1), func(mc *cachev1alpha1.Memcached) { mc.Spec.Paused = &isPaused })
}

// isPaused checks that the Memcached, which has one node, is paused.
var isPaused = all(runs(memcachedKey, "one", 1),
	reports(memcachedKey, "Available=True", "Progressing=False/Paused", "Degraded=False"))

// evictNode evicts a node, as a drain does, once the PodDisruptionBudget allows it.
func evictNode(ctx context.Context, s *Stage) error {
	node, err := firstNode(ctx, s)
	if err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		err := s.Client.SubResource("eviction").Create(ctx, node, &policyv1.Eviction{})
		if apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// firstNode returns the name and namespace of the first node in the status.
func firstNode(ctx context.Context, s *Stage) (*corev1.Pod, error) {
	mc := localCopy(s, newMemcached("one", 1))
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(mc), mc); err != nil {
		return nil, err
	}
	if len(mc.Status.Nodes) == 0 {
		return nil, errors.New("the status lists no node")
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: mc.Status.Nodes[0]}}, nil
}

// setNode sets the status of the first node, as a kubelet would.
func setNode(status corev1.PodStatus) Action {
	return func(ctx context.Context, s *Stage) error {
		node, err := firstNode(ctx, s)
		if err != nil {
			return err
		}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		before := node.DeepCopy()
		node.Status.Conditions, node.Status.ContainerStatuses = status.Conditions, status.ContainerStatuses
		return s.Client.Status().Patch(ctx, node, client.MergeFrom(before))
	}
}

// The status of a node whose container has crashed, and of one that is ready.
var (
	crashed = corev1.PodStatus{
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "memcached", RestartCount: 1, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}}}},
	}
	ready = corev1.PodStatus{
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "memcached", RestartCount: 1, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
)

// limitMemory sets the memory limit of the nodes, and the memory for items to 64 MiB.
func limitMemory(limit string) Action {
	return edit(newMemcached("one", 1), func(mc *cachev1alpha1.Memcached) {
		mc.Spec.Config = &cachev1alpha1.MemcachedConfig{Memory: ptr.To(resource.MustParse("64Mi"))}
		mc.Spec.Resources = &cachev1alpha1.Resources{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}
	})
}

// nodesExist checks that the status lists only nodes that do not end.
func nodesExist(_ *Stage, state history.State) string {
	for _, node := range history.As[cachev1alpha1.Memcached](state[memcachedKey]).Status.Nodes {
		pod := state[history.Key{Resource: history.Pods, Name: node}]
		if pod == nil || pod.GetDeletionTimestamp() != nil {
			return "the status still lists the node " + node
		}
	}
	return ""
}

// encrypt sets spec.tls, and metrics.
func encrypt(tls cachev1alpha1.TLS) Action {
	return edit(newMemcached("one", 1), func(mc *cachev1alpha1.Memcached) {
		mc.Spec.TLS, mc.Spec.Metrics = tls, &cachev1alpha1.Metrics{Mode: cachev1alpha1.MetricsExporter}
	})
}

// hasSidecar checks that the template has what the spec asks for: one init container more with TLS.
func hasSidecar(stage *Stage, state history.State) string {
	want := 1
	if mc, ok := state[memcachedKey]; ok && history.As[cachev1alpha1.Memcached](mc).Spec.TLS.SecretName != "" {
		want = 2
	}
	return holds(history.Deployments, "one", fmt.Sprintf("%d init containers", want), func(d *appsv1.Deployment) bool {
		return len(d.Spec.Template.Spec.InitContainers) == want
	})(stage, state)
}

// setHasSidecar checks that the template of the StatefulSet has the init containers of TLS and metrics.
var setHasSidecar = holds(history.StatefulSets, "one", "2 init containers", func(s *appsv1.StatefulSet) bool {
	return len(s.Spec.Template.Spec.InitContainers) == 2
})

// hasService checks that a Memcached has no problems and controls a Service of any name.
func hasService(name string) Check {
	key := history.Key{Resource: history.Memcacheds, Name: name}
	return all(reports(key, fine...), func(_ *Stage, state history.State) string {
		isOwn := func(s *unstructured.Unstructured) bool { return metav1.IsControlledBy(s, state[key]) }
		if !slices.ContainsFunc(state.Of(history.Services), isOwn) {
			return name + " has no Service"
		}
		return ""
	})
}

// memcachedRuns checks that the Memcached has all its children and this number of ready nodes, and reports that.
func memcachedRuns(nodes int32) Check {
	return all(
		controlledBy(memcachedKey)(history.Services, "one"),
		holds(history.Services, "one", "its own selector",
			func(service *corev1.Service) bool { return len(service.Spec.Selector) == 2 }),
		controlledBy(memcachedKey)(history.Budgets, "one"),
		holds(history.Budgets, "one", "maxUnavailable 1",
			func(budget *policyv1.PodDisruptionBudget) bool { return budget.Spec.MaxUnavailable.IntValue() == 1 }),
		holds(history.Memcacheds, "one", fmt.Sprintf("%d ready nodes in its status", nodes),
			func(mc *cachev1alpha1.Memcached) bool {
				return mc.Status.ReadyNodes == nodes && int32(len(mc.Status.Nodes)) == nodes
			}),
		runs(memcachedKey, "one", nodes), reports(memcachedKey, fine...))
}
