package oracle

import (
	"fmt"
	"strings"
)

// goroutines finds more of them in an operator that has been through it all than in one through which the same came
// without faults, or one that has only just begun, while there is nothing to do for any; and more in one after it has
// looked at everything again than before. Those of connections do not count: a broken one is given up in its own time.
// Nor do those of watches, as long as there are no more than there can be: a watch is opened, and opened again, when
// the API server has time for it.
func goroutines(run *Run, reference *Reference) []string {
	var found []string
	for function, n := range run.Goroutines {
		most := run.RestGoroutines[function]
		if reference != nil {
			most = max(most, reference.Goroutines[function])
		}
		if isOfEvents(function) {
			most = max(most, run.RestGoroutines[function]+ofEvents)
		}
		if function == watching {
			most = watches(run)
		}
		if n > most && !isOfConnection(function) {
			found = append(found, fmt.Sprintf("%d goroutines of %s, and %d in one that has just begun, or without faults", n,
				function, most))
		}
	}
	for function, n := range run.RestGoroutines {
		begun := run.StartGoroutines[function]
		if function == watching {
			begun = watches(run)
		}
		if n > begun && !isOfConnection(function) {
			found = append(found, fmt.Sprintf("%d goroutines of %s, and %d before it looked at everything again", n, function,
				begun))
		}
	}
	return found
}

// watching is what reads a watch.
const watching = "k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive"

// watches returns how many watches the operator can have open at a time: one of each resource.
func watches(run *Run) int {
	watched := map[string]bool{}
	for i := range run.Requests {
		if request := &run.Requests[i]; request.Verb == "watch" {
			watched[request.Resource] = true
		}
	}
	return len(watched)
}

// isOfConnection tells whether there is one for each connection.
func isOfConnection(function string) bool {
	return strings.HasPrefix(function, "net/http.") || strings.HasPrefix(function, "golang.org/x/net/http2.")
}

// ofEvents is how many of a function begin with the first event, which there may be none of without faults: one for
// each of the two APIs.
const ofEvents = 2

func isOfEvents(function string) bool {
	return strings.HasPrefix(function, "k8s.io/client-go/tools/events.") ||
		strings.HasPrefix(function, "k8s.io/client-go/tools/record.") ||
		strings.HasPrefix(function, "k8s.io/apimachinery/pkg/watch.(*Broadcaster).") ||
		function == "k8s.io/apimachinery/pkg/util/wait.UntilWithContext"
}
