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
	// Requests are all of the operator, in the order in which they arrived.
	Requests []proxy.Request
	// Standby are those of the operator that does not lead at first; nil if there was none.
	Standby []proxy.Request
	// Setup, Rest and Anew are numbers of Requests: before faults could occur; when everything had settled; and when the
	// operator was stopped after that. Then another one started, which reconciled everything again and again.
	Setup, Rest, Anew int
	// Versions is the history of the namespace, and State its final state.
	Versions []history.Version
	State    history.State
	// Lacking is what a step, or the reference, still lacked when the time was up; empty for nothing.
	Lacking string
	// Log is the operator's, and RestLog the part of it since everything had settled.
	Log, RestLog string
	// Ends are exits of the operator that the runner did not request, or that failed.
	Ends []string
	// Goroutines are those of the operator when everything had settled, by the function that they started with. Then it
	// is restarted: StartGoroutines are those of the new process, RestGoroutines after it has reconciled everything again.
	// They are nil if the run does not get that far.
	Goroutines, StartGoroutines, RestGoroutines map[string]int
	// AwayFrom and AwayTo bound the time in which a part of the control plane was not ready; zero if all always were.
	AwayFrom, AwayTo time.Time
	// Fired is the number of rules of the plan that caused a fault.
	Fired int
	// IsDeprived is set if the operator lacks some of its permissions.
	IsDeprived bool
	// IsOpen and IsPassing are those of the scenario.
	IsOpen, IsPassing bool
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

// IsAway reports whether a part of the control plane was not ready at a time.
func (r *Run) IsAway(at time.Time) bool {
	return !r.AwayFrom.IsZero() && !at.Before(r.AwayFrom) && !at.After(r.AwayTo)
}

// isServed reports whether the API server answered every request itself, though it may have denied permission.
func (r *Run) isServed() bool { return r.Fired == 0 && r.AwayFrom.IsZero() }

// Rest is the oracle of writes when there is nothing to write.
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

// problems are what one oracle finds.
type problems []string

func (p *problems) addIf(is bool, format string, args ...any) {
	if is {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

// Reference is what a scenario results in without faults.
type Reference struct {
	State   history.Normal
	Creates map[string]int // the operator's successful creations, by object
	Deletes map[string]int
	// Events and FewestEvents are the highest and lowest number of events in a run, by reason: a state that does not last
	// may not be reported.
	Events, FewestEvents map[string]int
	// Writes is the number of the operator's writes by verb and resource, since faults could occur.
	Writes     map[proxy.Match]int
	Goroutines map[string]int // of a run, when everything had settled
}

// NewReference returns the reference that a run without faults is.
func NewReference(run *Run) *Reference {
	r := &Reference{
		State:  history.Normalize(run.Namespace, run.State, run.Versions, run.Symbols),
		Events: sent(run), FewestEvents: sent(run),
		Writes: map[proxy.Match]int{}, Goroutines: map[string]int{},
	}
	maps.Copy(r.Goroutines, run.Goroutines)
	r.Creates, r.Deletes = made(run)
	for i, request := range run.Requests {
		if i >= run.Setup && isWrite(&request) {
			r.Writes[proxy.Match{Verb: request.Verb, Resource: request.Resource}]++
		}
	}
	return r
}

const eventResource = "events.k8s.io/events"

// isOfInterest reports whether a request is not about leader election.
func isOfInterest(request *proxy.Request) bool {
	return request.Resource != proxy.Leases && request.Resource != "/events"
}

func isWrite(request *proxy.Request) bool { return request.IsWrite() && isOfInterest(request) }

// endState finds a state that is not the one without faults.
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

// rest finds writes when there is nothing to write: once everything has settled, while an operator starts, and during
// resyncs. Events are sent in the background and may be late, but only as long as the operator runs that has recorded
// them.
func rest(run *Run, _ *Reference) []string {
	var found problems
	for i := run.Rest; i < len(run.Requests); i++ {
		request := &run.Requests[i]
		found.addIf(isWrite(request) && (request.Resource != eventResource || i >= run.Anew),
			"there was nothing to write: %s", request)
	}
	return found
}

// oneLeads finds writes of the standby before it has written that it leads.
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
