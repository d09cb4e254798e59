package proxy

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"
)

// streams are the open watches, and their faults. It is safe for concurrent use.
type streams struct {
	mu          sync.Mutex
	open        map[*stream]bool // whether it has begun
	latest      time.Time        // when the last one has begun
	watched     map[string]bool  // of which a watch has begun or was hit by a fault, see [Request.Watched]
	pausedUntil time.Time
	isFrozen    bool              // all are paused until the operator is resumed
	lateUntil   time.Time         // of watches of late resources
	late        func(string) bool // nil for none
	expired     map[string]bool   // of which the next watch is answered with 410, see [Request.Watched]
	// the resource version of the state that is served instead of the present one; empty for none
	old    string
	oldFor time.Duration
	isOld  func(resource string) bool // of which resources the old state is served
}

type stream struct {
	resource string
	watched  string // see [Request.Watched]
	cancel   context.CancelFunc
}

// pause pauses all watches.
func (s *streams) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pausedUntil = time.Now().Add(d)
}

// freeze pauses all watches until thaw is called.
func (s *streams) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isFrozen = true
}

// thaw resumes the watches that freeze has paused after some time.
func (s *streams) thaw(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isFrozen, s.pausedUntil = false, time.Now().Add(after)
}

// close ends all watches.
func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.open {
		stream.cancel()
	}
}

// shortWatch is the shortest watch that client-go resumes: after a shorter one it lists.
const shortWatch = 1100 * time.Millisecond

// shortFor returns how long the latest watch is too short to be resumed.
func (s *streams) shortFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.latest.Add(shortWatch))
}

// expire ends all watches and makes the next ones fail, so that the operator has to list.
func (s *streams) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireThose(func(string) bool { return true })
}

// expireThose does what expire does, for some resources. The caller holds the lock.
func (s *streams) expireThose(are func(resource string) bool) {
	for stream := range s.open {
		if are(stream.resource) {
			s.expired[stream.watched] = true
			stream.cancel()
		}
	}
}

// hide pauses the watches of some resources.
func (s *streams) hide(resources func(resource string) bool, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late, s.lateUntil = resources, time.Now().Add(d)
}

// miss ends the pause of hide, and expires the watches of these resources.
func (s *streams) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lateUntil = time.Time{}
	s.expireThose(s.late)
}

// behind is how much longer watches of late resources are paused.
const behind = 500 * time.Millisecond

// serveOld makes lists of some resources that may be old return the state of a resource version, and pauses watches for
// some time after the first such list, those of late resources longer.
func (s *streams) serveOld(version string, d time.Duration, isOld, late func(resource string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old, s.oldFor, s.isOld, s.late = version, d, isOld, late
}

// age rewrites a list while the old state is served, and reports whether it has. A list without a resource version may
// not be old.
func (s *streams) age(r *http.Request, resource string) bool {
	query := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.old == "" || query.Get("resourceVersion") != "0" || !s.isOld(resource) {
		return false
	}
	if s.pausedUntil.IsZero() || s.oldFor > 0 {
		s.pausedUntil, s.oldFor = time.Now().Add(s.oldFor), 0
		s.lateUntil = s.pausedUntil.Add(behind)
	}
	if time.Now().After(s.pausedUntil) {
		s.old = ""
		return false
	}
	query.Set("resourceVersion", s.old)
	query.Set("resourceVersionMatch", "Exact")
	query.Del("limit")
	r.URL.RawQuery = query.Encode()
	return true
}

// areCalm reports whether all watches are open again, none is paused, and the present state is served.
func (s *streams) areCalm() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := maps.Clone(s.watched)
	for stream, hasBegun := range s.open {
		if hasBegun {
			delete(missing, stream.watched)
		}
	}
	return len(missing) == 0 && time.Now().After(s.pausedUntil) && time.Now().After(s.lateUntil) &&
		(s.old == "" || s.oldFor == 0)
}

// refusal returns the code with which a watch is refused; 0 for none.
func (s *streams) refusal(r *http.Request, watched string) int {
	isList := r.URL.Query().Get("sendInitialEvents") == "true"
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case isList && s.old != "" && (s.oldFor > 0 || time.Now().Before(s.pausedUntil)):
		return http.StatusUnprocessableEntity // then the client sends a list, which can be rewritten
	case !isList && s.expired[watched]:
		delete(s.expired, watched)
		return http.StatusGone
	}
	return 0
}

// register records a watch; the function returned records its end.
func (s *streams) register(open *stream) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[open] = false
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, open)
	}
}

// expect records that the operator will open a watch again, since a fault hits this one.
func (s *streams) expect(watched string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched[watched] = true
}

// begin records that the API server has accepted a watch.
func (s *streams) begin(open *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[open], s.watched[open.watched], s.latest = true, true, time.Now()
}

// flow waits while watches of a resource are paused.
func (s *streams) flow(ctx context.Context, resource string) {
	for ctx.Err() == nil {
		s.mu.Lock()
		left := time.Until(s.pausedUntil)
		if s.late != nil && s.late(resource) {
			left = max(left, time.Until(s.lateUntil))
		}
		if s.isFrozen {
			left = max(left, 100*time.Millisecond) // until the next look
		}
		s.mu.Unlock()
		if left <= 0 {
			return
		}
		wait(ctx, left)
	}
}

// watch forwards a watch.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request, request *Request) {
	if code := p.streams.refusal(r, request.Watched()); code != 0 {
		p.answered(request, code, nil)
		refuse(w, code, FaultMessage)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	open := &stream{request.Resource, request.Watched(), cancel}
	defer p.streams.register(open)()
	answer, err := p.send(ctx, r, nil)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	p.answered(request, answer.StatusCode, nil)
	if answer.StatusCode == http.StatusOK {
		p.streams.begin(open)
	}
	reply(w, answer.StatusCode, answer.Header, nil)
	flusher := http.NewResponseController(w)
	buffer := make([]byte, 64<<10)
	for flusher.Flush() == nil {
		n, err := answer.Body.Read(buffer)
		p.streams.flow(ctx, request.Resource)
		if ctx.Err() != nil {
			break
		}
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			break
		}
	}
	_ = flusher.Flush()
}
