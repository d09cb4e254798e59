package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// WorkloadType is the kind of the workload that runs the nodes.
//
// +kubebuilder:validation:Enum=Deployment;StatefulSet
type WorkloadType string

// Types of workloads.
const (
	// DeploymentWorkload runs nodes whose names and addresses change whenever they are replaced.
	DeploymentWorkload WorkloadType = "Deployment"
	// StatefulSetWorkload runs nodes that keep their names, for clients that hash by server name.
	StatefulSetWorkload WorkloadType = "StatefulSet"
)

// FullPolicy is what a node does with a new item when its memory is full.
//
// +kubebuilder:validation:Enum=Evict;Reject
type FullPolicy string

// Policies of full nodes.
const (
	// EvictWhenFull makes room by evicting the least recently used items.
	EvictWhenFull FullPolicy = "Evict"
	// RejectWhenFull answers with an error and keeps all items.
	RejectWhenFull FullPolicy = "Reject"
)

// Command is a group of memcached's commands that can be disabled.
//
// +kubebuilder:validation:Enum=Flush;Dump;Watch
type Command string

// Commands that can be disabled.
const (
	// FlushCommand is flush_all, which invalidates all items.
	FlushCommand Command = "Flush"
	// DumpCommand are the commands that list keys: stats cachedump, lru_crawler metadump and mgdump.
	DumpCommand Command = "Dump"
	// WatchCommand is watch, which streams a log of the requests.
	WatchCommand Command = "Watch"
)

// MemcachedConfig configures memcached. Changing any field restarts all nodes, one at a time, and each loses its items.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxConnections) && !has(self.threads) || (has(self.maxConnections) ? self.maxConnections : 1024) >= 64 + 8 * (has(self.threads) ? self.threads : 4)",fieldPath=".maxConnections",message="must be at least 64 + 8 * spec.config.threads (default 4): raise maxConnections or lower threads"
// +kubebuilder:validation:XValidation:rule="!has(self.maxItemSize) || quantity(string(self.maxItemSize)).asInteger() * 2 <= quantity(has(self.memory) ? string(self.memory) : '64Mi').asInteger()",fieldPath=".maxItemSize",message="must be at most half of spec.config.memory, which is 64Mi by default: lower maxItemSize or set memory"
type MemcachedConfig struct {
	// memory is the memory for items of each node (--memory-limit). A node needs more than that: about 1.12 times as
	// much and 86 MiB with the default configuration, which the operator sets as the memory limit of its container.
	//
	// Optional, whole MiB, at least 8Mi, such as 1Gi; 64Mi by default, or what fits into spec.resources.limits.memory if
	// only that is set. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && quantity(string(self)).asInteger() % 1048576 == 0 && quantity(string(self)).asInteger() >= 8388608",message="must be whole MiB and at least 8Mi, such as 64Mi or 1Gi"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Memory for items",order=2,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Memory *resource.Quantity `json:"memory,omitempty"`

	// maxItemSize is the maximum size of an item (--max-item-size). Larger ones are rejected.
	//
	// Optional, a multiple of 512Ki of at most half of memory and 1Gi, such as 2Mi; 1Mi by default. Changing it restarts
	// all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && quantity(string(self)).asInteger() % 524288 == 0 && quantity(string(self)).asInteger() >= 524288 && quantity(string(self)).asInteger() <= 1073741824",message="must be a multiple of 512Ki and at most 1Gi, such as 512Ki or 2Mi"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Maximum item size",order=20,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:text"}
	MaxItemSize *resource.Quantity `json:"maxItemSize,omitempty"`

	// maxConnections is the maximum number of open connections of each node (--conn-limit). Every client connects to
	// every node, so adding nodes does not help clients that are rejected.
	//
	// Optional, 64 + 8 * threads, and at least 96, to 500000; 1024 by default. Changing it restarts all nodes, one at a
	// time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:Minimum=96
	// +kubebuilder:validation:Maximum=500000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Maximum connections",order=21,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:number"}
	MaxConnections int32 `json:"maxConnections,omitempty"`

	// threads is the number of threads of each node that serve requests (--threads).
	//
	// Optional, 1 to 64; 4 by default. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Threads",order=22,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:number"}
	Threads int32 `json:"threads,omitempty"`

	// whenFull is what a node does with a new item when its memory is full: Evict makes room by evicting the least
	// recently used items, Reject answers with an error (--disable-evictions).
	//
	// Optional, Evict by default. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="When full",order=23,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:select:Evict","urn:alm:descriptor:com.tectonic.ui:select:Reject"}
	WhenFull FullPolicy `json:"whenFull,omitempty"`

	// idleTimeoutSeconds is how long a connection may be idle before a node closes it (idle_timeout).
	//
	// Optional, 0 to 86400; 0, the default, means never. Changing it restarts all nodes, one at a time, and each loses
	// its items.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Idle timeout (seconds)",order=24,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:number"}
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// verbosity is how much a node logs: 0 only fatal errors, 1 errors and warnings too (-v), 2 every request too (-vv).
	// With 2, the log contains the keys of clients.
	//
	// Optional, 0 to 2; 1 by default. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Verbosity",order=25,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:number"}
	Verbosity *int32 `json:"verbosity,omitempty"`

	// disabledCommands are commands that nodes reject: Flush (flush_all), Dump (listing of keys) and Watch (streaming of
	// requests). Without authentication, every client may use them.
	//
	// Optional, none by default. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Disabled commands",order=26,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:text"}
	DisabledCommands []Command `json:"disabledCommands,omitempty"`

	// options are further options of memcached, each passed as --extended=KEY=VALUE. Options without a value have the
	// value "". If memcached does not accept a value, the node does not start, and the condition Degraded has its error.
	//
	// Optional. Keys with a number: hashpower, hot_lru_pct, hot_max_factor, lru_crawler_sleep, lru_crawler_tocrawl,
	// read_buf_mem_limit, slab_automove (0 to 2), slab_automove_ratio, slab_automove_window, tail_repair_time,
	// temporary_ttl, warm_lru_pct, warm_max_factor, watcher_logbuf_size; with a word: hash_algorithm (jenkins, murmur3 or
	// xxh3); without a value: no_hashexpand, no_lru_crawler, no_lru_maintainer, no_slab_reassign, track_sizes. Changing it
	// restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, key in ['hash_algorithm','hashpower','hot_lru_pct','hot_max_factor','lru_crawler_sleep','lru_crawler_tocrawl','no_hashexpand','no_lru_crawler','no_lru_maintainer','no_slab_reassign','read_buf_mem_limit','slab_automove','slab_automove_ratio','slab_automove_window','tail_repair_time','temporary_ttl','track_sizes','warm_lru_pct','warm_max_factor','watcher_logbuf_size'])",message="has a key that is not allowed: use the fields of spec.config for memory, item size, connections, threads and idle timeout; the allowed keys are hash_algorithm, hashpower, hot_lru_pct, hot_max_factor, lru_crawler_sleep, lru_crawler_tocrawl, no_hashexpand, no_lru_crawler, no_lru_maintainer, no_slab_reassign, read_buf_mem_limit, slab_automove, slab_automove_ratio, slab_automove_window, tail_repair_time, temporary_ttl, track_sizes, warm_lru_pct, warm_max_factor, watcher_logbuf_size"
	// +kubebuilder:validation:XValidation:rule="self.all(key, key in ['no_hashexpand','no_lru_crawler','no_lru_maintainer','no_slab_reassign','track_sizes'] ? self[key] == '' : key == 'hash_algorithm' ? self[key] in ['jenkins','murmur3','xxh3'] : self[key].matches('^[0-9]{1,9}([.][0-9]{1,6})?$'))",message="has a wrong value: hash_algorithm is jenkins, murmur3 or xxh3; no_hashexpand, no_lru_crawler, no_lru_maintainer, no_slab_reassign and track_sizes have the value \"\"; all others have a number in quotes, such as \"30\""
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Options",order=27,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Options map[string]OptionValue `json:"options,omitempty"`
}

// OptionValue is the value of an option of memcached.
//
// +kubebuilder:validation:MaxLength=32
type OptionValue string

// Resources are the resources of the memcached container, merged with the defaults by name.
//
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !('memory' in self.limits) || quantity(string(self.limits['memory'])).compareTo(quantity('8Mi')) >= 0",fieldPath=".limits",message="memory must be at least 8Mi, the minimum of spec.config.memory: raise the limit"
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !has(self.requests) || ['cpu', 'memory'].all(name, !(name in self.limits) || !(name in self.requests) || quantity(string(self.requests[name])).compareTo(quantity(string(self.limits[name]))) <= 0)",fieldPath=".requests",message="must not be more than the limits: lower the request or raise the limit"
type Resources struct {
	// limits are the most that a node may use. With less memory than spec.config.memory, a node could never hold its
	// items: the operator changes nothing, and the condition Degraded is True. With less memory than the node needs, the
	// condition MemorySufficient is False.
	//
	// Optional; by default the memory that the node needs, and no limit of CPU time, because throttling shows as
	// latency. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Limits corev1.ResourceList `json:"limits,omitempty"`

	// requests are what the scheduler reserves for a node.
	//
	// Optional; by default 50m of CPU time, and as much memory as the limit, because every cache fills up. Changing it
	// restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// PodTemplate changes the pods of the nodes.
type PodTemplate struct {
	// metadata has labels and annotations for the pods.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	Metadata *PodMetadata `json:"metadata,omitempty"`

	// spec has settings of the pods for scheduling and security. A list replaces the operator's default.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	Spec *PodSpec `json:"spec,omitempty"`
}

// PodMetadata has labels and annotations of pods.
type PodMetadata struct {
	// labels are added to the pods. The operator's own labels, and those that select pods, are rejected.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!('app' in self || 'memcached_cr' in self || 'pod-template-hash' in self || 'controller-revision-hash' in self)",message="must not contain app, memcached_cr, pod-template-hash or controller-revision-hash, which select the pods: use another label"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the pods.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodSpec has fields of a Kubernetes PodSpec, with the same names and types.
type PodSpec struct {
	// nodeSelector selects the machines that may run the pods, by their labels.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations allow the pods to run on machines with matching taints.
	// See "kubectl explain pod.spec.tolerations".
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// affinity attracts the pods to machines, or to machines with other pods, or keeps them away.
	// See "kubectl explain pod.spec.affinity".
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints distribute the pods over the zones and machines of the cluster. The labels that select
	// the pods are app: memcached and memcached_cr: NAME. See "kubectl explain pod.spec.topologySpreadConstraints".
	//
	// Optional; by default the pods are distributed over zones and machines where possible. An empty list removes the
	// default. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the name of the PriorityClass of the pods.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// runtimeClassName is the name of the RuntimeClass of the pods.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName string `json:"runtimeClassName,omitempty"`

	// schedulerName is the name of the scheduler that assigns the pods to machines.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// serviceAccountName is the name of the ServiceAccount of the pods. Its token is not mounted.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// securityContext is merged with the operator's by field. Values that the Pod Security Standard "restricted" does not
	// allow are rejected. OpenShift assigns runAsUser and fsGroup, and rejects pods that name others. See "kubectl
	// explain pod.spec.securityContext".
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.runAsNonRoot) || self.runAsNonRoot",message="runAsNonRoot must be true: memcached needs no root user"
	// +kubebuilder:validation:XValidation:rule="!has(self.runAsUser) || self.runAsUser > 0",message="runAsUser must be 1 or more: memcached needs no root user"
	// +kubebuilder:validation:XValidation:rule="!has(self.seccompProfile) || self.seccompProfile.type in ['RuntimeDefault', 'Localhost']",message="seccompProfile.type must be RuntimeDefault or Localhost"
	// +kubebuilder:validation:XValidation:rule="!has(self.appArmorProfile) || self.appArmorProfile.type in ['RuntimeDefault', 'Localhost']",message="appArmorProfile.type must be RuntimeDefault or Localhost"
	// +kubebuilder:validation:XValidation:rule="!has(self.seLinuxOptions) || !has(self.seLinuxOptions.user) && !has(self.seLinuxOptions.role) && (!has(self.seLinuxOptions.type) || self.seLinuxOptions.type in ['container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t'])",message="seLinuxOptions must not have a user or role, and its type must be container_t, container_init_t, container_kvm_t or container_engine_t"
	// +kubebuilder:validation:XValidation:rule="!has(self.windowsOptions)",message="windowsOptions must not be set: memcached runs on Linux"
	// +kubebuilder:validation:XValidation:rule="!has(self.sysctls)",message="sysctls must not be set: memcached needs none"
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`
}

// ServiceTemplate changes the Services of a Memcached.
type ServiceTemplate struct {
	// metadata has labels and annotations for the Services.
	//
	// Optional. Changing it restarts no node.
	//
	// +optional
	Metadata *ServiceMetadata `json:"metadata,omitempty"`
}

// ServiceMetadata has labels and annotations of Services.
type ServiceMetadata struct {
	// labels are added to the Services. The operator's own labels are rejected.
	//
	// Optional. Changing it restarts no node.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!('app' in self || 'memcached_cr' in self || 'app.kubernetes.io/name' in self || 'app.kubernetes.io/instance' in self || 'app.kubernetes.io/managed-by' in self)",message="must not contain app, memcached_cr, app.kubernetes.io/name, app.kubernetes.io/instance or app.kubernetes.io/managed-by, which the operator sets: use another label"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the Services. The operator's own annotations are rejected.
	//
	// Optional. Changing it restarts no node.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!self.exists(key, key.startsWith('memcached-operator.example.com/'))",message="must not contain keys of memcached-operator.example.com, which the operator sets"
	Annotations map[string]string `json:"annotations,omitempty"`
}
