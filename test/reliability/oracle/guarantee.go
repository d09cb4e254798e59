package oracle

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// guarantee finds writes that could hit, or have hit, what is not the operator's: a deletion or a status that is for
// whatever has the name, an apply by force that is, and any write to an object that belongs to somebody else.
func guarantee(run *Run, _ *Reference) []string {
	owners := map[string]bool{}
	for _, version := range run.Versions {
		if history.IsOurs(version.Resource) {
			owners[string(version.Object.GetUID())] = true
		}
	}
	var found []string
	requests := carriedOut(run)
	for i := range requests {
		request := &requests[i]
		if !request.IsWrite() || !isOfInterest(request) {
			continue
		}
		if reason := unguarded(run, request, owners); reason != "" {
			found = append(found, fmt.Sprintf("%s %s", request, reason))
		}
	}
	return found
}

// unguarded returns what is wrong with a write; nothing if it is as it should be.
func unguarded(run *Run, request *proxy.Request, owners map[string]bool) string {
	parent, subresource := parentOf(request.Resource)
	switch {
	case request.Verb == "update" || request.Verb == "deletecollection":
		return "is never needed"
	case history.IsOurs(parent):
		return unguardedToOurs(request, subresource)
	case request.Verb == "delete" && request.OnlyUID == "":
		return "is for any object of that name"
	case request.Verb == "patch" && request.Force && request.OnlyUID == "":
		return "takes fields by force, of any object of that name"
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

// unowned returns what is wrong with whose object a write was made to; nothing if that was the operator's.
func unowned(run *Run, request *proxy.Request, owners map[string]bool) string {
	before, after := touched(run, request)
	switch {
	case before == nil:
		return ""
	case !belongs(before, owners):
		return "is to an object that is not the operator's"
	case after != nil && isTaken(before, after):
		return "takes an object from one of the operator's resources for another"
	}
	return ""
}

// unguardedToOurs returns what is wrong with a write to one of the resources that the operator is for: it may set the
// status only, and only of the one object, or version of it, that the status was computed from.
func unguardedToOurs(request *proxy.Request, subresource string) string {
	switch {
	case subresource != "status":
		return "changes a resource that is its user's"
	case request.OnlyUID == "" && request.OnlyRV == "":
		return "is for any resource of that name"
	}
	return ""
}

// unguardedToJob returns what is wrong with a patch of a Job: it may only give back an owner reference that the Job
// has lost, in the one version that it names.
func unguardedToJob(run *Run, request *proxy.Request, owners map[string]bool) string {
	if request.OnlyUID == "" || request.OnlyRV == "" {
		return "is for any version of any Job of that name"
	}
	before, after := touched(run, request)
	if before == nil {
		return ""
	}
	if after == nil { // without an answer: what it was to change is the version that it names
		index := slices.IndexFunc(run.Versions, func(v history.Version) bool {
			return v.Resource == history.Jobs && v.Object.GetResourceVersion() == request.OnlyRV
		})
		if index >= 0 {
			before = run.Versions[index].Object
		}
	}
	switch {
	case !belongs(before, owners):
		return "is to an object that is not the operator's"
	case metav1.GetControllerOf(before) != nil:
		return "is to a Job that has its owner"
	case after != nil && !isOnlyOwned(before, after):
		return "changes more of a Job than its lost owner reference"
	}
	return ""
}

// isOnlyOwned reports whether two versions differ in nothing but that the later one has got back its owner.
func isOnlyOwned(before, after *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(after)
	if owner == nil || string(owner.UID) != before.GetAnnotations()[child.OwnerAnnotation] {
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

// parentOf parts a resource from its subresource.
func parentOf(resource string) (parent, subresource string) {
	parts := strings.SplitN(resource, "/", 3)
	if len(parts) < 3 {
		return resource, ""
	}
	return parts[0] + "/" + parts[1], parts[2]
}

// touched returns the object that a write was made to, as it was before, and as the write left it; the second one is
// nil of a write without an answer, as what came of that is not known.
func touched(run *Run, request *proxy.Request) (before, after *unstructured.Unstructured) {
	if request.Status == 0 && !neverArrived(request) {
		return targetOf(run, request), nil
	}
	return around(run, request)
}

// around returns the object that an answered write was made to, as it was before, and as the write left it. Both are
// nil if there was none, or if nothing came of the write, and the second one is nil of a deletion.
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

// targetOf returns the object that a request without an answer was for, by its UID, as it was then; nil where it names
// none: what it found under its name nobody can say, as the recorder may be late.
func targetOf(run *Run, request *proxy.Request) *unstructured.Unstructured {
	var there *unstructured.Unstructured
	for _, version := range run.Versions {
		if string(version.Object.GetUID()) == request.OnlyUID && request.OnlyUID != "" && !version.At.After(request.At) {
			there = version.Object
		}
	}
	return there
}

// isTaken tells whether an object has got another controller.
func isTaken(before, after *unstructured.Unstructured) bool {
	was, is := metav1.GetControllerOf(before), metav1.GetControllerOf(after)
	return was != nil && is != nil && was.UID != is.UID
}

// belongs tells whether an object is one of the operator's: controlled by one of its resources, or without a controller
// and made for one of them.
func belongs(object *unstructured.Unstructured, owners map[string]bool) bool {
	if controller := metav1.GetControllerOf(object); controller != nil {
		return owners[string(controller.UID)]
	}
	return owners[object.GetAnnotations()[child.OwnerAnnotation]]
}
