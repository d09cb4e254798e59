package kinds

import (
	"cmp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// Memcached has three children of its own name. The name of the Service is in the status where it is another one.
var Memcached = Kind{
	Name:         "Memcached",
	GroupVersion: cachev1alpha1.GroupVersion,
	Resource:     "memcacheds",
	New:          func() client.Object { return &cachev1alpha1.Memcached{} },
	Make: func(namespace, name string, pods int32) client.Object {
		memcached := &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Size: pods}}
		memcached.Namespace, memcached.Name = namespace, name
		return memcached
	},
	Children: []Child{
		deployment(client.Object.GetName),
		service(func(owner client.Object) string {
			return cmp.Or(owner.(*cachev1alpha1.Memcached).Status.ServiceName, owner.GetName())
		}),
		podDisruptionBudget(client.Object.GetName),
	},
	Deploys: true,
	Pods:    func(object client.Object) int32 { return object.(*cachev1alpha1.Memcached).Spec.Size },
	Resize:  func(object client.Object, pods int32) { object.(*cachev1alpha1.Memcached).Spec.Size = pods },
	Status: func(object client.Object) Status {
		s := object.(*cachev1alpha1.Memcached).Status
		return Status{s.ObservedGeneration, s.Size, s.ReadyNodes, append([]string{}, s.Nodes...), s.Selector, s.Conditions}
	},
	LongestName: 253,
	NameTaken:   cachev1alpha1.ReasonNameTaken,
}
