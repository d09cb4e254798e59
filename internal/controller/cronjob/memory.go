package cronjob

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// remembered is what passes have decided and done, until the cache shows a status that says so: it may not be written
// yet, or the cache may be behind.
type remembered struct {
	// counting is after which time which schedule counts.
	counting counting
	// ran is the latest time that a Job was made for, by whomever; made is the Job that this manager has made last.
	ran  time.Time
	made corev1.ObjectReference
	// missed are the times that were given up.
	missed missed
	// isUntold tells whether there is a run, or a time that was given up, that has not been told.
	isUntold bool
}

// counting is the time after which the times of a schedule count; zero while it is suspended.
type counting struct {
	since              time.Time
	schedule, timeZone string
}

// countingOf returns what a status says of it.
func countingOf(told *tutorialv1.CronJobStatus) counting {
	return counting{since: timeOf(told.ScheduledSince), schedule: told.ObservedSchedule, timeZone: told.ObservedTimeZone}
}

// memory is what is remembered of which CronJob. It is safe for concurrent use; the zero value is ready. What is
// remembered of a CronJob that is deleted in the middle of a pass stays, which is a few bytes.
type memory struct {
	mu    sync.Mutex
	byUID map[types.UID]remembered
}

// of returns what is remembered of a CronJob, and forgets what the cached copy shows.
func (m *memory) of(cached *tutorialv1.CronJob) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.byUID[cached.UID]
	if ok && !known.isUntold && known.counting == countingOf(&cached.Status) &&
		!known.ran.After(timeOf(cached.Status.LastScheduleTime)) &&
		!known.missed.last.After(timeOf(cached.Status.LastMissedTime)) {
		delete(m.byUID, cached.UID)
		return remembered{}
	}
	return known
}

// decided notes what a plan says before anything is done, if it is news, and returns all that is remembered.
func (m *memory) decided(cj *tutorialv1.CronJob, known remembered, p plan) remembered {
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
		known.isUntold = known.isUntold || hasRun || p.missed.late
	})
}

// carriedOut notes that there is the Job of a plan's run, and returns all that is remembered.
func (m *memory) carriedOut(uid types.UID, p plan, made corev1.ObjectReference) remembered {
	return m.change(uid, func(known *remembered) {
		known.ran, known.made = p.run, made
		known.missed = known.missed.and(p.missed)
		known.isUntold = true
	})
}

// told notes that the status says all that is remembered.
func (m *memory) told(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.byUID[uid]; ok {
		known.missed.count, known.isUntold = 0, false
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

// forget drops what is remembered of a CronJob that is gone.
func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byUID, uid)
}
