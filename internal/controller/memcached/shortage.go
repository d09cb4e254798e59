package memcached

import (
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// shortage is the time in which a StatefulSet has had fewer pods than it should have; the zero value if it has enough.
// Nothing in the cluster records it: StatefulSets have no conditions, and only events contain the error.
type shortage struct {
	since time.Time
	// message is what an event says about it; "" if there is none.
	message string
}

func (s shortage) isKnown() bool { return !s.since.IsZero() }

func (s shortage) lasts(now time.Time) time.Duration { return now.Sub(s.since) }

// cause returns why pods are missing, or the command that shows it.
func (s shortage) cause(set *appsv1.StatefulSet) string {
	if s.message != "" {
		return s.message
	}
	return fmt.Sprintf("see kubectl -n %s describe statefulset %s", set.Namespace, set.Name)
}

// shortages remembers the shortages of all StatefulSets, by UID. It is safe for concurrent use.
type shortages struct {
	mu    sync.Mutex
	known map[types.UID]*rememberedShortage
}

type rememberedShortage struct {
	shortage
	observed, read time.Time // when it was last observed, and when its cause was last read
}

// note records whether a StatefulSet has fewer pods than it should have. If shouldRead is true, the cause is to be read
// and recorded with [shortages.noteCause]: at the end of the first minute, and then once a minute.
func (s *shortages) note(uid types.UID, isShort bool, now time.Time) (found shortage, shouldRead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isShort {
		delete(s.known, uid)
		return shortage{}, false
	}
	if s.known == nil {
		s.known = map[types.UID]*rememberedShortage{}
	}
	entry := s.known[uid]
	if entry == nil {
		s.sweep(now)
		entry = &rememberedShortage{shortage: shortage{since: now}, read: now}
		s.known[uid] = entry
	}
	entry.observed = now
	shouldRead = now.Sub(entry.read) >= shortageAfter
	if shouldRead {
		entry.read = now
	}
	return entry.shortage, shouldRead
}

// noteCause records the cause of a shortage and returns the shortage.
func (s *shortages) noteCause(uid types.UID, message string) shortage {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := s.known[uid]
	if entry == nil {
		return shortage{}
	}
	entry.message = message
	return entry.shortage
}

// sweep drops what is remembered of StatefulSets that were deleted: a shortage that lasts is observed once a minute.
func (s *shortages) sweep(now time.Time) {
	for uid, entry := range s.known {
		if now.Sub(entry.observed) > 10*shortageAfter {
			delete(s.known, uid)
		}
	}
}
