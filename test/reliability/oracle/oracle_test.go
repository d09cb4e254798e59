package oracle

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

//go:embed testdata/oracles.yaml
var oraclesYAML []byte

// begin is when the histories in testdata begin.
var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// testCase is a run with times in seconds, and what an oracle finds in it.
type testCase struct {
	Name, Found string
	Run
	Reference         *Reference
	Requests, Standby []testRequest
	Versions          []json.RawMessage // the objects
}

type testRequest struct {
	proxy.Request
	At int64
}

func requests(all []testRequest) []proxy.Request {
	var requests []proxy.Request
	for _, r := range all {
		r.Request.At = begin.Add(time.Duration(r.At) * time.Second)
		requests = append(requests, r.Request)
	}
	return requests
}

// resources are the resources of objects by kind.
var resources = map[string]string{"Foo": history.Foos, "Memcached": history.Memcacheds, "CronJob": history.CronJobs,
	"Deployment": history.Deployments, "ReplicaSet": history.ReplicaSets, "Pod": history.Pods, "Job": history.Jobs}

// run returns the run of a test case. Unless the case says otherwise, nothing comes anew.
func (c *testCase) run(t *testing.T) *Run {
	t.Helper()
	run := c.Run
	run.Requests, run.Standby = requests(c.Requests), requests(c.Standby)
	if run.Anew == 0 {
		run.Anew = len(run.Requests)
	}
	for _, request := range run.Requests {
		if request.Fault != nil {
			run.Fired++
		}
	}
	for i, content := range c.Versions {
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(content, &object.Object); err != nil {
			t.Fatal(err)
		}
		seconds, _, _ := unstructured.NestedInt64(object.Object, "at")
		isGone, _, _ := unstructured.NestedBool(object.Object, "gone")
		delete(object.Object, "at")
		delete(object.Object, "gone")
		object.SetResourceVersion(fmt.Sprint(i + 1))
		run.Versions = append(run.Versions, history.Version{
			Key: history.Key{Resource: resources[object.GetKind()], Name: object.GetName()},
			At:  begin.Add(time.Duration(seconds) * time.Second), RV: int64(i + 1), IsGone: isGone, Object: object})
	}
	return &run
}

func TestOracles(t *testing.T) {
	var all map[string]json.RawMessage
	if err := yaml.Unmarshal(oraclesYAML, &all); err != nil {
		t.Fatal(err)
	}
	for _, oracle := range All {
		var cases []testCase
		if err := yaml.Unmarshal(all[oracle.Name], &cases, yaml.DisallowUnknownFields); err != nil {
			t.Fatalf("%s: %v", oracle.Name, err)
		}
		if len(cases) == 0 {
			t.Errorf("%s has no cases", oracle.Name)
		}
		for _, c := range cases {
			t.Run(oracle.Name+"/"+c.Name, func(t *testing.T) {
				found := strings.Join(oracle.Judge(c.run(t), c.Reference), "\n")
				if (found == "") != (c.Found == "") || !strings.Contains(found, c.Found) {
					t.Errorf("it finds %q, not %q", found, c.Found)
				}
			})
		}
	}
}

// What is wrong in every run without faults is found by comparing it with expected.yaml.
func TestUnexpected(t *testing.T) {
	type counts map[string]int
	expected := scenario.Expected{Creates: counts{"apps/deployments web": 1}, Deletes: counts{"batch/jobs c": 1},
		Events: map[string][2]int{"Synced": {1, 2}}}
	web, job := counts{"apps/deployments web": 1}, counts{"batch/jobs c": 1}
	for name, test := range map[string]struct {
		creates, deletes, events counts
		isOpen, isPassing        bool
		found                    string
	}{
		"as expected":         {web, job, counts{"Synced": 1}, false, false, ""},
		"one more event":      {web, job, counts{"Synced": 2}, false, false, ""},
		"too many events":     {web, job, counts{"Synced": 3}, false, false, "3 events Synced, where 2 report news"},
		"an unexpected event": {web, job, counts{"Synced": 1, "Error": 1}, false, false, "1 events Error, where 0 report news"},
		"no event":            {web, job, nil, false, false, "0 events Synced, not 1"},
		"created twice":       {counts{"apps/deployments web": 2}, job, counts{"Synced": 1}, false, false, "created 2 times, not 1"},
		"another creation": {counts{"apps/deployments web": 1, "x": 1}, job, counts{"Synced": 1}, false, false,
			"x was created 1 times, not 0"},
		"not deleted":             {web, nil, counts{"Synced": 1}, false, false, "batch/jobs c was deleted 0 times, not 1"},
		"less in less time":       {nil, nil, nil, true, false, ""},
		"more in less time":       {web, counts{"batch/jobs c": 2}, counts{"Synced": 1}, true, false, "deleted 2 times"},
		"a name taken in passing": {web, job, counts{"Synced": 4, "ErrResourceExists": 2}, false, true, ""},
		"a name taken":            {web, job, counts{"Synced": 2, "ErrResourceExists": 2}, false, false, "2 events ErrResourceExists"},
	} {
		r := &Reference{Creates: test.creates, Deletes: test.deletes, Events: test.events}
		findings := r.Unexpected(&scenario.Scenario{Expected: expected, IsOpen: test.isOpen, IsPassing: test.isPassing})
		if found := fmt.Sprint(findings); len(findings) > 0 != (test.found != "") || !strings.Contains(found, test.found) {
			t.Errorf("%s: %s, not %q", name, found, test.found)
		}
	}
}

func TestNewReference(t *testing.T) {
	write := proxy.Request{Verb: "patch", Resource: history.Deployments, Name: "web", Status: 200}
	event := proxy.Request{Verb: "create", Resource: eventResource, Name: "one.1", Reason: "Synced", Status: 201}
	reference := NewReference(&Run{Requests: []proxy.Request{write, event, write, event, write}, Setup: 3, Anew: 3})
	if n := reference.Writes[proxy.Match{Verb: "patch", Resource: history.Deployments}]; n != 1 {
		t.Errorf("%d writes after the setup, not 1", n)
	}
	if n := reference.Events["Synced"]; n != 1 {
		t.Errorf("%d events before the restart, not 1", n)
	}
}

// A run of which only the log was recorded is judged by its log.
func TestJudgeLog(t *testing.T) {
	if findings := Judge(&Run{AwayFrom: begin, Log: `{"level":"ERROR","msg":"Reconciler error"}` + "\n"},
		&Reference{}); len(findings) > 0 {
		t.Error(findings)
	}
	if findings := Judge(&Run{Log: "WARNING: DATA RACE\n", Ends: []string{"by itself"}}, &Reference{}); len(findings) != 2 {
		t.Error(findings)
	}
}
