package oracle

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/example/memcached-operator/test/reliability/proxy"
)

// Bounds of Recovery, by what has happened. Each leaves time for a machine that is busy with other plans.
const (
	retryBound   = 10 * time.Second // one or two requests failed, or were late: retries are due after 0.1 and 0.2 s
	restartBound = 15 * time.Second // the operator was killed, as by all faults of age: the next one lists everything
	backoffBound = 20 * time.Second // more requests failed: after a storm of 10 s, a retry may be due after 12.8 s
	standbyBound = 45 * time.Second // a lease expires after 15 s, and a standby looks every 2 to 4.4 s
	outageBound  = 45 * time.Second // Kubernetes' controllers have to recover, too
)

// RecoveryBound returns the bound of a run's recovery.
func RecoveryBound(run *Run) time.Duration {
	most, hit := retryBound, 0
	if !run.AwayTo.IsZero() {
		most = outageBound
	}
	for i := range run.Requests {
		request := &run.Requests[i]
		if request.Rule > 0 {
			hit++
		}
		switch {
		case hasFault(request, proxy.Freeze, proxy.CutOff):
			most = max(most, standbyBound)
		case hasFault(request, proxy.KillBefore, proxy.KillAfter, proxy.Age, proxy.AgeMore, proxy.AgeChildren):
			most = max(most, restartBound)
		}
	}
	if hit > 2 {
		most = max(most, backoffBound)
	}
	return most
}

// recovery finds recoveries that take longer than their bound. Where everything waited for the garbage collector after
// an outage, only the operator's part counts: until its last write.
func recovery(run *Run, reference *Reference) []string {
	steps, what := run.Steps, "everything had settled"
	if _, waited := Collected(run); waited {
		steps, what = untilLastWrite(run), "the operator had written everything"
	}
	late, ok := lateness(run, reference, steps)
	bound := RecoveryBound(run)
	var found problems
	found.addIf(ok && late > bound, "%s %.1f s later than without faults; the bound is %s", what, late.Seconds(), bound)
	return found
}

// untilLastWrite returns the steps of a run, each over when the operator has sent its last write other than an event.
func untilLastWrite(run *Run) []Step {
	steps := slices.Clone(run.Steps)
	for n, step := range steps {
		last := step.Began
		for _, request := range run.Requests[:run.Rest] {
			if isWrite(&request) && request.Resource != eventResource && request.At.Before(step.Settled) {
				last = latest(last, request.At)
			}
		}
		steps[n].Settled = last
	}
	return steps
}

// Recovery returns how much later than without faults a step of a run was over, counted from the end of its last fault:
// the most of all steps with faults; ok is false if there are none.
func Recovery(run *Run, reference *Reference) (late time.Duration, ok bool) {
	return lateness(run, reference, run.Steps)
}

// lateness is as Recovery, with other times at which the steps of the run were over.
func lateness(run *Run, reference *Reference, steps []Step) (late time.Duration, ok bool) {
	if reference == nil || len(steps) == 0 || len(reference.Lasted) < len(steps) {
		return 0, false
	}
	over := make([]time.Time, len(steps)) // when the last fault of each step was over
	for i := range run.Requests[:run.Rest] {
		request := &run.Requests[i]
		if request.Rule == 0 {
			continue
		}
		n := 0
		for n+1 < len(steps) && !request.At.Before(steps[n+1].Began) {
			n++
		}
		over[n] = latest(over[n], latest(request.At.Add(request.Fault.For), run.AwayTo))
	}
	for n, step := range steps {
		if !over[n].IsZero() {
			late, ok = max(late, step.Settled.Sub(latest(over[n], step.Began.Add(reference.Lasted[n])))), true
		}
	}
	return late, ok
}

// Collected returns how long after an outage, or the later deletion of its owner, the last object was gone that
// Kubernetes' garbage collector deleted after the outage, such as a ReplicaSet; ok is false if there was none.
func Collected(run *Run) (took time.Duration, ok bool) {
	deleted := map[types.UID]time.Time{}
	for _, version := range run.Versions {
		if version.IsGone {
			deleted[version.Object.GetUID()] = version.At
		}
	}
	for _, version := range run.Versions {
		if !version.IsGone || run.AwayTo.IsZero() || version.At.Before(run.AwayTo) {
			continue
		}
		for _, owner := range version.Object.GetOwnerReferences() {
			if at, isDeleted := deleted[owner.UID]; isDeleted {
				took, ok = max(took, version.At.Sub(latest(at, run.AwayTo))), true
			}
		}
	}
	return took, ok
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
