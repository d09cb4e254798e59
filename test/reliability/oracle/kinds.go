package oracle

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

// deploying finds what is not true of the status of a resource whose kind has a Deployment.
func (p *past) deploying(kind *kinds.Kind) []string {
	said, status := history.As[history.Reported](p.self.Object), kind.Status(typed(kind, p.self.Object))
	lies := contradictsPods(said, status.Ready)
	if status.Nodes != nil {
		lies = append(lies, p.listed(&status)...)
	} else if (status.Pods != 0 || status.Ready != 0) && !lately(p, history.Deployments, func(d *appsv1.Deployment) bool {
		return d.Status.Replicas == status.Pods && d.Status.AvailableReplicas == status.Ready
	}) {
		lies = append(lies, fmt.Sprintf("says that it has %d pods, %d of them available; its Deployment did not",
			status.Pods, status.Ready))
	}
	observed := p.observed()
	if observed == nil || !said.Is("Progressing", metav1.ConditionFalse) || !said.Is("Degraded", metav1.ConditionFalse) {
		return lies
	}
	resource := typed(kind, observed)
	wanted, name := kind.Pods(resource), kind.ChildrenOf(resource)[0].GetName()
	if status.Ready != wanted && status.Nodes != nil || !lately(p, history.Deployments, func(d *appsv1.Deployment) bool {
		return d.Name == name && isRolledOut(d) && *d.Spec.Replicas == wanted
	}) {
		lies = append(lies, "says that it is all as wanted; it was not")
	}
	return lies
}

// typed returns an object as its kind.
func typed(kind *kinds.Kind, object *unstructured.Unstructured) client.Object {
	as := kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, as); err != nil {
		panic(err) // the API server has checked it
	}
	return as
}

// contradictsPods finds a condition Available that the number of available pods in the same status contradicts.
func contradictsPods(said *history.Reported, available int32) []string {
	var lies []string
	reason := said.Condition("Available").Reason
	if said.Is("Available", metav1.ConditionTrue) && reason != samplev1alpha1.ReasonScaledToZero && available == 0 {
		lies = append(lies, "says that it is available, and that no pod is")
	}
	if said.Is("Available", metav1.ConditionFalse) && available > 0 {
		lies = append(lies, "says that it is not available, and that pods are")
	}
	return lies
}

// isRolledOut tells whether a Deployment has come to what its specification says.
func isRolledOut(d *appsv1.Deployment) bool {
	wanted := ptr.Deref(d.Spec.Replicas, 1)
	return d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == wanted &&
		d.Status.UpdatedReplicas == wanted && d.Status.AvailableReplicas == wanted
}

// listed finds what is not true of the nodes that a status lists.
func (p *past) listed(status *kinds.Status) []string {
	var lies []string
	nodes, ready := p.nodes()
	readyNow := int32(0)
	for _, node := range status.Nodes {
		if !nodes[node] {
			lies = append(lies, fmt.Sprintf("lists the node %s, which was no pod of its Deployment", node))
		}
		if ready[node] {
			readyNow++
		}
	}
	if !slices.IsSorted(status.Nodes) || int(status.Pods) != len(status.Nodes) {
		lies = append(lies, fmt.Sprintf("lists the nodes %v, and says that they are %d", status.Nodes, status.Pods))
	}
	if status.Ready > readyNow {
		lies = append(lies, fmt.Sprintf("says that %d nodes are ready; of those it lists, %d were", status.Ready, readyNow))
	}
	return lies
}

// nodes returns the names of the pods that the Deployment of a Memcached had when the world was what the status was
// computed from, and of those that were ready then.
func (p *past) nodes() (nodes, ready map[string]bool) {
	nodes, ready = map[string]bool{}, map[string]bool{}
	owners := map[types.UID]bool{p.self.Object.GetUID(): true}
	for _, resource := range []string{history.Deployments, history.ReplicaSets, history.Pods} {
		for i, version := range p.versions {
			controller := metav1.GetControllerOf(version.Object)
			if version.Resource != resource || controller == nil || !owners[controller.UID] {
				continue
			}
			owners[version.Object.GetUID()] = true
			if resource == history.Pods && !version.IsGone && p.wasLately(i) {
				nodes[version.Name] = true
				ready[version.Name] = ready[version.Name] || isReady(history.As[corev1.Pod](version.Object))
			}
		}
	}
	return nodes, ready
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// active finds what is not true of the active Jobs in a CronJob's status.
func (p *past) active(status *tutorialv1.CronJobStatus) []string {
	var lies []string
	for i, reference := range status.Active {
		if slices.Contains(status.Active[:i], reference) {
			lies = append(lies, fmt.Sprintf("lists the Job %s as active twice", reference.Name))
		}
		if !lately(p, history.Jobs, func(job *batchv1.Job) bool {
			return job.UID == reference.UID && job.Name == reference.Name && !jobstate.IsFinished(job)
		}) {
			lies = append(lies, fmt.Sprintf("lists the Job %s as active, which was none of its own that went on",
				reference.Name))
		}
	}
	if int(status.ActiveJobs) != len(status.Active) {
		lies = append(lies, fmt.Sprintf("lists %d Jobs as active, and says that they are %d", len(status.Active),
			status.ActiveJobs))
	}
	return lies
}

// cronJob finds what is not true of a CronJob's status.
func (p *past) cronJob() []string {
	status := history.As[tutorialv1.CronJob](p.self.Object).Status
	var previous tutorialv1.CronJobStatus
	if p.previous != nil {
		previous = history.As[tutorialv1.CronJob](p.previous).Status
	}
	lies := p.active(&status)
	for what, times := range map[string][2]*metav1.Time{
		"lastScheduleTime":   {previous.LastScheduleTime, status.LastScheduleTime},
		"lastMissedTime":     {previous.LastMissedTime, status.LastMissedTime},
		"lastSuccessfulTime": {previous.LastSuccessfulTime, status.LastSuccessfulTime},
		"lastFailedTime":     {previous.LastFailedTime, status.LastFailedTime},
	} {
		if times[0] != nil && (times[1] == nil || times[1].Before(times[0])) {
			lies = append(lies, "has "+what+" go back")
		}
	}
	return slices.Concat(lies, p.times(&previous, &status), p.ends(&status), p.conditions(&status))
}
