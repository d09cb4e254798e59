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
// seconds, and after which no status reported an error. Where a resource is degraded already, a further problem that a
// retry solves at once is not reported.
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
		isError := degraded.Reason == samplev1alpha1.ReasonError && len(faulty) == 1
		// The reason is that of the worst problem.
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

// failedForLong reports whether all faulty requests are of the same sort and of passes, and failed for at least 2 s. A
// conflict is no problem to report: another writer caused it.
func failedForLong(faulty []proxy.Request) bool {
	for i := range faulty {
		if !hasFault(&faulty[i], proxy.Refuse) || faulty[i].Fault.Code == http.StatusConflict || !hasFailed(&faulty[i]) ||
			faulty[i].Resource != faulty[0].Resource {
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
