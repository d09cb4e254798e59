package oracle

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/example/memcached-operator/test/reliability/history"
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

// recovery finds recoveries that take longer than their bound. Those that wait for the garbage collector after an
// outage have none.
func recovery(run *Run, reference *Reference) []string {
	late, ok := Recovery(run, reference)
	if _, waited := Collected(run); waited || !ok {
		return nil
	}
	var found problems
	bound := RecoveryBound(run)
	found.addIf(late > bound, "everything had settled %.1f s later than without faults; the bound is %s", late.Seconds(),
		bound)
	return found
}

// Recovery returns how much later than without faults a step of a run was over, counted from the end of its last fault:
// the most of all steps with faults; ok is false if there are none.
func Recovery(run *Run, reference *Reference) (late time.Duration, ok bool) {
	if reference == nil || len(run.Steps) == 0 || len(reference.Lasted) < len(run.Steps) {
		return 0, false
	}
	over := make([]time.Time, len(run.Steps)) // when the last fault of each step was over
	for i := range run.Requests[:run.Rest] {
		request := &run.Requests[i]
		if request.Rule == 0 {
			continue
		}
		n := 0
		for n+1 < len(run.Steps) && !request.At.Before(run.Steps[n+1].Began) {
			n++
		}
		over[n] = latest(over[n], latest(request.At.Add(request.Fault.For), run.AwayTo))
	}
	for n, step := range run.Steps {
		if !over[n].IsZero() {
			late, ok = max(late, step.Settled.Sub(latest(over[n], step.Began.Add(reference.Lasted[n])))), true
		}
	}
	return late, ok
}

// Collected returns how long after an outage, or the later deletion of its owner, the last child was gone that
// Kubernetes' garbage collector deleted after the outage; ok is false if there was none.
func Collected(run *Run) (took time.Duration, ok bool) {
	deleted := map[types.UID]time.Time{}
	for _, version := range run.Versions {
		if version.IsGone && history.IsOwnKind(version.Resource) {
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
