package oracle

import (
	"net/http"
	"time"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// mostAttempts is how many failed requests of one sort about one object the operator may send within a second. A retry
// is due after 100 ms, and twice as long after each (cmd/backoff.go): 4 attempts in the first second. Events add more.
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
		isAnswered := request.IsDone() || request.Status == http.StatusNotFound // 404: there is no such object
		if !isOfPass(request) || isAnswered && !hasFault(request, proxy.Disown, proxy.DropAnswer) {
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
