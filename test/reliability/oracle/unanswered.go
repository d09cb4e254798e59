package oracle

import (
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// carriedOut returns the requests of a run, those that the API server carried out before it went away as if it had
// answered: the world shows what has come of them.
func carriedOut(run *Run) []proxy.Request {
	requests := slices.Clone(run.Requests)
	known := map[effect]bool{}
	for i := range requests {
		known[effectOf(&requests[i])] = true
	}
	unexplained := effectsOf(run.Versions, known)
	for i := range requests {
		request := &requests[i]
		if request.Status != 0 || !request.IsWrite() || neverArrived(request) {
			continue
		}
		found := slices.IndexFunc(unexplained, func(version history.Version) bool { return isBy(request, version) })
		if found < 0 {
			continue
		}
		version := unexplained[found]
		request.Status, request.AnsweredUID = http.StatusCreated, string(version.Object.GetUID())
		if version.IsGone {
			request.Status = http.StatusOK
		}
		request.AnsweredRV = strconv.FormatInt(version.RV, 10)
		unexplained = slices.Delete(unexplained, found, found+1)
	}
	return requests
}

// neverArrived tells whether the API server was not asked, whatever there is in the world.
func neverArrived(request *proxy.Request) bool {
	return request.Fault != nil && slices.Contains([]proxy.Kind{proxy.Refuse, proxy.KillBefore, proxy.Hang, proxy.CutOff},
		request.Fault.Kind)
}

// effect is that an object has come to be, or is gone.
type effect struct {
	uid    string
	isGone bool
}

// effectOf returns what has come of a request that was answered.
func effectOf(request *proxy.Request) effect {
	switch {
	case request.Verb == "delete" && request.IsDone():
		return effect{request.OnlyUID, true}
	case request.IsCreation():
		return effect{request.AnsweredUID, false}
	}
	return effect{}
}

// effectsOf returns the first version of each object and the one that it is gone with, but for those that are known.
func effectsOf(versions []history.Version, known map[effect]bool) []history.Version {
	var effects []history.Version
	seen := maps.Clone(known)
	for _, version := range versions {
		what := effect{string(version.Object.GetUID()), version.IsGone}
		if !seen[what] {
			effects = append(effects, version)
		}
		seen[what] = true
	}
	return effects
}

// isBy tells whether a request can have had an effect.
func isBy(request *proxy.Request, version history.Version) bool {
	switch {
	case version.Resource != request.Resource || version.Name != request.Name || version.At.Before(request.At):
		return false
	case request.Verb == "delete":
		return version.IsGone && request.OnlyUID == string(version.Object.GetUID())
	}
	return !version.IsGone
}
