package oracle

import (
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// unreported finds requests of a pass, other than those for statuses and events, that had no answer or failed for
// seconds, and that no later status reports. Where a resource is degraded already, a further problem that a retry
// solves at once is not reported.
func unreported(run *Run, _ *Reference) []string {
	faulty := slices.DeleteFunc(slices.Clone(run.Requests), func(r proxy.Request) bool { return r.Fault == nil })
	if run.IsOpen || run.IsPassing || !hadNoAnswer(faulty) && !failedForLong(faulty) ||
		wereDegraded(run, faulty[0].At) {
		return nil
	}
	answer := "deadline exceeded"
	if !hasFault(&faulty[0], proxy.Hang) {
		answer = proxy.FaultMessage
	}
	isReport := func(version history.Version) bool {
		if !history.IsOwnKind(version.Resource) || !version.At.After(faulty[0].At) {
			return false
		}
		said := history.As[history.Reported](version.Object)
		degraded := said.Condition("Degraded")
		// Without an answer, the pass ends with one of several errors. The reason is that of the worst problem.
		isError := degraded.Reason == samplev1alpha1.ReasonError && len(faulty) == 1
		return said.Is("Degraded", metav1.ConditionTrue) && (isError || strings.Contains(degraded.Message, answer))
	}
	var found problems
	found.addIf(!slices.ContainsFunc(run.Versions, isReport), "no status reports what happened to %s", &faulty[0])
	return found
}

// hadNoAnswer reports whether the only faulty request is one of a pass that had no answer.
func hadNoAnswer(faulty []proxy.Request) bool {
	return len(faulty) == 1 && hasFault(&faulty[0], proxy.Hang) && hasFailed(&faulty[0])
}

// failedForLong reports whether all faulty requests are of passes, and one rule has refused them for at least 2 s.
// Conflicts, which another writer causes, and requests that are throttled, which client-go sends again, are no problems
// to report.
func failedForLong(faulty []proxy.Request) bool {
	for i := range faulty {
		request := &faulty[i]
		if request.Rule == 0 || request.Rule != faulty[0].Rule || !hasFailed(request) || !hasFault(request, proxy.Refuse) ||
			request.Fault.Code == http.StatusConflict || request.Fault.Code == http.StatusTooManyRequests {
			return false
		}
	}
	return len(faulty) > 0 && faulty[len(faulty)-1].At.Sub(faulty[0].At) >= 2*time.Second
}

// wereDegraded reports whether a resource was degraded at a time.
func wereDegraded(run *Run, at time.Time) bool {
	degraded := sets.New[types.UID]()
	for _, version := range run.Versions {
		if !history.IsOwnKind(version.Resource) || version.At.After(at) {
			continue
		}
		degraded.Delete(version.Object.GetUID())
		if history.As[history.Reported](version.Object).Is("Degraded", metav1.ConditionTrue) {
			degraded.Insert(version.Object.GetUID())
		}
	}
	return len(degraded) > 0
}
