package oracle

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
	Expected          scenario.Expected
	Requests, Standby []testRequest
	Versions          []json.RawMessage // the objects
}

type testRequest struct {
	proxy.Request
	At int64
}

func at(seconds int64) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

func requests(all []testRequest) (requests []proxy.Request) {
	for _, r := range all {
		r.Request.At = at(r.At)
		requests = append(requests, r.Request)
	}
	return requests
}

// resources are the resources of objects by kind.
var resources = map[string]string{"Foo": history.Foos, "Memcached": history.Memcacheds, "CronJob": history.CronJobs,
	"Deployment": history.Deployments, "StatefulSet": history.StatefulSets,
	"Service": history.Services, "ReplicaSet": history.ReplicaSets, "Pod": history.Pods, "Job": history.Jobs}

// run returns the run of a test case. By default, the operator is not restarted in the end.
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
		maps.DeleteFunc(object.Object, func(field string, _ any) bool { return field == "at" || field == "gone" })
		object.SetResourceVersion(fmt.Sprint(i + 1))
		run.Versions = append(run.Versions, history.Version{
			Key: history.Key{Resource: resources[object.GetKind()], Name: object.GetName()},
			At:  at(seconds), RV: int64(i + 1), IsGone: isGone, Object: object})
	}
	return &run
}

func TestOracles(t *testing.T) {
	var all map[string]json.RawMessage
	if err := yaml.Unmarshal(oraclesYAML, &all); err != nil {
		t.Fatal(err)
	}
	unexpected := Oracle{Name: "expected"} // which compares a reference with a scenario
	for _, oracle := range append(All, unexpected) {
		var cases []testCase
		if err := yaml.Unmarshal(all[oracle.Name], &cases, yaml.DisallowUnknownFields); err != nil {
			t.Fatalf("%s: %v", oracle.Name, err)
		}
		if len(cases) == 0 {
			t.Errorf("%s has no cases", oracle.Name)
		}
		for _, c := range cases {
			t.Run(oracle.Name+"/"+c.Name, func(t *testing.T) {
				var found string
				if oracle.Judge != nil {
					found = strings.Join(oracle.Judge(c.run(t), c.Reference), "\n")
				} else if findings := c.Reference.Unexpected(&scenario.Scenario{Expected: c.Expected, IsOpen: c.IsOpen,
					IsPassing: c.IsPassing}); len(findings) > 0 {
					found = fmt.Sprint(findings)
				}
				if (found == "") != (c.Found == "") || !strings.Contains(found, c.Found) {
					t.Errorf("it finds %q, not %q", found, c.Found)
				}
			})
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
	for log, count := range map[string]int{`{"level":"ERROR","msg":"Reconciler error"}`: 0, "WARNING: DATA RACE": 1} {
		if findings := Judge(&Run{AwayFrom: begin, Log: log + "\n"}, &Reference{}); len(findings) != count {
			t.Errorf("%s: %v", log, findings)
		}
	}
}

// The garbage collector's time counts from the end of the outage, and only if it deletes children after that.
func TestCollected(t *testing.T) {
	version := func(kind, uid, owner string, seconds int64) history.Version {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetUID(types.UID(uid))
		if owner != "" {
			object.SetOwnerReferences([]metav1.OwnerReference{{UID: types.UID(owner)}})
		}
		return history.Version{Key: history.Key{Resource: resources[kind]}, At: at(seconds), IsGone: true, Object: object}
	}
	foo := version("Foo", "a", "", 2)
	for name, c := range map[string]struct {
		versions []history.Version
		away     int64
		took     time.Duration
		ok       bool
	}{
		"after the outage":      {[]history.Version{foo, version("Deployment", "b", "a", 9)}, 5, 4 * time.Second, true},
		"before its end":        {[]history.Version{foo, version("Deployment", "b", "a", 4)}, 5, 0, false},
		"of what was not owned": {[]history.Version{foo, version("Deployment", "b", "c", 9)}, 5, 0, false},
		"of a deleted child": {[]history.Version{version("Deployment", "b", "", 6), version("ReplicaSet", "c", "b", 9)}, 5,
			3 * time.Second, true},
		"of a living owner": {[]history.Version{version("Deployment", "b", "a", 9)}, 5, 0, false},
		"the last of several": {[]history.Version{version("Job", "c", "a", 12), foo, version("Deployment", "b", "a", 9)}, 5,
			7 * time.Second, true},
	} {
		took, ok := Collected(&Run{Versions: c.versions, AwayFrom: at(c.away - 1), AwayTo: at(c.away)})
		if took != c.took || ok != c.ok {
			t.Errorf("%s: %s, %t", name, took, ok)
		}
	}
	if _, ok := Collected(&Run{Versions: []history.Version{foo, version("Deployment", "b", "a", 9)}}); ok {
		t.Error("there was no outage")
	}
}
