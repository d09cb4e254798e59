package memcached

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Problems that a StatefulSet does not report itself appear after a time, and until then there is a recheck.
func TestRolloutOfStatefulSet(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	node := func(name, revision string, ready bool, age time.Duration) corev1.Pod {
		p := pod(name, ready)
		p.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}
		p.CreationTimestamp = ago(age)
		return p
	}
	ending := func(name string, overdue time.Duration) corev1.Pod {
		p := pod(name, false)
		p.DeletionTimestamp = ptr.To(ago(overdue))
		p.Spec.NodeName = "machine-1"
		return p
	}
	ready := node("web-0", "new", true, time.Hour)

	for _, test := range []struct {
		name    string
		nodes   nodes
		want    string // the reason and a part of the message; "" for no problem
		recheck time.Duration
	}{
		{"all ready", nodes{pods: []corev1.Pod{ready, node("web-1", "new", true, time.Hour)}}, "", 0},
		{"one is starting", nodes{pods: []corev1.Pod{ready, node("web-1", "new", false, time.Minute)}}, "",
			10 * time.Minute},
		{"one does not become ready",
			nodes{pods: []corev1.Pod{ready, node("web-1", "new", false, 11*time.Minute)}},
			"RolloutStuck StatefulSet web: node web-1 has not become ready within 11m0s", 0},
		{"one of an earlier revision is not ready, and is about to be replaced",
			nodes{pods: []corev1.Pod{ready, node("web-1", "old", false, time.Hour)}}, "", 0},
		{"one has been missing for a while",
			nodes{pods: []corev1.Pod{ready}, shortage: shortage{since: now.Add(-20 * time.Second)}}, "", 40 * time.Second},
		{"one has been missing for a minute",
			nodes{pods: []corev1.Pod{ready}, shortage: shortage{since: now.Add(-time.Minute)}},
			"RolloutStuck StatefulSet web: 1 of 2 pods could not be created: see kubectl -n default describe statefulset web",
			time.Minute},
		{"one has been missing for a minute, and an event says why",
			nodes{pods: []corev1.Pod{ready}, shortage: shortage{now.Add(-time.Minute), "no PriorityClass"}},
			"RolloutStuck StatefulSet web: 1 of 2 pods could not be created: no PriorityClass", time.Minute},
		{"one is ending", nodes{pods: []corev1.Pod{ready}, terminating: []corev1.Pod{ending("web-1", -10*time.Second)}}, "",
			70 * time.Second},
		{"one does not end", nodes{pods: []corev1.Pod{ready}, terminating: []corev1.Pod{ending("web-1", time.Minute)}},
			"NodeTerminating node web-1 should have ended at 2026-01-01T11:59:00Z and is not replaced before it does; if its " +
				"machine machine-1 is lost, run: kubectl taint nodes machine-1", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
				Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2)}, Status: appsv1.StatefulSetStatus{UpdateRevision: "new"}}
			test.nodes.now, test.nodes.warmup = now, time.Minute
			got := rolloutOf(set, test.nodes)
			var problems []string
			for _, problem := range got.problems {
				problems = append(problems, problem.Reason+" "+problem.Message)
			}
			if all := strings.Join(problems, "\n"); !strings.HasPrefix(all, test.want) || test.want == "" && all != "" {
				t.Errorf("problems %q, want %q", all, test.want)
			}
			if got.recheck != test.recheck {
				t.Errorf("recheck after %s, want %s", got.recheck, test.recheck)
			}
		})
	}
}

func TestShortages(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var known shortages
	note := func(after time.Duration, isShort, wantKnown, wantRead bool) {
		t.Helper()
		found, shouldRead := known.note("uid", isShort, now.Add(after))
		if found.isKnown() != wantKnown || shouldRead != wantRead || wantKnown && found.lasts(now.Add(after)) != after {
			t.Errorf("after %s: %+v, read %t", after, found, shouldRead)
		}
	}
	note(0, true, true, false)
	note(59*time.Second, true, true, false)
	note(60*time.Second, true, true, true)
	note(61*time.Second, true, true, false)
	if found := known.noteCause("uid", "quota"); found.message != "quota" || !found.since.Equal(now) {
		t.Errorf("%+v", found)
	}
	note(120*time.Second, true, true, true)
	note(121*time.Second, false, false, false)
	if found := known.noteCause("uid", "quota"); found.isKnown() {
		t.Errorf("a shortage that has ended is known again: %+v", found)
	}
	note(0, true, true, false)
	known.note("other", true, now.Add(time.Hour))
	if len(known.known) != 1 {
		t.Errorf("%d shortages are remembered, want only the new one", len(known.known))
	}
}
