package proxy

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"
)

// streams are the watches that go through a proxy, and what is wrong with all of them. They are safe for concurrent
// use.
type streams struct {
	mu          sync.Mutex
	open        map[*stream]bool // whether it has begun
	latest      time.Time        // when the last one has
	watched     map[string]bool  // resources of which there has been one that has begun
	pausedUntil time.Time
	lateUntil   time.Time         // for watches of late resources
	late        func(string) bool // nil for none
	expired     map[string]bool   // resources whose next watch is answered with 410
	// the resource version of the world that is served instead of the present one; empty for none
	old    string
	oldFor time.Duration
}

type stream struct {
	resource string
	cancel   context.CancelFunc
}

// pause has all watches stand still.
func (s *streams) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pausedUntil = time.Now().Add(d)
}

// close ends all watches.
func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.open {
		stream.cancel()
	}
}

// shortWatch is how long a watch lasts at least with which client-go goes on: after a shorter one it lists anew.
const shortWatch = 1100 * time.Millisecond

// shortFor returns for how long there is a watch that client-go would not go on with.
func (s *streams) shortFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.latest.Add(shortWatch))
}

// expire ends all watches and has the next ones fail, so that the operator has to list again.
func (s *streams) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.open {
		s.expired[stream.resource] = true
		stream.cancel()
	}
}

// behind is how much longer the watches of late resources stand still.
const behind = 500 * time.Millisecond

// serveOld has lists that may be old show the world of a resource version, and watches go on from there only some time
// after the first such list, those of late resources last.
func (s *streams) serveOld(version string, d time.Duration, late func(resource string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old, s.oldFor, s.late = version, d, late
}

// age rewrites a list that may be old while the old world is served, and tells whether it has. One that asks for no
// resource version may not be: the API server promises the present then.
func (s *streams) age(r *http.Request) bool {
	query := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.old == "" || query.Get("resourceVersion") != "0" {
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

// areCalm tells whether all that was watched is, watches flow, and the present world is served.
func (s *streams) areCalm() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := maps.Clone(s.watched)
	for stream, hasBegun := range s.open {
		if hasBegun {
			delete(missing, stream.resource)
		}
	}
	return len(missing) == 0 && time.Now().After(s.pausedUntil) && time.Now().After(s.lateUntil) &&
		(s.old == "" || s.oldFor == 0)
}

// refusal returns with which code a watch is to be refused; 0 for not at all.
func (s *streams) refusal(r *http.Request, resource string) int {
	isList := r.URL.Query().Get("sendInitialEvents") == "true"
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case isList && s.old != "" && (s.oldFor > 0 || time.Now().Before(s.pausedUntil)):
		return http.StatusUnprocessableEntity // then it lists, which can be rewritten
	case !isList && s.expired[resource]:
		delete(s.expired, resource)
		return http.StatusGone
	}
	return 0
}

// register notes a watch; the function returned notes its end.
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

// begin notes that the API server has agreed to a watch.
func (s *streams) begin(open *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[open], s.watched[open.resource], s.latest = true, true, time.Now()
}

// flow waits while watches of a resource stand still.
func (s *streams) flow(ctx context.Context, resource string) {
	for ctx.Err() == nil {
		s.mu.Lock()
		left := time.Until(s.pausedUntil)
		if s.late != nil && s.late(resource) {
			left = max(left, time.Until(s.lateUntil))
		}
		s.mu.Unlock()
		if left <= 0 {
			return
		}
		wait(ctx, left)
	}
}

// watch passes a watch on, event by event.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request, request *Request) {
	if code := p.streams.refusal(r, request.Resource); code != 0 {
		p.answered(request, code, nil)
		refuse(w, code, "the fault proxy says so")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	open := &stream{request.Resource, cancel}
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
