package kinds

import (
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// Foo is described by its own Deployment name, which Make sets to the name of the Foo.
var Foo = Kind{
	Name:         "Foo",
	GroupVersion: samplev1alpha1.GroupVersion,
	Resource:     "foos",
	New:          func() client.Object { return &samplev1alpha1.Foo{} },
	Make: func(namespace, name string, pods int32) client.Object {
		foo := &samplev1alpha1.Foo{Spec: samplev1alpha1.FooSpec{DeploymentName: name, Replicas: &pods}}
		foo.Namespace, foo.Name = namespace, name
		return foo
	},
	Children: []Child{deployment(func(owner client.Object) string {
		return owner.(*samplev1alpha1.Foo).Spec.DeploymentName
	})},
	Deploys: true,
	Pods:    func(object client.Object) int32 { return ptr.Deref(object.(*samplev1alpha1.Foo).Spec.Replicas, 1) },
	Resize:  func(object client.Object, pods int32) { object.(*samplev1alpha1.Foo).Spec.Replicas = &pods },
	Status: func(object client.Object) Status {
		s := object.(*samplev1alpha1.Foo).Status
		return Status{s.ObservedGeneration, s.Replicas, s.AvailableReplicas, nil, s.Selector, s.Conditions}
	},
	LongestName: 253,
	NameTaken:   samplev1alpha1.EventErrResourceExists,
	Values: map[string][]Value{"spec.deploymentName": append(accepted("web", "web-2.example", strings.Repeat("a", 253)),
		rejected("Web", "must be a lower-case DNS subdomain"),
		rejected("web-", "starting and ending with a letter or digit"),
		rejected("a..b", "must be a lower-case DNS subdomain"),
		rejected("a b", "must be a lower-case DNS subdomain"),
		rejected("a\nb", "must be a lower-case DNS subdomain"))},
}
