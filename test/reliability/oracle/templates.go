package oracle

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/memcached-operator/test/reliability/history"
)

// pathOf is what of a child may change only if its resource's spec has changed, or if another client has changed it. Of
// workloads that is the pod template: a wrong one restarts pods, even if it is corrected at once.
var pathOf = map[string][]string{
	history.Deployments:  {"spec", "template"},
	history.StatefulSets: {"spec", "template"},
	history.Budgets:      {"spec"},
}

// templates finds children that the operator changed more often than their resource's spec had changed.
func templates(run *Run, _ *Reference) []string {
	own := ownVersions(run)
	first, last := map[types.UID]int64{}, map[types.UID]int64{} // generations of resources
	contents, changes, reasons := map[types.UID]any{}, map[types.UID]int{}, map[types.UID]int{}
	children := map[types.UID]*unstructured.Unstructured{}
	var found problems
	for _, version := range run.Versions {
		object := version.Object
		uid := object.GetUID()
		if history.IsOwnKind(version.Resource) {
			if _, isKnown := first[uid]; !isKnown {
				first[uid] = object.GetGeneration()
			}
			last[uid] = object.GetGeneration()
		}
		path := pathOf[version.Resource]
		if path == nil || version.IsGone {
			continue
		}
		content, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		before, isKnown := contents[uid]
		contents[uid], children[uid] = content, object
		switch {
		case !isKnown || equality.Semantic.DeepEqual(before, content):
		case own.Has(strconv.FormatInt(version.RV, 10)):
			changes[uid]++
		default:
			reasons[uid]++
		}
	}
	for uid, count := range changes {
		owner := controllerOf(children[uid])
		most := int(last[owner]-first[owner]) + reasons[uid]
		if run.HasOtherImages {
			most++
		}
		found.addIf(count > most, "the operator changed %s %s %d times, but its resource and others only %d times",
			children[uid].GetKind(), children[uid].GetName(), count, most)
	}
	return found
}
