package memcached

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/memcached-operator/internal/status"
)

func pod(name string, ready bool, containers ...corev1.ContainerStatus) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{ContainerStatuses: containers}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

func terminated(reason string, exitCode int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: exitCode,
		Message: message}}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// starting returns a pod that is not ready, with an init container or sidecar in a state, which has terminated before
// if last is set.
func starting(name, container string, state corev1.ContainerState, last ...corev1.ContainerState) corev1.Pod {
	p := pod(name, false, corev1.ContainerStatus{Name: "memcached", State: waiting("PodInitializing", "")})
	status := corev1.ContainerStatus{Name: container, State: state}
	for _, state := range last {
		status.LastTerminationState = state
	}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{status}
	return p
}

// list returns problems from pairs of a reason and a message.
func list(texts ...string) []status.Problem {
	var problems []status.Problem
	for i := 0; i < len(texts); i += 2 {
		problems = append(problems, status.Problem{Reason: texts[i], Message: texts[i+1]})
	}
	return problems
}

func TestPodProblems(t *testing.T) {
	unschedulable := pod("c", false)
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	crashed := corev1.ContainerStatus{State: waiting("CrashLoopBackOff", "back-off"),
		LastTerminationState: terminated("Error", 64, "bad option\n")}

	for _, test := range []struct {
		name string
		pods []corev1.Pod
		want []status.Problem
	}{
		{"no pods", nil, nil},
		{"all ready", []corev1.Pod{pod("a", true), pod("b", true)}, nil},
		{"a container is being created",
			[]corev1.Pod{pod("a", false, corev1.ContainerStatus{State: waiting("ContainerCreating", "")})}, nil},
		{"a pod has just been created", []corev1.Pod{pod("a", false)}, nil},
		{"a pod crashed and is ready again", []corev1.Pod{pod("a", true, crashed)}, nil},
		{"a pod is in a crash loop", []corev1.Pod{pod("a", true), pod("b", false, crashed)}, list(
			"NodeCrashing", "node b terminated (Error, exit code 64): bad option; change spec.config")},
		{"a pod crashed and has not restarted yet",
			[]corev1.Pod{pod("a", false, corev1.ContainerStatus{State: terminated("OOMKilled", 137, "")})}, list(
				"NodeCrashing", "node a terminated (OOMKilled, exit code 137): no termination message; "+
					"raise spec.resources.limits.memory or lower spec.config.memory")},
		{"a long termination message keeps its last 700 bytes",
			[]corev1.Pod{pod("a", false,
				corev1.ContainerStatus{State: terminated("Error", 1, strings.Repeat("x", 2000)+"\nthe reason")})}, list(
				"NodeCrashing",
				"node a terminated (Error, exit code 1): …"+strings.Repeat("x", 689)+"\nthe reason; change spec.config")},
		{"the image cannot be pulled",
			[]corev1.Pod{pod("a", false, corev1.ContainerStatus{State: waiting("ErrImagePull", "not found")})}, list(
				"NodeNotStarting", "node a cannot start (ErrImagePull): not found; change spec.image or spec.imagePullSecrets")},
		{"the image does not contain memcached",
			[]corev1.Pod{pod("a", false, corev1.ContainerStatus{State: terminated("StartError", 128,
				`exec: "memcached": executable file not found in $PATH`)})}, list(
				"NodeCrashing", `node a terminated (StartError, exit code 128): exec: "memcached": executable file not found in `+
					"$PATH; change spec.image to one that contains the program memcached")},
		{"the certificate is missing", []corev1.Pod{starting("a", "prepare", waiting("CrashLoopBackOff", "back-off"),
			terminated("Error", 1, "Secret web has no key tls.crt: add it\n"))}, list(
			"NodeNotStarting", "node a cannot start: Secret web has no key tls.crt: add it")},
		{"the certificate is missing, and the agent looks again", []corev1.Pod{starting("a", "prepare", running,
			terminated("Error", 1, "Secret web has no key tls.crt: add it\n"))}, list(
			"NodeNotStarting", "node a cannot start: Secret web has no key tls.crt: add it")},
		{"the certificate was missing", []corev1.Pod{starting("a", "prepare", terminated("Completed", 0, ""),
			terminated("Error", 1, "Secret web has no key tls.crt: add it\n"))}, nil},
		{"the agent waits for a certificate", []corev1.Pod{starting("a", "prepare", running)}, nil},
		{"the agent has crashed and runs again",
			[]corev1.Pod{starting("a", "agent", running, terminated("Error", 2, "panic"))}, nil},
		{"the agent is in a crash loop", []corev1.Pod{starting("a", "agent", waiting("CrashLoopBackOff", "back-off"),
			terminated("Error", 2, "panic"))}, list(
			"NodeCrashing", "container agent of node a terminated (Error, exit code 2): panic")},
		{"the image of the agent cannot be pulled",
			[]corev1.Pod{starting("a", "agent", waiting("ErrImagePull", "not found"))}, list(
				"NodeNotStarting", "container agent of node a cannot start (ErrImagePull): not found; the administrator of the "+
					"operator sets the image with RELATED_IMAGE_AGENT")},
		{"a pod cannot be scheduled", []corev1.Pod{pod("a", true), unschedulable}, list(
			"NodeUnschedulable", "node c: 0/1 nodes are available; see spec.resources and spec.podTemplate.spec")},
		{"several problems: worst first, one per reason",
			[]corev1.Pod{unschedulable, pod("d", false, crashed), pod("e", false, crashed)}, list(
				"NodeCrashing", "node d terminated (Error, exit code 64): bad option; change spec.config",
				"NodeUnschedulable", "node c: 0/1 nodes are available; see spec.resources and spec.podTemplate.spec")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, podProblems(test.pods)); diff != "" {
				t.Errorf("podProblems() mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlimPodKeepsOnlyUsedFields(t *testing.T) {
	controller := metav1.OwnerReference{Kind: "ReplicaSet", Name: "rs", UID: "2", Controller: ptr.To(true)}
	full := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "5",
			Labels:          map[string]string{labelInstance: "mc", "app": "memcached"},
			Annotations:     map[string]string{"unused": "value"},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Other"}, controller}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached"}}},
		Status: corev1.PodStatus{
			PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastProbeTime: metav1.Now()}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "prepare", ImageID: "sha256:2",
				State: waiting("PodInitializing", "")}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "memcached", ImageID: "sha256:1", RestartCount: 4,
				LastTerminationState: terminated("Error", 1, "bye")}}},
	}
	got, err := slimPod(full)
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "5",
			Labels: map[string]string{labelInstance: "mc"}, OwnerReferences: []metav1.OwnerReference{controller}},
		Status: corev1.PodStatus{
			Conditions:            []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "prepare", State: waiting("PodInitializing", "")}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "memcached",
				LastTerminationState: terminated("Error", 1, "bye")}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("slimPod() mismatch (-want +got):\n%s", diff)
	}
}
