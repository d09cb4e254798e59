package oracle

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/memcached-operator/test/reliability/history"
)

// pathsOf are the fields of a child that may change only if its resource's spec has changed, or if another client has
// changed them. Wrong ones do harm even if they are corrected at once: they restart or stop pods, or leave a Service
// without endpoints.
var pathsOf = map[string][][]string{
	history.Deployments:  {{"spec", "template"}, {"spec", "replicas"}},
	history.StatefulSets: {{"spec", "template"}, {"spec", "replicas"}},
	history.Budgets:      {{"spec"}},
	history.Services:     {{"spec"}},
}

// field is a field of a child.
type field struct {
	child types.UID
	path  string
}

// templates finds children that the operator changed more often than their resource's spec had changed. The number of
// pods that a resource asks for is a cause to change the replicas only.
func templates(run *Run, _ *Reference) []string {
	own := ownVersions(run)
	first, last := map[types.UID]int64{}, map[types.UID]int64{} // generations of resources
	scaled := map[types.UID]int64{}                             // how many changed only the number of pods
	specs := map[types.UID]map[string]any{}                     // of the last version of resources, without that number
	contents, changes, reasons := map[field]any{}, map[field]int{}, map[field]int{}
	children := map[types.UID]*unstructured.Unstructured{}
	for _, version := range run.Versions {
		object := version.Object
		uid := object.GetUID()
		if history.IsOwnKind(version.Resource) {
			generation, spec := object.GetGeneration(), specWithoutPods(object)
			if _, isKnown := first[uid]; !isKnown {
				first[uid] = generation
			} else if generation == last[uid]+1 && equality.Semantic.DeepEqual(spec, specs[uid]) {
				scaled[uid]++
			}
			last[uid], specs[uid] = generation, spec
		}
		for _, path := range pathsOf[version.Resource] {
			if version.IsGone {
				continue
			}
			content, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
			key := field{uid, strings.Join(path, ".")}
			before, isKnown := contents[key]
			contents[key], children[uid] = content, object
			switch {
			case !isKnown || equality.Semantic.DeepEqual(before, content):
			case own.Has(strconv.FormatInt(version.RV, 10)):
				changes[key]++
			default:
				reasons[key]++
			}
		}
	}
	var found problems
	for key, count := range changes {
		child := children[key.child]
		owner := controllerOf(child)
		most := int(last[owner]-first[owner]) + reasons[key]
		if key.path != "spec.replicas" {
			most -= int(scaled[owner])
		}
		if run.HasOtherImages && key.path == "spec.template" {
			most++
		}
		found.addIf(count > most, "the operator changed %s of %s %s %d times, but its resource and others only %d times",
			key.path, child.GetKind(), child.GetName(), count, most)
	}
	return found
}

// specWithoutPods returns the spec of a Foo, Memcached or CronJob without the number of pods.
func specWithoutPods(object *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	delete(spec, "replicas")
	delete(spec, "size")
	return spec
}
