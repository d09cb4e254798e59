package oracle

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/testenv"
)

// hygiene finds panics, data races and exits that were not requested; errors in the log once everything has settled;
// and any error in the log of a run without faults.
func hygiene(run *Run, _ *Reference) []string {
	found := problems(slices.Clone(run.Ends))
	for _, defect := range testenv.Defects(run.Log) {
		found.addIf(true, "the log has: %s", defect)
	}
	quiet := run.RestLog
	if run.isServed() && !run.IsDeprived {
		quiet = run.Log
	}
	var entries []entry
	for line := range strings.Lines(quiet) {
		var e entry // empty for a line of another program
		_ = json.Unmarshal([]byte(line), &e)
		entries = append(entries, e)
	}
	// Events are sent in the background, so their errors may be late.
	isLate := func(e entry) bool {
		return strings.HasPrefix(e.Msg, "Unable to write event") && slices.ContainsFunc(run.Requests,
			func(r proxy.Request) bool { return r.Resource == eventResource && r.Fault != nil })
	}
	for _, e := range entries {
		found.addIf(e.Level == "ERROR" && !e.isOfShutdown(entries) && !isLate(e), "without a problem, the log has: %s",
			strings.TrimSuffix(e.Msg+": "+e.Err, ": "))
	}
	return found
}

// entry is a line of the log.
type entry struct {
	Time            time.Time
	Level, Msg, Err string
}

// shutdownTime is how long before it is logged a shutdown may have begun, and how long it may take.
const shutdownTime = 5 * time.Second

// isOfShutdown reports whether an error is about work that the shutdown of the manager interrupts.
func (e entry) isOfShutdown(entries []entry) bool {
	return strings.Contains(e.Msg, "error received after stop sequence was engaged") ||
		strings.Contains(e.Err, "context canceled") && slices.ContainsFunc(entries, func(other entry) bool {
			return strings.HasPrefix(other.Msg, "Stopping and waiting for ") && e.Time.Sub(other.Time).Abs() <= shutdownTime
		})
}

// watching is the function whose goroutine reads a watch.
const watching = "k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive"

// eventAPIs is how many goroutines of a function the first event may start: one for each API of events.
const eventAPIs = 2

// sentAgain is in the log once for each attempt to send an event whose connection broke. A goroutine of client-go waits
// for 10 to 12.5 s then, and sends the event again.
const sentAgain = "Unable to write event (may retry after sleeping)"

// goroutines finds more goroutines after a run than without faults or in a new process, and more after resyncs than
// before. Connections do not count, as a broken one times out by itself. Watches count only if there is more than one
// for each resource and namespace, as it is up to the API server when they open.
func goroutines(run *Run, reference *Reference) []string {
	watched := sets.New[string]()
	for i := range run.Requests {
		if request := &run.Requests[i]; request.Verb == "watch" {
			watched.Insert(request.Watched())
		}
	}
	var found problems
	for function, n := range run.Goroutines {
		most := run.RestGoroutines[function]
		if isOfEvents(function) {
			most += eventAPIs + strings.Count(run.Log, sentAgain)
		}
		if reference != nil {
			most = max(most, reference.Goroutines[function])
		}
		if function == watching {
			most = len(watched)
		}
		found.addIf(n > most && !isOfConnection(function) && function != mainFunction,
			"%d goroutines of %s, and %d in a new process or without faults", n, function, most)
	}
	for function, n := range run.RestGoroutines {
		most := run.StartGoroutines[function]
		if function == watching {
			most = len(watched)
		}
		found.addIf(n > most && !isOfConnection(function) && function != mainFunction,
			"%d goroutines of %s, and %d before resyncs", n, function, most)
	}
	return found
}

// mainFunction starts one goroutine in each process. A profile may lack it.
const mainFunction = "runtime.main"

// Functions that connections and events start.
var (
	isOfConnection = regexp.MustCompile(`^(net/http|golang\.org/x/net/http2)\.`).MatchString
	isOfEvents     = regexp.MustCompile(`^k8s\.io/(client-go/tools/(events|record)\.|` +
		`apimachinery/pkg/(watch\.\(\*Broadcaster\)\.|util/wait\.UntilWithContext$))`).MatchString
)
