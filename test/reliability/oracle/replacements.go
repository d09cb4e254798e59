package oracle

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/memcached-operator/test/reliability/history"
)

// replacements finds workloads that the operator deleted before their resource had a replacement, so that no pod
// served. Runs with IsPassing are skipped: resources that swap names must delete first.
func replacements(run *Run, _ *Reference) []string {
	if run.IsPassing {
		return nil
	}
	deleted := sets.New[string]() // UIDs, or for deletions of any object of that name, the name
	for _, request := range carriedOut(run) {
		if request.Verb == "delete" {
			deleted.Insert(cmp.Or(request.OnlyUID, request.Name))
		}
	}
	owners := map[types.UID]types.UID{} // of workloads that exist
	var found problems
	for _, version := range run.Versions {
		if version.Resource != history.Deployments && version.Resource != history.StatefulSets {
			continue
		}
		uid, owner := version.Object.GetUID(), controllerOf(version.Object)
		isLeaving := version.IsGone || version.Object.GetDeletionTimestamp() != nil
		if !isLeaving {
			owners[uid] = owner
			continue
		}
		if _, isFirst := owners[uid]; !isFirst {
			continue
		}
		delete(owners, uid)
		found.addIf(deleted.HasAny(string(uid), version.Name) && !slices.Contains(slices.Collect(maps.Values(owners)), owner),
			"the operator deleted %s %s before its resource had another one", version.Object.GetKind(), version.Name)
	}
	return found
}
