package oracle

import (
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/memcached-operator/test/reliability/proxy"
)

// excused returns how many more events of a reason a scenario may have in which the names of at most two resources are
// taken for a moment.
func excused(isPassing bool) int {
	if isPassing {
		return 2
	}
	return 0
}

// excuses returns how many requests may each have caused an event MissedSchedule, before everything was reconciled once
// more.
func excuses(run *Run) int {
	count := 0
	for i := range run.Requests[:run.Anew] {
		if isExcuse(&run.Requests[i]) {
			count++
		}
	}
	return count
}

// compareEvents finds events of which there are fewer than the minimum of their reason, or more than the maximum.
func compareEvents(actual map[string]int, bounds map[string][2]int, more int, fewerAreFine bool) []string {
	var found problems
	for reason := range sets.KeySet(actual).Union(sets.KeySet(bounds)) {
		n, fewest, most := actual[reason], bounds[reason][0], bounds[reason][1]+more
		found.addIf(n > most, "%d events %s, where %d report news", n, reason, most)
		found.addIf(n < fewest && !fewerAreFine, "%d events %s, not %d", n, reason, fewest)
	}
	return found
}

// eventKey is what an event is about, and its reason.
type eventKey struct {
	object types.UID
	reason string
}

// countEvents returns the number of events, before everything was reconciled once more. A patch of an event continues a
// series.
func countEvents(run *Run) map[eventKey]int {
	counts, series := map[eventKey]int{}, map[string]eventKey{}
	for _, request := range run.Requests[:run.Anew] {
		if request.Resource != eventResource {
			continue
		}
		if request.Verb == "create" && request.IsDone() {
			series[request.Name] = eventKey{request.About, request.Reason}
			counts[series[request.Name]]++
		} else if key, isKnown := series[request.Name]; isKnown && request.Verb == "patch" {
			counts[key]++
		}
	}
	return counts
}

// sent returns the number of events by reason.
func sent(run *Run) map[string]int {
	counts := map[string]int{}
	for key, n := range countEvents(run) {
		counts[key.reason] += n
	}
	return counts
}

// isOfPass reports whether a reconcile pass, and not a cache, made a request: a write, or a read of one resource.
func isOfPass(request *proxy.Request) bool {
	return isOfInterest(request) && request.Verb != "watch" && (request.IsWrite() || request.Name != "")
}

// isExcuse reports whether a fault of a request may cause an event, or have two operators send it: a fault of a write,
// or of a read without which the pass cannot go on. An event that cannot be sent is sent again under the same name.
func isExcuse(request *proxy.Request) bool {
	isEvent := request.Resource == eventResource
	switch {
	case !isOfPass(request):
		return false
	case request.Fault == nil: // as in an outage, or without a permission
		return !isEvent && isServerFailure(request)
	case hasFault(request, proxy.PauseWatches, proxy.CloseWatches, proxy.ExpireWatches, proxy.Delay):
		return false // only caches are served late or again, and a late answer is an answer
	case isEvent:
		return !hasFault(request, proxy.Refuse, proxy.Disown, proxy.DropAnswer, proxy.Hang)
	}
	return request.IsWrite() || request.Fault.Kind != proxy.Age
}

// isServerFailure reports whether a request has no answer, or an answer that a retry or a permission may change.
func isServerFailure(request *proxy.Request) bool {
	return request.Status == 0 || request.Status == http.StatusForbidden ||
		request.Status >= http.StatusInternalServerError
}
