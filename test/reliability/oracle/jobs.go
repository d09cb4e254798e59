package oracle

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/reliability/history"
)

// oncePerTick finds scheduled times that a CronJob has run more than once. A Job that is created late for a deleted
// CronJob does not count: the creation cannot be taken back, and the garbage collector deletes the Job.
func oncePerTick(run *Run, _ *Reference) []string {
	jobs, deleted := map[string]sets.Set[types.UID]{}, sets.New[types.UID]()
	for _, version := range run.Versions {
		if version.Resource == history.CronJobs && version.IsGone {
			deleted.Insert(version.Object.GetUID())
		}
		controller := metav1.GetControllerOfNoCopy(version.Object)
		if version.Resource != history.Jobs || controller == nil || controller.Kind != "CronJob" ||
			deleted.Has(controller.UID) {
			continue
		}
		tick := string(controller.UID) + " " + version.Object.GetAnnotations()[tutorialv1.ScheduledAtAnnotation]
		if jobs[tick] == nil {
			jobs[tick] = sets.New[types.UID]()
		}
		jobs[tick].Insert(version.Object.GetUID())
	}
	var found problems
	for tick, uids := range jobs {
		found.addIf(len(uids) > 1, "CronJob and scheduled time %s have %d Jobs", tick, len(uids))
	}
	return found
}

// latestTick finds Jobs that the operator has created for a scheduled time after a later one had passed: of missed
// runs, only the latest is started.
func latestTick(run *Run, _ *Reference) []string {
	created := sets.New[string]() // by UID
	for i := range run.Requests {
		if request := &run.Requests[i]; request.Resource == history.Jobs && request.IsCreation() {
			created.Insert(request.AnsweredUID)
		}
	}
	var found problems
	for _, version := range run.Versions {
		uid := string(version.Object.GetUID())
		if version.Resource != history.Jobs || !created.Has(uid) {
			continue
		}
		created.Delete(uid) // only the first version
		tick, at := version.Object.GetAnnotations()[tutorialv1.ScheduledAtAnnotation], version.Object.GetCreationTimestamp()
		for name, later := range run.Symbols {
			found.addIf(tick < later.Format(time.RFC3339) && later.Before(at.Time),
				"Job %s was created for %s after %s (%s)", version.Name, tick, name, later)
		}
	}
	return found
}

// oneAtATime finds Jobs that are active at the same time against the concurrencyPolicy of their CronJob.
func oneAtATime(run *Run, _ *Reference) []string {
	policies := map[types.UID]tutorialv1.ConcurrencyPolicy{}
	active := map[types.UID]sets.Set[string]{}
	var found problems
	for _, version := range run.Versions {
		if version.Resource == history.CronJobs {
			policies[version.Object.GetUID()] = history.As[tutorialv1.CronJob](version.Object).Spec.ConcurrencyPolicy
		}
		owner := controllerOf(version.Object)
		if version.Resource != history.Jobs || owner == "" {
			continue
		}
		if active[owner] == nil {
			active[owner] = sets.New[string]()
		}
		jobs, policy := active[owner], policies[owner]
		if version.IsGone || jobstate.IsFinished(history.As[batchv1.Job](version.Object)) {
			jobs.Delete(version.Name)
		} else {
			jobs.Insert(version.Name)
		}
		found.addIf(len(jobs) > 1 && (policy == tutorialv1.ForbidConcurrent || policy == tutorialv1.ReplaceConcurrent),
			"%d Jobs are active at the same time, and concurrencyPolicy is %s: %s", len(jobs), policy,
			strings.Join(sets.List(jobs), ", "))
	}
	return found
}
