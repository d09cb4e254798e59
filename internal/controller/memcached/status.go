package memcached

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/names"
	"github.com/example/memcached-operator/internal/status"
)

// observed is the state that a pass has read: the objects that have the names of the children, whatever controls them,
// nil where there are none; and the nodes.
type observed struct {
	workload workloadObject
	services []*corev1.Service // in the order of serviceNames
	budget   *policyv1.PodDisruptionBudget
	nodes    nodes
}

// result is what a pass has observed and done.
type result struct {
	// invalid is why the spec cannot be applied; nil if it can.
	invalid []status.Problem
	// workload is the Deployment or StatefulSet as the API server has it; nil if the Memcached controls none, and then
	// err is the reason, or the Memcached is paused or its spec invalid.
	workload workloadObject
	// isApplied reports whether everything in it has been applied.
	isApplied bool
	nodes     nodes
	// wait is how long the image hold-off still keeps the old image; 0 if the workload has the configured one.
	wait time.Duration
	err  error
}

// recheck returns when the status may change without an event; 0 for never.
func (done result) recheck() time.Duration {
	return rolloutOf(done.workload, done.nodes).recheck
}

func (done result) readyNodes() int32 {
	var ready int32
	for i := range done.nodes.pods {
		if isReady(&done.nodes.pods[i]) {
			ready++
		}
	}
	return ready
}

// isPassing reports whether a name is taken only temporarily: by a child of an earlier Memcached of the same name that
// the garbage collector has not deleted yet. This is reported only if it persists.
func isPassing(mc *cachev1alpha1.Memcached, err error) bool {
	taken := child.AsNotControlled(err)
	return taken != nil && child.IsPredecessor(taken.Controller, mc, cachev1alpha1.GroupVersion.WithKind("Memcached"))
}

// statusOf returns the status of a Memcached after a pass.
func statusOf(mc *cachev1alpha1.Memcached, done result) cachev1alpha1.MemcachedStatus {
	after := *mc.Status.DeepCopy()
	after.ObservedGeneration = mc.Generation
	after.Nodes = make([]string, len(done.nodes.pods))
	for i, pod := range done.nodes.pods {
		after.Nodes[i] = pod.Name
	}
	after.Size = int32(len(done.nodes.pods))
	after.ReadyNodes = done.readyNodes()
	settings := settingsOf(mc)
	after.ServiceName = names.Service(mc.Name)
	if done.invalid == nil {
		after.Servers = servers(mc, settings)
	}
	after.Selector = labels.Set(selector(mc)).String()
	status.SetConditions(&after.Conditions, mc.Generation, available(mc, done), progressing(mc, done),
		status.Degraded(problems(mc, done)))
	status.SetCondition(&after.Conditions, mc.Generation, cachev1alpha1.ConditionMemorySufficient,
		memorySufficient(settings))
	return after
}

func available(mc *cachev1alpha1.Memcached, done result) status.Condition {
	ready := done.readyNodes()
	message := fmt.Sprintf("%d of %d nodes are ready", ready, mc.Spec.Size)
	switch {
	case done.workload == nil && !isPaused(mc) && done.invalid == nil:
		return status.Condition{Status: metav1.ConditionUnknown, Reason: cachev1alpha1.ReasonNotObserved,
			Message: "the nodes could not be observed; see condition Degraded"}
	case mc.Spec.Size == 0:
		return status.Condition{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonScaledToZero,
			Message: "spec.size is 0"}
	case ready >= mc.Spec.Size:
		return status.Condition{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonAllNodesReady, Message: message}
	case ready > 0:
		return status.Condition{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonSomeNodesReady, Message: message}
	default:
		return status.Condition{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonNoNodesReady, Message: message}
	}
}

func progressing(mc *cachev1alpha1.Memcached, done result) status.Condition {
	if isPaused(mc) {
		return status.Condition{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonPaused,
			Message: "spec.paused is true: the children are not changed"}
	}
	if !done.isApplied {
		return status.Condition{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonBlocked,
			Message: "see condition Degraded"}
	}
	// Pods and workloads have separate watches: the rollout is complete when both show it.
	rollout := rolloutOf(done.workload, done.nodes)
	if !rollout.IsOver || int32(len(done.nodes.pods)) != mc.Spec.Size || done.readyNodes() != mc.Spec.Size {
		return status.Condition{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonRollingOut,
			Message: rollout.Progress}
	}
	return status.Condition{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonRolloutComplete,
		Message: rollout.Progress}
}

// problems returns the problems of a Memcached, the worst first.
func problems(mc *cachev1alpha1.Memcached, done result) []status.Problem {
	all := slices.Concat(done.invalid,
		status.ChildProblems(done.err, mc.Namespace, " or give the Memcached another name"))
	rollout := rolloutOf(done.workload, done.nodes)
	if done.isApplied {
		all = append(all, status.AlteredProblems(string(mc.Spec.WorkloadType)+" "+mc.Name, rollout.Rollout,
			mc.Spec.Size)...)
	}
	all = append(all, podProblems(done.nodes.pods)...)
	for _, problem := range rollout.problems {
		problem.Message += remedyOfCreation(problem.Message)
		all = append(all, problem)
	}
	return all
}

// memorySufficient reports whether the memory limit of a node is as high as its configuration needs.
func memorySufficient(s settings) status.Condition {
	needs, limit := s.needs(), s.resources.Limits[corev1.ResourceMemory]
	memory := resource.NewQuantity(s.memory, resource.BinarySI)
	if limit.Cmp(needs) >= 0 {
		return status.Condition{Status: metav1.ConditionTrue, Reason: cachev1alpha1.ReasonLimitSufficient,
			Message: fmt.Sprintf("a node with %s for items needs %s; the limit is %s", memory, &needs, &limit)}
	}
	return status.Condition{Status: metav1.ConditionFalse, Reason: cachev1alpha1.ReasonLimitTooLow,
		Message: fmt.Sprintf("a node with %s for items needs %s and may be killed when it is full, because its limit is %s: "+
			"raise spec.resources.limits.memory to %s, or lower spec.config.memory to %s",
			memory, &needs, &limit, &needs, resource.NewQuantity(s.fits(limit.Value()), resource.BinarySI))}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podProblems returns the problems of pods that do not become ready, the worst first: a container crashed, a container
// cannot start, the pod cannot be scheduled. If several pods have the same problem, only the first is reported.
func podProblems(pods []corev1.Pod) []status.Problem {
	var problems []status.Problem
	for i := range pods {
		problem := podProblem(&pods[i])
		isKnown := slices.ContainsFunc(problems, func(p status.Problem) bool { return p.Reason == problem.Reason })
		if problem.Reason != "" && !isKnown {
			problems = append(problems, problem)
		}
	}
	rank := []string{cachev1alpha1.ReasonNodeCrashing, cachev1alpha1.ReasonNodeNotStarting,
		cachev1alpha1.ReasonNodeUnschedulable}
	slices.SortStableFunc(problems, func(a, b status.Problem) int {
		return cmp.Compare(slices.Index(rank, a.Reason), slices.Index(rank, b.Reason))
	})
	return problems
}

// podProblem returns why a pod does not become ready; the zero Problem while it is only starting.
func podProblem(pod *corev1.Pod) status.Problem {
	if isReady(pod) {
		return status.Problem{}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if problem := containerProblem("node "+pod.Name, c, remedyOf(c)); problem.Reason != "" {
			return problem
		}
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if problem := initProblem(pod, c); problem.Reason != "" {
			return problem
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return status.Problem{Reason: cachev1alpha1.ReasonNodeUnschedulable,
				Message: fmt.Sprintf("node %s: %s; see spec.resources and spec.podTemplate.spec", pod.Name, c.Message)}
		}
	}
	return status.Problem{}
}

// initProblem returns the problem of an init container or sidecar: of the agent, or of one that another controller has
// added. One that runs or has completed has none, except that the agent still waits for a certificate when it restarts.
func initProblem(pod *corev1.Pod, c corev1.ContainerStatus) status.Problem {
	terminated := terminationOf(c)
	switch {
	case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0, c.State.Running != nil && c.Name != prepareName:
		return status.Problem{}
	case terminated != nil && c.Name == prepareName:
		return status.Problem{Reason: cachev1alpha1.ReasonNodeNotStarting,
			Message: fmt.Sprintf("node %s cannot start: %s", pod.Name, cmp.Or(end(terminated.Message), terminated.Reason))}
	}
	return containerProblem(fmt.Sprintf("container %s of node %s", c.Name, pod.Name), c, remedyOfInit(c))
}

// containerProblem returns why a container has terminated or cannot start; the zero Problem if neither is so.
func containerProblem(subject string, c corev1.ContainerStatus, remedy string) status.Problem {
	if terminated := terminationOf(c); terminated != nil {
		return status.Problem{Reason: cachev1alpha1.ReasonNodeCrashing,
			Message: fmt.Sprintf("%s terminated (%s, exit code %d): %s%s",
				subject, cmp.Or(terminated.Reason, "Error"), terminated.ExitCode,
				cmp.Or(end(terminated.Message), "no termination message"), remedy)}
	}
	if waiting := c.State.Waiting; waiting != nil && !isStarting(waiting.Reason) {
		return status.Problem{Reason: cachev1alpha1.ReasonNodeNotStarting,
			Message: fmt.Sprintf("%s cannot start (%s): %s%s",
				subject, waiting.Reason, waiting.Message, remedy)}
	}
	return status.Problem{}
}

// terminationOf returns how a container has terminated, or did before it restarted; nil if it never has.
func terminationOf(c corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	return cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
}

// end returns the end of a termination message, which has the cause.
func end(message string) string {
	const limit = 700
	message = strings.TrimSpace(message)
	if excess := len(message) - limit; excess > 0 {
		message = "…" + strings.ToValidUTF8(message[excess:], "")
	}
	return message
}

// isStarting reports whether the reason of a waiting container is a normal part of its start.
func isStarting(reason string) bool {
	return reason == "" || reason == "ContainerCreating" || reason == "PodInitializing"
}
