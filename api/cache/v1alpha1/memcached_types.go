package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemcachedSpec is the desired state.
type MemcachedSpec struct {
	// size is the number of memcached nodes, one pod each. Nodes share nothing: clients distribute keys over them.
	//
	// Required, 0 to 5000; 0 stops all nodes and keeps the other children. Each node holds up to 64 MB of items.
	// Changing it starts or stops nodes and restarts none. Clients then look for some of their keys on other nodes,
	// so expect cache misses for a while; the items of a stopped node are lost.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Size",order=1,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Size int32 `json:"size"`
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

	// serviceName is the name of the headless Service for discovery: its DNS name has one address and one
	// SRV record (_memcached._tcp) for each node that is ready. It is the name of the Memcached where that can be the
	// name of a Service (a DNS label of at most 63 characters), else a shortened form of it.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Service",order=4,xDescriptors={"urn:alm:descriptor:io.kubernetes:Service"}
	ServiceName string `json:"serviceName,omitempty"`

	// selector is the label selector of the pods, in the form that autoscalers read from the scale subresource.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector",order=5,xDescriptors={"urn:alm:descriptor:text"}
	Selector string `json:"selector,omitempty"`

	// conditions report the state of the Memcached: Available (at least one node is ready), Progressing (its children
	// are still changing toward the spec) and Degraded (someone has to act). All three are always present.
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
// +operator-sdk:csv:customresourcedefinitions:displayName="Memcached",order=1,resources={{Deployment,v1,""},{ReplicaSet,v1,""},{Pod,v1,""},{Event,v1,""},{Service,v1,""},{PodDisruptionBudget,v1,""}}
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,path=memcacheds,singular=memcached,shortName=mcd,categories={all,memcached-operator}
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=".spec.size",description="Desired number of nodes"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyNodes",description="Ready nodes"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=".status.conditions[?(@.type=='Available')].reason",description="Reason of the condition Available"
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
