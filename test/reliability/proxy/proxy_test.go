package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// server is in place of the API server: it reports every request, and sends two events to a watch.
type server struct {
	asked   chan string
	proceed chan bool // between the two events
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.asked <- strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"),
		body))
	if r.URL.Query().Get("watch") == "true" {
		fmt.Fprint(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.proceed:
		case <-r.Context().Done():
			return
		}
		fmt.Fprint(w, "two\n")
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{"metadata": {"uid": "u", "resourceVersion": "7"}}`)
}

type trial struct {
	*Proxy
	*WithT
	server *server
	client *http.Client
	kills  atomic.Int32
}

func start(t *testing.T, rules ...Rule) *trial {
	t.Helper()
	trial := &trial{WithT: NewWithT(t), server: &server{asked: make(chan string, 10), proceed: make(chan bool, 10)}}
	upstream := httptest.NewUnstartedServer(trial.server)
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	authorities := x509.NewCertPool()
	authorities.AddCert(upstream.Certificate())
	var err error
	trial.Proxy, err = Start(Options{
		Server: upstream.URL + "/", TLS: &tls.Config{RootCAs: authorities},
		Kill: func() { trial.kills.Add(1) }, Version: func() string { return "42" },
	})
	trial.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(trial.Stop)
	trial.SetRules(rules...)
	proxyCA := x509.NewCertPool()
	proxyCA.AppendCertsFromPEM(trial.CA)
	trial.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: proxyCA},
		ForceAttemptHTTP2: true}}
	t.Cleanup(trial.client.CloseIdleConnections)
	return trial
}

// do sends a request and returns the status code and the body of the answer; 0 if the connection breaks.
func (t *trial) do(method, path, body string) (int, string) {
	request, err := http.NewRequest(method, t.URL+path, strings.NewReader(body))
	t.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer it")
	request.Header.Set("Content-Type", "application/apply-patch+yaml")
	answer, err := t.client.Do(request)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	t.Expect(err).NotTo(HaveOccurred())
	return answer.StatusCode, string(content)
}

// watch opens a watch and reads its first event. The channel receives what comes until the end of the watch.
func (t *trial) watch() <-chan string {
	answer, err := t.client.Get(t.URL + pods) //nolint:bodyclose // the goroutine below closes it
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(answer).To(HaveHTTPStatus(http.StatusOK))
	<-t.server.asked
	event := make([]byte, len("one\n"))
	_, err = io.ReadFull(answer.Body, event)
	t.Expect(string(event), err).To(Equal("one\n"))
	ended := make(chan string, 1)
	go func() {
		defer answer.Body.Close()
		rest, err := io.ReadAll(answer.Body)
		if err != nil {
			rest = []byte(err.Error())
		}
		ended <- string(rest)
	}()
	return ended
}

func (t *trial) lastRequest() Request {
	requests := t.Requests()
	return requests[len(requests)-1]
}

const (
	deployment = "/apis/apps/v1/namespaces/ns/deployments/web?fieldManager=us&force=true"
	pods       = "/api/v1/namespaces/ns/pods?watch=true&resourceVersion=5"
)

func TestForwardsAndRecords(t *testing.T) {
	trial := start(t)
	const body = `{"metadata": {"name": "web", "uid": "only"}}`
	code, content := trial.do(http.MethodPatch, deployment, body)
	trial.Expect(code).To(Equal(http.StatusCreated))
	trial.Expect(content).To(ContainSubstring(`"u"`))
	trial.Expect(<-trial.server.asked).To(Equal("PATCH " + deployment + " Bearer it " + body))
	recorded := trial.Requests()[0]
	recorded.At = time.Time{}
	trial.Expect(recorded).To(Equal(Request{Verb: "patch", Resource: "apps/deployments", Namespace: "ns", Name: "web",
		Status: 201, AnsweredUID: "u", AnsweredRV: "7", OnlyUID: "only", Force: true}))
	trial.do(http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/it", "{}")
	trial.Expect(trial.Writes()).To(Equal(1), "a write of a lease does not count")
}

func TestCutOffUntilReleased(t *testing.T) {
	trial := start(t, Rule{Match: Match{Verb: "patch", Resource: "apps/deployments"}, Nth: 1, Fault: Cutting})
	watch := trial.watch()
	for _, method := range []string{http.MethodPatch, http.MethodGet, http.MethodPatch} {
		code, _ := trial.do(method, deployment, "{}")
		trial.Expect(code).To(BeZero())
	}
	trial.Expect(<-watch).To(BeEmpty())
	trial.Expect(trial.IsCalm()).To(BeTrue())
	trial.Release()
	code, _ := trial.do(http.MethodPatch, deployment, "{}")
	trial.Expect(code).To(Equal(http.StatusCreated))
	trial.Expect(trial.server.asked).To(HaveLen(1))
	for i, request := range trial.Requests() {
		isCut := request.Fault != nil && *request.Fault == Cutting
		trial.Expect(isCut).To(Equal(i > 0 && i < 4), request.String())
	}
}

func TestFaultsOfOneRequest(t *testing.T) {
	for _, test := range []struct {
		fault  Fault
		code   int // of the answer; 0 for a broken connection
		passes bool
		kills  int32
	}{
		{Fault{Kind: KillBefore}, 0, false, 1},
		{Fault{Kind: KillAfter}, 0, true, 1},
		{Fault{Kind: Age}, 0, true, 1},
		{Fault{Kind: DropAnswer}, 0, true, 0},
		{Fault{Kind: Refuse, Code: 409}, 409, false, 0},
		{Fault{Kind: Refuse, Code: 429}, 429, false, 0},
		{Fault{Kind: Disown, Code: 504}, 504, true, 0},
		{Fault{Kind: Delay, For: time.Millisecond}, 201, true, 0},
		{Fault{Kind: Hang, For: time.Millisecond}, 0, false, 0},
	} {
		t.Run(test.fault.String(), func(t *testing.T) {
			trial := start(t, Rule{Match: Match{Verb: "patch", Resource: "apps/deployments"}, Nth: 2, Fault: test.fault})
			for nth := 1; nth <= 3; nth++ {
				expected, passes := 201, true
				if nth == 2 {
					expected, passes = test.code, test.passes
				}
				code, content := trial.do(http.MethodPatch, deployment, "{}")
				trial.Expect(code).To(Equal(expected), "request %d", nth)
				if code >= 400 {
					var status metav1.Status
					trial.Expect(json.Unmarshal([]byte(content), &status)).To(Succeed())
					trial.Expect(status.Kind).To(Equal("Status"))
					trial.Expect(status.Code).To(BeEquivalentTo(code))
					trial.Expect(status.Reason).NotTo(BeEmpty())
				}
				trial.Expect(trial.lastRequest().Fault != nil).To(Equal(nth == 2), "request %d has a fault", nth)
				trial.Expect(len(trial.server.asked) == 1).To(Equal(passes), "request %d arrives", nth)
				if passes {
					<-trial.server.asked
				}
			}
			trial.Expect(trial.kills.Load()).To(Equal(test.kills))
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for code, expected := range map[int]string{http.StatusTooManyRequests: "1", http.StatusServiceUnavailable: ""} {
		answer := httptest.NewRecorder()
		refuse(answer, code, "it")
		NewWithT(t).Expect(answer.Header().Get("Retry-After")).To(Equal(expected), "%d", code)
	}
}

func TestRequestAfterAnOutageHasNoFault(t *testing.T) {
	for _, kind := range []Kind{ServerAway, ServerAwayAfter} {
		trial := start(t, Rule{Match: Match{Verb: "any"}, Fault: Fault{Kind: kind}})
		trial.options.Await = func() bool { return false }
		code, _ := trial.do(http.MethodPatch, deployment, "{}")
		trial.Expect(code).To(Equal(http.StatusCreated))
		trial.Expect(trial.lastRequest().Fault).To(BeNil())
		<-trial.server.asked
		trial.server.proceed <- true
		trial.Expect(<-trial.watch()).To(Equal("two\n"))
	}
}

func TestWatchesCloseAndExpire(t *testing.T) {
	trial := start(t)
	watch := trial.watch()
	trial.Expect(trial.IsCalm()).To(BeTrue())
	trial.streams.close()
	trial.Expect(<-watch).To(BeEmpty())
	trial.Expect(trial.IsCalm()).To(BeFalse(), "the watch is not open again")
	watch = trial.watch()
	trial.Expect(trial.IsCalm()).To(BeTrue())
	trial.streams.expire()
	trial.Expect(<-watch).To(BeEmpty())
	code, content := trial.do(http.MethodGet, pods, "")
	trial.Expect(code).To(Equal(http.StatusGone))
	trial.Expect(content).To(ContainSubstring("Expired"))
	trial.Expect(trial.lastRequest().Status).To(Equal(http.StatusGone))
	watch = trial.watch() // the next one does not fail
	trial.server.proceed <- true
	trial.Expect(<-watch).To(Equal("two\n"))
}

func TestHiddenChangesAreMissed(t *testing.T) {
	trial := start(t)
	watch := trial.watch()
	trial.Hide(func(resource string) bool { return resource == "/pods" })
	trial.Expect(trial.IsCalm()).To(BeFalse())
	trial.server.proceed <- true
	trial.Consistently(watch, 100*time.Millisecond).ShouldNot(Receive())
	trial.Miss(t.Context())
	trial.Expect(<-watch).To(BeEmpty())
	code, _ := trial.do(http.MethodGet, pods, "")
	trial.Expect(code).To(Equal(http.StatusGone))
}

// A watch has no end, so the answer does not wait for it.
func TestDisownsAWatch(t *testing.T) {
	trial := start(t, Rule{Match: Match{Verb: "any"}, Nth: 1,
		Fault: Fault{Kind: Disown, Code: http.StatusGatewayTimeout}})
	trial.Expect(trial.IsCalm()).To(BeTrue())
	code, _ := trial.do(http.MethodGet, pods, "")
	trial.Expect(code).To(Equal(http.StatusGatewayTimeout))
	trial.Expect(trial.server.asked).To(BeEmpty())
	trial.Expect(trial.IsCalm()).To(BeFalse(), "the watch has never been open")
	trial.watch()
	trial.Expect(trial.IsCalm()).To(BeTrue())
}

// Only lists that may be old are.
func TestServesAnOldState(t *testing.T) {
	trial := start(t)
	trial.Expect(trial.IsCalm()).To(BeTrue())
	trial.options.IsOwn = func(resource string) bool { return resource == "own" }
	trial.streams.serveOld("40", time.Hour, trial.old(AgeChildren), nil)
	trial.Expect(trial.old(AgeChildren)("own")).To(BeFalse())
	trial.Expect(trial.old(AgeMore)("own")).To(BeTrue())
	code, _ := trial.do(http.MethodGet, "/api/v1/namespaces/ns/pods?watch=true&sendInitialEvents=true", "")
	trial.Expect(code).To(Equal(http.StatusUnprocessableEntity), "the operator has to list instead")
	const old = "/api/v1/namespaces/ns/pods?limit=500&resourceVersion=0"
	for asked, arrives := range map[string]string{
		old:                                    "/api/v1/namespaces/ns/pods?resourceVersion=40&resourceVersionMatch=Exact",
		"/api/v1/namespaces/ns/pods?limit=500": "/api/v1/namespaces/ns/pods?limit=500",
	} {
		trial.do(http.MethodGet, asked, "")
		trial.Expect(<-trial.server.asked).To(Equal("GET " + arrives + " Bearer it"))
		request := trial.lastRequest()
		trial.Expect(request.IsOld()).To(Equal(asked == old))
	}
	trial.Expect(trial.IsCalm()).To(BeFalse())
}

func TestLateResources(t *testing.T) {
	trial := start(t)
	trial.options.IsOwn = func(resource string) bool { return resource == "own" }
	for kind, last := range map[Kind]string{Age: "child", AgeMore: "own"} {
		for _, resource := range []string{"own", "child"} {
			trial.Expect(trial.late(kind)(resource)).To(Equal(resource == last))
		}
	}
	s := &streams{late: func(resource string) bool { return resource == "late" }, lateUntil: time.Now().Add(time.Hour)}
	s.flow(t.Context(), "other")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	s.flow(ctx, "late")
	trial.Expect(ctx.Err()).To(HaveOccurred(), "a late resource is delayed")
}

// Deletions and creations of built-in kinds are sent as protobuf.
func TestReadsProtobuf(t *testing.T) {
	g := NewWithT(t)
	serializer := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	uid := types.UID("only")
	var deletion, creation bytes.Buffer
	options := &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid}}
	job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: "new"}}
	g.Expect(serializer.Encode(options, &deletion)).To(Succeed())
	g.Expect(serializer.Encode(job, &creation)).To(Succeed())
	for _, test := range []struct {
		method, path string
		body         []byte
		name, only   string
	}{
		{http.MethodDelete, "/apis/batch/v1/namespaces/ns/jobs/old", deletion.Bytes(), "old", "only"},
		{http.MethodDelete, "/apis/batch/v1/namespaces/ns/jobs/old", nil, "old", ""},
		{http.MethodPost, "/apis/batch/v1/namespaces/ns/jobs", creation.Bytes(), "new", ""},
	} {
		request, err := read(httptest.NewRequest(test.method, test.path, nil), test.body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]string{request.Resource, request.Name, request.OnlyUID}).To(
			Equal([]string{"batch/jobs", test.name, test.only}))
	}
}

// The last release sends JSON patches.
func TestPreconditionsOfPatches(t *testing.T) {
	request := httptest.NewRequest(http.MethodPatch,
		"/apis/samplecontroller.k8s.io/v1alpha1/namespaces/ns/foos/one/status", nil)
	const jsonPatch, mergePatch = "application/json-patch+json", "application/merge-patch+json"
	for _, test := range []struct{ contentType, body, uid, version string }{
		{jsonPatch, `[{"op":"test","path":"/metadata/uid","value":"only"},` +
			`{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"add","path":"/status","value":{}}]`, "only",
			"7"},
		{jsonPatch, `[{"op":"replace","path":"/metadata/uid","value":"only"}]`, "", ""},
		{jsonPatch, `[{"op":"add","path":"/status","value":{}}]`, "", ""},
		{mergePatch, `{"metadata":{"resourceVersion":"7"},"status":{"replicas":1}}`, "", "7"},
		{mergePatch, `{"metadata":{"uid":"only","resourceVersion":"7"}}`, "only", "7"},
		{mergePatch, `{"status":{"replicas":1}}`, "", ""},
	} {
		request.Header.Set("Content-Type", test.contentType)
		got, err := read(request, []byte(test.body))
		if err != nil || got.OnlyUID != test.uid || got.OnlyRV != test.version ||
			got.Resource != "samplecontroller.k8s.io/foos/status" {
			t.Errorf("%s: %+v %v", test.body, got, err)
		}
	}
}

func TestWhatAnEventIsAbout(t *testing.T) {
	event := `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"one.1"},"reason":"Synced",` +
		`"regarding":{"uid":"f"}}`
	got, err := read(httptest.NewRequest(http.MethodPost, "/apis/events.k8s.io/v1/namespaces/ns/events", nil),
		[]byte(event))
	if err != nil || got.Reason != "Synced" || got.About != "f" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestLiveLists(t *testing.T) {
	for query, isLive := range map[string]bool{"": true, "?labelSelector=a%3Db": true, "?resourceVersion=0": false,
		"?limit=500": false} {
		got, err := read(httptest.NewRequest(http.MethodGet, "/apis/batch/v1/namespaces/ns/jobs"+query, nil), nil)
		if err != nil || got.IsLive != isLive {
			t.Errorf("%q: %+v %v", query, got, err)
		}
	}
}

func TestParsesRules(t *testing.T) {
	g := NewWithT(t)
	rules := []Rule{{Match: Match{Verb: "patch", Resource: "/services"}, For: 5 * time.Second, Fault: Faults[3]}}
	for _, fault := range Faults {
		rules = append(rules, Rule{Match: Match{Verb: "patch", Resource: "/services"}, Nth: 3, Fault: fault})
	}
	for _, rule := range rules {
		g.Expect(ParseRule(" " + rule.String())).To(Equal(rule))
	}
	for _, text := range []string{"", "patch apps/deployments: 409", "patch apps/deployments for long: 409",
		"patch apps/deployments #1: 418"} {
		_, err := ParseRule(text)
		g.Expect(err).To(HaveOccurred(), text)
	}
}
