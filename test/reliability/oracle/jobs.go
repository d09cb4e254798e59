package oracle

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/reliability/history"
)

// oncePerTick finds times that a CronJob has run more than once, ever. A Job of a CronJob that is gone runs for nobody:
// a creation that arrives late cannot be taken back, and the garbage collector takes the Job away.
func oncePerTick(run *Run, _ *Reference) []string {
	made, gone := map[string]map[types.UID]bool{}, map[types.UID]bool{}
	for _, version := range run.Versions {
		if version.Resource == history.CronJobs && version.IsGone {
			gone[version.Object.GetUID()] = true
		}
		controller := metav1.GetControllerOf(version.Object)
		if version.Resource != history.Jobs || controller == nil || controller.Kind != "CronJob" || gone[controller.UID] {
			continue
		}
		tick := string(controller.UID) + " " + version.Object.GetAnnotations()[tutorialv1.ScheduledAtAnnotation]
		if made[tick] == nil {
			made[tick] = map[types.UID]bool{}
		}
		made[tick][version.Object.GetUID()] = true
	}
	var found []string
	for tick, of := range made {
		if len(of) > 1 {
			found = append(found, fmt.Sprintf("CronJob and tick %s have %d Jobs", tick, len(of)))
		}
	}
	return found
}

// latestTick finds Jobs that the operator has made for a time of a CronJob when a later one had passed: of those that
// were missed, only the latest is run.
func latestTick(run *Run, _ *Reference) []string {
	made := map[string]bool{} // by UID
	for i := range run.Requests {
		if request := &run.Requests[i]; request.Resource == history.Jobs && request.IsCreation() {
			made[request.AnsweredUID] = true
		}
	}
	var found []string
	for _, version := range run.Versions {
		if uid := string(version.Object.GetUID()); version.Resource == history.Jobs && made[uid] {
			delete(made, uid)
			tick, at := version.Object.GetAnnotations()[tutorialv1.ScheduledAtAnnotation], version.Object.GetCreationTimestamp()
			for name, later := range run.Symbols {
				if tick < later.Format(time.RFC3339) && later.Before(at.Time) {
					found = append(found, fmt.Sprintf("Job %s was made for %s when %s (%s) had passed", version.Name, tick, name,
						later.Format(time.RFC3339)))
				}
			}
		}
	}
	return found
}

// oneAtATime finds Jobs of a CronJob that go on at the same time where they must not.
func oneAtATime(run *Run, _ *Reference) []string {
	policies := map[types.UID]tutorialv1.ConcurrencyPolicy{}
	going := map[types.UID]map[string]bool{}
	var found []string
	for _, version := range run.Versions {
		if version.Resource == history.CronJobs {
			policies[version.Object.GetUID()] = history.As[tutorialv1.CronJob](version.Object).Spec.ConcurrencyPolicy
		}
		controller := metav1.GetControllerOf(version.Object)
		if version.Resource != history.Jobs || controller == nil {
			continue
		}
		active := going[controller.UID]
		if active == nil {
			active = map[string]bool{}
			going[controller.UID] = active
		}
		if version.IsGone || jobstate.IsFinished(history.As[batchv1.Job](version.Object)) {
			delete(active, version.Name)
		} else {
			active[version.Name] = true
		}
		if policy := policies[controller.UID]; len(active) > 1 && (policy == tutorialv1.ForbidConcurrent ||
			policy == tutorialv1.ReplaceConcurrent) {
			found = append(found, fmt.Sprintf("%d Jobs go on at the same time, and concurrencyPolicy is %s: %s",
				len(active), policy, strings.Join(sortedKeys(active), ", ")))
		}
	}
	return found
}
