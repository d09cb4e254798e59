package operand

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestImageFor(t *testing.T) {
	now := time.Now()
	with := func(container, image string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "injected", Image: "sidecar:1"}, {Name: container, Image: image}}
		return d
	}
	early, late := Image{Name: "new:1", KeepUntil: now.Add(time.Minute)}, Image{Name: "new:1", KeepUntil: now}
	for _, test := range []struct {
		name       string
		image      Image
		deployment *appsv1.Deployment
		want       string
		wait       time.Duration
	}{
		{"too early, another image", early, with("it", "old:1"), "old:1", time.Minute},
		{"too early, the same image", early, with("it", "new:1"), "new:1", 0},
		{"too early, no Deployment", early, nil, "new:1", 0},
		{"too early, the container is gone", early, with("else", "old:1"), "new:1", 0},
		{"time", late, with("it", "old:1"), "new:1", 0},
	} {
		if got, wait := test.image.For(test.deployment, "it", now); got != test.want || wait != test.wait {
			t.Errorf("%s: %s, wait %s; want %s, %s", test.name, got, wait, test.want, test.wait)
		}
	}
}
