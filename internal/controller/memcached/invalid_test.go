package memcached

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

func TestInvalid(t *testing.T) {
	limit := func(memory string) *cachev1alpha1.Resources {
		return &cachev1alpha1.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	memory := func(memory string) *cachev1alpha1.MemcachedConfig {
		return &cachev1alpha1.MemcachedConfig{Memory: ptr.To(resource.MustParse(memory))}
	}
	items := &cachev1alpha1.MemcachedConfig{MaxItemSize: ptr.To(resource.MustParse("16Mi"))}
	set := cachev1alpha1.StatefulSetWorkload
	equalPorts := func(plaintext cachev1alpha1.PlaintextMode) cachev1alpha1.MemcachedSpec {
		return cachev1alpha1.MemcachedSpec{TLS: cachev1alpha1.TLS{SecretName: "web", Port: 11211, Plaintext: plaintext}}
	}
	for _, test := range []struct {
		test, name string
		spec       cachev1alpha1.MemcachedSpec
		want       []string // the beginning of each message
	}{
		{"only size", "mc", cachev1alpha1.MemcachedSpec{Size: 5000}, nil},
		{"a Deployment with a long name with dots", strings.Repeat("a.", 60) + "a", cachev1alpha1.MemcachedSpec{}, nil},
		{"a StatefulSet at its limits", strings.Repeat("a", 52), cachev1alpha1.MemcachedSpec{Size: 1000, WorkloadType: set},
			nil},
		{"a StatefulSet with a long name", strings.Repeat("a", 53), cachev1alpha1.MemcachedSpec{WorkloadType: set},
			[]string{"with spec.workloadType StatefulSet, metadata.name must be"}},
		{"a StatefulSet with a name with dots", "a.b", cachev1alpha1.MemcachedSpec{WorkloadType: set},
			[]string{"with spec.workloadType StatefulSet, metadata.name must be"}},
		{"a StatefulSet of too many nodes", "mc", cachev1alpha1.MemcachedSpec{Size: 1001, WorkloadType: set},
			[]string{"spec.size must be at most 1000"}},
		{"a limit that equals memory", "mc", cachev1alpha1.MemcachedSpec{Config: memory("1Gi"), Resources: limit("1Gi")},
			nil},
		{"a limit below memory", "mc", cachev1alpha1.MemcachedSpec{Config: memory("1Gi"), Resources: limit("1023Mi")},
			[]string{"spec.resources.limits.memory is 1023Mi, less than spec.config.memory, 1Gi"}},
		{"items of more than half of the memory that fits the limit", "mc",
			cachev1alpha1.MemcachedSpec{Config: items, Resources: limit("118Mi")},
			[]string{"spec.config.maxItemSize must be at most half of the memory for items, which is "}},
		{"TLS on the port of plaintext, which is disabled", "mc", equalPorts(""), nil},
		{"TLS on the port of plaintext", "mc", equalPorts(cachev1alpha1.PlaintextEnabled),
			[]string{"spec.tls.port and spec.containerPort are both 11211"}},
	} {
		t.Run(test.test, func(t *testing.T) {
			mc := &cachev1alpha1.Memcached{Spec: test.spec}
			mc.Name = test.name
			got := invalid(mc, settingsOf(mc))
			if len(got) != len(test.want) {
				t.Fatalf("problems: %v, want %q", got, test.want)
			}
			for i, problem := range got {
				if problem.Reason != cachev1alpha1.ReasonInvalidSpec || !strings.HasPrefix(problem.Message, test.want[i]) {
					t.Errorf("problem: %v, want %q", problem, test.want[i])
				}
			}
		})
	}
}
