package oracle

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// statuses finds statuses, in all versions of all resources, that were wrong when they were written. What a status
// reports of the present must have been true shortly before, and what it reports of the past must have happened. The
// cache may be behind, but it shows only states that existed, and not for longer than maxLag.
func statuses(run *Run, _ *Reference) []string {
	var found problems
	superseded, unbounded, lag := supersededAt(run.Versions), unboundedSince(run), maxLag(run)
	before := map[types.UID]history.Version{}
	for i, version := range run.Versions {
		kind, object := history.KindOf(version.Resource), version.Object
		if kind == nil || version.IsGone {
			continue
		}
		last := before[object.GetUID()]
		previous := cmp.Or(last.Object, &unstructured.Unstructured{})
		before[object.GetUID()] = version
		if !hasConditions(object) && !hasConditions(previous) ||
			equality.Semantic.DeepEqual(previous.Object["status"], object.Object["status"]) {
			continue
		}
		w := &statusWrite{run: run, kind: history.VariantOf(kind, object), versions: run.Versions[:i], self: version,
			previous: previous, previousAt: last.At, superseded: superseded, said: history.As[history.Reported](object)}
		if unbounded.IsZero() || version.At.Before(unbounded) {
			w.since = version.At.Add(-lag)
		}
		for _, v := range slices.Backward(run.Versions[:i+1]) {
			if v.Object.GetUID() == object.GetUID() && v.Object.GetGeneration() == w.said.Status.ObservedGeneration {
				w.observed = v.Object // the first version of this generation
			}
		}
		w.judgeGenerations()
		w.judgeDegraded()
		if kind.Deploys {
			w.judgeWorkload()
		} else {
			w.judgeCronJob()
		}
		for _, problem := range w.problems {
			found.addIf(true, "%s at resource version %d %s", version.Key, version.RV, problem)
		}
	}
	return found
}

// hasConditions reports whether a status was written.
func hasConditions(object *unstructured.Unstructured) bool {
	_, has, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return has
}

// supersededAt returns for each version the time of the next version of its object; zero for the last one.
func supersededAt(versions []history.Version) []time.Time {
	at := make([]time.Time, len(versions))
	last := map[types.UID]int{}
	for i, version := range versions {
		if before, ok := last[version.Object.GetUID()]; ok {
			at[before] = version.At
		}
		last[version.Object.GetUID()] = i
	}
	return at
}

// minLag is how far behind the cache may be without faults, in a pass on a busy machine.
const minLag = 5 * time.Second

// maxLag returns how far behind the cache may be, given all faults that delay it by a known time.
func maxLag(run *Run) time.Duration {
	lag := minLag
	for i := range run.Requests {
		if fault := run.Requests[i].Fault; fault != nil {
			lag += fault.For
		}
	}
	return lag
}

// unboundedSince returns the time after which the cache may be behind for an unknown time: because of an outage, a
// frozen or disconnected leader, a server that answers with an older state, or failed lists with backoff. It is zero if
// none of these happened.
func unboundedSince(run *Run) time.Time {
	since := run.AwayFrom
	for i := range run.Requests {
		request := &run.Requests[i]
		isOfCache := request.Fault != nil && (request.Verb == "list" && request.Name == "" || request.Verb == "watch")
		if (isOfCache || hasFault(request, proxy.AgeMore, proxy.AgeChildren, proxy.Freeze, proxy.CutOff)) &&
			(since.IsZero() || request.At.Before(since)) {
			since = request.At
		}
	}
	return since
}

// statusWrite is a write of a status, and the history before it.
type statusWrite struct {
	problems
	run      *Run
	kind     *kinds.Kind
	versions []history.Version
	self     history.Version
	// previous is the version before, which is empty for the first one, and previousAt its time.
	previous   *unstructured.Unstructured
	previousAt time.Time
	said       *history.Reported
	// observed is the resource in the observed generation; nil if that is from before the recording.
	observed *unstructured.Unstructured
	// superseded is when the next version of each object came; zero if none did.
	superseded []time.Time
	// since is the oldest state that the status may be computed from; zero for any.
	since time.Time
}

// judgeGenerations finds generations that do not exist yet or go back, and conditions that are missing or of another
// generation.
func (w *statusWrite) judgeGenerations() {
	observed, current := w.said.Status.ObservedGeneration, w.said.Metadata.Generation
	w.addIf(observed > current, "has generation %d, and has observed %d", current, observed)
	for _, condition := range []string{"Available", "Progressing", "Degraded"} {
		c := meta.FindStatusCondition(w.said.Status.Conditions, condition)
		w.addIf(c == nil, "does not report whether it is %s", condition)
		w.addIf(c != nil && c.ObservedGeneration != observed, "reports %s of another generation than %d", condition, observed)
	}
	w.addIf(history.As[history.Reported](w.previous).Status.ObservedGeneration > observed,
		"has observed an earlier generation than before")
}

// had reports whether a version is such that it holds, of those that the status may be computed from.
func (w *statusWrite) had(holds func(*history.Version) bool) bool {
	for i := range w.versions {
		if w.isRecent(i) && holds(&w.versions[i]) {
			return true
		}
	}
	return false
}

// isRecent reports whether the status may be computed from a version.
func (w *statusWrite) isRecent(index int) bool {
	return w.since.IsZero() || w.superseded[index].IsZero() || w.superseded[index].After(w.since)
}

// ever reports whether a version of an object that the resource owns matches a predicate.
func ever[T any](versions []history.Version, w *statusWrite, resource string, holds func(*T) bool) bool {
	return slices.ContainsFunc(versions, func(v history.Version) bool { return isOwn(w, &v, resource, holds) })
}

// recently is like ever, but considers only the versions that the status may be computed from.
func recently[T any](w *statusWrite, resource string, holds func(*T) bool) bool {
	return w.had(func(version *history.Version) bool { return isOwn(w, version, resource, holds) })
}

func isOwn[T any](w *statusWrite, version *history.Version, resource string, holds func(*T) bool) bool {
	return version.Resource == resource && !version.IsGone && ownerOf(version.Object) == w.self.Object.GetUID() &&
		holds(history.As[T](version.Object))
}
