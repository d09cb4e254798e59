// Package kinds describes each kind of the operator once, for all test suites: how to create and read one, which
// children it has, and facts about its fields that its CustomResourceDefinition does not contain. It depends on no
// test framework, since the image of the scorecard tests is built from it.
package kinds

import (
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// Kind describes one kind of the operator.
type Kind struct {
	Name string
	// Variant is what distinguishes kinds with the same name, such as "StatefulSet"; "" for most.
	Variant      string
	GroupVersion schema.GroupVersion
	Resource     string // the plural name
	// New returns an empty object to read into.
	New func() client.Object
	// Make returns an object that settles. Pods is the number of pods that it keeps running, or that each of its Jobs
	// runs.
	Make func(namespace, name string, pods int32) client.Object
	// Children are the resources that the operator creates for an object.
	Children []Child
	// Deploys is set if the first child is a Deployment or StatefulSet and the operator repairs all children; otherwise it
	// creates them once.
	Deploys bool
	// Pods returns the number of pods that an object asks for, and Resize changes it; nil unless the kind deploys.
	Pods   func(object client.Object) int32
	Resize func(object client.Object, pods int32)
	// Status returns the status fields that all kinds share.
	Status func(object client.Object) Status
	// LongestName is the maximum length of a name.
	LongestName int
	// NameTaken is the reason of the event that reports a child of the same name that the object does not control.
	NameTaken string
	// Kubernetes are the paths of fields that hold a Kubernetes type with fields of its own.
	Kubernetes []string
	// Defaults are values of fields that change no child of an object in which the field is not set.
	Defaults map[string]any
	// OwnSpecs are the paths of optional fields that the contract and the scorecard do not try with all values, because
	// their values need other objects or much time, or must not be changed, or stop the operator from repairing children.
	// They have specs of their own.
	OwnSpecs []string
	// Values are values of fields that the schema cannot provide, by the path of the field.
	Values map[string][]Value
	// Needs are the fields that have to be set beside a field, by the path of the field.
	Needs map[string]map[string]any
}

// Status has the status fields that all kinds share.
type Status struct {
	ObservedGeneration int64
	Pods, Ready        int32
	Nodes              []string // the names of the pods; nil if the status does not list them
	Selector           string
	Conditions         []metav1.Condition
}

// All are all kinds of the operator.
var All = []Kind{Foo, Memcached, CronJob}

// WithVariants are all kinds with all workloads that they can have.
var WithVariants = []Kind{Foo, Memcached, CronJob, MemcachedSet}

// AddToScheme adds all kinds to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(samplev1alpha1.AddToScheme(scheme), cachev1alpha1.AddToScheme(scheme),
		tutorialv1.AddToScheme(scheme))
}

// APIVersion returns the group and version, such as "cache.example.com/v1alpha1".
func (k Kind) APIVersion() string { return k.GroupVersion.String() }

// Title returns the name with the variant, such as "Memcached with a StatefulSet".
func (k Kind) Title() string {
	if k.Variant == "" {
		return k.Name
	}
	return k.Name + " with a " + k.Variant
}

// ObjectName returns a name for an object that no other kind's object has, such as "memcachedstatefulset".
func (k Kind) ObjectName() string { return strings.ToLower(k.Name + k.Variant) }

// Controller returns the name of the controller, such as "memcached".
func (k Kind) Controller() string { return strings.ToLower(k.Name) }

// CRD returns the name of the CustomResourceDefinition, such as "memcacheds.cache.example.com".
func (k Kind) CRD() string { return k.Resource + "." + k.GroupVersion.Group }

// GroupVersionResource returns the resource with its group and version.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return k.GroupVersion.WithResource(k.Resource)
}

// Conditions returns the conditions of an object.
func (k Kind) Conditions(object client.Object) []metav1.Condition { return k.Status(object).Conditions }

// ChildrenOf returns the children of an object, to be read: only their names are set. A child whose name does not
// depend on the object alone, such as a Job, is left out.
func (k Kind) ChildrenOf(object client.Object) []client.Object {
	var children []client.Object
	for _, child := range k.Children {
		if child.Name == nil {
			continue
		}
		empty := child.New()
		empty.SetNamespace(object.GetNamespace())
		empty.SetName(child.Name(object))
		children = append(children, empty)
	}
	return children
}

// ChildResources returns the children of all kinds, each resource once.
func ChildResources() []Child {
	var all []Child
	known := map[schema.GroupVersionResource]bool{}
	for _, k := range WithVariants {
		for _, child := range k.Children {
			if !known[child.GroupVersionResource] {
				known[child.GroupVersionResource] = true
				all = append(all, child)
			}
		}
	}
	return all
}
