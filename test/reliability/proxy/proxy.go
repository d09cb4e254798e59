// Package proxy injects faults between the operator and the API server.
//
// It uses TLS on both sides and forwards the operator's bearer token, so that the API server authenticates the
// operator. The proxy counts requests, so that the count continues when the operator is killed and restarted.
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
	"k8s.io/client-go/util/cert"
)

// Proxy is a running proxy. It is safe for concurrent use.
type Proxy struct {
	// URL is the address of the proxy, and CA the authority that signed its certificate.
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
	underWay   int // requests that will be answered, except watches
	remembered string
	streams    streams
	retried    time.Time // when requests that were answered with Retry-After have been sent again
	released   chan struct{}
	isCutOff   bool // no request arrives
}

// Options configure a proxy. Its functions are called during a request, and must not wait until the request is over.
type Options struct {
	// Server is the API server's URL, and TLS how to reach it.
	Server string
	TLS    *tls.Config
	// Seed is for rules with a Share.
	Seed uint64
	// Kill kills the operator, and Freeze stops it until it is resumed; nil if there is no such fault.
	Kill, Freeze func()
	// Await waits until a part of the control plane is killed, and returns false if that has already happened; nil if
	// there are no such faults.
	Await func() bool
	// IsOwn reports whether a resource is one of the operator's own kinds; nil if no old state is served.
	IsOwn func(resource string) bool
	// Version returns the latest known resource version.
	Version func() string
}

// certificate returns a certificate for the loopback interface and the authority that signed it, as PEM. They are
// generated once, because that is slow.
func certificate() (tls.Certificate, []byte, error) {
	pair, err := keyPair()
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serving, err := tls.X509KeyPair(pair[0], pair[1])
	return serving, pair[0], err
}

var keyPair = sync.OnceValues(func() ([2][]byte, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	return [2][]byte{certificate, key}, err
})

// Start starts a proxy.
func Start(options Options) (*Proxy, error) {
	serving, authority, err := certificate()
	if err != nil {
		return nil, fmt.Errorf("generating the certificate of the proxy: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	p := &Proxy{
		URL:       "https://" + listener.Addr().String(),
		CA:        authority,
		options:   options,
		transport: &http.Transport{TLSClientConfig: options.TLS.Clone(), ForceAttemptHTTP2: true, DisableCompression: true},
		end:       end,
		chance:    rand.New(rand.NewPCG(options.Seed, 0)),
		streams:   streams{open: map[*stream]bool{}, watched: map[string]bool{}, expired: map[string]bool{}},
		released:  make(chan struct{}),
	}
	p.server = &http.Server{
		Handler:     p,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{serving}, MinVersion: tls.VersionTLS12},
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // of connections that faults break
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// Stop stops the proxy and closes all its connections.
func (p *Proxy) Stop() {
	p.end()
	_ = p.server.Close()
	p.transport.CloseIdleConnections()
}

// SetRules replaces the rules. Of those that match a request, the first applies.
func (p *Proxy) SetRules(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
	for _, rule := range rules {
		p.rules = append(p.rules, &counted{Rule: rule})
	}
}

// Remember remembers the current resource version for AgeMore and AgeChildren.
func (p *Proxy) Remember() {
	version := p.options.Version()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remembered = version
}

// Requests returns copies of all requests so far, in the order of their arrival.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	requests := make([]Request, len(p.requests))
	for i, request := range p.requests {
		requests[i] = *request
	}
	return requests
}

// Writes returns the number of writes so far, without those of leases, which the leader renews continuously.
func (p *Proxy) Writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// Release ends Freeze and CutOff. It is called once.
func (p *Proxy) Release() {
	p.mu.Lock()
	p.isCutOff = false
	p.mu.Unlock()
	close(p.released)
}

// IsCalm reports whether no fault has an effect any more: all watches are open again and none is paused, no old state
// is served, and no request waits for an answer or for Retry-After. It is true for an operator that is cut off.
func (p *Proxy) IsCalm() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isCutOff || p.underWay == 0 && p.streams.areCalm() && time.Now().After(p.retried)
}

// begin records a request, and returns its fault; nil for none.
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

// ServeHTTP forwards a request, or injects a fault.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the operator was killed
	}
	request, err := read(r, body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if fault := p.begin(request); fault != nil {
		p.inject(w, r, body, request, *fault)
		return
	}
	p.pass(w, r, body, request)
}

// pass forwards a request, and its answer back.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, body []byte, request *Request) {
	if request.Verb == "watch" {
		p.watch(w, r, request)
		return
	}
	p.add(1)
	defer p.add(-1)
	if request.Verb == "list" && p.streams.age(r, request.Resource) {
		p.note(request, &Fault{Kind: Age})
	}
	status, header, content := p.forward(r, body, request)
	reply(w, status, header, content)
}

// add counts requests that will be answered.
func (p *Proxy) add(requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay += requests
}

// FaultMessage is the message of an answer that is a fault.
const FaultMessage = "a fault of the proxy"

// inject injects a fault into a request.
func (p *Proxy) inject(w http.ResponseWriter, r *http.Request, body []byte, request *Request, fault Fault) {
	if request.Verb == "watch" {
		p.streams.expect(request.Watched())
	}
	switch fault.Kind {
	case KillBefore:
		p.options.Kill()
	case Refuse:
		p.expectRetry(fault.Code)
		refuse(w, fault.Code, FaultMessage)
		return
	case Hang:
		wait(r.Context(), fault.For)
	case CutOff:
		p.streams.close()
	case KillAfter, Age, AgeMore, AgeChildren:
		version := p.before(fault.Kind)
		p.forward(r, body, request)
		if version != "" {
			p.streams.serveOld(version, fault.For, p.old(fault.Kind), p.late(fault.Kind))
		}
		p.options.Kill()
	case ServerAwayAfter:
		if request.Verb != "watch" { // the answer to a watch has no end
			status, header, content := p.forward(r, body, request)
			if !p.await(request) {
				reply(w, status, header, content)
				return
			}
			break
		}
		fallthrough
	case ServerAway, EtcdAway:
		p.await(request)
		p.pass(w, r, body, request)
		return
	case DropAnswer, Disown:
		if request.Verb != "watch" { // without its answer, a watch has no effect
			p.forward(r, body, request)
		}
		if fault.Kind == Disown {
			refuse(w, fault.Code, FaultMessage)
			return
		}
	default:
		p.disturb(r.Context(), fault)
		p.pass(w, r, body, request)
		return
	}
	panic(http.ErrAbortHandler)
}

// await waits until a part of the control plane is killed. If that has already happened, it returns false, and the
// request has no fault.
func (p *Proxy) await(request *Request) bool {
	if p.options.Await() {
		return true
	}
	p.note(request, nil)
	return false
}

// note records a fault that no rule causes; nil for none.
func (p *Proxy) note(request *Request, fault *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	request.Fault, request.Rule = fault, 0
}

// before returns the resource version of the state that the next operator is served first; empty for the present one.
func (p *Proxy) before(kind Kind) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return map[Kind]string{Age: p.options.Version(), AgeMore: p.remembered, AgeChildren: p.remembered}[kind]
}

// late returns which resources an operator that is served an old state observes last: its own kinds with AgeMore, and
// their children otherwise.
func (p *Proxy) late(kind Kind) func(resource string) bool {
	return func(resource string) bool {
		return p.options.IsOwn != nil && p.options.IsOwn(resource) == (kind == AgeMore)
	}
}

// old returns of which resources an old state is served: of children with AgeChildren, and of all otherwise.
func (p *Proxy) old(kind Kind) func(resource string) bool {
	if kind == AgeChildren {
		return p.late(kind)
	}
	return func(string) bool { return true }
}

// ServeOld serves the next operator the children of a resource version first, as AgeChildren does.
func (p *Proxy) ServeOld(version string) {
	p.streams.serveOld(version, oldFor, p.old(AgeChildren), p.late(AgeChildren))
}

// hiddenFor is how long Hide pauses watches at most, so that an operator that is killed meanwhile can start.
const hiddenFor = 15 * time.Second

// Hide pauses the watches of some resources until Miss is called, for 15 s at most.
func (p *Proxy) Hide(resources func(resource string) bool) { p.streams.hide(resources, hiddenFor) }

// Miss expires the watches that Hide has paused, so that the operator does not observe what happened since then, but
// only what exists now.
func (p *Proxy) Miss(ctx context.Context) {
	wait(ctx, p.streams.shortFor())
	p.streams.miss()
}

// staleFor is how long an operator that is resumed does not observe what happened meanwhile, as if its watches had to
// be opened again. It may lead for longer: client-go notices a lost lease after up to 10 s.
const staleFor = 2 * time.Second

// disturb injects a fault just before a request, which is then forwarded.
func (p *Proxy) disturb(ctx context.Context, fault Fault) {
	switch fault.Kind {
	case Delay:
		p.add(1)
		defer p.add(-1)
		wait(ctx, fault.For)
	case Freeze:
		p.options.Freeze()
		p.streams.freeze()
		select {
		case <-p.released:
		case <-ctx.Done():
		}
		p.streams.thaw(staleFor)
	case PauseWatches:
		p.streams.pause(fault.For)
	case CloseWatches:
		p.streams.close()
	case ExpireWatches:
		wait(ctx, p.streams.shortFor())
		p.streams.expire()
	}
}

// forward sends a request to the API server and records the answer, even if the operator is killed in the meantime.
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
	if status == http.StatusConflict { // that, or a name is taken
		if answer, ok := decode(content).(*metav1.Status); ok {
			request.IsConflict = answer.Reason == metav1.StatusReasonConflict
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

// reply returns an answer of the API server.
func reply(w http.ResponseWriter, status int, header http.Header, content []byte) {
	for name, values := range header {
		if name != "Content-Length" {
			w.Header()[name] = slices.Clone(values)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(content) // unless the operator was killed
}

// expectRetry records that the operator will send a request again, if the answer has Retry-After.
func (p *Proxy) expectRetry(code int) {
	if code == http.StatusTooManyRequests {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.retried = time.Now().Add(2 * retryAfter)
	}
}

// retryAfter is the value of Retry-After.
const retryAfter = time.Second

// refuse answers with an error, in the form of the API server.
func refuse(w http.ResponseWriter, code int, message string) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: message,
	}
	if code == http.StatusTooManyRequests {
		seconds := int32(retryAfter / time.Second)
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status) // unless the operator was killed
}

// wait waits for some time, or until the operator was killed.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
