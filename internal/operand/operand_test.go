package operand

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestImageFor(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	with := func(container, image string) *corev1.PodSpec {
		return &corev1.PodSpec{Containers: []corev1.Container{{Name: "injected", Image: "sidecar:1"},
			{Name: container, Image: image}}}
	}
	holdOff := func(delay time.Duration) *HoldOff {
		return &HoldOff{Delay: delay, Clock: clocktesting.NewFakePassiveClock(now)}
	}
	leading := func(since time.Duration) *HoldOff {
		clock := clocktesting.NewFakePassiveClock(now.Add(-since))
		h := &HoldOff{Delay: time.Minute, Clock: clock}
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.SetTime(now)
		return h
	}
	for _, test := range []struct {
		name    string
		holdOff *HoldOff
		spec    *corev1.PodSpec
		want    Choice // while pods are available
		// isTentative reports whether the choice is tentative while no pods are available.
		isTentative bool
	}{
		{"during the hold-off, another image", leading(20 * time.Second), with("it", "old:1"),
			Choice{Name: "old:1", Wait: 40 * time.Second}, true},
		{"before Start, another image", holdOff(time.Minute), with("it", "old:1"),
			Choice{Name: "old:1", Wait: time.Minute}, true},
		{"during the hold-off, another image of a sidecar", leading(0),
			&corev1.PodSpec{InitContainers: []corev1.Container{{Name: "it", Image: "old:1"}}},
			Choice{Name: "old:1", Wait: time.Minute}, true},
		{"during the hold-off, the same image", leading(0), with("it", "new:1"), Choice{Name: "new:1"}, false},
		{"during the hold-off, no workload", leading(0), nil, Choice{Name: "new:1"}, false},
		{"during the hold-off, no such container", leading(0), with("else", "old:1"), Choice{Name: "new:1"}, false},
		{"hold-off over, another image", leading(time.Minute), with("it", "old:1"), Choice{Name: "new:1"}, false},
		{"no delay, before Start", holdOff(0), with("it", "old:1"), Choice{Name: "new:1"}, false},
	} {
		image := Image{Name: "new:1", HoldOff: test.holdOff}
		if got := image.For(test.spec, true, "it"); got != test.want {
			t.Errorf("%s: %+v; want %+v", test.name, got, test.want)
		}
		want := Choice{Name: "new:1", IsTentative: test.isTentative}
		if got := image.For(test.spec, false, "it"); got != want {
			t.Errorf("%s, no available pods: %+v; want %+v", test.name, got, want)
		}
	}
}

// A digest in the place of the tag is no reason to restart pods.
func TestImageKeepsTag(t *testing.T) {
	for running, want := range map[string]string{"it:1": "it:1", "it:0": "it@sha256:1", "it@sha256:0": "it@sha256:1"} {
		image := Image{Name: "it@sha256:1", Tagged: "it:1",
			HoldOff: &HoldOff{Clock: clocktesting.NewFakePassiveClock(time.Now())}}
		pods := &corev1.PodSpec{Containers: []corev1.Container{{Name: "it", Image: running}}}
		if got := image.For(pods, true, "it"); got != (Choice{Name: want}) {
			t.Errorf("%s: %+v; want %s", running, got, want)
		}
		if got := image.For(pods, false, "it"); got != (Choice{Name: image.Name, IsTentative: want == image.Tagged}) {
			t.Errorf("%s, no available pods: %+v", running, got)
		}
	}
}
