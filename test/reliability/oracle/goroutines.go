package oracle

import (
	"fmt"
	"strings"
)

// goroutines finds more of them in an operator that has been through it all than in one through which the same came without faults, or one
// that has only just begun, while there is nothing to do for any. Those of connections do not count: a broken one is given up in its own
// time.
func goroutines(run *Run, reference *Reference) []string {
	if reference == nil {
		return nil
	}
	var found []string
	for function, n := range run.Goroutines {
		most := max(reference.Goroutines[function], run.RestGoroutines[function])
		if isOfEvents(function) {
			most = max(most, run.RestGoroutines[function]+ofEvents)
		}
		if n > most && !isOfConnection(function) {
			found = append(found, fmt.Sprintf("%d goroutines of %s, and %d without faults", n, function, most))
		}
	}
	return found
}

func isOfConnection(function string) bool {
	return strings.HasPrefix(function, "net/http.") || strings.HasPrefix(function, "golang.org/x/net/http2.")
}

// ofEvents is how many of a function begin with the first event, which there may be none of without faults: one for each of the two APIs.
const ofEvents = 2

func isOfEvents(function string) bool {
	return strings.HasPrefix(function, "k8s.io/client-go/tools/events.") || strings.HasPrefix(function, "k8s.io/client-go/tools/record.") ||
		strings.HasPrefix(function, "k8s.io/apimachinery/pkg/watch.(*Broadcaster).") || function == "k8s.io/apimachinery/pkg/util/wait.UntilWithContext"
}
