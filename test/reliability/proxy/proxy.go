// Package proxy stands between the operator and the API server, and has requests go wrong as it is told.
//
// It speaks TLS on both sides and passes the operator's bearer token on, so that the API server sees the operator as
// who it is. Which request goes wrong is counted here and not in the operator, whose code knows nothing of it: so the
// count goes on when the operator is killed and started again.
package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Proxy is one at work. It is safe for concurrent use.
type Proxy struct {
	// URL is where it listens, and CA what has signed its certificate.
	URL string
	CA  []byte

	options   Options
	server    *http.Server
	transport *http.Transport
	end       context.CancelFunc

	mu         sync.Mutex
	rules      []*counted
	chance     *rand.Rand
	requests   []*Request
	writes     int
	underWay   int // requests that will be answered, but for watches
	remembered string
	streams    streams
	retried    time.Time // when the operator has tried again whatever it was told to try later
	released   chan struct{}
	isCutOff   bool // nothing arrives
}

// Options are what a proxy has to know.
type Options struct {
	// Server is the API server's URL, and TLS how to reach it.
	Server string
	TLS    *tls.Config
	// Seed is for the rules that go by chance.
	Seed uint64
	// Kill kills the operator. It is called from within a request, and must not wait for the end of it.
	Kill func()
	// Freeze has the operator stand still. It is called likewise; nil if there is no such fault.
	Freeze func()
	// Await waits until a part of the control plane is away. It is false if that has happened before. It is called
	// likewise; nil if there are no such faults.
	Await func() bool
	// IsOwn tells whether a resource is one of the operator's own kinds; nil if that does not matter.
	IsOwn func(resource string) bool
	// Version returns the latest resource version that is known.
	Version func() string
}

// Start starts a proxy.
func Start(options Options) (*Proxy, error) {
	serving, err := certificate()
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the proxy: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	p := &Proxy{
		URL:       "https://" + listener.Addr().String(),
		CA:        serving.authority,
		options:   options,
		transport: &http.Transport{TLSClientConfig: options.TLS.Clone(), ForceAttemptHTTP2: true, DisableCompression: true},
		end:       end,
		chance:    rand.New(rand.NewPCG(options.Seed, 0)),
		streams:   streams{open: map[*stream]bool{}, watched: map[string]bool{}, expired: map[string]bool{}},
		released:  make(chan struct{}),
	}
	p.server = &http.Server{
		Handler:     p,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{serving.certificate}, MinVersion: tls.VersionTLS12},
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // of connections that were broken on purpose
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// Stop ends the proxy and all that goes through it.
func (p *Proxy) Stop() {
	p.end()
	_ = p.server.Close()
	p.transport.CloseIdleConnections()
}

// SetRules has requests go wrong from now on as these rules say, and no others. Of those that fit, the first counts.
func (p *Proxy) SetRules(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
	for _, rule := range rules {
		p.rules = append(p.rules, &counted{Rule: rule})
	}
}

// Remember keeps the world as it is now for AgeMore.
func (p *Proxy) Remember() {
	version := p.options.Version()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remembered = version
}

// Requests returns copies of all requests so far, in the order in which they came.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	requests := make([]Request, len(p.requests))
	for i, request := range p.requests {
		requests[i] = *request
	}
	return requests
}

// Writes returns how many writes there were so far, but for those of leases: who leads writes one every two seconds.
func (p *Proxy) Writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// Release has requests be carried out that Freeze holds back, and arrive again after CutOff. It is called once.
func (p *Proxy) Release() {
	p.mu.Lock()
	p.isCutOff = false
	p.mu.Unlock()
	close(p.released)
}

// IsCalm tells whether nothing that has gone wrong goes on: what was watched is watched again, no watch stands still,
// no old world is served, nothing is to be tried later, and no answer is waited for. What is cut off has nothing to
// wait for.
func (p *Proxy) IsCalm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isCutOff || p.underWay == 0 && p.streams.areCalm() && time.Now().After(p.retried)
}

// begin records a request, and returns what is to go wrong with it.
func (p *Proxy) begin(request *Request) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, request)
	if request.IsWrite() && request.Resource != Leases {
		p.writes++
	}
	for i, rule := range p.rules {
		if rule.applies(request, p.chance) && request.Fault == nil {
			fault := rule.Fault
			request.Fault, request.Rule = &fault, i+1
			p.isCutOff = p.isCutOff || fault.Kind == CutOff
		}
	}
	if p.isCutOff {
		request.Fault = &Fault{Kind: CutOff}
	}
	return request.Fault
}

// ServeHTTP passes a request on, or does not.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the operator is gone
	}
	request, err := read(r, body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if fault := p.begin(request); fault != nil {
		p.goWrong(w, r, body, request, *fault)
		return
	}
	p.pass(w, r, body, request)
}

// pass passes a request on, and its answer back.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, body []byte, request *Request) {
	if request.Verb == "watch" {
		p.watch(w, r, request)
		return
	}
	defer p.answering()()
	if request.Verb == "list" && p.streams.age(r) {
		p.note(request, &Fault{Kind: Age})
	}
	status, header, content := p.forward(r, body, request)
	reply(w, status, header, content)
}

// answering notes a request that is waited for; the function returned notes its end.
func (p *Proxy) answering() func() {
	p.add(1)
	return func() { p.add(-1) }
}

func (p *Proxy) add(requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay += requests
}

// goWrong does to a request what its fault says.
func (p *Proxy) goWrong(w http.ResponseWriter, r *http.Request, body []byte, request *Request, fault Fault) {
	switch fault.Kind {
	case KillBefore:
		p.options.Kill()
		panic(http.ErrAbortHandler)
	case Refuse:
		p.expectRetry(fault.Code)
		refuse(w, fault.Code, "the fault proxy says so")
	case Hang:
		wait(r.Context(), fault.For)
		panic(http.ErrAbortHandler)
	case CutOff:
		p.streams.close()
		panic(http.ErrAbortHandler)
	case KillAfter, Age, AgeMore:
		version := p.before(fault.Kind)
		p.forward(r, body, request)
		if version != "" {
			p.streams.serveOld(version, fault.For, p.late(fault.Kind))
		}
		p.options.Kill()
		panic(http.ErrAbortHandler)
	case ServerAway, EtcdAway:
		p.await(request)
		p.pass(w, r, body, request)
	case ServerAwayAfter:
		if request.Verb == "watch" { // its answer has no end
			p.await(request)
			p.pass(w, r, body, request)
			return
		}
		status, header, content := p.forward(r, body, request)
		if p.await(request) {
			panic(http.ErrAbortHandler)
		}
		reply(w, status, header, content)
	case DropAnswer:
		p.carryOut(r, body, request)
		panic(http.ErrAbortHandler)
	case Disown:
		p.carryOut(r, body, request)
		refuse(w, fault.Code, "the fault proxy says so")
	case Delay:
		defer p.answering()()
		wait(r.Context(), fault.For)
		p.pass(w, r, body, request)
	default:
		p.disturb(r.Context(), fault)
		p.pass(w, r, body, request)
	}
}

// await waits until a part of the control plane is away. It is false where it has been away before: nothing goes wrong
// with the request then.
func (p *Proxy) await(request *Request) bool {
	if p.options.Await() {
		return true
	}
	p.note(request, nil)
	return false
}

// note records what goes wrong with a request by no rule; nil for nothing.
func (p *Proxy) note(request *Request, fault *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	request.Fault, request.Rule = fault, 0
}

// before returns the resource version of the world that the next operator is served first; empty if that is the present
// one.
func (p *Proxy) before(kind Kind) string {
	switch kind {
	case Age:
		return p.options.Version()
	case AgeMore:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.remembered
	}
	return ""
}

// late returns which resources an operator that is served an old world learns of last: of its own kinds after Remember,
// and of what it makes of them otherwise.
func (p *Proxy) late(kind Kind) func(resource string) bool {
	return func(resource string) bool {
		return p.options.IsOwn != nil && p.options.IsOwn(resource) == (kind == AgeMore)
	}
}

// disturb does what goes wrong just before a request that is then carried out and answered.
func (p *Proxy) disturb(ctx context.Context, fault Fault) {
	switch fault.Kind {
	case Freeze:
		p.options.Freeze()
		select {
		case <-p.released:
		case <-ctx.Done():
		}
	case PauseWatches:
		p.streams.pause(fault.For)
	case CloseWatches:
		p.streams.close()
	case ExpireWatches:
		wait(ctx, p.streams.shortFor())
		p.streams.expire()
	}
}

// carryOut has the API server carry out a request whose answer nobody is told. That of a watch has no end, and is
// nothing without it.
func (p *Proxy) carryOut(r *http.Request, body []byte, request *Request) {
	if request.Verb != "watch" {
		p.forward(r, body, request)
	}
}

// forward has the API server carry out a request and records what it answers. Where the operator does not wait for the
// answer any more, as it has been killed, it is carried out all the same.
func (p *Proxy) forward(r *http.Request, body []byte, request *Request) (status int, header http.Header,
	content []byte) {
	answer, err := p.send(context.WithoutCancel(r.Context()), r, body)
	if err != nil {
		panic(http.ErrAbortHandler) // as if the API server had done so itself
	}
	defer answer.Body.Close()
	content, err = io.ReadAll(answer.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p.answered(request, answer.StatusCode, content)
	return answer.StatusCode, answer.Header, content
}

func (p *Proxy) answered(request *Request, status int, content []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	request.Status = status
	if request.IsWrite() && request.IsDone() {
		if object := metaOf(content); object != nil {
			request.AnsweredUID, request.AnsweredRV = string(object.GetUID()), object.GetResourceVersion()
		}
	}
}

// send sends a request to the API server.
func (p *Proxy) send(ctx context.Context, r *http.Request, body []byte) (*http.Response, error) {
	onward, err := http.NewRequestWithContext(ctx, r.Method, strings.TrimSuffix(p.options.Server, "/")+r.URL.RequestURI(),
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	onward.Header = r.Header.Clone()
	onward.Header.Del("Accept-Encoding") // so that answers can be read
	return p.transport.RoundTrip(onward)
}

// reply gives an answer of the API server back.
func reply(w http.ResponseWriter, status int, header http.Header, content []byte) {
	for name, values := range header {
		if name != "Content-Length" {
			w.Header()[name] = slices.Clone(values)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(content) // or the operator is gone
}

// expectRetry notes that the operator was told to try again later, if it was.
func (p *Proxy) expectRetry(code int) {
	if code != http.StatusTooManyRequests {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retried = time.Now().Add(2 * retryAfter)
}

// retryAfter is when an operator is told to try again that asks too much.
const retryAfter = time.Second

// refuse answers with an error, as the API server words it.
func refuse(w http.ResponseWriter, code int, message string) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReason(reasons[code]), Message: message,
	}
	if code == http.StatusTooManyRequests {
		seconds := int32(retryAfter / time.Second)
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status) // or the operator is gone
}

// wait waits for as long as it is asked to, or until the operator is gone.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
