package oracle

import (
	"net/http"
	"time"

	"github.com/example/memcached-operator/test/reliability/history"
)

// mostAttempts is how many failed requests of one sort about one object the operator may send within a second. Retries
// are due after 5 ms, and twice as long after each: 8 attempts in the first second, and more if something changes.
const mostAttempts = 20

// backoff finds requests that fail and are sent again and again without longer and longer pauses.
func backoff(run *Run, _ *Reference) []string {
	type attempt struct {
		verb string
		history.Key
	}
	recent, most := map[attempt][]time.Time{}, map[attempt]int{}
	for i := range run.Requests {
		request := &run.Requests[i]
		if !isOfPass(request) || request.IsDone() || request.Status == http.StatusNotFound {
			continue
		}
		key := attempt{request.Verb, history.Key{Resource: request.Resource, Name: request.Name}}
		recent[key] = append(recent[key], request.At)
		for request.At.Sub(recent[key][0]) > time.Second {
			recent[key] = recent[key][1:]
		}
		most[key] = max(most[key], len(recent[key]))
	}
	var found problems
	for key, n := range most {
		found.addIf(n > mostAttempts, "%s %s %s failed %d times within a second; with backoff at most %d",
			key.verb, key.Resource, key.Name, n, mostAttempts)
	}
	return found
}
