package oracle

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

// counts finds creations and deletions that do not occur without faults, and those that are missing.
func counts(run *Run, reference *Reference) []string {
	if reference == nil {
		return nil
	}
	creates, deletes := operations(run)
	return append(compare("created", reference.Creates, creates, run.IsOpen),
		compare("deleted", reference.Deletes, deletes, run.IsOpen)...)
}

// compare finds objects to which something was done more or less often than expected.
func compare(what string, expected, actual map[string]int, fewerAreFine bool) []string {
	var found problems
	for object := range sets.KeySet(expected).Union(sets.KeySet(actual)) {
		n, want := actual[object], expected[object]
		found.addIf(n > want || n < want && !fewerAreFine, "%s was %s %d times, not %d", object, what, n, want)
	}
	return found
}

// Unexpected finds what the operator does without faults that expected.yaml does not have, or the reverse.
func (r *Reference) Unexpected(s *scenario.Scenario) []Finding {
	found := slices.Concat(compare("created", s.Expected.Creates, r.Creates, s.IsOpen),
		compare("deleted", s.Expected.Deletes, r.Deletes, s.IsOpen),
		compareEvents(r.Events, s.Expected.Events, excused(s.IsPassing), s.IsOpen))
	findings := make([]Finding, len(found))
	for i, text := range found {
		findings[i] = Finding{"expected", text}
	}
	return findings
}

// operations returns how often the operator created and deleted each object. It leaves out creations of isForGone:
// the garbage collector deletes those objects.
func operations(run *Run) (creates, deletes map[string]int) {
	creates, deletes = map[string]int{}, map[string]int{}
	requests := carriedOut(run)
	for i := range requests {
		request := &requests[i]
		object := request.Resource + " " + run.Symbols.Rename(request.Name)
		switch {
		case request.Resource == eventResource || !isOfInterest(request):
		case request.IsCreation() && !isForGone(run, request):
			creates[object]++
		case request.Verb == "delete" && request.IsDone():
			deletes[object]++
		}
	}
	return creates, deletes
}

// isForGone reports whether an object was created for a resource that was deleted by then, but that the operator's
// cache may still have shown. That does not excuse a child that the resource has had before: the operator recreates one
// only after it has read the resource from the API server.
func isForGone(run *Run, creation *proxy.Request) bool {
	var owner types.UID
	for _, version := range slices.Backward(run.Versions) {
		if string(version.Object.GetUID()) == creation.AnsweredUID {
			owner = cmp.Or(controllerOf(version.Object), owner)
		}
	}
	isGone, created := false, history.Key{Resource: creation.Resource, Name: creation.Name}
	unbounded := unboundedSince(run)
	rv, _ := strconv.ParseInt(creation.AnsweredRV, 10, 64)
	for _, version := range run.Versions {
		switch {
		case version.RV >= rv:
		case version.IsGone && version.Object.GetUID() == owner:
			isGone = !unbounded.IsZero() && !creation.At.Before(unbounded) || creation.At.Sub(version.At) <= maxLag(run)
		case version.Key == created && controllerOf(version.Object) == owner && version.At.Before(knownAt(run, creation)):
			return false
		}
	}
	return isGone
}

// knownAt returns the time up to which the operator knows what it has done before a request: that of the request, or
// when the process was frozen, since it goes on with what it knew then.
func knownAt(run *Run, request *proxy.Request) time.Time {
	for _, before := range run.Requests {
		if hasFault(&before, proxy.Freeze) && before.At.Before(request.At) {
			return before.At
		}
	}
	return request.At
}

// carriedOut returns the requests of a run. Those that the API server carried out without an answer before it went away
// are there as if it had answered: the history shows what they did.
func carriedOut(run *Run) []proxy.Request {
	type effect struct { // the creation or deletion of an object
		uid    string
		isGone bool
	}
	requests, explained := slices.Clone(run.Requests), sets.New[effect]()
	for _, request := range requests {
		switch {
		case request.Verb == "delete" && request.IsDone():
			explained.Insert(effect{request.OnlyUID, true})
		case request.IsCreation():
			explained.Insert(effect{request.AnsweredUID, false})
		}
	}
	var unexplained []history.Version
	for _, version := range run.Versions {
		what := effect{string(version.Object.GetUID()), version.IsGone}
		if !explained.Has(what) {
			unexplained = append(unexplained, version)
		}
		explained.Insert(what)
	}
	for i := range requests {
		request := &requests[i]
		if request.Status != 0 || !request.IsWrite() || neverArrived(request) {
			continue
		}
		found := slices.IndexFunc(unexplained, func(version history.Version) bool { return isBy(request, version) })
		if found < 0 {
			continue
		}
		version := unexplained[found]
		unexplained = slices.Delete(unexplained, found, found+1)
		request.Status, request.AnsweredUID = http.StatusCreated, string(version.Object.GetUID())
		if version.IsGone {
			request.Status = http.StatusOK
		}
		request.AnsweredRV = strconv.FormatInt(version.RV, 10)
	}
	return requests
}

// neverArrived reports whether a fault kept a request from the API server.
func neverArrived(request *proxy.Request) bool {
	return hasFault(request, proxy.Refuse, proxy.KillBefore, proxy.Hang, proxy.CutOff)
}

func hasFault(request *proxy.Request, kinds ...proxy.Kind) bool {
	return request.Fault != nil && slices.Contains(kinds, request.Fault.Kind)
}

// isBy reports whether a request can have had an effect.
func isBy(request *proxy.Request, version history.Version) bool {
	switch {
	case version.Resource != request.Resource || version.Name != request.Name || version.At.Before(request.At):
		return false
	case request.Verb == "delete":
		return version.IsGone && request.OnlyUID == string(version.Object.GetUID())
	}
	return !version.IsGone
}
