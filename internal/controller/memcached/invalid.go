package memcached

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/internal/status"
)

const (
	// maxServers keeps status.servers and the DNS answers for the nodes of a StatefulSet small.
	maxServers = 1000
	// maxSetName leaves room for the revision hash in the label controller-revision-hash of the pods (63 characters).
	maxSetName = 52
)

// invalid returns the contradictions between fields of a spec, which the schema cannot reject; see MemcachedSpec.
func invalid(mc *cachev1alpha1.Memcached, s settings) (problems []status.Problem) {
	report := func(format string, values ...any) {
		problems = append(problems,
			status.Problem{Reason: cachev1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(format, values...)})
	}
	if mc.Spec.WorkloadType == cachev1alpha1.StatefulSetWorkload {
		if len(mc.Name) > maxSetName || len(validation.IsDNS1123Label(mc.Name)) > 0 {
			report("with spec.workloadType StatefulSet, metadata.name must be a DNS label of at most %d characters, without "+
				"dots: create a Memcached with another name", maxSetName)
		}
		if mc.Spec.Size > maxServers {
			report("spec.size must be at most %d with spec.workloadType StatefulSet: lower it", maxServers)
		}
	}
	memory := resource.NewQuantity(s.memory, resource.BinarySI)
	if limit := s.resources.Limits[corev1.ResourceMemory]; limit.Cmp(*memory) < 0 {
		report("spec.resources.limits.memory is %s, less than spec.config.memory, %s: raise the limit or lower memory",
			&limit, memory)
	}
	if s.maxItemSize > s.memory/2 {
		report("spec.config.maxItemSize must be at most half of the memory for items, which is %s: lower maxItemSize or "+
			"raise spec.resources.limits.memory", memory)
	}
	if s.tls != nil && s.tls.hasPlaintext && s.tls.port == s.port {
		report("spec.tls.port and spec.containerPort are both %d, but spec.tls.plaintext is Enabled: change one of the ports",
			s.port)
	}
	return problems
}
