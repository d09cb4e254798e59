package oracle

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// conflicts finds writes that the API server has rejected as conflicts although only the operator had changed the
// object: it did not wait until it saw its own write. With faults, it may not know of its own writes.
func conflicts(run *Run, _ *Reference) []string {
	if !run.isServed() {
		return nil
	}
	own := ownVersions(run)
	var found problems
	for i := range run.Requests {
		request := &run.Requests[i]
		if !request.IsConflict || request.OnlyRV == "" {
			continue
		}
		resource, _, _ := strings.Cut(request.Resource, "/status")
		required, _ := strconv.ParseInt(request.OnlyRV, 10, 64)
		isExplained := false
		for _, version := range run.Versions {
			isExplained = isExplained || version.Resource == resource && version.Name == request.Name &&
				version.RV > required && !own.Has(strconv.FormatInt(version.RV, 10))
		}
		found.addIf(!isExplained, "a conflict with its own write: %s", request)
	}
	return found
}

// ownVersions returns the resource versions that the operator's writes have made.
func ownVersions(run *Run) sets.Set[string] {
	own := sets.New[string]()
	for i := range run.Requests {
		own.Insert(run.Requests[i].AnsweredRV)
	}
	return own
}
