package memcached

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// A limit changes only together with the configuration: another result for the same settings would restart every cache
// when the operator is upgraded.
func TestNeeds(t *testing.T) {
	for _, test := range []struct {
		memory               string
		connections, threads int32
		want                 string
	}{
		{"64Mi", 0, 0, "168Mi"}, // the default, and the limit of releases 0.1.0 and 0.2.0
		{"8Mi", 96, 1, "87Mi"},
		{"256Mi", 0, 0, "384Mi"},
		{"1Gi", 0, 0, "1247Mi"},
		{"1Gi", 4000, 4, "1295Mi"},
		{"4Gi", 0, 0, "4698Mi"},
	} {
		memory := resource.MustParse(test.memory)
		mc := &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Config: &cachev1alpha1.MemcachedConfig{
			Memory: &memory, MaxConnections: test.connections, Threads: test.threads}}}
		if got := settingsOf(mc).needs(); got.Cmp(resource.MustParse(test.want)) != 0 {
			t.Errorf("%s, %d connections, %d threads: needs %s, want %s", test.memory, test.connections, test.threads, &got,
				test.want)
		}
	}
}

// A node whose memory is derived from its limit needs no more than that limit, and with one MiB more it would.
func TestFitsIsTheInverseOfNeeds(t *testing.T) {
	for limit := 110 * mebibyte; limit < 64<<30; limit = limit*9/8 + 12345 {
		quantity := *resource.NewQuantity(limit, resource.BinarySI)
		mc := &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Resources: &cachev1alpha1.Resources{
			Limits: corev1.ResourceList{corev1.ResourceMemory: quantity}}}}
		s := settingsOf(mc)
		if needs := s.needs(); needs.Value() > limit {
			t.Fatalf("limit %d: %d for items needs %s", limit, s.memory, &needs)
		}
		s.memory += 2 * mebibyte
		if needs := s.needs(); needs.Value() <= limit {
			t.Fatalf("limit %d: even %d for items would fit", limit, s.memory)
		}
	}
}

// Every connection with TLS needs buffers of its own.
func TestNeedsWithTLS(t *testing.T) {
	s := settingsOf(&cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{TLS: cachev1alpha1.TLS{SecretName: "web"}}})
	if needs := s.needs(); needs.Cmp(resource.MustParse("210Mi")) != 0 {
		t.Errorf("needs %s", &needs)
	}
}

func TestResources(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		resources := corev1.ResourceList{}
		if cpu != "" {
			resources[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			resources[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return resources
	}
	for _, test := range []struct {
		name                       string
		limits, requests           corev1.ResourceList
		wantLimits, wantRequests   corev1.ResourceList
		wantMemory, wantSufficient string
	}{
		{"none", nil, nil, list("", "168Mi"), list("50m", "168Mi"), "64Mi", "True"},
		{"a CPU limit below the default request", list("20m", ""), nil, list("20m", "168Mi"), list("20m", "168Mi"), "64Mi",
			"True"},
		{"a memory limit", list("", "1Gi"), nil, list("", "1Gi"), list("50m", "1Gi"), "825Mi", "True"},
		{"a memory limit that is too low for anything", list("", "64Mi"), nil, list("", "64Mi"), list("50m", "64Mi"), "8Mi",
			"False"},
		{"a memory request", nil, list("1", "100Mi"), list("", "168Mi"), list("1", "100Mi"), "64Mi", "True"},
		{"a memory request above what a node needs", nil, list("", "1Gi"), list("", "1Gi"), list("50m", "1Gi"), "64Mi",
			"True"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := settingsOf(&cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Resources: &cachev1alpha1.Resources{
				Limits: test.limits, Requests: test.requests}}})
			expectResources(t, "limits", s.resources.Limits, test.wantLimits)
			expectResources(t, "requests", s.resources.Requests, test.wantRequests)
			if want := resource.MustParse(test.wantMemory); s.memory != want.Value() {
				t.Errorf("memory %d, want %s", s.memory, test.wantMemory)
			}
			if got := memorySufficient(s); string(got.Status) != test.wantSufficient {
				t.Errorf("MemorySufficient: %+v, want %s", got, test.wantSufficient)
			}
		})
	}
}

func expectResources(t *testing.T, name string, got, want corev1.ResourceList) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
	for key, quantity := range want {
		if has := got[key]; has.Cmp(quantity) != 0 {
			t.Errorf("%s of %s: %s, want %s", name, key, &has, &quantity)
		}
	}
}

// A resource that only names defaults has the command of release 0.2.0: nothing restarts.
func TestDefaultsThatAreNamedChangeNothing(t *testing.T) {
	memory, itemSize, verbosity := resource.MustParse("65536Ki"), resource.MustParse("1Mi"), int32(1)
	mc := &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{ContainerPort: 11211,
		Config: &cachev1alpha1.MemcachedConfig{Memory: &memory, MaxItemSize: &itemSize, MaxConnections: 1024, Threads: 4,
			WhenFull: cachev1alpha1.EvictWhenFull, Verbosity: &verbosity}}}
	want := command(settingsOf(&cachev1alpha1.Memcached{}))
	got := command(settingsOf(mc))
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
}
