package oracle

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// guarantee finds writes that changed, or could have changed, an object that the operator does not control: deletions,
// status writes and forced applies without a UID, forced applies to any version, and writes to objects that it does not
// control.
func guarantee(run *Run, _ *Reference) []string {
	owners := sets.New[types.UID]()
	for _, version := range run.Versions {
		if history.IsOwnKind(version.Resource) {
			owners.Insert(version.Object.GetUID())
		}
	}
	var found problems
	requests := carriedOut(run)
	for i := range requests {
		if request := &requests[i]; isWrite(request) {
			problem := unguarded(run, request, owners)
			found.addIf(problem != "", "%s %s", request, problem)
		}
	}
	return found
}

// addressee returns to what a write could be, if not only to one version of an object.
func addressee(request *proxy.Request) string {
	switch {
	case request.OnlyUID == "":
		return "any object of that name"
	case request.OnlyRV == "":
		return "any version"
	}
	return ""
}

// unguarded returns what is wrong with a write; nothing if it is safe.
func unguarded(run *Run, request *proxy.Request, owners sets.Set[types.UID]) string {
	switch parent, isStatus := strings.CutSuffix(request.Resource, "/status"); {
	case request.Verb == "update" || request.Verb == "deletecollection":
		return "is never needed"
	case history.IsOwnKind(parent):
		return unguardedToOwnKind(request, isStatus)
	case request.Verb == "delete" && request.OnlyUID == "":
		return "is for any object of that name"
	case request.Verb == "patch" && request.Force && addressee(request) != "":
		return "takes fields by force, of " + addressee(request)
	case request.Resource == eventResource:
		return ""
	case request.Resource == history.Jobs && request.Verb == "patch":
		return unguardedToJob(run, request, owners)
	case !slices.Contains(history.Resources(), request.Resource):
		return "is to what no resource needs"
	case request.IsCreation():
		return ""
	}
	return unowned(run, request, owners)
}

// unguardedToOwnKind returns what is wrong with a write to a resource of one of the operator's kinds.
func unguardedToOwnKind(request *proxy.Request, isStatus bool) string {
	switch {
	case !isStatus:
		return "changes a resource that its user owns"
	case request.OnlyUID == "" && request.OnlyRV == "":
		return "is for any resource of that name"
	}
	return ""
}

const notOwned = "is to an object that the operator does not control"

// unowned returns what is wrong with the object that a write was made to; nothing if the operator controls it.
func unowned(run *Run, request *proxy.Request, owners sets.Set[types.UID]) string {
	before, after := touched(run, request)
	switch {
	case before == nil:
		return ""
	case !owners.Has(ownerOf(before)):
		return notOwned
	case after != nil && controllerOf(before) != "" && controllerOf(after) != "" &&
		controllerOf(before) != controllerOf(after):
		return "takes an object from one of the operator's resources for another"
	}
	return ""
}

// unguardedToJob returns what is wrong with a patch of a Job: it may only restore a lost owner reference, in the
// version that it names.
func unguardedToJob(run *Run, request *proxy.Request, owners sets.Set[types.UID]) string {
	if request.OnlyUID == "" || request.OnlyRV == "" {
		return "is for any version of any Job of that name"
	}
	before, after := touched(run, request)
	if before == nil {
		return ""
	}
	if after == nil { // unanswered: what it was to change is the version that it names
		index := slices.IndexFunc(run.Versions, func(v history.Version) bool {
			return v.Resource == history.Jobs && v.Object.GetResourceVersion() == request.OnlyRV
		})
		if index >= 0 {
			before = run.Versions[index].Object
		}
	}
	switch {
	case !owners.Has(ownerOf(before)):
		return notOwned
	case controllerOf(before) != "":
		return "is to a Job that has its owner"
	case after != nil && !isOnlyOwned(before, after):
		return "changes more of a Job than its lost owner reference"
	}
	return ""
}

// isOnlyOwned reports whether two versions differ only in that the later one has its owner reference again.
func isOnlyOwned(before, after *unstructured.Unstructured) bool {
	if owner := controllerOf(after); owner == "" || owner != ownerOf(before) {
		return false
	}
	before, after = before.DeepCopy(), after.DeepCopy()
	for _, object := range []*unstructured.Unstructured{before, after} {
		for _, field := range []string{"ownerReferences", "resourceVersion", "managedFields"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
	}
	return equality.Semantic.DeepEqual(before.Object, after.Object)
}

// touched returns the object that a write was made to, before and after it. Both are nil if the write changed nothing;
// the second one is nil of a deletion, and of a write without an answer, whose outcome is unknown. The latter names its
// object by the UID, or else that is unknown too: the recorder may be late.
func touched(run *Run, request *proxy.Request) (before, after *unstructured.Unstructured) {
	if request.Status != 0 || neverArrived(request) {
		return around(run, request)
	}
	for _, version := range run.Versions {
		if request.OnlyUID != "" && string(version.Object.GetUID()) == request.OnlyUID && !version.At.After(request.At) {
			before = version.Object
		}
	}
	return before, nil
}

// around is touched for a write with an answer.
func around(run *Run, request *proxy.Request) (before, after *unstructured.Unstructured) {
	for _, version := range run.Versions {
		switch {
		case version.Resource != request.Resource || version.Name != request.Name:
		case request.AnsweredRV != "" && version.Object.GetResourceVersion() == request.AnsweredRV && !version.IsGone:
			return before, version.Object
		case request.Verb == "delete" && string(version.Object.GetUID()) == request.OnlyUID:
			before = version.Object
		case request.Verb != "delete" && version.IsGone:
			before = nil
		case request.Verb != "delete" && request.AnsweredRV != "":
			before = version.Object
		}
	}
	if request.Verb == "delete" {
		return before, nil
	}
	return nil, nil
}

// ownerOf returns the UID of an object's controller, or without one, of the resource that it was created for.
func ownerOf(object *unstructured.Unstructured) types.UID {
	return cmp.Or(controllerOf(object), types.UID(object.GetAnnotations()[child.OwnerAnnotation]))
}

// controllerOf returns the UID of an object's controller; an empty one if it has none.
func controllerOf(object *unstructured.Unstructured) types.UID {
	return ptr.Deref(metav1.GetControllerOfNoCopy(object), metav1.OwnerReference{}).UID
}
