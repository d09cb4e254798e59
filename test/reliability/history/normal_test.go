package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var minute = time.Date(2026, 1, 1, 0, 7, 0, 0, time.UTC)

// state reads objects from a YAML map by resource and name.
func state(t *testing.T, text string) State {
	t.Helper()
	var contents map[string]any
	if err := yaml.Unmarshal([]byte(text), &contents); err != nil {
		t.Fatal(err)
	}
	objects := State{}
	for key, content := range contents {
		slash := strings.LastIndex(key, "/")
		objects[Key{key[:slash], key[slash+1:]}] = &unstructured.Unstructured{Object: content.(map[string]any)}
	}
	return objects
}

const first = `
samplecontroller.k8s.io/foos/one:
  metadata: {name: one, namespace: plan-1, uid: 00000000-0000-0000-0000-00000000000a, resourceVersion: "1",
    generation: 4, creationTimestamp: "2026-01-01T00:07:00Z"}
  status: {nodes: [web-1-abcde], since: "2026-01-01T00:07:00Z", conditions: [{type: Degraded, observedGeneration: 4}]}
apps/deployments/web:
  metadata: {name: web, generation: 4, ownerReferences: [{uid: 00000000-0000-0000-0000-00000000000a}]}
  status: {observedGeneration: 4}
/pods/web-1-abcde:
  metadata: {name: web-1-abcde,
    ownerReferences: [{name: web-1, uid: 00000000-0000-0000-0000-00000000000a, controller: true}]}
`

// Two states are equal if they differ only in what the API server generates.
func TestDiff(t *testing.T) {
	expected := Normalize("plan-1", state(t, first), nil, Symbols{"tick": minute})
	for name, test := range map[string]struct {
		replace []string
		want    string
	}{
		"everything that the API server generates": {[]string{"plan-1", "plan-2", "00000000000a", "00000000000b",
			"abcde", "fghij", `"1"`, `"2"`, "eneration: 4", "eneration: 7"}, ""},
		"another creation time":          {[]string{`creationTimestamp: "2026-01-01T00:07:00Z"`, ""}, ""},
		"one more object":                {[]string{"\n/pods", "\n/services/one: {}\n/pods"}, "+ /services/one"},
		"a missing object":               {[]string{"/pods/web-1-abcde", "/pods/another"}, "- /pods/web-1-(1)"},
		"another owner":                  {[]string{"[{uid: 00000000-0000-0000-0000-00000000000a}]", "[]"}, "+ "},
		"a label":                        {[]string{"{name: one,", "{name: one, labels: {a: b},"}, "+ "},
		"a deletion":                     {[]string{"{name: one,", "{name: one, deletionTimestamp: soon,"}, "+ "},
		"another status":                 {[]string{"[web-1-abcde]", "[]"}, "+ "},
		"another scheduled time":         {[]string{`since: "2026-01-01T00:07:00Z"`, `since: "2026-01-01T00:07:01Z"`}, "+ "},
		"a status of an earlier spec":    {[]string{"{observedGeneration: 4", "{observedGeneration: 3"}, "+ "},
		"a condition of an earlier spec": {[]string{"d, observedGeneration: 4", "d, observedGeneration: 3"}, "+ "},
	} {
		replacer := strings.NewReplacer(test.replace...)
		actual := Normalize(replacer.Replace("plan-1"), state(t, replacer.Replace(first)), nil, Symbols{"tick": minute})
		if diff := Diff(expected, actual); (diff == "") != (test.want == "") || !strings.Contains(diff, test.want) {
			t.Errorf("%s: %q", name, diff)
		}
	}
}

func TestNames(t *testing.T) {
	const uid = "00000000-0000-0000-0000-00000000000b"
	deleted := Version{Key: Key{Foos, "old"}, IsGone: true, Object: &unstructured.Unstructured{}}
	deleted.Object.SetUID(uid)
	controlled := func(uid string) string {
		return fmt.Sprintf("{metadata: {name: one, ownerReferences: [{uid: %s}]}}", uid)
	}
	for text, want := range map[string]string{
		`{metadata: {name: one}, spec: {schedule: "7 * * * *"}}`:                                `"schedule": "(hourly)"`,
		`{metadata: {name: one}, status: {message: 'pods "web-5d4f8c7b9-x2v4z" is forbidden'}}`: `\"web-(pod)\" is`,
		controlled(uid): `(uid of samplecontroller.k8s.io/foos/old)`,
		controlled("00000000-0000-0000-0000-0000000000cc"): `(uid of nothing)`,
	} {
		normal := Normalize("ns", state(t, "/services/one: "+text), []Version{deleted}, Symbols{"tick": minute})
		if !strings.Contains(normal["/services/one"], want) {
			t.Errorf("%s becomes %s", text, normal)
		}
	}
	symbols := Symbols{"tick": minute.Add(time.Second), "tick-1": minute}
	got := symbols.Rename("one-1767226021 one-29453767 one-29453760")
	if got != "one-(tick) one-(tick-1) one-29453760" {
		t.Error(got)
	}
}

// rolledOut returns the normal form of a ReplicaSet and its pod for each hash of a template, the oldest first.
func rolledOut(t *testing.T, hashes ...string) Normal {
	t.Helper()
	var text strings.Builder
	for i, hash := range hashes {
		fmt.Fprintf(&text, `
apps/replicasets/one-%[1]s:
  metadata: {name: one-%[1]s, creationTimestamp: "2026-01-01T00:00:00Z", labels: {pod-template-hash: %[1]s},
    annotations: {deployment.kubernetes.io/revision: "%[2]d"}, ownerReferences: [{name: one, controller: true}]}
  spec: {replicas: %[2]d}
/pods/one-%[1]s-x2v4z:
  metadata: {name: one-%[1]s-x2v4z, ownerReferences: [{name: one-%[1]s, controller: true}]}`, hash, i+1)
	}
	return Normalize("ns", state(t, text.String()), nil, nil)
}

func TestTemplateHashes(t *testing.T) {
	one, two := rolledOut(t, "6bd875846d"), rolledOut(t, "6bd875846d", "5d4f8c7b9")
	if diff := Diff(one, rolledOut(t, "5d4f8c7b9")) + Diff(two, rolledOut(t, "5d4f8c7b9", "6bd875846d")); diff != "" {
		t.Error(diff)
	}
	if Diff(one, two) == "" {
		t.Error("the ReplicaSet of an earlier Deployment of the same name makes no difference")
	}
}
