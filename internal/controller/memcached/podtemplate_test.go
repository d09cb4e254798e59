package memcached

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

func TestPullPolicy(t *testing.T) {
	for _, test := range []struct {
		image       string
		given, want corev1.PullPolicy
	}{
		{"", "", ""},
		{"", "Never", "Never"},
		{"memcached:latest", "Never", "Never"},
		{"memcached", "", "Always"},
		{"registry.example.com:5000/memcached", "", "Always"},
		{"registry.example.com:5000/memcached:latest", "", "Always"},
		{"registry.example.com:5000/memcached:1.6.45", "", "IfNotPresent"},
		{"memcached@sha256:0123", "", "IfNotPresent"},
		{"memcached:latest@sha256:0123", "", "Always"},
	} {
		mc := &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Image: test.image, ImagePullPolicy: test.given}}
		if got := pullPolicy(mc); got != test.want {
			t.Errorf("image %q, policy %q: %q, want %q", test.image, test.given, got, test.want)
		}
	}
}
