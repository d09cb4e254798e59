// Package history records all versions of the objects in each namespace, and compares the states of namespaces.
package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/example/memcached-operator/test/kinds"
)

// The resources that the suites refer to, as group/resource.
var (
	Foos       = Name(kinds.Foo.GroupVersionResource())
	Memcacheds = Name(kinds.Memcached.GroupVersionResource())
	CronJobs   = Name(kinds.CronJob.GroupVersionResource())
)

// The resources of Kubernetes that the suites refer to.
const (
	Deployments  = "apps/deployments"
	StatefulSets = "apps/statefulsets"
	ReplicaSets  = "apps/replicasets"
	Pods         = "/pods"
	Services     = "/services"
	Budgets      = "policy/poddisruptionbudgets"
	Jobs         = "batch/jobs"
)

// Name returns a resource as group/resource.
func Name(resource schema.GroupVersionResource) string {
	return resource.Group + "/" + resource.Resource
}

// recorded are the operator's kinds, their children, and what Kubernetes creates for those.
var recorded = func() map[string]schema.GroupVersionResource {
	all := map[string]schema.GroupVersionResource{
		ReplicaSets: appsv1.SchemeGroupVersion.WithResource("replicasets"),
		Pods:        corev1.SchemeGroupVersion.WithResource("pods"),
	}
	for _, k := range kinds.All {
		all[Name(k.GroupVersionResource())] = k.GroupVersionResource()
	}
	for _, child := range kinds.ChildResources() {
		all[Name(child.GroupVersionResource)] = child.GroupVersionResource
	}
	return all
}()

// KindOf returns the operator's kind with a resource; nil if there is none.
func KindOf(resource string) *kinds.Kind {
	for i := range kinds.All {
		if k := &kinds.All[i]; Name(k.GroupVersionResource()) == resource {
			return k
		}
	}
	return nil
}

// VariantOf returns the operator's kind of an object, as the variant that its spec selects.
func VariantOf(kind *kinds.Kind, object *unstructured.Unstructured) *kinds.Kind {
	workload, _, _ := unstructured.NestedString(object.Object, "spec", "workloadType")
	if kind.Name == kinds.MemcachedSet.Name && workload == kinds.MemcachedSet.Variant {
		return &kinds.MemcachedSet
	}
	return kind
}

// IsOwnKind reports whether a resource is one of the operator's kinds.
func IsOwnKind(resource string) bool { return KindOf(resource) != nil }

// Children returns the resources that the operator creates.
func Children() []string {
	children := kinds.ChildResources()
	all := make([]string, 0, len(children))
	for _, child := range children {
		all = append(all, Name(child.GroupVersionResource))
	}
	return all
}

// Resources returns all resources that are recorded, sorted.
func Resources() []string { return slices.Sorted(maps.Keys(recorded)) }

// Key names an object within a namespace.
type Key struct {
	Resource, Name string
}

func (k Key) String() string { return k.Resource + "/" + k.Name }

// Version is an object after one change. All resources share one counter of changes, which orders the versions of
// different objects too.
type Version struct {
	Key
	At     time.Time
	RV     int64
	IsGone bool // the object was deleted; Object is its last state
	Object *unstructured.Unstructured
}

// As converts an object to its Go type. It panics if they do not match: the API server has validated the object.
func As[T any](object *unstructured.Unstructured) *T {
	as := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, as); err != nil {
		panic(err)
	}
	return as
}

// State is the state of a namespace: its objects by key.
type State map[Key]*unstructured.Unstructured

// Of returns the objects of a resource, sorted by name. They must not be changed.
func (s State) Of(resource string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for key, object := range s {
		if key.Resource == resource {
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return objects
}

// Recorder records all namespaces. It is safe for concurrent use, and what it returns must not be changed.
type Recorder struct {
	client dynamic.Interface

	mu       sync.Mutex
	versions map[string][]Version // by namespace
	dropped  sets.Set[string]     // namespaces that are no longer recorded
	latest   int64
}

// Record starts recording all resources, until the context is canceled.
func Record(ctx context.Context, config *rest.Config) (*Recorder, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &Recorder{client: client, versions: map[string][]Version{}, dropped: sets.New[string]()}
	for name, resource := range recorded {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", name, err)
		}
		for i := range list.Items {
			r.note(name, watch.Added, &list.Items[i])
		}
		go r.follow(ctx, client.Resource(resource), name, list.GetResourceVersion())
	}
	return r, nil
}

// follow watches a resource from a resource version on, and reopens a broken watch once the API server is back.
func (r *Recorder) follow(ctx context.Context, client dynamic.ResourceInterface, name, version string) {
	for ctx.Err() == nil {
		watching, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for event := range watching.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if status, isError := event.Object.(*metav1.Status); isError && status.Code == http.StatusGone {
				panic(fmt.Sprintf("recording %s: %s", name, status.Message)) // a history with a gap proves nothing
			}
			if !ok {
				watching.Stop() // the connection is broken
				break
			}
			version = object.GetResourceVersion()
			r.note(name, event.Type, object)
		}
	}
}

func (r *Recorder) note(resource string, what watch.EventType, object *unstructured.Unstructured) {
	rv, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = max(r.latest, rv)
	if namespace := object.GetNamespace(); what != watch.Bookmark && !r.dropped.Has(namespace) {
		r.versions[namespace] = append(r.versions[namespace],
			Version{Key{resource, object.GetName()}, time.Now(), rv, what == watch.Deleted, object})
	}
}

// Latest returns the latest resource version that was observed.
func (r *Recorder) Latest() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strconv.FormatInt(r.latest, 10)
}

// State returns the current state of a namespace, as the watches have shown it.
func (r *Recorder) State(namespace string) State {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := State{}
	for _, version := range r.versions[namespace] {
		if version.IsGone {
			delete(state, version.Key)
		} else {
			state[version.Key] = version.Object
		}
	}
	return state
}

// Versions returns the history of a namespace in the order of the changes.
func (r *Recorder) Versions(namespace string) []Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(r.versions[namespace]),
		func(a, b Version) int { return cmp.Compare(a.RV, b.RV) })
}

// Count returns the number of versions in a namespace.
func (r *Recorder) Count(namespace string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.versions[namespace])
}

// List reads all objects of a resource from the API server, in a namespace or, if that is empty, in all.
func (r *Recorder) List(ctx context.Context, resource, namespace string) ([]unstructured.Unstructured, error) {
	list, err := r.client.Resource(recorded[resource]).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource, err)
	}
	return list.Items, nil
}

// Read reads the objects of some resources in a namespace from the API server.
func (r *Recorder) Read(ctx context.Context, namespace string, resources ...string) (State, error) {
	state := State{}
	for _, resource := range resources {
		objects, err := r.List(ctx, resource, namespace)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			state[Key{resource, objects[i].GetName()}] = &objects[i]
		}
	}
	return state, nil
}

// Forget drops a namespace and ignores its later changes.
func (r *Recorder) Forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped.Insert(namespace)
	delete(r.versions, namespace)
}
