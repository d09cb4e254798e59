package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// statuses finds statuses that were not true when they were written, of any version of any resource: what a status says
// of the present must be what the world was like a moment before, and what it says of the past must have been. A cache
// may be behind, but it shows what has been, and not for long what is over.
func statuses(run *Run, _ *Reference) []string {
	var found []string
	superseded, held, lag := supersededAt(run.Versions), heldSince(run), lagOf(run)
	before := map[string]*unstructured.Unstructured{} // by UID
	for i, version := range run.Versions {
		if !history.IsOurs(version.Resource) || version.IsGone {
			continue
		}
		object := version.Object
		previous := before[string(object.GetUID())]
		before[string(object.GetUID())] = object
		if !hasConditions(object) && !hasConditions(previous) ||
			previous != nil && equality.Semantic.DeepEqual(previous.Object["status"], object.Object["status"]) {
			continue
		}
		past := &past{run: run, versions: run.Versions[:i], self: version, previous: previous, superseded: superseded}
		if held.IsZero() || version.At.Before(held) {
			past.since = version.At.Add(-lag)
		}
		lies := slices.Concat(past.generations(), past.degraded(), past.ofItsKind())
		if previous != nil &&
			history.As[history.Reported](previous).Status.ObservedGeneration > history.As[history.Reported](object).
				Status.ObservedGeneration {
			lies = append(lies, "has observed an earlier generation than before")
		}
		for _, lie := range lies {
			found = append(found, fmt.Sprintf("%s at resource version %d %s", version.Key, version.RV, lie))
		}
	}
	return found
}

// hasConditions tells whether a resource has been told of; one that is nil has not.
func hasConditions(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	_, has, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return has
}

// past is all that has been before a status was written.
type past struct {
	run      *Run
	versions []history.Version
	self     history.Version
	previous *unstructured.Unstructured // the version before; nil for the first
	// superseded says of each version when the next one of its object came; zero where none did.
	superseded []time.Time
	// since is from when on the world may be what the status was computed from; zero for ever.
	since time.Time
}

// ofItsKind finds what is not true of what only a resource's kind says.
func (p *past) ofItsKind() []string {
	if kind := history.KindOf(p.self.Resource); kind.Deploys {
		return p.deploying(kind)
	}
	return p.cronJob()
}

// leastLag is how much older than a status the world may be that it was computed from where nothing holds that back, in
// a pass on a busy machine.
const leastLag = 5 * time.Second

// lagOf returns how much older it may be with what was held back for a time that is known.
func lagOf(run *Run) time.Duration {
	lag := leastLag
	for i := range run.Requests {
		if fault := run.Requests[i].Fault; fault != nil {
			lag += fault.For
		}
	}
	return lag
}

// heldSince returns from when on nobody can say how old that world is, as it was held back for a time that is not
// known: by an outage, a leader that stands still or is cut off, an older world that is served, or caches that could
// not be filled and try again after longer and longer. It is zero where nothing of that sort has been.
func heldSince(run *Run) time.Time {
	since := run.AwayFrom
	for i := range run.Requests {
		request := &run.Requests[i]
		if request.Fault != nil && (slices.Contains(holding, request.Fault.Kind) || request.Verb == "list" ||
			request.Verb == "watch") &&
			(since.IsZero() || request.At.Before(since)) {
			since = request.At
		}
	}
	return since
}

var holding = []proxy.Kind{proxy.AgeMore, proxy.Freeze, proxy.CutOff}

// supersededAt returns of each version when the next one of its object came; zero where none did.
func supersededAt(versions []history.Version) []time.Time {
	at := make([]time.Time, len(versions))
	last := map[string]int{} // by UID
	for i, version := range versions {
		uid := string(version.Object.GetUID())
		if before, ok := last[uid]; ok {
			at[before] = version.At
		}
		last[uid] = i
	}
	return at
}

// had tells whether there was a version for which that holds when the world was what the status was computed from.
func (p *past) had(holds func(*history.Version) bool) bool {
	for i := range p.versions {
		if p.wasLately(i) && holds(&p.versions[i]) {
			return true
		}
	}
	return false
}

// wasLately tells whether a version was there when the world was what the status was computed from.
func (p *past) wasLately(index int) bool {
	return p.since.IsZero() || p.superseded[index].IsZero() || p.superseded[index].After(p.since)
}

// generations finds statuses of generations that there were not yet, and conditions that are missing or contradict each
// other.
func (p *past) generations() []string {
	var lies []string
	said := history.As[history.Reported](p.self.Object)
	if said.Status.ObservedGeneration > said.Metadata.Generation {
		lies = append(lies, fmt.Sprintf("is of generation %d, and has observed %d", said.Metadata.Generation,
			said.Status.ObservedGeneration))
	}
	for _, condition := range []string{"Available", "Progressing", "Degraded"} {
		c := meta.FindStatusCondition(said.Status.Conditions, condition)
		switch {
		case c == nil:
			lies = append(lies, "does not say whether it is "+condition)
		case c.ObservedGeneration != said.Status.ObservedGeneration:
			lies = append(lies, fmt.Sprintf("says %s of generation %d, and the rest of %d", condition, c.ObservedGeneration,
				said.Status.ObservedGeneration))
		}
	}
	return lies
}

// observed returns the resource as it was at the generation that its status is of; nil if that was before the record
// began.
func (p *past) observed() *unstructured.Unstructured {
	observed := history.As[history.Reported](p.self.Object).Status.ObservedGeneration
	for _, version := range append(slices.Clone(p.versions), p.self) {
		if version.Key == p.self.Key && version.Object.GetUID() == p.self.Object.GetUID() &&
			version.Object.GetGeneration() == observed {
			return version.Object
		}
	}
	return nil
}

// some tells whether there was, ever, a version of an object of the resource's own for which that holds.
func some[T any](p *past, resource string, holds func(*T) bool) bool {
	return slices.ContainsFunc(p.versions, func(version history.Version) bool {
		return isOwn(p, &version, resource,
			holds)
	})
}

// lately tells whether there was one when the world was what the status was computed from.
func lately[T any](p *past, resource string, holds func(*T) bool) bool {
	return p.had(func(version *history.Version) bool { return isOwn(p, version, resource, holds) })
}

func isOwn[T any](p *past, version *history.Version, resource string, holds func(*T) bool) bool {
	self := map[string]bool{string(p.self.Object.GetUID()): true}
	return version.Resource == resource && !version.IsGone && belongs(version.Object, self) &&
		holds(history.As[T](version.Object))
}

func sortedKeys(set map[string]bool) []string {
	return slices.SortedFunc(maps.Keys(set), strings.Compare)
}
