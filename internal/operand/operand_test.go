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
		running *corev1.PodSpec
		want    string
		wait    time.Duration
	}{
		{"during the hold-off, another image", leading(20 * time.Second), with("it", "old:1"), "old:1", 40 * time.Second},
		{"before Start, another image", holdOff(time.Minute), with("it", "old:1"), "old:1", time.Minute},
		{"during the hold-off, another image of a sidecar", leading(0),
			&corev1.PodSpec{InitContainers: []corev1.Container{{Name: "it", Image: "old:1"}}}, "old:1", time.Minute},
		{"during the hold-off, the same image", leading(0), with("it", "new:1"), "new:1", 0},
		{"during the hold-off, no pods", leading(0), nil, "new:1", 0},
		{"during the hold-off, no such container", leading(0), with("else", "old:1"), "new:1", 0},
		{"hold-off over, another image", leading(time.Minute), with("it", "old:1"), "new:1", 0},
		{"no delay, before Start", holdOff(0), with("it", "old:1"), "new:1", 0},
	} {
		image := Image{Name: "new:1", HoldOff: test.holdOff}
		if got, wait := image.For(test.running, "it"); got != test.want || wait != test.wait {
			t.Errorf("%s: %s, wait %s; want %s, %s", test.name, got, wait, test.want, test.wait)
		}
	}
}

// A digest in the place of the tag is no reason to restart pods.
func TestImageKeepsTag(t *testing.T) {
	for running, want := range map[string]string{"it:1": "it:1", "it:0": "it@sha256:1", "it@sha256:0": "it@sha256:1"} {
		image := Image{Name: "it@sha256:1", Tagged: "it:1",
			HoldOff: &HoldOff{Clock: clocktesting.NewFakePassiveClock(time.Now())}}
		pods := &corev1.PodSpec{Containers: []corev1.Container{{Name: "it", Image: running}}}
		if got, wait := image.For(pods, "it"); got != want || wait != 0 {
			t.Errorf("%s: %s, wait %s; want %s", running, got, wait, want)
		}
		if depends := image.DependsOnPods(pods, "it"); depends != (want == image.Tagged) {
			t.Errorf("%s: the image depends on whether pods are available: %t", running, depends)
		}
	}
}
