package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
)

// Limits in bytes of heap for one cached object of a settled resource, with the index by namespace only.
const (
	limitForDeployment          = 2900
	limitForMemcachedDeployment = 3200
	limitForFoo                 = 1000
)

// The objects in testdata are from an API server; each copy gets its own name, UID and version.
func TestMemoryOfCaches(t *testing.T) {
	transforms := map[string]toolscache.TransformFunc{}
	for object, config := range caches() {
		transforms[fmt.Sprintf("%T", object)] = config.Transform
	}
	deployment := heapPerObject(t, "deployment.yaml", transforms, func() client.Object { return &appsv1.Deployment{} })
	foo := heapPerObject(t, "foo.yaml", transforms, func() client.Object { return &samplev1alpha1.Foo{} })
	spread := heapPerObject(t, "memcached_deployment.yaml", transforms,
		func() client.Object { return &appsv1.Deployment{} })
	for _, measured := range []struct {
		what         string
		bytes, limit uint64
	}{
		{"the Deployment of a Foo", deployment, limitForDeployment},
		{"a Foo", foo, limitForFoo},
		{"the Deployment of a Memcached", spread, limitForMemcachedDeployment},
	} {
		t.Logf("%s takes %d bytes of heap; the limit is %d", measured.what, measured.bytes, measured.limit)
		if measured.bytes > measured.limit {
			t.Errorf("%s takes %d bytes of heap, more than %d", measured.what, measured.bytes, measured.limit)
		}
	}
}

// heapPerObject returns the bytes of heap that one of many objects takes in a cache.
func heapPerObject(t *testing.T, file string, transforms map[string]toolscache.TransformFunc,
	fresh func() client.Object) uint64 {
	const count = 5000
	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	transform := transforms[fmt.Sprintf("%T", fresh())]
	if transform == nil {
		transform = cache.TransformStripManagedFields()
	}
	text, err := yaml.YAMLToJSON(content)
	if err != nil {
		t.Fatal(err)
	}
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc,
		toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	before := heap()
	for number := range count {
		object := fresh()
		named := strings.ReplaceAll(string(text), "00000", fmt.Sprintf("%05d", number))
		if err := json.Unmarshal([]byte(named), object); err != nil {
			t.Fatal(err)
		}
		slim, err := transform(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Add(slim); err != nil {
			t.Fatal(err)
		}
	}
	after := heap()
	if len(store.List()) != count || store.List()[0].(metav1.Object).GetUID() == "" {
		t.Fatal("the store does not contain all objects")
	}
	return (after - before) / count
}

// heap returns the number of bytes in live objects.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // the second collection sweeps what the first one has marked as unused
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
