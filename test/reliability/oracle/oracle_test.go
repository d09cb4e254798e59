package oracle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

// version returns an object as it was at a resource version.
func version(t *testing.T, rv int64, resource, text string) history.Version {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, &object.Object); err != nil { // with whole numbers, as the API's client has them
		t.Fatal(err)
	}
	object.SetResourceVersion(fmt.Sprint(rv))
	return history.Version{Key: history.Key{Resource: resource, Name: object.GetName()}, RV: rv, Object: object}
}

// judge returns what one oracle finds.
func judge(t *testing.T, name string, run *Run, reference *Reference) string {
	t.Helper()
	for _, oracle := range All {
		if oracle.Name == name {
			return strings.Join(oracle.Judge(run, reference), "\n")
		}
	}
	t.Fatalf("there is no oracle %s", name)
	return ""
}

// expect fails unless an oracle finds just that; nothing if it is empty.
func expect(t *testing.T, name string, run *Run, reference *Reference, found string) {
	t.Helper()
	got := judge(t, name, run, reference)
	if (got == "") != (found == "") || !strings.Contains(got, found) {
		t.Errorf("%s finds %q, not %q", name, got, found)
	}
}

func TestRest(t *testing.T) {
	write := proxy.Request{Verb: "patch", Resource: "apps/deployments", Status: 200}
	lease := proxy.Request{Verb: "update", Resource: "coordination.k8s.io/leases", Status: 200}
	read := proxy.Request{Verb: "watch", Resource: "/pods", Status: 200}
	expect(t, "rest", &Run{Requests: []proxy.Request{write, read, lease}, Rest: 1}, nil, "")
	expect(t, "rest", &Run{Requests: []proxy.Request{read, write}, Rest: 1}, nil, "nothing to write")
}

// An event may be late, but not by another operator.
func TestEventsAtRest(t *testing.T) {
	event := proxy.Request{Verb: "create", Resource: eventResource, Name: "one.1", Reason: "Synced", Status: 201}
	both := []proxy.Request{event, event}
	expect(t, "rest", &Run{Requests: both, Rest: 1, Anew: 2}, nil, "")
	expect(t, "rest", &Run{Requests: both, Rest: 1, Anew: 1}, nil, "nothing to write: create events.k8s.io/events one.1")
	for anew, news := range []int{0, 1, 2} {
		if n := NewReference(&Run{Requests: both, Rest: 1, Anew: anew}).Events["Synced"]; n != news {
			t.Errorf("%d events are news, not %d", n, news)
		}
	}
}

func TestOneLeads(t *testing.T) {
	ask := proxy.Request{Verb: "get", Resource: proxy.Leases, Name: "it", Status: 200}
	late := proxy.Request{Verb: "update", Resource: proxy.Leases, Name: "it", Status: 409}
	lead := proxy.Request{Verb: "update", Resource: proxy.Leases, Name: "it", Status: 200}
	write := proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200}
	expect(t, "one leads", &Run{Requests: []proxy.Request{write}}, nil, "")
	expect(t, "one leads", &Run{Standby: []proxy.Request{ask, late, lead, write}}, nil, "")
	expect(t, "one leads", &Run{Standby: []proxy.Request{ask, late, write, lead}}, nil,
		"another operator leads: patch apps/deployments web")
	expect(t, "one leads", &Run{Standby: []proxy.Request{ask, write}}, nil, "another operator leads")
}

func TestCounts(t *testing.T) {
	create := proxy.Request{Verb: "create", Resource: "batch/jobs", Name: "a", Status: 201}
	lost := proxy.Request{Verb: "create", Resource: "batch/jobs", Name: "a", Status: 409}
	apply := proxy.Request{Verb: "patch", Resource: "apps/deployments", Name: "b", Status: 201}
	remove := proxy.Request{Verb: "delete", Resource: "batch/jobs", Name: "c", Status: 200}
	all := &Run{Requests: []proxy.Request{create, lost, apply, remove}}
	reference := NewReference(all)
	expect(t, "counts", all, reference, "")
	expect(t, "counts", &Run{Requests: append(all.Requests, create)}, reference,
		"batch/jobs a was created 2 times, and not 1")
	expect(t, "counts", &Run{Requests: append(all.Requests, apply)}, reference, "apps/deployments b was created 2 times")
	expect(t, "counts", &Run{Requests: append(all.Requests, remove)}, reference, "batch/jobs c was deleted 2 times")
	expect(t, "counts", &Run{Requests: all.Requests[:3]}, reference, "batch/jobs c was deleted 0 times")
	expect(t, "counts", &Run{Requests: all.Requests[:3], IsOpen: true}, reference, "")
}

// What is wrong each time alike is wrong.
func TestExpected(t *testing.T) {
	played := &scenario.Scenario{Expected: scenario.Expected{
		Creates: map[string]int{"apps/deployments web": 1}, Deletes: map[string]int{"batch/jobs c": 1},
		Events: map[string][2]int{"Synced": {1, 2}}}}
	right := Reference{Creates: map[string]int{"apps/deployments web": 1}, Deletes: map[string]int{"batch/jobs c": 1},
		Events: map[string]int{"Synced": 1}}
	for name, test := range map[string]struct {
		change func(*Reference)
		isOpen bool
		found  string
	}{
		"as expected":    {func(*Reference) {}, false, ""},
		"one event more": {func(r *Reference) { r.Events = map[string]int{"Synced": 2} }, false, ""},
		"too many events": {func(r *Reference) { r.Events = map[string]int{"Synced": 3} }, false,
			"3 events Synced, where 2 are news"},
		"an event of its own": {func(r *Reference) { r.Events = map[string]int{"Synced": 1, "Error": 1} }, false,
			"1 events Error, where 0 are news"},
		"no event": {func(r *Reference) { r.Events = nil }, false, "0 events Synced, and not 1"},
		"made anew": {func(r *Reference) { r.Creates = map[string]int{"apps/deployments web": 2} }, false,
			"apps/deployments web was created 2 times, and not 1"},
		"another one made": {func(r *Reference) { r.Creates = map[string]int{"apps/deployments web": 1, "x": 1} }, false,
			"x was created 1 times, and not 0"},
		"not deleted": {func(r *Reference) { r.Deletes = nil }, false,
			"batch/jobs c was deleted 0 times, and not 1"},
		"less, in less time": {func(r *Reference) { *r = Reference{} }, true, ""},
		"more, in time enough": {func(r *Reference) { r.Deletes = map[string]int{"batch/jobs c": 2} }, true,
			"deleted 2 times"},
	} {
		is, expected := right, *played
		test.change(&is)
		expected.IsOpen = test.isOpen
		found := is.Unexpected(&expected)
		if got := fmt.Sprint(found); len(found) > 0 != (test.found != "") || !strings.Contains(got, test.found) {
			t.Errorf("%s: %s, not %q", name, got, test.found)
		}
	}
	passing := *played // a name is taken for a moment
	right.Events = map[string]int{"Synced": 4, "ErrResourceExists": 2}
	for isPassing, found := range map[bool]int{true: 0, false: 2} {
		if passing.IsPassing = isPassing; len(right.Unexpected(&passing)) != found {
			t.Errorf("passing: %t, %v", isPassing, right.Unexpected(&passing))
		}
	}
}

func TestWritesOfTheSetupAreNoPositions(t *testing.T) {
	write := proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200}
	reference := NewReference(&Run{Requests: []proxy.Request{write, write, write}, Setup: 2})
	if n := reference.Writes[proxy.Match{Verb: "patch", Resource: history.Deployments}]; n != 1 {
		t.Errorf("%d writes, not 1", n)
	}
}

// What is created for a resource that is gone is the garbage collector's, the first time.
func TestCountsLeaveOutWhatIsForNobody(t *testing.T) {
	child := version(t, 3, history.Deployments, fmt.Sprintf("{metadata: {name: web, uid: d, "+ownedBy+"}}", "f"))
	create := proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 201, AnsweredUID: "d",
		AnsweredRV: "3"}
	owner := version(t, 2, history.Foos, foo)
	run := &Run{Requests: []proxy.Request{create}, Versions: []history.Version{owner, child}}
	expect(t, "counts", run, &Reference{}, "created 1 times")
	run.Versions[0].IsGone = true
	expect(t, "counts", run, &Reference{}, "")

	late := *run // it has long been gone, and nothing has held that back
	late.Requests = []proxy.Request{create}
	late.Requests[0].At, late.Versions[0].At = time.Unix(10, 0), time.Unix(4, 0)
	expect(t, "counts", &late, &Reference{}, "created 1 times")
	late.Requests[0].At = time.Unix(8, 0)
	expect(t, "counts", &late, &Reference{}, "")

	before := version(t, 1, history.Deployments, fmt.Sprintf("{metadata: {name: web, uid: c, "+ownedBy+"}}", "f"))
	run.Versions = append([]history.Version{before}, run.Versions...)
	for requested, found := range map[int64]string{5: "created 1 times", 3: ""} { // by one that stood still meanwhile
		run.Versions[0].At, run.Requests[0].At = time.Unix(4, 0), time.Unix(requested, 0)
		expect(t, "counts", run, &Reference{}, found)
	}
	run.Requests[0].At = time.Unix(5, 0)
	for froze, found := range map[int64]string{4: "", 5: "created 1 times"} { // a pass goes on with what it knew
		run.Versions[0].At = time.Unix(4, 1)
		still := proxy.Request{Verb: "patch", Resource: history.Foos + "/status", Name: "one", At: time.Unix(froze, 0),
			Fault: &proxy.Fault{Kind: proxy.Freeze}}
		run.Requests = []proxy.Request{still, create}
		run.Requests[1].At = time.Unix(6, 0)
		expect(t, "counts", run, &Reference{}, found)
	}
	run.Requests = []proxy.Request{create}
	run.Requests[0].At = time.Unix(5, 0)
	run.Versions[0] = version(t, 1, history.Deployments, fmt.Sprintf("{metadata: {name: web, uid: c, "+ownedBy+"}}",
		"another"))
	expect(t, "counts", run, &Reference{}, "")
}

// What was carried out and not answered, as the API server went away, the world shows.
func TestCountsWithoutAnswers(t *testing.T) {
	made, gone := version(t, 3, history.Deployments, "{metadata: {name: web, uid: d}}"),
		version(t, 5, history.Deployments, "{metadata: {name: web, uid: d}}")
	made.At, gone.At, gone.IsGone = time.Unix(3, 0), time.Unix(5, 0), true
	apply := proxy.Request{At: time.Unix(2, 0), Verb: "patch", Resource: history.Deployments, Name: "web"}
	remove := proxy.Request{At: time.Unix(4, 0), Verb: "delete", Resource: history.Deployments, Name: "web", OnlyUID: "d"}
	run := &Run{Requests: []proxy.Request{apply, apply, remove, remove}, Versions: []history.Version{made, gone}}
	once := map[string]int{history.Deployments + " web": 1}
	expect(t, "counts", run, &Reference{Creates: once, Deletes: once}, "")

	run.Versions = run.Versions[:1]
	expect(t, "counts", run, &Reference{Creates: once, Deletes: once}, "deleted 0 times")
	run.Requests[0].Status, run.Requests[0].AnsweredUID = 201, "d" // and what comes after changes it
	expect(t, "counts", run, &Reference{Creates: once}, "")
	run.Requests = run.Requests[2:]
	expect(t, "counts", run, &Reference{Creates: once}, "created 0 times")
	run.Requests = []proxy.Request{apply}
	expect(t, "counts", run, &Reference{Creates: once}, "")
	for _, kind := range []proxy.Kind{proxy.Refuse, proxy.KillBefore, proxy.Hang} { // the API server never heard of it
		run.Requests[0].Fault = &proxy.Fault{Kind: kind}
		expect(t, "counts", run, &Reference{Creates: once}, "created 0 times")
	}
	run.Requests, run.Versions[0].At = []proxy.Request{apply}, time.Unix(1, 0) // it was there before
	expect(t, "counts", run, &Reference{Creates: once}, "created 0 times")
}

func TestEvents(t *testing.T) {
	synced := proxy.Request{Verb: "create", Resource: eventResource, Name: "one.1", Reason: "Synced", Status: 201}
	run := func(requests ...proxy.Request) *Run {
		fired := 0
		for _, request := range requests {
			if request.Fault != nil {
				fired++
			}
		}
		return &Run{Requests: requests, Anew: len(requests), Fired: fired}
	}
	reference := NewReference(run(synced))
	wrong := func(kind proxy.Kind, request proxy.Request) proxy.Request {
		request.Fault = &proxy.Fault{Kind: kind}
		return request
	}
	const tooMany = "2 events Synced, where 1 are news"
	expect(t, "events", run(synced), reference, "")
	expect(t, "events", run(synced, synced), reference, tooMany)
	expect(t, "events", run(), reference, "0 events Synced")
	// or the right to make events would not be needed
	expect(t, "events", &Run{IsDeprived: true}, reference, "0 events Synced")
	expect(t, "events", run(), &Reference{Events: reference.Events, FewestEvents: map[string]int{"Synced": 0}}, "")
	for _, test := range []struct {
		with    proxy.Request
		isFound bool
	}{
		{wrong(proxy.KillAfter, proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200}),
			false},
		// asked for by the pass
		{wrong(proxy.Refuse, proxy.Request{Verb: "list", Resource: history.Foos, Name: "one"}), false},
		{proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web"}, false}, // in an outage
		{proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 403}, false},
		{wrong(proxy.Age, proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200}), false},
		{wrong(proxy.PauseWatches, proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200}),
			true},
		{wrong(proxy.Delay, proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200}), true},
		{wrong(proxy.ExpireWatches, proxy.Request{Verb: "create", Resource: eventResource, Name: "one.1", Status: 201}),
			true},
		{wrong(proxy.Age, proxy.Request{Verb: "list", Resource: history.Foos, Status: 200}), true},
		{wrong(proxy.Refuse, proxy.Request{Verb: "list", Resource: history.Foos}), true}, // asked for by the cache
		{wrong(proxy.DropAnswer, proxy.Request{Verb: "watch", Resource: history.Foos}), true},
		{proxy.Request{Verb: "watch", Resource: history.Foos}, true},
		{wrong(proxy.Refuse, proxy.Request{Verb: "create", Resource: eventResource, Name: "one.1"}), true},
		{proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200}, true},
	} {
		found := ""
		if test.isFound {
			found = tooMany
		}
		expect(t, "events", run(synced, test.with, synced), reference, found)
	}
	series := proxy.Request{Verb: "patch", Resource: eventResource, Name: "one.1", Status: 403}
	expect(t, "events", run(synced, series), reference, tooMany)
}

// Two Foos that swap names may do so at the same moment, and then there is nothing to tell of.
func TestEventOfANameTaken(t *testing.T) {
	said := func(degraded, reason string) *Run {
		text := fmt.Sprintf("{metadata: {name: one, uid: f}, status: {conditions: [{type: Degraded, status: %q, "+
			"reason: %s}]}}", degraded, reason)
		return &Run{Versions: []history.Version{version(t, 1, history.Foos, text)}}
	}
	reference := &Reference{FewestEvents: map[string]int{"ErrResourceExists": 1}}
	expect(t, "events", said("True", "NameTaken"), reference, "0 events ErrResourceExists")
	expect(t, "events", said("False", "AsExpected"), reference, "")
	expect(t, "events", said("True", "Refused"), reference, "")
	expect(t, "events", said("True",
		`Refused, message: "It; Deployment \"web\" exists; delete it (kubectl -n ns delete deployment web)"`),
		reference, "0 events ErrResourceExists")
}

const (
	foo     = "{metadata: {name: one, uid: f, generation: 1}, spec: {deploymentName: web, replicas: 1}}"
	ownedBy = "ownerReferences: [{kind: Foo, name: one, uid: %s, controller: true}]"
)

func TestGuarantee(t *testing.T) {
	ours := fmt.Sprintf("{metadata: {name: web, uid: d, "+ownedBy+"}}", "f")
	theirs := fmt.Sprintf("{metadata: {name: web, uid: d, "+ownedBy+"}}", "other")
	before := fmt.Sprintf("{metadata: {name: web, uid: d, "+ownedBy+"}}", "former")
	lost := "{metadata: {name: web, uid: d, annotations: {memcached-operator.example.com/owner-uid: f}}}"
	apply := proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200, Force: true,
		OnlyUID: "d", AnsweredUID: "d", AnsweredRV: "3"}
	remove := proxy.Request{Verb: "delete", Resource: history.Deployments, Name: "web", Status: 200, OnlyUID: "d"}
	change := func(r proxy.Request, change func(*proxy.Request)) proxy.Request {
		change(&r)
		return r
	}
	for _, test := range []struct {
		name    string
		before  string
		request proxy.Request
		found   string
	}{
		{"an apply to our own", ours, apply, ""},
		{"an apply to our own that has lost its owner", lost, apply, ""},
		{"an apply to somebody else's", theirs, apply, "not the operator's"},
		{"a forced apply for any", ours, change(apply, func(r *proxy.Request) { r.OnlyUID = "" }), "by force"},
		{"a deletion of our own", ours, remove, ""},
		{"a deletion of somebody else's", theirs, remove, "not the operator's"},
		{"a deletion for any", ours, change(remove, func(r *proxy.Request) { r.OnlyUID = "" }), "any object of that name"},
		{"a deletion for any that is refused", ours, change(remove, func(r *proxy.Request) { r.OnlyUID, r.Status = "", 404 }),
			"any object of that name"},
		{"an apply to what nobody needs", ours, change(apply, func(r *proxy.Request) { r.Resource += "/scale" }),
			"no resource needs"},
		{"a creation of what nobody needs", ours, proxy.Request{Verb: "create", Resource: "/configmaps", Name: "web",
			Status: 201}, "no resource needs"},
		{"an update", ours, change(apply, func(r *proxy.Request) { r.Verb = "update" }), "never needed"},
		{"a status for any", ours, proxy.Request{Verb: "patch", Resource: history.Foos + "/status", Name: "one", Status: 200},
			"any resource of that name"},
		{"a status", ours, proxy.Request{Verb: "patch", Resource: history.Foos + "/status", Name: "one", Status: 200,
			OnlyUID: "f"}, ""},
		{"a status for one version", ours, proxy.Request{
			Verb: "patch", Resource: history.Foos + "/status", Name: "one", Status: 200, OnlyRV: "1"}, ""},
		{"a status for any that is a conflict", ours, proxy.Request{
			Verb: "patch", Resource: history.Foos + "/status", Name: "one", Status: 409}, "any resource of that name"},
		{"a forced apply for one version of any", ours, change(apply, func(r *proxy.Request) {
			r.OnlyUID, r.OnlyRV = "", "2"
		}), "by force"},
		{"a resource itself", ours, proxy.Request{Verb: "patch", Resource: history.Foos, Name: "one", Status: 200,
			OnlyUID: "f"}, "its user's"},
		{"an apply to somebody else's that is not answered", theirs,
			change(apply, func(r *proxy.Request) { r.Status, r.AnsweredUID, r.AnsweredRV = 0, "", "" }), "not the operator's"},
		{"an apply to our own that is not answered", ours, change(apply,
			func(r *proxy.Request) { r.Status, r.AnsweredUID, r.AnsweredRV = 0, "", "" }), ""},
		{"an apply that does not arrive", theirs, change(apply, func(r *proxy.Request) {
			r.Status, r.AnsweredUID, r.AnsweredRV, r.Fault = 0, "", "", &proxy.Fault{Kind: proxy.KillBefore}
		}), ""},
		{"a creation that takes another one's", before, change(apply,
			func(r *proxy.Request) { r.Force, r.OnlyUID = false, "" }), "takes an object from"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := &Run{Requests: []proxy.Request{test.request}, Versions: []history.Version{
				version(t, 1, history.Foos, foo), version(t, 1, history.Foos, strings.ReplaceAll(foo, "uid: f", "uid: former")),
				version(t, 2, history.Deployments, test.before),
			}}
			if test.request.Verb == "patch" {
				written := version(t, 3, history.Deployments, ours)
				run.Requests[0].At, written.At = time.Unix(1, 0), time.Unix(2, 0)
				run.Versions = append(run.Versions, written)
			}
			expect(t, "guarantee", run, nil, test.found)
		})
	}
}

// A Job is patched only to get back its owner, in the version that was seen without one.
func TestGuaranteeOfPatchesToJobs(t *testing.T) {
	const annotated = "metadata: {name: one-1, uid: j, annotations: {memcached-operator.example.com/owner-uid: c}"
	controlled := ", ownerReferences: [{kind: CronJob, name: one, uid: %s, controller: true}]"
	lost, has := "{"+annotated+"}}", "{"+annotated+fmt.Sprintf(controlled, "c")+"}}"
	theirs := "{metadata: {name: one-1, uid: j" + fmt.Sprintf(controlled, "other") + "}}"
	patch := proxy.Request{Verb: "patch", Resource: history.Jobs, Name: "one-1", At: time.Unix(3, 0), Status: 200,
		OnlyUID: "j", OnlyRV: "2", AnsweredUID: "j", AnsweredRV: "3"}
	unanswered := func(r *proxy.Request) { r.Status, r.AnsweredUID, r.AnsweredRV = 0, "", "" }
	for name, test := range map[string]struct {
		before, after string
		change        func(*proxy.Request)
		found         string
	}{
		"one that is lost":            {lost, has, func(*proxy.Request) {}, ""},
		"not answered":                {lost, has, unanswered, ""},
		"by a forced apply":           {lost, has, func(r *proxy.Request) { r.Force = true }, ""},
		"a conflict":                  {has, has, func(r *proxy.Request) { unanswered(r); r.Status = 409 }, ""},
		"for any version":             {lost, has, func(r *proxy.Request) { r.OnlyRV = "" }, "any version"},
		"for any Job":                 {lost, has, func(r *proxy.Request) { r.OnlyUID = "" }, "any version of any Job"},
		"a creation for any":          {lost, has, func(r *proxy.Request) { r.OnlyUID, r.Status = "", 201 }, "any Job"},
		"of a Job that has its owner": {has, has, func(*proxy.Request) {}, "that has its owner"},
		"of such a Job, not answered": {has, has, unanswered, "that has its owner"},
		"of another controller's":     {theirs, has, func(*proxy.Request) {}, "not the operator's"},
		"with another change": {lost, strings.TrimSuffix(has, "}") + ", spec: {suspend: true}}",
			func(*proxy.Request) {}, "changes more"},
		"that gives it no owner": {lost, lost, func(*proxy.Request) {}, "changes more"},
		"that gives it to another one": {lost, strings.Replace(has, "uid: c, controller", "uid: d, controller", 1),
			func(*proxy.Request) {}, "changes more"},
		"an apply by force for any Job": {lost, has, func(r *proxy.Request) { r.Force, r.OnlyUID = true, "" }, "by force"},
	} {
		request := patch
		test.change(&request)
		run := &Run{Requests: []proxy.Request{request}, Versions: []history.Version{
			version(t, 1, history.CronJobs, "{metadata: {name: one, uid: c}}"),
			version(t, 1, history.CronJobs, "{metadata: {name: two, uid: d}}"),
			version(t, 2, history.Jobs, test.before), version(t, 3, history.Jobs, test.after),
		}}
		run.Versions[3].At = time.Unix(4, 0)
		t.Run(name, func(t *testing.T) { expect(t, "guarantee", run, nil, test.found) })
	}
}

// A creation that comes late, when another one has long made the same, changes nothing: what had the name before that
// does not matter.
func TestGuaranteeOfALateCreation(t *testing.T) {
	gone := version(t, 2, history.Deployments, "{metadata: {name: web, uid: theirs}}")
	gone.IsGone = true
	run := &Run{
		Versions: []history.Version{version(t, 1, history.Foos, foo), gone,
			version(t, 3, history.Deployments, fmt.Sprintf("{metadata: {name: web, uid: d, "+ownedBy+"}}", "f"))},
		Requests: []proxy.Request{{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200, AnsweredUID: "d",
			AnsweredRV: "3"}},
	}
	expect(t, "guarantee", run, nil, "")
}

const jobText = `{metadata: {name: %s, uid: %s, annotations: {batch.tutorial.kubebuilder.io/scheduled-at: "%s"},
  ownerReferences: [{kind: CronJob, name: one, uid: c, controller: true}]}, status: {conditions: [%s]}}`

func TestJobs(t *testing.T) {
	cronJob := version(t, 1, history.CronJobs, "{metadata: {name: one, uid: c}, spec: {concurrencyPolicy: Forbid}}")
	first := version(t, 2, history.Jobs, fmt.Sprintf(jobText, "a", "ja", "2026-01-01T00:00:00Z", ""))
	ended := version(t, 3, history.Jobs, fmt.Sprintf(jobText, "a", "ja", "2026-01-01T00:00:00Z",
		`{type: Complete, status: "True"}`))
	second := version(t, 4, history.Jobs, fmt.Sprintf(jobText, "b", "jb", "2026-01-01T01:00:00Z", ""))
	again := version(t, 5, history.Jobs, fmt.Sprintf(jobText, "a", "jc", "2026-01-01T00:00:00Z",
		`{type: Complete, status: "True"}`))
	run := func(versions ...history.Version) *Run { return &Run{Versions: versions} }
	expect(t, "one at a time", run(cronJob, first, ended, second), nil, "")
	expect(t, "one at a time", run(cronJob, first, second), nil, "2 Jobs go on at the same time")
	expect(t, "once per tick", run(cronJob, first, ended, second), nil, "")
	expect(t, "once per tick", run(cronJob, first, again), nil, "have 2 Jobs")
	gone := version(t, 4, history.CronJobs, "{metadata: {name: one, uid: c}, spec: {concurrencyPolicy: Forbid}}")
	gone.IsGone = true
	expect(t, "once per tick", run(cronJob, first, gone, again), nil, "")
}

func TestLatestTick(t *testing.T) {
	job := version(t, 1, history.Jobs, fmt.Sprintf(jobText, "a", "ja", "2026-01-01T00:00:00Z", ""))
	job.Object.SetCreationTimestamp(metav1.Date(2026, 1, 1, 0, 59, 0, 0, time.UTC))
	run := &Run{
		Requests: []proxy.Request{{Verb: "create", Resource: history.Jobs, Status: 201, AnsweredUID: "ja"}},
		Versions: []history.Version{job},
		Symbols: history.Symbols{
			"tick-1": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), "tick": time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC),
		},
	}
	expect(t, "latest tick", run, nil, "")
	job.Object.SetCreationTimestamp(metav1.Date(2026, 1, 1, 1, 1, 0, 0, time.UTC))
	expect(t, "latest tick", run, nil, "Job a was made for 2026-01-01T00:00:00Z when tick")
	run.Requests = nil
	expect(t, "latest tick", run, nil, "") // somebody else has
}

func TestHygiene(t *testing.T) {
	line := `{"level":"ERROR","msg":"Reconciler error"}` + "\n"
	expect(t, "hygiene", &Run{Log: line, Fired: 1}, &Reference{}, "")
	expect(t, "hygiene", &Run{Log: line, AwayFrom: time.Unix(1, 0)}, &Reference{}, "")
	expect(t, "hygiene", &Run{Log: line, IsDeprived: true}, &Reference{}, "")
	expect(t, "hygiene", &Run{Log: line}, &Reference{}, "Reconciler error")
	expect(t, "hygiene", &Run{RestLog: line, Fired: 1}, &Reference{}, "the log has: Reconciler error")
	expect(t, "hygiene", &Run{Fired: 1, RestLog: `{"level":"ERROR","msg":"Failed to watch","err":"pods is forbidden"}`},
		&Reference{}, "Failed to watch: pods is forbidden")
	const canceled,
		stopping = `{"time":"2026-01-01T00:00:%02dZ","level":"ERROR","msg":"It","err":"context canceled"}` + "\n",
		`{"time":"2026-01-01T00:00:%02dZ","level":"INFO","msg":"Stopping and waiting for leader election runnables"}` + "\n"
	expect(t, "hygiene", &Run{Fired: 1, RestLog: fmt.Sprintf(canceled+stopping, 19, 20)}, &Reference{}, "")
	expect(t, "hygiene", &Run{Fired: 1, RestLog: fmt.Sprintf(stopping+canceled, 20, 24)}, &Reference{}, "")
	expect(t, "hygiene", &Run{Fired: 1, RestLog: fmt.Sprintf(canceled+stopping, 10, 20)}, &Reference{},
		"It: context canceled")
	expect(t, "hygiene", &Run{Fired: 1, RestLog: fmt.Sprintf(canceled, 10)}, &Reference{}, "It: context canceled")
	expect(t, "hygiene", &Run{Log: "WARNING: DATA RACE\n"}, &Reference{}, "DATA RACE")
	expect(t, "hygiene", &Run{Log: "panic: nil\n"}, &Reference{}, "panic")
	expect(t, "hygiene", &Run{Ends: []string{"by itself"}}, &Reference{}, "by itself")
}

// said is a Foo's status.
func said(generation, observed int, available, progressing string, pods int) string {
	return fmt.Sprintf(`{metadata: {name: one, uid: f, generation: %[1]d}, spec: {deploymentName: web, replicas: 1},
  status: {observedGeneration: %[2]d, replicas: %[5]d, availableReplicas: %[5]d, conditions: [
    {type: Available, status: "%[3]s", reason: It, observedGeneration: %[2]d},
    {type: Progressing, status: "%[4]s", reason: It, observedGeneration: %[2]d},
    {type: Degraded, status: "False", reason: It, observedGeneration: %[2]d}]}}`, generation, observed, available, progressing, pods)
}

func TestStatusOfFoo(t *testing.T) {
	rolledOut := fmt.Sprintf("{metadata: {name: web, uid: d, generation: 1, "+ownedBy+"}, spec: {replicas: 1}, "+
		"status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}", "f")
	starting := strings.Replace(rolledOut, "availableReplicas: 1", "availableReplicas: 0", 1)
	for _, test := range []struct {
		name, deployment, foo, found string
	}{
		{"true", rolledOut, said(1, 1, "True", "False", 1), ""},
		{"true still, as the cache is behind", rolledOut, said(1, 1, "False", "True", 0), ""},
		{"pods that there never were", starting, said(1, 1, "True", "True", 1), "its Deployment did not"},
		{"available without pods", starting, said(1, 1, "True", "True", 0), "says that it is available, and that no pod is"},
		{"not available with pods", rolledOut, said(1, 1, "False", "True", 1), "says that it is not available"},
		{"done too early", starting, said(1, 1, "False", "False", 0), "it was not"},
		{"ahead", rolledOut, said(1, 2, "True", "True", 1), "has observed 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect(t, "status", &Run{Versions: []history.Version{
				version(t, 1, history.Foos, foo), version(t, 2, history.Deployments, test.deployment),
				version(t, 3, history.Foos, test.foo),
			}}, nil, test.found)
		})
	}
	t.Run("nothing, after it has said something", func(t *testing.T) {
		run := &Run{Versions: []history.Version{version(t, 1, history.Foos, said(1, 1, "True", "True", 0)),
			version(t, 2, history.Foos, foo)}}
		expect(t, "status", run, nil, "does not say whether it is Available")
	})
	t.Run("back to an earlier generation", func(t *testing.T) {
		run := &Run{Versions: []history.Version{
			version(t, 1, history.Foos, said(2, 2, "True", "True", 0)),
			version(t, 2, history.Foos, said(2, 1, "False", "True", 0)),
		}}
		expect(t, "status", run, nil, "earlier generation")
	})
}

// What a status says of the present was so a moment before, or longer before where something has held the world back.
func TestStatusOfWhatIsOver(t *testing.T) {
	rolledOut := fmt.Sprintf("{metadata: {name: web, uid: d, generation: 1, "+ownedBy+"}, spec: {replicas: 1}, "+
		"status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}", "f")
	at := func(second int64, v history.Version) history.Version {
		v.At = time.Unix(second, 0)
		return v
	}
	run := func(told int64, requests ...proxy.Request) *Run {
		return &Run{Requests: requests, Versions: []history.Version{
			at(0, version(t, 1, history.Foos, foo)),
			at(1, version(t, 2, history.Deployments, rolledOut)),
			at(10, version(t, 3, history.Deployments, strings.ReplaceAll(rolledOut, "eplicas: 1", "eplicas: 0"))),
			at(told, version(t, 4, history.Foos, said(1, 1, "True", "False", 1))),
		}}
	}
	faulty := func(verb string, fault proxy.Fault) proxy.Request {
		return proxy.Request{At: time.Unix(20, 0), Verb: verb, Resource: history.Deployments, Status: 200, Fault: &fault}
	}
	expect(t, "status", run(9), nil, "")
	expect(t, "status", run(14), nil, "")
	expect(t, "status", run(16), nil, "its Deployment did not")
	expect(t, "status", run(16, faulty("patch", proxy.Fault{Kind: proxy.Delay, For: 2 * time.Second})), nil, "")
	expect(t, "status", run(18, faulty("patch", proxy.Fault{Kind: proxy.Delay, For: 2 * time.Second})), nil,
		"its Deployment did not")
	for _, long := range []proxy.Request{faulty("patch", proxy.Fault{Kind: proxy.AgeMore}),
		faulty("patch", proxy.Fault{Kind: proxy.Freeze}),
		faulty("watch", proxy.Fault{Kind: proxy.Refuse, Code: 500})} {
		expect(t, "status", run(100, long), nil, "")
		expect(t, "status", run(19, long), nil, "its Deployment did not") // before it
	}
	away := run(100)
	away.AwayFrom = time.Unix(50, 0)
	expect(t, "status", away, nil, "")
}

func TestStatusOfCronJob(t *testing.T) {
	const conditions = `nextScheduleTime: "2026-01-01T04:00:00Z", conditions: [
  {type: Available, status: "True"}, {type: Progressing, status: "True"}, {type: Degraded, status: "False"}]`
	hour := func(h int) time.Time { return time.Date(2026, 1, 1, h, 0, 0, 0, time.UTC) }
	symbols := history.Symbols{"tick-2": hour(1), "tick-1": hour(2), "tick": hour(3), "tick+1": hour(4)}
	job := version(t, 1, history.Jobs, fmt.Sprintf(jobText, "a", "ja", "2026-01-01T00:00:00Z", ""))
	completed := version(t, 1, history.Jobs, fmt.Sprintf(jobText, "b", "jb", "2026-01-01T02:00:00Z",
		`{type: Complete, status: "True", lastTransitionTime: "2026-01-01T02:30:00Z"}`))
	failed := version(t, 1, history.Jobs, fmt.Sprintf(jobText, "c", "jc", "2026-01-01T02:00:00Z",
		`{type: Failed, status: "True", lastTransitionTime: "2026-01-01T02:40:00Z"}`))
	judged := func(spec string, versions ...history.Version) *Run {
		object := version(t, 2, history.CronJobs, "{metadata: {name: one, uid: c}, "+spec+"}")
		object.At = hour(3).Add(30 * time.Minute)
		return &Run{Symbols: symbols, Versions: append(versions, object)}
	}
	for text, found := range map[string]string{
		`lastScheduleTime: "2026-01-01T00:00:00Z", active: [{name: a, uid: ja}], activeJobs: 1`: "",
		`lastScheduleTime: "2026-01-01T01:00:00Z"`:                                              "no Job for it",
		`active: [{name: a, uid: other}], activeJobs: 1`:                                        "none of its own",
		`active: [{name: b, uid: jb}], activeJobs: 1`: "none of its own that " +
			"went on",
		`active: [{name: a, uid: ja}, {name: a, uid: ja}], activeJobs: 2`: "as active twice",
		`active: [{name: a, uid: ja}], activeJobs: 2`:                     "says that they are 2",
		`lastSuccessfulTime: "2026-01-01T01:00:00Z"`:                      "none did",
		`lastMissedTime: "2026-01-01T01:00:00Z"`:                          "",
		`lastMissedTime: "2026-01-01T01:30:00Z"`:                          "was missed, which was not due",
		`lastMissedTime: "2026-01-01T04:00:00Z"`:                          "was missed, which was not due",
		`lastMissedTime: "2026-01-01T02:00:00Z"`: "was missed; there is a " +
			"Job for it",
		`lastFailedTime: "2026-01-01T02:30:00Z", lastSuccessfulTime: "2026-01-01T02:30:00Z"`: "says that a Job failed at",
		`lastFailedTime: "2026-01-01T02:40:00Z"`: "the last Job failed, and " +
			"that nothing is wrong",
	} {
		expect(t, "status", judged("status: {"+conditions+", "+text+"}", job, completed, failed), nil, found)
	}
	for text, found := range map[string]string{
		`nextScheduleTime: "2026-01-01T04:00:00Z"`: "",
		`lastMissedTime: "2026-01-01T01:00:00Z"`:   "and not when the next one is due",
		`nextScheduleTime: "2026-01-01T03:00:00Z"`: "which is not to come",
		`nextScheduleTime: "2026-01-01T04:30:00Z"`: "which is not to come",
	} {
		expect(t, "status", judged(`status: {`+text+`, conditions: [
  {type: Available, status: "True"}, {type: Progressing, status: "False", reason: Idle}, {type: Degraded, status: "False"}]}`), nil, found)
	}
	for _, test := range []struct{ spec, rest, available, progressing, degraded, found string }{
		{"suspend: true", "", `"False", reason: Suspended`, `"False", reason: Idle`, `"False"`, ""},
		{"suspend: true", `nextScheduleTime: "2026-01-01T04:00:00Z",`, `"True"`, `"False", reason: Idle`, `"False"`,
			"and it is suspended"},
		{"suspend: true", `nextScheduleTime: "2026-01-01T04:00:00Z",`, `"False", reason: Suspended`, `"False", reason: Idle`,
			`"False"`, "is suspended, and says when"},
		{"suspend: false", "", `"False", reason: Suspended`, `"False", reason: Idle`, `"False"`,
			"says that it is suspended, and it is not"},
		{"suspend: false", "", `Unknown, reason: NotObserved`, `"False"`, `"False"`, "could not be looked at"},
		{"suspend: true", "", `"False", reason: Suspended`, `"False", reason: Blocked`, `"False"`, "is blocked"},
		{"suspend: true", "", `"False", reason: Suspended`, `"True", reason: JobsRunning`, `"False"`, "none is active"},
		{"suspend: true", "active: [{name: a, uid: ja}], activeJobs: 1,", `"False", reason: Suspended`,
			`"False", reason: Idle`, `"False"`, "some are active"},
		{"concurrencyPolicy: Forbid, suspend: true", "active: [{name: a, uid: ja}], activeJobs: 1,",
			`"False", reason: Suspended`, `"True", reason: WaitingForJob`, `"False"`, ""},
		{"suspend: true", "active: [{name: a, uid: ja}], activeJobs: 1,", `"False", reason: Suspended`,
			`"True", reason: WaitingForJob`, `"False"`, "none to wait for"},
		{"suspend: true", `lastFailedTime: "2026-01-01T02:40:00Z",`, `"False", reason: Suspended`, `"False", reason: Idle`,
			`"True", reason: LastRunFailed`, ""},
		{"suspend: true", "", `"False", reason: Suspended`, `"False", reason: Idle`, `"True", reason: LastRunFailed`,
			"and not when"},
	} {
		spec := fmt.Sprintf(`spec: {%s}, status: {%s conditions: [{type: Available, status: %s}, {type: Progressing, status: %s}, {type: Degraded, status: %s}]}`,
			test.spec, test.rest, test.available, test.progressing, test.degraded)
		expect(t, "status", judged(spec, job, failed), nil, test.found)
	}
	run := judged(`status: {`+conditions+`, lastScheduleTime: "2026-01-01T00:00:00Z"}`, job)
	run.Versions = append(run.Versions,
		judged(`status: {`+conditions+`, lastScheduleTime: "2025-12-31T23:00:00Z"}`).Versions...)
	expect(t, "status", run, nil, "go back")
}

var someday = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// degraded returns a Foo that says at a time whether it is degraded.
func degraded(t *testing.T, rv int64, status, reason string, at time.Time) history.Version {
	t.Helper()
	v := version(t, rv, history.Foos,
		fmt.Sprintf(`{metadata: {name: one, uid: f}, spec: {deploymentName: web, replicas: 1}, status: {conditions: [
  {type: Available, status: Unknown}, {type: Progressing, status: "True"}, {type: Degraded, status: %q, reason: %s}]}}`,
			status, reason))
	v.At = at
	return v
}

func TestStatusThatIsDegraded(t *testing.T) {
	at := someday
	foreign := version(t, 1, history.Deployments, "{metadata: {name: web, uid: d}}")
	elsewhere := version(t, 1, history.Deployments, "{metadata: {name: other, uid: d}}")
	own := func(conditions string) history.Version {
		return version(t, 1, history.Deployments,
			fmt.Sprintf("{metadata: {name: web, uid: d, "+ownedBy+"}, status: {conditions: ["+conditions+"]}}", "f"))
	}
	apply := proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", At: at.Add(-time.Second),
		Status: 200}
	refused, conflict, told, late, slow, unfounded := apply, apply, apply, apply, apply, apply
	unfounded.Fault, unfounded.Status = &proxy.Fault{Kind: proxy.Refuse, Code: 409}, 0
	refused.Fault, refused.Status = &proxy.Fault{Kind: proxy.Refuse, Code: 403}, 0
	conflict.Status = 409
	told.Fault, told.Resource = &proxy.Fault{Kind: proxy.Refuse, Code: 500}, history.Foos+"/status"
	late.Fault, late.At = &proxy.Fault{Kind: proxy.Refuse, Code: 500}, at.Add(time.Second)
	slow.Fault = &proxy.Fault{Kind: proxy.CloseWatches}
	lost, forbidden, another := apply, apply, refused
	lost.Status, forbidden.Status, another.Name = 0, 403, "other"
	for _, test := range []struct {
		reason  string
		version history.Version
		request proxy.Request
		isFound bool
	}{
		{"Refused", own(""), refused, false},
		{"Error", own(""), refused, true},
		{"Error", own(""), lost, false},
		{"Refused", own(""), lost, true},
		{"Refused", own(""), another, true},
		{"Refused", version(t, 1, history.Deployments, fmt.Sprintf("{metadata: {name: other, uid: d, "+ownedBy+"}}", "f")),
			another, false},
		{"Refused", own(""), forbidden, false},
		{"Error", own(""), apply, true},
		{"Error", own(""), conflict, true},
		{"Error", own(""), unfounded, false},
		{"Refused", own(""), unfounded, true},
		{"Error", own(""), told, true},
		{`Error, message: 'it; Deployment "web" exists; delete it (kubectl -n ns delete deployment web)'`, foreign,
			lost, false},
		{"Error", own(""), late, true},
		{"Error", own(""), slow, true},
		{"NameTaken", foreign, apply, false},
		{"NameTaken", elsewhere, apply, true},
		{"NameTaken", own(""), refused, true},
		{"RolloutStuck", own(`{type: Progressing, status: "False"}`), apply, false},
		{"RolloutStuck", own(`{type: ReplicaFailure, status: "True"}`), apply, false},
		{"RolloutStuck", own(`{type: Progressing, status: "True"}`), apply, true},
		{"LastRunFailed", own(""), apply, true},
		{"Whatever", own(""), refused, true},
	} {
		degraded := degraded(t, 2, "True", test.reason, at)
		found := ""
		if test.isFound {
			found = "says that it is degraded, for the reason " + test.reason
		}
		expect(t, "status", &Run{Requests: []proxy.Request{test.request},
			Versions: []history.Version{test.version, degraded}}, nil, found)
		if test.request.Name == another.Name { // which it had not yet
			expect(t, "status", &Run{Requests: []proxy.Request{test.request},
				Versions: []history.Version{degraded, test.version}}, nil, found)
		}
	}
}

// Of the problems that a message lists, a taken name is judged like one that gives the reason.
func TestStatusThatListsATakenName(t *testing.T) {
	const message = `Error, message: 'it; Deployment "web" exists; delete it (kubectl -n ns delete deployment web)'`
	for deployment, found := range map[string]string{
		"{metadata: {name: web, uid: d}}":                                "",
		fmt.Sprintf("{metadata: {name: web, uid: d, "+ownedBy+"}}", "f"): "lists a name that is taken among its problems",
	} {
		failed := proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", At: someday.Add(-time.Second),
			Status: 500}
		expect(t, "status", &Run{Requests: []proxy.Request{failed}, Versions: []history.Version{
			version(t, 1, history.Deployments, deployment), degraded(t, 2, "True", message, someday)}}, nil, found)
	}
}

// What went wrong before all was well again is no reason to be degraded.
func TestStatusThatIsDegradedForWhatIsOver(t *testing.T) {
	at := someday
	for before, isFound := range map[time.Duration]bool{-30 * time.Second: true, -5 * time.Second: false,
		5 * time.Second: true} {
		run := &Run{Requests: []proxy.Request{{Verb: "patch", Resource: history.Deployments, Name: "web", At: at.Add(before),
			Status: 500}},
			Versions: []history.Version{degraded(t, 1, "False", "Error", at.Add(-20*time.Second)),
				degraded(t, 2, "True", "Error", at)}}
		found := ""
		if isFound {
			found = "nothing of that sort has been"
		}
		expect(t, "status", run, nil, found)
	}
}

// Each trouble of a node is that of a pod of the Memcached's own.
func TestStatusOfNodesInTrouble(t *testing.T) {
	const owned = "{metadata: {name: %s, uid: %s, ownerReferences: [{kind: It, name: it, uid: %s, controller: true}]}%s}"
	troubles := map[string]string{
		"NodeCrashing":      "containerStatuses: [{lastState: {terminated: {exitCode: 1}}}]",
		"NodeNotStarting":   "containerStatuses: [{state: {waiting: {reason: ImagePullBackOff}}}]",
		"NodeUnschedulable": `conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]`,
		"none":              "containerStatuses: [{state: {waiting: {reason: ContainerCreating}}}]",
	}
	for said := range troubles {
		for is, status := range troubles {
			for _, owner := range []string{"r", "another"} {
				pod := version(t, 3, history.Pods, fmt.Sprintf(owned, "p", "p", owner, ", status: {"+status+"}"))
				mc := version(t, 4, history.Memcacheds,
					fmt.Sprintf(`{metadata: {name: one, uid: m}, spec: {size: 1}, status: {conditions: [
  {type: Available, status: Unknown}, {type: Progressing, status: "True"}, {type: Degraded, status: "True", reason: %s}]}}`, said))
				found := "says that it is degraded, for the reason " + said
				if said == is && said != "none" && owner == "r" {
					found = ""
				}
				expect(t, "status", &Run{Versions: []history.Version{version(t, 1, history.Deployments,
					fmt.Sprintf(owned, "one", "d", "m", "")),
					version(t, 2, history.ReplicaSets, fmt.Sprintf(owned, "one-1", "r", "d", "")), pod, mc}}, nil, found)
			}
		}
	}
}

func TestStatusOfMemcached(t *testing.T) {
	const chain = "{metadata: {name: %s, uid: %s, ownerReferences: [{kind: It, name: it, uid: %s, controller: true}]}%s}"
	versions := []history.Version{
		version(t, 1, history.Memcacheds, "{metadata: {name: one, uid: m, generation: 1}, spec: {size: 1}}"),
		version(t, 2, history.Deployments, fmt.Sprintf(chain, "one", "d", "m", "")),
		version(t, 3, history.ReplicaSets, fmt.Sprintf(chain, "one-1", "r", "d", "")),
		version(t, 4, history.Pods, fmt.Sprintf(chain, "pod", "p", "r",
			`, status: {conditions: [{type: Ready, status: "False"}]}`)),
	}
	ready := version(t, 5, history.Pods, fmt.Sprintf(chain, "pod", "p", "r",
		`, status: {conditions: [{type: Ready, status: "True"}]}`))
	status := func(nodes string, count, ready int) history.Version {
		return version(t, 6, history.Memcacheds, fmt.Sprintf(`{metadata: {name: one, uid: m, generation: 1}, spec: {size: 1},
  status: {nodes: [%s], size: %d, readyNodes: %d, conditions: [{type: Available, status: Unknown}, {type: Progressing, status: "True"}, {type: Degraded, status: "False"}]}}`,
			nodes, count, ready))
	}
	expect(t, "status", &Run{Versions: append(versions[:4:4], ready, status("pod", 1, 1))}, nil, "")
	expect(t, "status", &Run{Versions: append(versions[:4:4], status("pod", 1, 1))}, nil,
		"1 nodes are ready; of those it lists, 0 were")
	expect(t, "status", &Run{Versions: append(versions[:4:4], ready, status("other", 1, 0))}, nil,
		"no pod of its Deployment")
	expect(t, "status", &Run{Versions: append(versions[:4:4], ready, status("pod", 2, 1))}, nil, "says that they are 2")
}

func TestGoroutines(t *testing.T) {
	few := map[string]int{"worker": 3}
	many := map[string]int{"worker": 4, "net/http.(*Transport).dialConn.gowrap1": 9}
	run := func(all, start, rest map[string]int) *Run {
		return &Run{Goroutines: all, StartGoroutines: start, RestGoroutines: rest}
	}
	expect(t, "goroutines", run(many, few, few), &Reference{Goroutines: few}, "4 goroutines of worker, and 3")
	expect(t, "goroutines", run(many, few, few), &Reference{Goroutines: many}, "")
	expect(t, "goroutines", run(many, many, many), &Reference{Goroutines: few}, "")
	expect(t, "goroutines", run(few, many, few), &Reference{Goroutines: few}, "")
	// What goes wrong without faults is found in the run that is to be the reference, and at rest.
	expect(t, "goroutines", run(few, few, few), nil, "")
	expect(t, "goroutines", run(many, few, few), nil, "4 goroutines of worker, and 3 in one that has just begun")
	delete(many, "worker")
	expect(t, "goroutines", run(many, few, many), nil, "")
	many["worker"] = 4
	expect(t, "goroutines", run(few, few, many), nil, "4 goroutines of worker, and 3 before it looked at everything again")
	expect(t, "goroutines", run(many, few, many), &Reference{Goroutines: many},
		"and 3 before it looked at everything again")
	// The first event begins some.
	events := map[string]int{"worker": 3, "k8s.io/client-go/tools/events.(*eventBroadcasterImpl).attemptRecording": 2}
	expect(t, "goroutines", run(events, few, few), nil, "")
	two := map[string]int{watching: 2}
	watch := proxy.Request{Verb: "watch", Resource: "/pods"}
	for _, open := range []*Run{run(two, nil, nil), run(nil, nil, two)} {
		open.Requests = []proxy.Request{watch, watch, {Verb: "watch", Resource: "/services"}}
		expect(t, "goroutines", open, nil, "")
		open.Requests = open.Requests[:2]
		expect(t, "goroutines", open, &Reference{Goroutines: two},
			"2 goroutines of k8s.io/apimachinery/pkg/watch.(*StreamWatcher).receive, and 1 ")
	}
}

// Of an operator of which only the log was recorded, only the log is judged.
func TestLogAlone(t *testing.T) {
	if findings := Judge(&Run{AwayFrom: time.Unix(1, 0), Log: `{"level":"ERROR","msg":"Reconciler error"}` + "\n"},
		&Reference{}); len(findings) > 0 {
		t.Error(findings)
	}
	if findings := Judge(&Run{Log: "WARNING: DATA RACE\n", Ends: []string{"by itself"}},
		&Reference{}); len(findings) != 2 {
		t.Error(findings)
	}
}
