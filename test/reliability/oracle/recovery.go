package oracle

import (
	"time"

	"github.com/example/memcached-operator/test/reliability/proxy"
)

// Bounds of Recovery: the operator retries after 100 ms, twice as long after each failure; a lease expires after 15 s,
// and a standby looks every 2 to 4.4 s. In an outage, Kubernetes' controllers have to recover, too: the timeout of a
// step is the only bound. Each bound leaves time for a machine that is busy with other plans.
const (
	retryBound   = 20 * time.Second
	standbyBound = 45 * time.Second
)

// recovery finds recoveries that take longer than their bound.
func recovery(run *Run, reference *Reference) []string {
	late, ok := Recovery(run, reference)
	if !ok || !run.AwayTo.IsZero() {
		return nil
	}
	bound := retryBound
	for i := range run.Requests {
		if hasFault(&run.Requests[i], proxy.Freeze, proxy.CutOff) {
			bound = standbyBound
		}
	}
	var found problems
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
		end := request.At.Add(request.Fault.For)
		if run.AwayTo.After(end) {
			end = run.AwayTo
		}
		over[n] = latest(over[n], end)
	}
	for n, step := range run.Steps {
		if !over[n].IsZero() {
			late, ok = max(late, step.Settled.Sub(latest(over[n], step.Began.Add(reference.Lasted[n])))), true
		}
	}
	return late, ok
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
