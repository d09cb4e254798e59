package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedSpec is the desired state.
//
// Rules over several of its fields are in the operator, which reports violations with reason InvalidSpec: OLM v1
// refuses to upgrade to a definition with a new CEL rule on a level that released definitions have.
type MemcachedSpec struct {
	// size is the number of memcached nodes, one pod each. Nodes share nothing: clients distribute keys over them.
	//
	// Required, 0 to 5000, with workloadType StatefulSet 0 to 1000; 0 stops all nodes and keeps the other children. Each
	// node holds items of config.memory, 64 MiB by default. Changing it starts or stops nodes and restarts none. Clients
	// then look for some of their keys on other nodes, so expect cache misses for a while; the items of a stopped node
	// are lost.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Size",order=1,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Size int32 `json:"size"`

	// paused stops the operator from creating, changing and repairing the children; the status is still reported, with
	// reason Paused in the condition Progressing. Nodes keep running.
	//
	// Optional, false by default. Changing it restarts no node; changes made in between take effect when it ends.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Paused",order=30,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Paused *bool `json:"paused,omitempty"`

	// workloadType is what runs the nodes. With Deployment, a replaced node gets another name and address. With
	// StatefulSet, nodes keep their names, which status.servers lists, for clients that hash by server name; the name of
	// the Memcached must then be a DNS label of at most 52 characters, else the condition Degraded is True.
	//
	// Optional, Deployment by default. Changing it is rejected: create another Memcached, and move the clients.
	//
	// +optional
	// +kubebuilder:default=Deployment
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: create another Memcached and move the clients"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Workload",order=3,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Deployment","urn:alm:descriptor:com.tectonic.ui:select:StatefulSet"}
	WorkloadType WorkloadType `json:"workloadType,omitempty"`

	// warmupSeconds is how long a restarted node gets to fill with items before the next node may be restarted. With
	// StatefulSet, drains of machines wait as well, and the node is not listed by the Service of the Memcached's name
	// in that time; clients that use the names in status.servers reach it at once.
	//
	// Optional, 0 to 3600; 0 with Deployment and 60 with StatefulSet by default. Changing it restarts no node with
	// Deployment; with StatefulSet it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Warm-up (seconds)",order=31,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:number"}
	WarmupSeconds *int32 `json:"warmupSeconds,omitempty"`

	// image is the memcached image. It must contain the program memcached, version 1.6.18 or later.
	//
	// Optional; by default the image that the operator was released with. Changing it restarts all nodes, one at a time,
	// and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image",order=32,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:text"}
	Image string `json:"image,omitempty"`

	// imagePullPolicy is when the image is pulled.
	//
	// Optional, Always, IfNotPresent or Never; Kubernetes' default depends on the tag of the image. Changing it restarts
	// all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:Enum=Never;Always;IfNotPresent
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image pull policy",order=33,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:imagePullPolicy"}
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// imagePullSecrets are the Secrets with the credentials for pulling the image, in the namespace of the Memcached.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Image pull secrets",order=34,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// containerPort is the port that nodes and Services listen on without TLS; with tls it has an effect only if
	// tls.plaintext is Enabled. Clients that do not look up SRV records have to follow.
	//
	// Optional, 1024 to 65535 except 9150 and 11210, which are reserved; 11211 by default. Changing it restarts all
	// nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:validation:XValidation:rule="!(self in [9150, 11210])",message="must not be 9150 or 11210, which are reserved for metrics and administration: use another port, such as 11211"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Port",order=35,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:number"}
	ContainerPort int32 `json:"containerPort,omitempty"`

	// config configures memcached.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Configuration",order=19,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Config *MemcachedConfig `json:"config,omitempty"`

	// resources are the resources of each node.
	//
	// Optional; by default the memory that the node needs with its configuration, and 50m of CPU time. Changing it
	// restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Resources",order=36,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:resourceRequirements"}
	Resources *Resources `json:"resources,omitempty"`

	// podTemplate adds labels, annotations, and settings for scheduling and security to the pods.
	//
	// Optional. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Pod template",order=37,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// service adds labels and annotations to the Services.
	//
	// Optional. Changing it restarts no node.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Service",order=38,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Service *ServiceTemplate `json:"service,omitempty"`

	// tls encrypts the connections of clients.
	//
	// Optional; by default nodes serve clients without TLS, on containerPort. Changing it restarts all nodes, one at a
	// time, and each loses its items; a renewed certificate restarts none.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="TLS",order=39,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	TLS TLS `json:"tls,omitzero"`

	// metrics is how nodes serve metrics.
	//
	// Optional; by default they serve none. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Metrics",order=45,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Metrics *Metrics `json:"metrics,omitempty"`
}

// MemcachedStatus is the state that the operator has observed.
type MemcachedStatus struct {
	// observedGeneration is the metadata.generation that this status refers to. If it is lower than
	// metadata.generation, the operator has not observed the latest change of the spec yet.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation",order=6,xDescriptors={"urn:alm:descriptor:text"}
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes are the names of the pods that are this Memcached's nodes, ready or not, sorted.
	// Pods that are terminating or terminated are not included.
	//
	// +optional
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Nodes",order=3,xDescriptors={"urn:alm:descriptor:text"}
	Nodes []string `json:"nodes"`

	// size is the number of nodes that exist, ready or not.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Size",order=1,xDescriptors={"urn:alm:descriptor:text"}
	Size int32 `json:"size"`

	// readyNodes is the number of nodes that are ready.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Ready nodes",order=2,xDescriptors={"urn:alm:descriptor:text"}
	ReadyNodes int32 `json:"readyNodes"`

	// serviceName is the name of the headless Service for discovery: its DNS name has one address and one SRV record
	// (_memcached._tcp, with TLS _memcached-tls._tcp) for each node that is ready. It is the name of the Memcached where
	// that can be the name of a Service (a DNS label of at most 63 characters), else a shortened form of it.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Service",order=4,xDescriptors={"urn:alm:descriptor:io.kubernetes:Service"}
	ServiceName string `json:"serviceName,omitempty"`

	// servers are the names and ports of the nodes with workloadType StatefulSet, in the order of their numbers, ready or
	// not: NAME-0.NAME-nodes.NAMESPACE.svc:11211 and so on. A node that is replaced keeps its name. The port is that of
	// spec.tls if plaintext is disabled. With Deployment the list is empty, because its pods have no DNS names.
	//
	// +optional
	// +listType=atomic
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Servers",order=8,xDescriptors={"urn:alm:descriptor:text"}
	Servers []string `json:"servers,omitempty"`

	// selector is the label selector of the pods, in the form that autoscalers read from the scale subresource.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector",order=5,xDescriptors={"urn:alm:descriptor:text"}
	Selector string `json:"selector,omitempty"`

	// conditions report the state of the Memcached: Available (at least one node is ready), Progressing (its children
	// are still changing toward the spec), Degraded (someone has to act) and MemorySufficient (the memory limit of the
	// nodes is as high as their configuration needs). All four are always present.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",order=7,xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Memcached runs memcached nodes and lists them in its status.
//
// +kubebuilder:object:root=true
// +operator-sdk:csv:customresourcedefinitions:displayName="Memcached",order=1,resources={{Deployment,v1,""},{StatefulSet,v1,""},{ReplicaSet,v1,""},{Pod,v1,""},{Event,v1,""},{Service,v1,""},{PodDisruptionBudget,v1,""}}
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,path=memcacheds,singular=memcached,shortName=mcd,categories={all,memcached-operator}
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=".spec.size",description="Desired number of nodes"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyNodes",description="Ready nodes"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.conditions[?(@.type=='Available')].reason",description="Reason of the condition Available"
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=".spec.config.memory",description="Memory for items of each node, if set",priority=1
// +kubebuilder:printcolumn:name="Workload",type=string,JSONPath=".spec.workloadType",description="What runs the nodes",priority=1
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=".status.serviceName",description="Service for discovery",priority=1
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=".status.conditions[?(@.type=='Degraded')].reason",description="Reason of the condition Degraded",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type Memcached struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is also the name of the Deployment, of the
	// PodDisruptionBudget and, where it can be, of the Service; it may have up to 253 characters. Before Kubernetes
	// 1.34, a Deployment whose name has more than 242 characters gets no pods.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec MemcachedSpec `json:"spec"`

	// status is the state that the operator has observed. Only the operator writes it.
	//
	// +optional
	Status MemcachedStatus `json:"status,omitzero"`
}

// MemcachedList is a list of Memcacheds.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the Memcacheds.
	Items []Memcached `json:"items"`
}
