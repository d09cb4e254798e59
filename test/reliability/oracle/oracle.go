// Package oracle judges a run of the operator by what was recorded of it, and by nothing else. An oracle decides
// whether the outcome of a test is right: https://doi.org/10.1109/TSE.2014.2372785.
package oracle

import (
	"fmt"
	"maps"
	"time"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// Run is what was recorded of a plan.
type Run struct {
	Namespace string
	Symbols   history.Symbols
	// Requests are all requests of the operator, in the order of their arrival.
	Requests []proxy.Request
	// Standby are the requests of the operator that does not lead at first; nil if there was none.
	Standby []proxy.Request
	// Setup, Rest and Anew are positions in Requests: where the faults began; where everything had settled; and where the
	// operator was stopped after that and a new one, which reconciles every object every second, was started.
	Setup, Rest, Anew int
	// Steps are the steps of the scenario that were carried out.
	Steps []Step
	// Versions is the history of the namespace, and State its final state.
	Versions []history.Version
	State    history.State
	// Lacking describes what was missing at the timeout of a step, or compared with the reference; empty for nothing.
	Lacking string
	// Log is the log of the operator, and RestLog the part of it after everything had settled.
	Log, RestLog string
	// Ends are exits of the operator that the runner did not request, or that failed.
	Ends []string
	// Goroutines are the numbers of the operator's goroutines when everything had settled, by the function that they
	// started with. StartGoroutines are those of the new operator after its start, and RestGoroutines after it has
	// reconciled everything again. They are nil if the run did not get that far.
	Goroutines, StartGoroutines, RestGoroutines map[string]int
	// AwayFrom and AwayTo bound the time in which a part of the control plane was not ready; zero without an outage.
	AwayFrom, AwayTo time.Time
	// Fired is the number of rules of the plan that caused a fault.
	Fired int
	// IsDeprived is set if the operator lacks some of its permissions.
	IsDeprived bool
	// HasOtherImages is set if the operator was replaced by one with other images.
	HasOtherImages bool
	// IsOpen and IsPassing are the fields of the scenario.
	IsOpen, IsPassing bool
}

// Step is when a user acted, and when all that followed was over.
type Step struct{ Began, Settled time.Time }

// Finding is a violation that an oracle found.
type Finding struct {
	Oracle string `json:"oracle"`
	Text   string `json:"text"`
}

func (f Finding) String() string { return f.Oracle + ": " + f.Text }

// Oracle finds violations of one invariant. The reference is nil for a run that will become the reference.
type Oracle struct {
	Name  string
	Judge func(run *Run, reference *Reference) []string
}

// IsAway reports whether a part of the control plane was not ready at a time.
func (r *Run) IsAway(at time.Time) bool {
	return !r.AwayFrom.IsZero() && !at.Before(r.AwayFrom) && !at.After(r.AwayTo)
}

// isServed reports whether the API server answered every request itself, though it may have denied permission.
func (r *Run) isServed() bool { return r.Fired == 0 && r.AwayFrom.IsZero() }

// Rest is the name of the oracle for writes and reads of a settled operator.
const Rest = "rest"

// All lists the oracles.
var All = []Oracle{
	{"end state", endState},
	{Rest, rest},
	{"recovery", recovery},
	{"counts", counts},
	{"templates", templates},
	{"replacements", replacements},
	{"causes", causes},
	{"conflicts", conflicts},
	{"backoff", backoff},
	{"guarantee", guarantee},
	{"once per tick", oncePerTick},
	{"latest tick", latestTick},
	{"one at a time", oneAtATime},
	{"status", statuses},
	{"unreported", unreported},
	{"one leads", oneLeads},
	{"hygiene", hygiene},
	{"goroutines", goroutines},
}

// Judge returns the findings of all oracles.
func Judge(run *Run, reference *Reference) []Finding {
	var findings []Finding
	for _, oracle := range All {
		for _, text := range oracle.Judge(run, reference) {
			findings = append(findings, Finding{oracle.Name, text})
		}
	}
	return findings
}

// problems are the findings of one oracle, as text.
type problems []string

func (p *problems) addIf(is bool, format string, args ...any) {
	if is {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

// Reference is the result of a scenario without faults.
type Reference struct {
	State   history.Normal
	Creates map[string]int // the operator's successful creations, by object
	Deletes map[string]int
	Events  map[string]int // of this run, by reason
	// Writes and Reads are the numbers of the operator's writes, by verb and resource, and of its live reads of one
	// object, by resource, after Setup.
	Writes, Reads map[proxy.Match]int
	Goroutines    map[string]int // see Run.Goroutines
	// Lasted is how long each step has lasted, at most.
	Lasted []time.Duration
}

// NewReference returns the reference from a run without faults.
func NewReference(run *Run) *Reference {
	r := &Reference{
		State:  history.Normalize(run.Namespace, run.State, run.Versions, run.Symbols),
		Events: sent(run),
		Writes: map[proxy.Match]int{}, Reads: map[proxy.Match]int{}, Goroutines: map[string]int{},
	}
	maps.Copy(r.Goroutines, run.Goroutines)
	for _, step := range run.Steps {
		r.Lasted = append(r.Lasted, step.Settled.Sub(step.Began))
	}
	r.Creates, r.Deletes = operations(run)
	for i, request := range run.Requests {
		match := proxy.Match{Verb: request.Verb, Resource: request.Resource}
		switch {
		case i < run.Setup:
		case isWrite(&request):
			r.Writes[match]++
		case isRead(&request) && request.Name != "":
			r.Reads[proxy.Match{Verb: proxy.LiveRead, Resource: request.Resource}]++
		}
	}
	return r
}

// KeepFewestEventWrites leaves out all writes of events but the fewest of each reason, wherever in the scenario they
// were.
func (r *Reference) KeepFewestEventWrites(expected map[string][2]int) {
	for reason, bounds := range expected {
		r.Writes[EventCreation] = max(0, r.Writes[EventCreation]-max(0, r.Events[reason]-bounds[0]))
	}
}

const eventResource = "events.k8s.io/events"

// EventCreation matches the creation of an event.
var EventCreation = proxy.Match{Verb: "create", Resource: eventResource}

// isOfInterest reports whether a request is not about leader election.
func isOfInterest(request *proxy.Request) bool {
	return request.Resource != proxy.Leases
}

func isWrite(request *proxy.Request) bool { return request.IsWrite() && isOfInterest(request) }

// endState finds a final state that differs from the one without faults.
func endState(run *Run, reference *Reference) []string {
	if run.Lacking != "" {
		return []string{run.Lacking}
	}
	if reference == nil {
		return nil
	}
	diff := history.Diff(reference.State, history.Normalize(run.Namespace, run.State, run.Versions, run.Symbols))
	var found problems
	found.addIf(diff != "", "the state differs from the one without faults (-expected +actual):\n%s", diff)
	return found
}

// rest finds writes and reads of a settled operator: once everything has settled, while a new operator starts, and
// during resyncs. It reads from its caches, which only watch. Events are sent in the background and may be late, but
// only until the operator that recorded them stops.
func rest(run *Run, _ *Reference) []string {
	var found problems
	for i := run.Rest; i < len(run.Requests); i++ {
		request := &run.Requests[i]
		isLateEvent := request.Resource == eventResource && i < run.Anew
		found.addIf(isWrite(request) && !isLateEvent, "there was nothing to write: %s", request)
		found.addIf(isRead(request), "there was nothing to read: %s", request)
	}
	return found
}

// isRead reports whether a pass, and not a cache, reads: one object, a live list, or events, which have no cache.
func isRead(request *proxy.Request) bool {
	return isOfPass(request) && !request.IsWrite() || request.IsLive || request.Resource == "/events"
}

// oneLeads finds writes of the standby before it has acquired the lease.
func oneLeads(run *Run, _ *Reference) []string {
	var found problems
	for i := range run.Standby {
		request := &run.Standby[i]
		if request.Resource == proxy.Leases && request.IsWrite() && request.IsDone() {
			break
		}
		found.addIf(isWrite(request), "another operator leads: %s", request)
	}
	return found
}
