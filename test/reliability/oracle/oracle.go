// Package oracle judges what has come of a plan, by what was recorded of it and nothing else.
package oracle

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

// Run is what was recorded of a plan.
type Run struct {
	Namespace string
	Symbols   history.Symbols
	// Requests are all of the operator, in the order in which they came.
	Requests []proxy.Request
	// Standby are those of Requests that the operator has made which stood by at first; nil where there was none.
	Standby []proxy.Request
	// Setup is how many of Requests there were when things could begin to go wrong.
	Setup int
	// Rest is how many of Requests there were when all had come to rest, and Anew when the operator had been ended then:
	// after it, another one was started, and looked at everything again and again.
	Rest, Anew int
	// Versions are all that has been in the namespace, in the order in which it was.
	Versions []history.Version
	// World is what there is in the end.
	World history.World
	// Lacking is what the world has lacked for too long, of a step or compared with the reference; empty if it has come to
	// all.
	Lacking string
	// Log is what the operator has written, RestLog that part of it from which all was at rest.
	Log, RestLog string
	// Ends are ends of the operator that nobody has asked for, or that were not as they should be.
	Ends []string
	// Goroutines are those of the operator when all had come to rest, by the function that they began with;
	// StartGoroutines those of the one that was started anew then, and RestGoroutines those of that one after it has
	// looked at everything again. They are nil where it does not come so far.
	Goroutines, StartGoroutines, RestGoroutines map[string]int
	// AwayFrom and AwayTo are from when to when a part of the control plane was away, or not ready yet; zero where none
	// was.
	AwayFrom, AwayTo time.Time
	// Fired is how many rules of the plan have had a request go wrong.
	Fired int
	// IsDeprived tells that the operator has other rights than its own.
	IsDeprived bool
	// IsOpen tells that it is a matter of time how much the operator does before its resource is deleted.
	IsOpen bool
	// IsPassing tells that a name is taken for a moment, which may be told of, and that it is over, once for each
	// resource.
	IsPassing bool
}

// Finding is something that must not be.
type Finding struct {
	Oracle string `json:"oracle"`
	Text   string `json:"text"`
}

func (f Finding) String() string { return f.Oracle + ": " + f.Text }

// Oracle looks for what must not be. The reference is nil for a run that is to become one.
type Oracle struct {
	Name  string
	Judge func(run *Run, reference *Reference) []string
}

// IsAway tells whether a part of the control plane was away, or not ready yet, at a time.
func (r *Run) IsAway(at time.Time) bool {
	return !r.AwayFrom.IsZero() && !at.Before(r.AwayFrom) && !at.After(r.AwayTo)
}

// isCalm tells whether nothing was to go wrong, or has.
func (r *Run) isCalm() bool { return r.isServed() && !r.IsDeprived }

// isServed tells whether every request was answered as the API server answers it, be it that the operator has no right
// to what it asks.
func (r *Run) isServed() bool { return r.Fired == 0 && r.AwayFrom.IsZero() }

// Rest is the oracle of what is written where there is nothing to write.
const Rest = "rest"

// All are all oracles.
var All = []Oracle{
	{"end state", endState},
	{Rest, rest},
	{"counts", counts},
	{"events", events},
	{"guarantee", guarantee},
	{"once per tick", oncePerTick},
	{"latest tick", latestTick},
	{"one at a time", oneAtATime},
	{"status", statuses},
	{"one leads", oneLeads},
	{"hygiene", hygiene},
	{"goroutines", goroutines},
}

// Judge returns what all oracles find.
func Judge(run *Run, reference *Reference) []Finding {
	var findings []Finding
	for _, oracle := range All {
		for _, text := range oracle.Judge(run, reference) {
			findings = append(findings, Finding{oracle.Name, text})
		}
	}
	return findings
}

// Reference is what comes of a scenario when nothing goes wrong.
type Reference struct {
	World   history.Normal
	Creates map[string]int // successful ones of the operator, by object
	Deletes map[string]int
	Events  map[string]int // by reason, the most there were in a run
	// FewestEvents are the fewest that there were of each: what takes a moment is told of only if it takes long.
	FewestEvents map[string]int
	// Writes are the operator's since things could go wrong, each with how many there were, by verb and resource.
	Writes map[proxy.Match]int
	// Goroutines are those of the operator when all had come to rest, by the function that they began with.
	Goroutines map[string]int
}

// NewReference returns what a run in which nothing went wrong says.
func NewReference(run *Run) *Reference {
	r := &Reference{
		World:  history.Normalize(run.Namespace, run.World, run.Versions, run.Symbols),
		Writes: map[proxy.Match]int{},

		Goroutines: map[string]int{},
	}
	maps.Copy(r.Goroutines, run.Goroutines)
	r.Creates, r.Deletes = made(run)
	for i, request := range run.Requests {
		if i >= run.Setup && request.IsWrite() && isOfInterest(&request) {
			r.Writes[proxy.Match{Verb: request.Verb, Resource: request.Resource}]++
		}
	}
	r.Events = sent(run)
	r.FewestEvents = maps.Clone(r.Events)
	return r
}

const eventResource = "events.k8s.io/events"

// isOfInterest tells whether a request is about what the operator is for, and not about who leads.
func isOfInterest(request *proxy.Request) bool {
	return request.Resource != proxy.Leases && request.Resource != "/events"
}

// made returns which objects the operator has created and deleted, and how often. The first that it has created for a
// resource that was gone already do not count: its cache did not show that yet, and the garbage collector takes them
// away.
func made(run *Run) (creates, deletes map[string]int) {
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

// isForGone tells whether an object was created for a resource that was gone by then, and of which the operator could
// not know that this had it before. One that a resource had before is requested only when the API server says that the
// resource is there.
func isForGone(run *Run, creation *proxy.Request) bool {
	var owner types.UID
	for _, version := range run.Versions {
		if controller := metav1.GetControllerOf(version.Object); controller != nil &&
			string(version.Object.GetUID()) == creation.AnsweredUID {
			owner = controller.UID
			break
		}
	}
	isGone, created := false, history.Key{Resource: creation.Resource, Name: creation.Name}
	rv, _ := strconv.ParseInt(creation.AnsweredRV, 10, 64)
	for _, version := range run.Versions {
		controller := metav1.GetControllerOf(version.Object)
		switch {
		case version.RV >= rv:
		case version.IsGone && version.Object.GetUID() == owner:
			isGone = mayStillBeSeen(run, version.At, creation.At)
		case version.Key == created && controller != nil && controller.UID == owner &&
			version.At.Before(knownAt(run, creation)):
			return false
		}
	}
	return isGone
}

// mayStillBeSeen tells whether the operator may go by what was over at one time at another one.
func mayStillBeSeen(run *Run, over, at time.Time) bool {
	held := heldSince(run)
	return !held.IsZero() && !at.Before(held) || at.Sub(over) <= lagOf(run)
}

// knownAt returns of when an operator knows for sure what it goes by in a request: of when that came; but one that
// stood still knows what was before, and goes on with that.
func knownAt(run *Run, request *proxy.Request) time.Time {
	for i := range run.Requests {
		if before := &run.Requests[i]; before.Fault != nil && before.Fault.Kind == proxy.Freeze &&
			before.At.Before(request.At) {
			return before.At
		}
	}
	return request.At
}

// endState finds a world that is not as without faults.
func endState(run *Run, reference *Reference) []string {
	if run.Lacking != "" {
		return []string{run.Lacking}
	}
	if reference == nil {
		return nil
	}
	if diff := history.Diff(reference.World, history.Normalize(run.Namespace, run.World, run.Versions,
		run.Symbols)); diff != "" {
		return []string{"the world is not as without faults (-expected +actual):\n" + diff}
	}
	return nil
}

// rest finds writes when there is nothing to write: after all has come to rest, during an operator's start, and during
// resyncs. An event is sent when there is time for it, which may be then, but for no longer than the operator is there
// that it is of: those of one that is started at rest are writes like any other.
func rest(run *Run, _ *Reference) []string {
	var found []string
	for i := run.Rest; i < len(run.Requests); i++ {
		if request := &run.Requests[i]; request.IsWrite() && isOfInterest(request) &&
			(request.Resource != eventResource || i >= run.Anew) {
			found = append(found, fmt.Sprintf("there was nothing to write: %s", request))
		}
	}
	return found
}

// oneLeads finds writes of the operator that stands by at first: it may write nothing until it has written that it
// leads.
func oneLeads(run *Run, _ *Reference) []string {
	var found []string
	for i := range run.Standby {
		request := &run.Standby[i]
		switch {
		case request.Resource == proxy.Leases && request.IsWrite() && request.IsDone():
			return found
		case request.IsWrite() && isOfInterest(request):
			found = append(found, fmt.Sprintf("another operator leads: %s", request))
		}
	}
	return found
}

// counts finds creations and deletions of children that there are not without faults, and those that are missing.
func counts(run *Run, reference *Reference) []string {
	if reference == nil {
		return nil
	}
	creates, deletes := made(run)
	return append(compare("created", reference.Creates, creates, run.IsOpen),
		compare("deleted", reference.Deletes, deletes, run.IsOpen)...)
}

// compare finds objects for which something was done more or less often than it should be.
func compare(what string, expected, actual map[string]int, fewerAreFine bool) []string {
	var found []string
	for object, n := range actual {
		if n > expected[object] {
			found = append(found, fmt.Sprintf("%s was %s %d times, and not %d", object, what, n, expected[object]))
		}
	}
	for object, n := range expected {
		if actual[object] < n && !fewerAreFine {
			found = append(found, fmt.Sprintf("%s was %s %d times, and not %d", object, what, actual[object], n))
		}
	}
	return found
}

// Unexpected finds what an operator does otherwise than is expected of it where nothing goes wrong, be it each time
// alike.
func (r *Reference) Unexpected(s *scenario.Scenario) []Finding {
	found := append(compare("created", s.Expected.Creates, r.Creates, s.IsOpen),
		compare("deleted", s.Expected.Deletes, r.Deletes, s.IsOpen)...)
	for reason, n := range r.Events {
		most := s.Expected.Events[reason][1]
		if s.IsPassing {
			most += passing
		}
		if n > most {
			found = append(found, fmt.Sprintf("%d events %s, where %d are news", n, reason, most))
		}
	}
	for reason, events := range s.Expected.Events {
		if fewest := events[0]; r.Events[reason] < fewest && !s.IsOpen {
			found = append(found, fmt.Sprintf("%d events %s, and not %d", r.Events[reason], reason, fewest))
		}
	}
	findings := make([]Finding, len(found))
	for i, text := range found {
		findings[i] = Finding{"expected", text}
	}
	return findings
}

// passing is how many resources of a scenario there are at most whose name is taken for a moment.
const passing = 2

// events finds more events than there is news: without faults there are those of the reference; each write that goes
// wrong can make one of a resource that is degraded and one of it being well again, or have it told once more by an
// operator that does not know.
func events(run *Run, reference *Reference) []string {
	if reference == nil {
		return nil
	}
	excuses := 0
	for i := range run.Requests[:run.Anew] {
		if isExcuse(&run.Requests[i]) {
			excuses++
		}
	}
	all := sent(run)
	var found []string
	for reason, n := range all {
		most := reference.Events[reason] + excuses
		if run.IsPassing {
			most += passing
		}
		if n > most {
			found = append(found, fmt.Sprintf("%d events %s, where %d are news", n, reason, most))
		}
	}
	for reason, n := range reference.FewestEvents {
		if run.isServed() && all[reason] < n && !run.IsOpen && (reason != samplev1alpha1.EventErrResourceExists ||
			saysNameTaken(run)) {
			found = append(found, fmt.Sprintf("%d events %s, and %d without faults", all[reason], reason, n))
		}
	}
	return found
}

// saysNameTaken tells whether a status says that a name is taken. Where names are swapped at the same moment, none is
// by the time it is told of.
func saysNameTaken(run *Run) bool {
	return slices.ContainsFunc(run.Versions, func(version history.Version) bool {
		said := history.As[history.Reported](version.Object)
		return said.Is("Degraded", metav1.ConditionTrue) &&
			(said.Condition("Degraded").Reason == samplev1alpha1.ReasonNameTaken || listsNameTaken(said))
	})
}

// sent returns how many events there were of operators that had something to do, by reason. One that is patched is told
// of again: that is how a series of the same is sent.
func sent(run *Run) map[string]int {
	counts, reasons := map[string]int{}, map[string]string{}
	for _, request := range run.Requests[:run.Anew] {
		switch {
		case request.Resource != eventResource:
		case request.Verb == "patch":
			counts[reasons[request.Name]]++
		case request.IsDone():
			reasons[request.Name] = request.Reason
			counts[request.Reason]++
		}
	}
	return counts
}

// isOfPass tells whether a request is one that a pass makes for its resource: a write, or a question about one
// resource; and not of a cache.
func isOfPass(request *proxy.Request) bool {
	return isOfInterest(request) && request.Verb != "watch" && (request.IsWrite() || request.Name != "")
}

// silent are faults that say nothing new of the world: what is served late, again or old is asked for by a cache, and
// what is answered late is answered.
var silent = []proxy.Kind{proxy.PauseWatches, proxy.CloseWatches, proxy.ExpireWatches, proxy.Delay}

// isExcuse tells whether something has gone wrong with a request because of which an event may be news, or be sent by
// two operators: with a write, or with a question about one resource, without whose answer it goes no further. An event
// that cannot be sent is sent again under the same name, so it is no other one.
func isExcuse(request *proxy.Request) bool {
	isEvent, fault := request.Resource == eventResource, request.Fault
	switch {
	case !isOfPass(request):
		return false
	case fault == nil: // as in an outage, or for the lack of a permission
		return !isEvent && (request.Status == 0 || request.Status == http.StatusForbidden ||
			request.Status >= http.StatusInternalServerError)
	case slices.Contains(silent, fault.Kind):
		return false
	case isEvent:
		return !slices.Contains([]proxy.Kind{proxy.Refuse, proxy.Disown, proxy.DropAnswer, proxy.Hang}, fault.Kind)
	}
	return request.IsWrite() || fault.Kind != proxy.Age
}
