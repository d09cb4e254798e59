package oracle

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// causes finds events of a reason about an object of which there are more than changes of its stored status that they
// report, and missed times without an event. Each faulty request may cause missed times to be reported once more: an
// operator that starts with an old cache finds them again.
func causes(run *Run, _ *Reference) []string {
	changes, last, missed := map[eventKey]int{}, map[types.UID]*history.Reported{}, map[types.UID]string{}
	refused, again, mayBeLost := refusedStatuses(run), excuses(run), mayLoseEvents(run)
	for _, version := range run.Versions {
		if !history.IsOwnKind(version.Resource) {
			continue
		}
		uid, is := version.Object.GetUID(), history.As[history.Reported](version.Object)
		was := last[uid]
		if was == nil {
			was = &history.Reported{}
			changes[eventKey{uid, samplev1alpha1.EventStatusNotWritten}] = refused[version.Key]
			changes[eventKey{uid, tutorialv1.EventMissedSchedule}] = again
		}
		changes[eventKey{uid, newsIn(version.Resource, was, is)}]++
		if at := lastMissed(version.Object); at != "" && at != missed[uid] {
			changes[eventKey{uid, tutorialv1.EventMissedSchedule}]++
			missed[uid] = at
		}
		last[uid] = is
	}
	var found problems
	counts := countEvents(run)
	for key, n := range changes {
		n -= again
		found.addIf(key.reason == tutorialv1.EventMissedSchedule && counts[key] < n && !mayBeLost,
			"%d events %s about %q for %d changes of its status", counts[key], key.reason, key.object, n)
	}
	for key, n := range counts {
		found.addIf(n > changes[key], "%d events %s about %q for %d changes of its status", n, key.reason, key.object,
			changes[key])
	}
	return found
}

// mayLoseEvents reports whether an event may be lost: an event itself met a fault or was denied, or a process ended, or
// lost its leadership, after it had written a status and before it had sent the event. If timing decides whether a
// resource is deleted first, its events may be missing, too.
func mayLoseEvents(run *Run) bool {
	return run.IsOpen || run.IsDeprived || !run.AwayFrom.IsZero() ||
		slices.ContainsFunc(run.Requests, func(r proxy.Request) bool {
			return r.Fault != nil && (r.Resource == eventResource || !hasFault(&r, proxy.Refuse, proxy.Delay, proxy.Hang,
				proxy.PauseWatches, proxy.CloseWatches, proxy.ExpireWatches))
		})
}

// lastMissed returns the last missed time that the status of a CronJob reports; "" for none.
func lastMissed(object *unstructured.Unstructured) string {
	at, _, _ := unstructured.NestedString(object.Object, "status", "lastMissedTime")
	return at
}

// refusedStatuses returns how many writes of the status of each resource the API server rejected.
func refusedStatuses(run *Run) map[history.Key]int {
	refused := map[history.Key]int{}
	for i := range run.Requests {
		request := &run.Requests[i]
		if resource, isStatus := strings.CutSuffix(request.Resource, "/status"); isStatus && request.IsWrite() &&
			isRefused(request) {
			refused[history.Key{Resource: resource, Name: request.Name}]++
		}
	}
	return refused
}

// newsIn returns the reason of the event that a change of a status causes; "" for none.
func newsIn(resource string, was, is *history.Reported) string {
	isNew := was.Condition("Degraded").ObservedGeneration != is.Condition("Degraded").ObservedGeneration
	switch problem := problemIn(is); {
	case problem != "" && (isNew || problem != problemIn(was)):
		if resource == history.Foos && problem == samplev1alpha1.ReasonNameTaken {
			return samplev1alpha1.EventErrResourceExists
		}
		return problem
	case isApplied(is) && (isNew || !isApplied(was)):
		return samplev1alpha1.EventSynced
	}
	return ""
}

// problemIn returns the reason of Degraded; "" for no problem.
func problemIn(status *history.Reported) string {
	if !status.Is("Degraded", metav1.ConditionTrue) {
		return ""
	}
	return status.Condition("Degraded").Reason
}

// isApplied reports whether a status says that the children are as specified, though not necessarily ready.
func isApplied(status *history.Reported) bool {
	reason := status.Condition("Progressing").Reason
	return reason != "" && reason != "Blocked" && reason != "Paused" &&
		!slices.Contains([]string{"NameTaken", "Refused", "Error"}, problemIn(status))
}
