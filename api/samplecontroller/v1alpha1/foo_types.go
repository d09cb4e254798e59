package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FooSpec is the desired state.
type FooSpec struct {
	// deploymentName is the name of the Deployment that this Foo creates in its own namespace.
	//
	// Required; a lower-case DNS subdomain of 1 to 253 characters, unique among the Deployments of the namespace.
	// Before Kubernetes 1.34, a Deployment whose name has more than 242 characters gets no pods.
	// If a Deployment of that name exists that this Foo does not control, it is not changed, and the Foo reports it
	// (condition Degraded, reason NameTaken) until the name is free.
	// Changing it creates the Deployment under the new name and deletes the one under the old name, pods included.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a lower-case DNS subdomain: letters a-z, digits, '-' and '.', starting and ending with a letter or digit, such as web or web-1"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Deployment name",order=1,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	DeploymentName string `json:"deploymentName"`

	// replicas is the number of pods of the Deployment.
	//
	// Optional, 0 or more; 0 stops all pods and keeps the Deployment. Without it the count is not managed:
	// a new Deployment starts with 1, and a count set by others (kubectl scale, an autoscaler) stays.
	// Changing it scales the Deployment without restarting the pods that stay; removing it leaves the count as it is.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Replicas",order=2,xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is the state that the operator has observed.
type FooStatus struct {
	// observedGeneration is the metadata.generation that this status refers to. If it is lower than
	// metadata.generation, the operator has not observed the latest change of the spec yet.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Observed generation",order=4,xDescriptors={"urn:alm:descriptor:text"}
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods that the Deployment has, ready or not.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Replicas",order=2,xDescriptors={"urn:alm:descriptor:text"}
	Replicas int32 `json:"replicas"`

	// availableReplicas is the number of pods that the Deployment reports as available.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Available replicas",order=1,xDescriptors={"urn:alm:descriptor:text"}
	AvailableReplicas int32 `json:"availableReplicas"`

	// selector is the label selector of the pods, in the form that autoscalers read from the scale subresource.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Selector",order=3,xDescriptors={"urn:alm:descriptor:text"}
	Selector string `json:"selector,omitempty"`

	// conditions report the state of the Foo: Available (its pods serve), Progressing (its children are still changing
	// toward the spec) and Degraded (someone has to act). All three are always present.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="Conditions",order=5,xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Foo runs nginx in a Deployment with a name and number of replicas of your choice.
// It is the example of the Kubernetes sample-controller.
//
// +kubebuilder:object:root=true
// +operator-sdk:csv:customresourcedefinitions:displayName="Foo",order=2,resources={{Deployment,v1,""},{ReplicaSet,v1,""},{Pod,v1,""},{Event,v1,""}}
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,path=foos,singular=foo,shortName=fo,categories={all,memcached-operator}
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, experimental-only"
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=".spec.deploymentName",description="Name of the Deployment"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas",description="Desired number of pods; empty if the count is not managed"
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=".status.availableReplicas",description="Available pods"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Available')].status",description="Whether at least one pod is available"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type Foo struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name may have up to 253 characters.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec FooSpec `json:"spec"`

	// status is the state that the operator has observed. Only the operator writes it.
	//
	// +optional
	Status FooStatus `json:"status,omitzero"`
}

// FooList is a list of Foos.
//
// +kubebuilder:object:root=true
type FooList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the Foos.
	Items []Foo `json:"items"`
}
