package status

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/internal/child"
)

func newWriter(clock clock.PassiveClock) *Writer {
	return NewWriter("Pod", nil, nil, clock,
		func(object client.Object) int64 { return object.(*corev1.Pod).Status.ObservedGeneration })
}

// A change counts from when it is first seen until a status refers to it, once.
func TestDelayOfAChange(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	w := newWriter(clock)
	observed := observer{}
	w.delays = &observed
	pod := func(generation, observed int64) *corev1.Pod {
		pod := named("uid", generation).(*corev1.Pod)
		pod.Status.ObservedGeneration = observed
		return pod
	}
	for _, pod := range []*corev1.Pod{pod(4, 4), pod(5, 4), pod(5, 4)} { // nothing to do, then passes for a change
		Latest(w, pod)
		clock.SetTime(clock.Now().Add(time.Second))
	}
	w.noteStored(pod(5, 4))
	w.noteStored(pod(5, 5))
	w.noteStored(pod(5, 5))
	Latest(w, pod(5, 5))
	if diff := cmp.Diff(observer{2}, observed); diff != "" || len(w.changes) > 0 {
		t.Errorf("delays (-want +got):\n%s\nnot reported: %v", diff, w.changes)
	}
}

// A resource is new until its first pass, whether or not a status was written, and whether or not the cache shows it.
func TestIsNew(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	w := newWriter(clock)
	without, with := named("uid", 1), named("uid", 1)
	with.(*corev1.Pod).Status.ObservedGeneration = 1
	for _, step := range []struct {
		name  string
		do    func()
		isNew bool
	}{
		{"first pass", func() {}, true},
		{"no status was written", func() {}, false},
		{"not within an hour either", func() {
			for range 4 {
				clock.SetTime(clock.Now().Add(20 * time.Minute))
				Latest(w, without)
				w.sweep(clock.Now())
			}
		}, false},
		{"the cache does not show the status", func() { w.noteStored(with) }, false},
		{"gone for an hour", func() {
			clock.SetTime(clock.Now().Add(61 * time.Minute))
			w.sweep(clock.Now())
		}, true},
	} {
		step.do()
		if _, isNew := Latest(w, without); isNew != step.isNew {
			t.Errorf("%s: new is %t", step.name, isNew)
		}
	}
	if _, isNew := Latest(w, with); isNew || len(w.changes) > 0 {
		t.Errorf("with a status: new is %t; noted: %v", isNew, w.changes)
	}
}

// A rejected status is worth an event once an hour, and again after one was written.
func TestUnwrittenNote(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	w := newWriter(clock)
	pod := named("uid", 1)
	policy := apierrors.NewForbidden(corev1.Resource("pods"), "one", errors.New("not on Fridays"))
	tooLarge := errors.New("writing the status of one: etcdserver: request is too large")
	expect := func(err error, want string) {
		t.Helper()
		if note := w.UnwrittenNote(pod, err); (note == "") != (want == "") || !strings.Contains(note, want) {
			t.Errorf("the note for %v is %q, not %q", err, note, want)
		}
	}
	expect(nil, "")
	expect(apierrors.NewInternalError(errors.New("try again")), "")
	expect(policy, "the status is not up to date: ")
	expect(policy, "")
	clock.SetTime(clock.Now().Add(time.Hour + time.Second))
	expect(policy, "not on Fridays")
	w.noteStored(pod)
	expect(tooLarge, "make the resource smaller")
	clock.SetTime(clock.Now().Add(time.Hour + time.Second))
	w.sweep(clock.Now())
	if len(w.rejected) > 0 {
		t.Errorf("not forgotten: %v", w.rejected)
	}
}

type observer []float64

func (o *observer) Observe(value float64) { *o = append(*o, value) }

// The number of progress updates is logarithmic in the time that a change takes, however often the status changes.
func TestProgressUpdatesAreRateLimited(t *testing.T) {
	for _, test := range []struct {
		takes time.Duration
		most  int
	}{
		{500 * time.Millisecond, 0}, {10 * time.Second, 4}, {5 * time.Minute, 11}, {time.Hour, 67},
	} {
		start := time.Unix(0, 0)
		clock := clocktesting.NewFakePassiveClock(start)
		w := newWriter(clock)
		reports, last := 0, start
		for clock.Since(start) < test.takes {
			if wait := w.untilDue(named("uid", 1)); wait == 0 {
				reports++
				last = clock.Now()
			} else if next := clock.Now().Add(wait); next.Sub(last) > longestWait+time.Second {
				t.Errorf("after %s the next update waits for %s", clock.Since(start), wait)
			}
			clock.SetTime(clock.Now().Add(50 * time.Millisecond))
		}
		if reports > test.most || float64(reports) < math.Log2(test.takes.Seconds())-1 {
			t.Errorf("%d updates in %s; at most %d are enough", reports, test.takes, test.most)
		}
	}
}

// However long a rollout already takes, a change of the spec is reported within a second, and changes that follow each
// other quickly are reported once a second.
func TestAChangeOfTheSpecIsReportedSoon(t *testing.T) {
	for _, test := range []struct {
		every time.Duration
		most  int
	}{{300 * time.Millisecond, 100}, {3 * time.Second, 60}} {
		clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
		w := newWriter(clock)
		for clock.Since(time.Unix(0, 0)) < 10*time.Minute {
			w.untilDue(named("uid", 1))
			clock.SetTime(clock.Now().Add(50 * time.Millisecond))
		}
		changing, reported, reports := clock.Now(), clock.Now(), 0
		for clock.Since(changing) < 100*time.Second {
			generation := 2 + int64(clock.Since(changing)/test.every)
			if w.untilDue(named("uid", generation)) == 0 {
				reported = clock.Now()
				reports++
			}
			if since := clock.Since(reported); since > 2*time.Second {
				t.Fatalf("a change every %s: no update for %s", test.every, since)
			}
			clock.SetTime(clock.Now().Add(50 * time.Millisecond))
		}
		if reports > test.most {
			t.Errorf("a change every %s: %d updates in 100 seconds", test.every, reports)
		}
	}
}

func named(uid types.UID, generation int64) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation}}
}

func TestPacesAreForgotten(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	w := newWriter(clock)
	for _, uid := range []types.UID{"done", "deleted"} {
		w.untilDue(named(uid, 1))
	}
	w.forget("done")
	clock.SetTime(clock.Now().Add(time.Hour))
	w.untilDue(named("new", 1))
	if len(w.paces) != 1 {
		t.Errorf("kept: %v", w.paces)
	}
}

func conditions(available, progressing, degraded string) []metav1.Condition {
	var conditions []metav1.Condition
	condition := func(text string) Condition {
		status, reason, _ := strings.Cut(text, "/")
		return Condition{Status: metav1.ConditionStatus(status), Reason: reason}
	}
	SetConditions(&conditions, 1, condition(available), condition(progressing), condition(degraded))
	return conditions
}

func TestTransitions(t *testing.T) {
	fine := conditions("True/All", "False/Done", "False/AsExpected")
	moving := conditions("True/Some", "True/Rolling", "False/AsExpected")
	starting := conditions("False/None", "True/Rolling", "False/AsExpected")
	crashing := conditions("True/Some", "True/Rolling", "True/Crashing")
	refused := conditions("True/Some", "False/Blocked", "True/Refused")
	refusedAgain := conditions("False/None", "False/Blocked", "True/Refused")
	for i := range refusedAgain {
		refusedAgain[i].ObservedGeneration = 2
	}
	later := conditions("True/All", "False/Done", "False/AsExpected")
	for i := range later {
		later[i].ObservedGeneration = 2
	}
	for _, test := range []struct {
		name                        string
		before, after               []metav1.Condition
		isOutcome, degraded, synced bool
	}{
		{"no change", fine, fine, true, false, false},
		{"the first status is progress", nil, starting, false, false, true},
		{"the first status is success", nil, fine, true, false, true},
		{"the first status is failure", nil, refused, true, true, false},
		{"progress continues", starting, moving, false, false, false},
		{"progress begins", fine, moving, false, false, false},
		{"the rollout completes", moving, fine, true, false, false},
		{"availability is lost", moving, starting, true, false, false},
		{"it crashes", moving, crashing, true, true, false},
		{"it still crashes", crashing, crashing, false, false, false},
		{"a worse problem appears", crashing, refused, true, true, false},
		{"it stops crashing", crashing, moving, true, false, false},
		{"it is still refused", refused, refused, false, false, false},
		{"it is refused after a change too, and availability is lost", refused, refusedAgain, true, true, false},
		{"it is no longer refused", refused, moving, true, false, true},
		{"part of it is no longer refused", conditions("True/All", "False/Done", "True/Refused"), fine, true, false, true},
		{"another generation", fine, later, true, false, true},
		{"it is paused, with another generation", later, conditions("True/All", "False/Paused", "False/AsExpected"), true,
			false, false},
		{"it is no longer paused", conditions("True/All", "False/Paused", "False/AsExpected"), fine, true, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := IsOutcome(test.before, test.after); got != test.isOutcome {
				t.Errorf("IsOutcome = %t", got)
			}
			if got := HasBecomeDegraded(test.before, test.after); got != test.degraded {
				t.Errorf("HasBecomeDegraded = %t", got)
			}
			if got := HasBeenSynced(test.before, test.after); got != test.synced {
				t.Errorf("HasBeenSynced = %t", got)
			}
		})
	}
}

func TestConditionsKeepTheirTransitionTime(t *testing.T) {
	got := conditions("True/All", "False/Done", "False/AsExpected")
	for i := range got {
		got[i].LastTransitionTime = metav1.Unix(1, 0)
	}
	SetConditions(&got, 2, Condition{Status: "True", Reason: "Some"}, Condition{Status: "True", Reason: "Rolling"},
		Condition{Status: "False", Reason: "AsExpected", Message: strings.Repeat("ä", 2000)})
	for i, changed := range []bool{false, true, false} {
		if (got[i].LastTransitionTime.Unix() != 1) != changed || got[i].ObservedGeneration != 2 {
			t.Errorf("%s: since %s, of generation %d", got[i].Type, got[i].LastTransitionTime, got[i].ObservedGeneration)
		}
	}
	if got := got[2].Message; len(got) > maxMessage || !strings.HasSuffix(got, "ä…") || !utf8.ValidString(got) {
		t.Errorf("a long message has %d bytes: %q", len(got), got)
	}
}

// problemOf returns the message of the problem that a Deployment reports; "" if there is none.
func problemOf(deployment *appsv1.Deployment) string {
	for _, problem := range RolloutProblems(deployment) {
		return problem.Message
	}
	return ""
}

func TestRolloutOf(t *testing.T) {
	for _, test := range []struct {
		name                      string
		desired                   *int32
		generation, observed      int64
		total, updated, available int32
		condition                 *appsv1.DeploymentCondition
		isOver                    bool
		progress, problem         string
	}{
		{name: "done", desired: ptr.To[int32](2), generation: 3, observed: 3, total: 2, updated: 2, available: 2,
			isOver: true, progress: "2 of 2 pods are available"},
		{name: "not observed", desired: ptr.To[int32](2), generation: 4, observed: 3, total: 2, updated: 2, available: 2,
			progress: "waiting for the Deployment controller to observe the change"},
		{name: "being updated", desired: ptr.To[int32](2), total: 2, updated: 1, available: 2,
			progress: "1 of 2 pods are up to date"},
		{name: "old ones left", desired: ptr.To[int32](2), total: 3, updated: 2, available: 3,
			progress: "1 surplus pods are being stopped"},
		{name: "not available yet", desired: ptr.To[int32](2), total: 2, updated: 2, available: 1,
			progress: "1 of 2 pods are available"},
		{name: "replicas unset", total: 1, updated: 1, available: 1, isOver: true, progress: "1 of 1 pods are available"},
		{name: "no replicas", desired: ptr.To[int32](0), isOver: true, progress: "0 of 0 pods are available"},
		{name: "pods refused", desired: ptr.To[int32](1), progress: "0 of 1 pods are up to date",
			problem: "Deployment : FailedCreate: quota",
			condition: &appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
				Reason: "FailedCreate", Message: "quota"}},
		{name: "no ReplicaSet, which is never observed", desired: ptr.To[int32](1), generation: 1,
			progress: "waiting for the Deployment controller to observe the change",
			problem:  "Deployment : ReplicaSetCreateError: quota",
			condition: &appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
				Reason: "ReplicaSetCreateError", Message: "quota"}},
		{name: "too slow", desired: ptr.To[int32](1), progress: "0 of 1 pods are up to date",
			problem: "Deployment : ProgressDeadlineExceeded: late",
			condition: &appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
				Reason: "ProgressDeadlineExceeded", Message: "late"}},
		{name: "too slow before the latest change", desired: ptr.To[int32](1), generation: 4, observed: 3,
			progress: "waiting for the Deployment controller to observe the change",
			condition: &appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
				Reason: "ProgressDeadlineExceeded", Message: "late"}},
		{name: "paused by a user", desired: ptr.To[int32](1), progress: "0 of 1 pods are up to date",
			condition: &appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
				Reason: "DeploymentPaused"}},
		{name: "progressing", desired: ptr.To[int32](1), progress: "0 of 1 pods are up to date",
			condition: &appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
				Reason: "ReplicaSetUpdated"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: test.generation},
				Spec: appsv1.DeploymentSpec{Replicas: test.desired},
				Status: appsv1.DeploymentStatus{ObservedGeneration: test.observed, Replicas: test.total,
					UpdatedReplicas: test.updated, AvailableReplicas: test.available}}
			if test.condition != nil {
				d.Status.Conditions = append(d.Status.Conditions, *test.condition)
			}
			got := RolloutOf(d)
			if got.IsOver != test.isOver || got.Progress != test.progress || problemOf(d) != test.problem ||
				got.Total != test.total || got.Available != test.available {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestDegraded(t *testing.T) {
	if got := Degraded(nil); got != (Condition{"False", "AsExpected", "nothing is wrong"}) {
		t.Errorf("without problems: %v", got)
	}
	got := Degraded([]Problem{{"NameTaken", "one"}, {"NodeCrashing", "two"}})
	if got != (Condition{"True", "NameTaken", "one; two"}) {
		t.Errorf("with two problems: %v", got)
	}
}

func TestChildProblems(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "it", errors.New("quota"))
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "it", errors.New("a webhook"))
	taken := &child.NotControlledError{Kind: "Service", Name: "it"}
	got := ChildProblems(errors.Join(errors.New("reset"), errors.Join(conflict, fmt.Errorf("applying: %w", forbidden)),
		taken), "ns", " or else")
	want := []Problem{
		{"NameTaken",
			`Service "it" exists and is not controlled by anything; delete it (kubectl -n ns delete service it) or else`},
		{"Refused", "applying: " + forbidden.Error()},
		{"Error", "reset"},
		{"Error", conflict.Error()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSooner(t *testing.T) {
	if got := Sooner(0, 3, 0, 2, 5); got != 2 {
		t.Errorf("the shortest wait is %d", got)
	}
	if got := Sooner(0, 0); got != 0 {
		t.Errorf("without a wait, it is %d", got)
	}
}
