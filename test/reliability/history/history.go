// Package history records what becomes of the objects in each namespace, and compares worlds.
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
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/example/memcached-operator/test/kinds"
)

// Resources are those that are recorded, as group/resource.
var (
	Foos        = Name(kinds.Foo.GroupVersionResource())
	Memcacheds  = Name(kinds.Memcached.GroupVersionResource())
	CronJobs    = Name(kinds.CronJob.GroupVersionResource())
	Deployments = Name(appsv1.SchemeGroupVersion.WithResource("deployments"))
	ReplicaSets = Name(appsv1.SchemeGroupVersion.WithResource("replicasets"))
	Pods        = Name(corev1.SchemeGroupVersion.WithResource("pods"))
	Services    = Name(corev1.SchemeGroupVersion.WithResource("services"))
	Budgets     = Name(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"))
	Jobs        = Name(batchv1.SchemeGroupVersion.WithResource("jobs"))
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

// KindOf returns the operator's kind whose resource that is; nil if it is none of them.
func KindOf(resource string) *kinds.Kind {
	index := slices.IndexFunc(kinds.All, func(k kinds.Kind) bool { return Name(k.GroupVersionResource()) == resource })
	if index < 0 {
		return nil
	}
	return &kinds.All[index]
}

// IsOurs tells whether a resource is one of the operator's own kinds.
func IsOurs(resource string) bool { return KindOf(resource) != nil }

// Children returns the resources that the operator creates.
func Children() []string {
	children := kinds.ChildResources()
	all := make([]string, 0, len(children))
	for _, child := range children {
		all = append(all, Name(child.GroupVersionResource))
	}
	return all
}

// Resources returns all that are recorded.
func Resources() []string {
	return slices.Sorted(maps.Keys(recorded))
}

// Key names an object within a namespace.
type Key struct {
	Resource, Name string
}

func (k Key) String() string { return k.Resource + "/" + k.Name }

// Version is an object as it was after one change. All resources share one count of changes, which orders the versions
// of different objects too.
type Version struct {
	Key
	At     time.Time
	RV     int64
	IsGone bool // Object is then as it was in the end
	Object *unstructured.Unstructured
}

// As returns an object as its type. It panics where that is another one, as the API server has checked it.
func As[T any](object *unstructured.Unstructured) *T {
	as := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, as); err != nil {
		panic(err)
	}
	return as
}

// World is what there is in a namespace.
type World map[Key]*unstructured.Unstructured

// Of returns the objects of a resource, in the order of their names. They must not be changed.
func (w World) Of(resource string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for key, object := range w {
		if key.Resource == resource {
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return objects
}

// Recorder records all namespaces. It is safe for concurrent use.
type Recorder struct {
	client dynamic.Interface

	mu       sync.Mutex
	versions map[string][]Version // by namespace
	worlds   map[string]World
	dropped  map[string]bool // namespaces of which nothing is kept any more
	latest   int64
}

// Record begins to record, and ends with the context.
func Record(ctx context.Context, config *rest.Config) (*Recorder, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	r := &Recorder{client: client, versions: map[string][]Version{}, worlds: map[string]World{},
		dropped: map[string]bool{}}
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

// follow watches one resource, from a resource version on, also when the API server is away for a while.
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
				// What was lost cannot be had again, and a history with a hole proves nothing.
				panic(fmt.Sprintf("recording %s: %s", name, status.Message))
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
	namespace, key := object.GetNamespace(), Key{resource, object.GetName()}
	if what == watch.Bookmark || r.dropped[namespace] {
		return
	}
	if r.worlds[namespace] == nil {
		r.worlds[namespace] = World{}
	}
	if what == watch.Deleted {
		delete(r.worlds[namespace], key)
	} else {
		r.worlds[namespace][key] = object
	}
	r.versions[namespace] = append(r.versions[namespace], Version{key, time.Now(), rv, what == watch.Deleted, object})
}

// Latest returns the latest resource version that is known.
func (r *Recorder) Latest() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strconv.FormatInt(r.latest, 10)
}

// World returns what there is in a namespace now. The objects must not be changed.
func (r *Recorder) World(namespace string) World {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.worlds[namespace])
}

// Versions returns all that has been in a namespace, in the order in which it was. The objects must not be changed.
func (r *Recorder) Versions(namespace string) []Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	versions := slices.Clone(r.versions[namespace])
	slices.SortStableFunc(versions, func(a, b Version) int { return cmp.Compare(a.RV, b.RV) })
	return versions
}

// Count returns how many versions there have been in a namespace.
func (r *Recorder) Count(namespace string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.versions[namespace])
}

// List returns all objects of a resource that the API server has now, in a namespace or, if that is empty, in all. The
// watches may be behind, and not all of them equally far.
func (r *Recorder) List(ctx context.Context, resource, namespace string) ([]unstructured.Unstructured, error) {
	list, err := r.client.Resource(recorded[resource]).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource, err)
	}
	return list.Items, nil
}

// Read returns what the API server has of some resources in a namespace now.
func (r *Recorder) Read(ctx context.Context, namespace string, resources ...string) (World, error) {
	world := World{}
	for _, resource := range resources {
		objects, err := r.List(ctx, resource, namespace)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			world[Key{resource, objects[i].GetName()}] = &objects[i]
		}
	}
	return world, nil
}

// Forget drops a namespace for good: what is yet to come of it is not recorded.
func (r *Recorder) Forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped[namespace] = true
	delete(r.versions, namespace)
	delete(r.worlds, namespace)
}
