package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

const (
	uidA = "00000000-0000-0000-0000-00000000000a"
	uidB = "00000000-0000-0000-0000-00000000000b"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(content, &object.Object); err != nil { // with whole numbers, as the API's client has them
		t.Fatal(err)
	}
	return object
}

// world returns one of a Foo with a pod, and whatever the server makes of it.
func world(t *testing.T, namespace, uid, pod, at string, generation string) World {
	t.Helper()
	return World{
		{Foos, "one"}: object(t, `
metadata: {name: one, namespace: `+namespace+`, uid: `+uid+`, resourceVersion: "`+generation+`", creationTimestamp: "`+at+`"}
status: {nodes: [`+pod+`], since: "`+at+`"}`),
		{Deployments, "web"}: object(t, `
metadata: {name: web, generation: `+generation+`, ownerReferences: [{uid: `+uid+`}]}
status: {observedGeneration: `+generation+`}`),
		{Pods, pod}: object(t, `
metadata: {name: `+pod+`, ownerReferences: [{name: web-1, uid: `+uid+`, controller: true}]}`),
	}
}

func TestWhatTheServerMakesIsNoDifference(t *testing.T) {
	one := world(t, "plan-1", uidA, "web-1-abcde", "2026-01-01T00:00:00Z", "1")
	other := world(t, "plan-2", uidB, "web-1-fghij", "2026-01-01T00:00:01Z", "2")
	if diff := Diff(Normalize("plan-1", one, nil, nil), Normalize("plan-2", other, nil, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestAllElseIsADifference(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	expected := Normalize("ns", world(t, "ns", uidA, "web-1-abcde", "2026-01-01T00:00:00Z", "1"), nil, Symbols{"tick": at})
	for name, change := range map[string]func(World){
		"an object more": func(w World) { w[Key{Services, "one"}] = object(t, `metadata: {name: one}`) },
		"an object less": func(w World) { delete(w, Key{Deployments, "web"}) },
		"another owner":  func(w World) { w[Key{Deployments, "web"}].SetOwnerReferences(nil) },
		"a label":        func(w World) { w[Key{Foos, "one"}].SetLabels(map[string]string{"a": "b"}) },
		"a deletion": func(w World) {
			w[Key{Foos, "one"}].Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:09Z"
		},
		"status": func(w World) { w[Key{Foos, "one"}].Object["status"].(map[string]any)["nodes"] = []any{} },
		"a time that means": func(w World) {
			w[Key{Foos,
				"one"}].Object["status"].(map[string]any)["since"] = "2026-01-01T00:00:01Z"
		},
		"an old generation": func(w World) { w[Key{Deployments, "web"}].SetGeneration(7) },
	} {
		changed := world(t, "ns", uidA, "web-1-abcde", "2026-01-01T00:00:00Z", "1")
		change(changed)
		// The generation that is observed is compared with the one there is.
		if name == "an old generation" {
			if err := unstructured.SetNestedField(changed[Key{Deployments, "web"}].Object, int64(6), "status",
				"observedGeneration"); err != nil {
				t.Fatal(err)
			}
		}
		if Diff(expected, Normalize("ns", changed, nil, Symbols{"tick": at})) == "" {
			t.Errorf("%s is not seen", name)
		}
	}
}

func TestNamesAreByWhatTheyMean(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 7, 0, 0, time.UTC)
	gone := Version{Key: Key{Foos, "old"}, IsGone: true, Object: object(t, `metadata: {name: old, uid: `+uidB+`}`)}
	for name, test := range map[string]struct{ resource, text, want string }{
		"a schedule": {CronJobs, `{metadata: {name: one}, spec: {schedule: "7 * * * *"}}`, `"schedule": "(hourly)"`},
		"a pod that is not there": {Foos,
			`{metadata: {name: one}, status: {message: 'pods "web-5d4f8c7b9-x2v4z" is forbidden'}}`,
			`pods \"web-(pod)\" is forbidden`},
		"the UID of what is gone": {Services, `metadata: {name: one, ownerReferences: [{uid: ` + uidB + `}]}`,
			"(uid of samplecontroller.k8s.io/foos/old)"},
	} {
		w := World{{test.resource, "one"}: object(t, test.text)}
		if text := Normalize("ns", w, []Version{gone}, Symbols{"tick": at})[test.resource+"/one"]; !strings.Contains(text,
			test.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	symbols := Symbols{"tick": at.Add(time.Second), "tick-1": at}
	got := symbols.Rename("one-1767226021 one-29453767 one-29453760")
	if got != "one-(tick) one-(tick-1) one-29453760" {
		t.Error(got)
	}
}

func TestGenerationsAreByWhatIsBehind(t *testing.T) {
	said := func(generation, observed string) Normal {
		return Normalize("ns", World{{Foos, "one"}: object(t, `
metadata: {name: one, generation: `+generation+`}
status: {observedGeneration: `+observed+`, conditions: [{type: Degraded, observedGeneration: `+observed+`}]}`)}, nil, nil)
	}
	if diff := Diff(said("1", "1"), said("4", "4")); diff != "" {
		t.Error(diff)
	}
	if Diff(said("4", "4"), said("4", "3")) == "" {
		t.Error("a status that is behind is not seen")
	}
}

// rolledOut returns a world with a ReplicaSet and its pod for each template.
func rolledOut(t *testing.T, templates ...string) World {
	t.Helper()
	w := World{}
	for i, hash := range templates {
		name := "one-" + hash
		w[Key{ReplicaSets, name}] = object(t, fmt.Sprintf(`
metadata:
  name: %[1]s
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {pod-template-hash: %[2]s}
  annotations: {deployment.kubernetes.io/revision: "%[3]d"}
  ownerReferences: [{name: one, uid: %[4]s, controller: true}]
spec: {replicas: 1}`, name, hash, i+1, uidA))
		w[Key{Pods, name + "-x2v4z"}] = object(t, fmt.Sprintf(`
metadata: {name: %[1]s-x2v4z, ownerReferences: [{name: %[1]s, uid: %[2]s, controller: true}]}`, name, uidB))
	}
	return w
}

func TestTemplatesAreByAge(t *testing.T) {
	one := Normalize("ns", rolledOut(t, "6bd875846d"), nil, nil)
	two := Normalize("ns", rolledOut(t, "6bd875846d", "5d4f8c7b9"), nil, nil)
	if diff := Diff(one, Normalize("ns", rolledOut(t, "5d4f8c7b9"), nil, nil)); diff != "" {
		t.Error(diff)
	}
	if diff := Diff(two, Normalize("ns", rolledOut(t, "5d4f8c7b9", "6bd875846d"), nil, nil)); diff != "" {
		t.Error(diff)
	}
	if Diff(one, two) == "" {
		t.Error("what an earlier Deployment of the same name has left is not seen")
	}
}
