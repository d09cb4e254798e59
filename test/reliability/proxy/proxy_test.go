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

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// server is what stands for the API server: it tells of every request, and of watches two events.
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
	server *server
	client *http.Client
	kills  atomic.Int32
}

func start(t *testing.T) *trial {
	t.Helper()
	trial := &trial{server: &server{asked: make(chan string, 10), proceed: make(chan bool, 10)}}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trial.Stop)
	ours := x509.NewCertPool()
	ours.AppendCertsFromPEM(trial.CA)
	trial.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ours},
		ForceAttemptHTTP2: true}}
	t.Cleanup(trial.client.CloseIdleConnections)
	return trial
}

func (t *trial) do(method, path, contentType, body string) (int, string, error) {
	request, err := http.NewRequest(method, t.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer it")
	request.Header.Set("Content-Type", contentType)
	answer, err := t.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(content), err
}

const (
	deployment = "/apis/apps/v1/namespaces/ns/deployments/web?fieldManager=us&force=true"
	apply      = "application/apply-patch+yaml"
)

func TestPassesOnAndRecords(t *testing.T) {
	trial := start(t)
	code, content, err := trial.do(http.MethodPatch, deployment, apply, `{"metadata": {"name": "web", "uid": "only"}}`)
	if err != nil || code != http.StatusCreated || !strings.Contains(content, `"u"`) {
		t.Fatalf("%d %s %v", code, content, err)
	}
	if asked := <-trial.server.asked; asked != `PATCH `+deployment+
		` Bearer it {"metadata": {"name": "web", "uid": "only"}}` {
		t.Errorf("asked: %s", asked)
	}
	recorded := trial.Requests()[0]
	recorded.At = time.Time{}
	want := Request{Verb: "patch", Resource: "apps/deployments", Name: "web", Status: 201,
		AnsweredUID: "u", AnsweredRV: "7", OnlyUID: "only", Force: true}
	if recorded != want || trial.Writes() != 1 {
		t.Errorf("recorded %+v", recorded)
	}
	if _, _, err := trial.do(http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/it", "application/json",
		"{}"); err != nil || trial.Writes() != 1 {
		t.Errorf("%d writes, %v: who leads is never at rest", trial.Writes(), err)
	}
}

// From its request on nothing arrives, and no watch stays open, until it is released.
func TestCutOff(t *testing.T) {
	trial := start(t)
	trial.SetRules(Rule{Match: Match{Verb: "patch", Resource: "apps/deployments"}, Nth: 1, Fault: Cutting})
	request, err := http.NewRequest(http.MethodGet, trial.URL+"/apis/apps/v1/deployments?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := trial.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	<-trial.server.asked
	if _, err := io.ReadFull(watch.Body, make([]byte, len("one\n"))); err != nil { // or it is cut off before that
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodPatch, http.MethodGet, http.MethodPatch} {
		if _, _, err := trial.do(method, deployment, apply, "{}"); err == nil {
			t.Errorf("%s arrives", method)
		}
	}
	if told, _ := io.ReadAll(watch.Body); len(told) > 0 {
		t.Errorf("the watch has told %q", told)
	}
	if !trial.IsCalm() {
		t.Error("what is cut off waits for nothing")
	}
	trial.Release()
	if code, _, err := trial.do(http.MethodPatch, deployment, apply, "{}"); err != nil || code != http.StatusCreated ||
		len(trial.server.asked) != 1 {
		t.Errorf("after it: %d, %v, %d requests arrived", code, err, len(trial.server.asked))
	}
	for i, request := range trial.Requests() {
		if isCut := request.Fault != nil && *request.Fault == Cutting; isCut != (i > 0 && i < 4) {
			t.Errorf("request %d: %s", i, request.String())
		}
	}
}

func TestFaultsOfOneRequest(t *testing.T) {
	for _, test := range []struct {
		fault  Fault
		code   int // that the operator is told; 0 for a broken connection
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
			trial := start(t)
			trial.SetRules(Rule{Match: Match{Verb: "patch", Resource: "apps/deployments"}, Nth: 2, Fault: test.fault})
			for nth := 1; nth <= 3; nth++ {
				code, content, err := trial.do(http.MethodPatch, deployment, apply, "{}")
				expected, passes := 201, true
				if nth == 2 {
					expected, passes = test.code, test.passes
				}
				if code != expected || (err != nil) != (expected == 0) {
					t.Errorf("request %d: %d %v", nth, code, err)
				}
				if code >= 400 {
					var status metav1.Status
					if err := json.Unmarshal([]byte(content), &status); err != nil || status.Kind != "Status" ||
						int(status.Code) != code || status.Reason == "" {
						t.Errorf("no status: %s", content)
					}
				}
				if isFired := trial.Requests()[nth-1].Fault != nil; isFired != (nth == 2) {
					t.Errorf("request %d: fault recorded: %t", nth, isFired)
				}
				if got := len(trial.server.asked) == 1; got != passes {
					t.Errorf("request %d has arrived: %t", nth, got)
				} else if got {
					<-trial.server.asked
				}
			}
			if kills := trial.kills.Load(); kills != test.kills {
				t.Errorf("killed %d times", kills)
			}
		})
	}
}

// Who is told to try again later is told when.
func TestRetryAfter(t *testing.T) {
	for code, expected := range map[int]string{http.StatusTooManyRequests: "1", http.StatusServiceUnavailable: ""} {
		answer := httptest.NewRecorder()
		refuse(answer, code, "it")
		if told := answer.Header().Get("Retry-After"); told != expected {
			t.Errorf("%d is told to try again after %q s", code, told)
		}
	}
}

// A request that comes after the outage it was to wait for is answered, and nothing is wrong with it.
func TestOutageIsOver(t *testing.T) {
	for _, kind := range []Kind{ServerAway, ServerAwayAfter} {
		trial := start(t)
		trial.options.Await = func() bool { return false }
		trial.SetRules(Rule{Match: Match{Verb: "any"}, Fault: Fault{Kind: kind}})
		code, _, err := trial.do(http.MethodPatch, deployment, apply, "{}")
		if recorded := trial.Requests()[0]; code != http.StatusCreated || err != nil || recorded.Fault != nil {
			t.Errorf("%s: %d %v, recorded as %+v", kind, code, err, recorded)
		}
		watch, err := trial.client.Get(trial.URL + pods)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(watch.Body, make([]byte, len("one\n"))); err != nil {
			t.Errorf("%s: a watch, which goes on: %v", kind, err)
		}
		_ = watch.Body.Close()
	}
}

const pods = "/api/v1/namespaces/ns/pods?watch=true&resourceVersion=5"

func TestWatchIsClosedAndExpires(t *testing.T) {
	trial := start(t)
	ended := make(chan error, 1)
	begin := func() { // a watch, until its first event
		t.Helper()
		answer, err := trial.client.Get(trial.URL + pods)
		if err == nil {
			t.Cleanup(func() { _ = answer.Body.Close() })
		}
		if err != nil || answer.StatusCode != http.StatusCreated && answer.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", answer, err)
		}
		<-trial.server.asked
		line := make([]byte, 4)
		if _, err := io.ReadFull(answer.Body, line); err != nil || string(line) != "one\n" {
			t.Fatalf("%q %v", line, err)
		}
		go func() {
			_, err := io.ReadAll(answer.Body)
			ended <- err
		}()
	}
	end := func() { // of a watch, which is not broken off
		t.Helper()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	isCalm := func(want bool) {
		t.Helper()
		if trial.IsCalm() != want {
			t.Errorf("calm: %t", !want)
		}
	}
	begin()
	isCalm(true)
	trial.streams.close()
	end()
	isCalm(false) // nobody watches them again yet
	begin()
	isCalm(true)
	trial.streams.expire()
	end()
	if code, content, err := trial.do(http.MethodGet, pods, "", ""); code != http.StatusGone || err != nil ||
		!strings.Contains(content, "Expired") {
		t.Errorf("%d %s %v", code, content, err)
	}
	if requests := trial.Requests(); requests[len(requests)-1].Status != http.StatusGone {
		t.Errorf("that is not recorded: %+v", requests[len(requests)-1])
	}
	begin() // once only
	trial.server.proceed <- true
	end()
}

// What goes wrong with a watch does so at once: its answer would have no end.
func TestWatchIsDisowned(t *testing.T) {
	trial := start(t)
	trial.SetRules(Rule{Match: Match{Verb: "any"}, Fault: Fault{Kind: Disown, Code: http.StatusGatewayTimeout}})
	if code, _, err := trial.do(http.MethodGet, pods, "", ""); code != http.StatusGatewayTimeout || err != nil {
		t.Errorf("%d %v", code, err)
	}
	if len(trial.server.asked) > 0 {
		t.Error("it was begun all the same")
	}
}

// Lists that may be old are, and watches begin there; what promises the present is left alone.
func TestOldWorld(t *testing.T) {
	trial := start(t)
	if !trial.IsCalm() {
		t.Error("it is not calm before anything has gone wrong")
	}
	trial.streams.serveOld("40", time.Hour, nil)
	defer func() {
		if trial.IsCalm() {
			t.Error("it is calm while an old world is served")
		}
	}()
	if code, _, _ := trial.do(http.MethodGet, "/api/v1/namespaces/ns/pods?watch=true&sendInitialEvents=true", "",
		""); code != http.StatusUnprocessableEntity {
		t.Errorf("a list by a watch: %d", code)
	}
	const old = "/api/v1/namespaces/ns/pods?limit=500&resourceVersion=0"
	for asked, arrives := range map[string]string{
		old:                                    "/api/v1/namespaces/ns/pods?resourceVersion=40&resourceVersionMatch=Exact",
		"/api/v1/namespaces/ns/pods?limit=500": "/api/v1/namespaces/ns/pods?limit=500",
	} {
		if _, _, err := trial.do(http.MethodGet, asked, "", ""); err != nil {
			t.Fatal(err)
		}
		if got := <-trial.server.asked; got != "GET "+arrives+" Bearer it" {
			t.Errorf("%s arrives as %s", asked, got)
		}
		if requests := trial.Requests(); requests[len(requests)-1].IsOld() != (asked == old) {
			t.Errorf("%s is not recorded as what it is: %+v", asked, requests[len(requests)-1])
		}
	}
}

func TestWhatIsLearntOfLast(t *testing.T) {
	trial := start(t)
	trial.options.IsOwn = func(resource string) bool { return resource == "ours" }
	for kind, last := range map[Kind]string{Age: "theirs", AgeMore: "ours"} {
		for _, resource := range []string{"ours", "theirs"} {
			if is := trial.late(kind)(resource); is != (resource == last) {
				t.Errorf("%s, late: %t", resource, is)
			}
		}
	}
	s := &streams{late: func(resource string) bool { return resource == "late" }, lateUntil: time.Now().Add(time.Hour)}
	s.flow(t.Context(), "other")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if s.flow(ctx, "late"); ctx.Err() == nil {
		t.Error("what is late flows")
	}
}

// Deletions and creations of Kubernetes' own kinds come as protobuf.
func TestReadsProtobuf(t *testing.T) {
	serializer := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	uid := types.UID("only")
	var deletion, creation bytes.Buffer
	options := &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{UID: &uid}}
	job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: "new"}}
	if err := serializer.Encode(options, &deletion); err != nil {
		t.Fatal(err)
	}
	if err := serializer.Encode(job, &creation); err != nil {
		t.Fatal(err)
	}
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
		if err != nil || request.Name != test.name || request.OnlyUID != test.only || request.Resource != "batch/jobs" {
			t.Errorf("%s %s: %+v %v", test.method, test.path, request, err)
		}
	}
}

// A status write names the version of the object that it is for: a merge patch in its metadata, a JSON patch in tests.
func TestConditionsOfPatches(t *testing.T) {
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

func TestRulesAreReadAsTheyAreWritten(t *testing.T) {
	for _, fault := range Faults {
		rule := Rule{Match: Match{Verb: "patch", Resource: "/services"}, Nth: 3, Fault: fault}
		if got, err := ParseRule(" " + rule.String()); err != nil || got != rule {
			t.Errorf("%s: %+v %v", rule, got, err)
		}
	}
	outage := Rule{Match: Match{Verb: "patch", Resource: "/services"}, For: 5 * time.Second, Fault: Faults[3]}
	if got, err := ParseRule(outage.String()); err != nil || got != outage {
		t.Errorf("%s: %+v %v", outage, got, err)
	}
	for _, text := range []string{"", "patch apps/deployments: 409", "patch apps/deployments for long: 409",
		"patch apps/deployments #1: 418"} {
		if _, err := ParseRule(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
