package cronjob

import (
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// past is what a pass knows of the past of a CronJob. The table in doc.go lists the sources.
type past struct {
	// counting is the schedule and the time after which its times count.
	counting counting
	// ran is the latest time that a Job was created for, by any manager; zero if none is known.
	ran time.Time
	// accounted is the time up to which the status, or this manager's memory, accounts for all times: they ran, were
	// skipped, or did not count.
	accounted time.Time
	// firstRun is the first time after accounted that has a Job; zero if none has.
	firstRun time.Time
	// aloneSince is the time since which no other manager can have created a Job; zero if that is not known.
	aloneSince time.Time
}

// pastOf merges what the status, the names of the Jobs, this manager's memory and the stall detector know. The Jobs are
// those that the cache lists and those that it does not show yet (see [unlisted]).
func pastOf(cj *tutorialv1.CronJob, jobs []*batchv1.Job, known remembered, aloneSince, now time.Time) past {
	p := past{counting: countingNow(cj, known, now), aloneSince: aloneSince}
	p.ran = latest(timeOf(cj.Status.LastScheduleTime), known.ran)
	p.accounted = latest(p.counting.since, p.ran, timeOf(cj.Status.LastMissedTime), known.missed.last)
	for _, job := range jobs {
		scheduled, ok := scheduledTime(cj.Name, job.Name)
		if !ok || scheduled.After(now) {
			continue // a Job named for a future time proves nothing
		}
		p.ran = latest(p.ran, scheduled)
		if scheduled.After(p.accounted) {
			p.firstRun = sooner(p.firstRun, scheduled)
		}
	}
	return p
}

// counting is the time after which the times of a schedule count; zero while it is suspended.
type counting struct {
	since              time.Time
	schedule, timeZone string
}

// countingOf returns the counting that a status records.
func countingOf(recorded *tutorialv1.CronJobStatus) counting {
	return counting{since: timeOf(recorded.ScheduledSince), schedule: recorded.ObservedSchedule,
		timeZone: recorded.ObservedTimeZone}
}

// countingNow returns the counting for the current spec. After a change of the schedule or the end of a suspension,
// only times from now on count, and likewise if the spec was changed before the first pass.
func countingNow(cj *tutorialv1.CronJob, known remembered, now time.Time) counting {
	before := countingOf(&cj.Status)
	if known.counting != (counting{}) {
		before = known.counting
	}
	present := counting{since: before.since, schedule: cj.Spec.Schedule, timeZone: ptr.Deref(cj.Spec.TimeZone, "")}
	switch {
	case ptr.Deref(cj.Spec.Suspend, false):
		present.since = time.Time{}
	case before.schedule == "" && cj.Generation <= 1:
		present.since = cj.CreationTimestamp.UTC()
	case before.since.IsZero(), before.schedule != present.schedule, before.timeZone != present.timeZone:
		present.since = now.UTC().Truncate(time.Second)
	}
	return present
}

// unlisted returns the active Jobs in the status, and the last Job that this manager created, as far as they are not
// among jobs.
func unlisted(cj *tutorialv1.CronJob, known remembered, jobs []*batchv1.Job) []corev1.ObjectReference {
	references := slices.Clone(cj.Status.Active)
	isActive := func(reference corev1.ObjectReference) bool { return reference.UID == known.created.UID }
	if known.created.UID != "" && !slices.ContainsFunc(references, isActive) {
		references = append(references, known.created)
	}
	return slices.DeleteFunc(references, func(reference corev1.ObjectReference) bool {
		return slices.ContainsFunc(jobs, func(job *batchv1.Job) bool { return job.UID == reference.UID })
	})
}

// remembered is what passes have decided and done, until the cache shows a status that records it: that status may not
// be written yet, or the cache may be behind.
type remembered struct {
	counting counting
	// ran is the latest time that a Job was created for, by any manager.
	ran time.Time
	// created is the last Job that this manager created.
	created corev1.ObjectReference
	// missed are the times that were skipped.
	missed missed
	// isUnrecorded reports whether a run or a missed time is in no stored status yet.
	isUnrecorded bool
}

// memory is what is remembered of each CronJob. It is safe for concurrent use; the zero value is ready. The entry of a
// CronJob that is deleted during a pass is never removed, which costs a few bytes.
type memory struct {
	mu    sync.Mutex
	byUID map[types.UID]remembered
}

// of returns what is remembered of a CronJob, and drops it once the cached copy shows all of it.
func (m *memory) of(cached *tutorialv1.CronJob) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.byUID[cached.UID]
	if ok && !known.isUnrecorded && known.counting == countingOf(&cached.Status) &&
		!known.ran.After(timeOf(cached.Status.LastScheduleTime)) &&
		!known.missed.last.After(timeOf(cached.Status.LastMissedTime)) {
		delete(m.byUID, cached.UID)
		return remembered{}
	}
	return known
}

// noteDecision remembers what a plan decides before it is carried out, unless the status records it already, and
// returns all that is remembered.
func (m *memory) noteDecision(cj *tutorialv1.CronJob, known remembered, p plan) remembered {
	hasRun := p.ran.After(latest(known.ran, timeOf(cj.Status.LastScheduleTime)))
	if known == (remembered{}) && p.counting == countingOf(&cj.Status) && !hasRun && !p.missed.late {
		return known
	}
	return m.change(cj.UID, func(known *remembered) {
		known.counting = p.counting
		known.ran = latest(known.ran, p.ran)
		known.missed = known.missed.and(p.skipped)
		if p.missed.late {
			known.missed = known.missed.and(p.missed)
		}
		known.isUnrecorded = known.isUnrecorded || hasRun || p.missed.late
	})
}

// noteRun remembers that the Job for a plan's run exists, and returns all that is remembered.
func (m *memory) noteRun(uid types.UID, p plan, created corev1.ObjectReference) remembered {
	return m.change(uid, func(known *remembered) {
		known.ran, known.created = p.run, created
		known.missed = known.missed.and(p.missed)
		known.isUnrecorded = true
	})
}

// noteStatus remembers that a stored status records all that is remembered.
func (m *memory) noteStatus(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.byUID[uid]; ok {
		known.missed.count, known.isUnrecorded = 0, false
		m.byUID[uid] = known
	}
}

func (m *memory) change(uid types.UID, change func(*remembered)) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byUID == nil {
		m.byUID = map[types.UID]remembered{}
	}
	known := m.byUID[uid]
	change(&known)
	m.byUID[uid] = known
	return known
}

// forget drops what is remembered of a CronJob that is deleted.
func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byUID, uid)
}
