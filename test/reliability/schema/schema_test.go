package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

func read(t *testing.T) []Kind {
	t.Helper()
	kinds, err := Kinds()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// Each field needs values of both sorts. Where a CEL rule restricts it, a table must list some.
func TestEveryFieldHasClasses(t *testing.T) {
	for _, kind := range read(t) {
		known := maps.Clone(tables[kind.Name].fields)
		for _, field := range kind.Fields {
			s := specialOf(&kind, field)
			delete(known, field.Path)
			outcomes := map[outcome]int{}
			for _, class := range field.classes(s.values) {
				outcomes[class.outcome]++
			}
			if outcomes[legal] < 2 || outcomes[rejected] < 1 {
				t.Errorf("%s %s: %v", kind.Name, field.Path, outcomes)
			}
			isListed := slices.ContainsFunc(s.values, func(class Class) bool { return class.outcome == rejected })
			if len(field.schema.XValidations) > 0 && !isListed {
				t.Errorf("%s %s has a rule, and no value that the rule rejects is listed", kind.Name, field.Path)
			}
		}
		if len(known) > 0 {
			t.Errorf("%s has no such fields: %v", kind.Name, known)
		}
		for _, name := range kind.spec.Required {
			if tables[kind.Name].base[name] == nil {
				t.Errorf("%s: the base has no %s, which is required", kind.Name, name)
			}
		}
	}
}

// The fields are those that a schema declares, counted here in another way.
func TestFieldsAreComplete(t *testing.T) {
	for _, kind := range read(t) {
		content, err := json.Marshal(kind.spec)
		if err != nil {
			t.Fatal(err)
		}
		if declared := countTypes(decodeObject(string(content))); declared != len(kind.Fields)+len(kind.Template) {
			t.Errorf("%s: %d and %d fields of %d", kind.Name, len(kind.Fields), len(kind.Template), declared)
		}
	}
}

func countTypes(schema map[string]any) int {
	if properties, ok := schema["properties"].(map[string]any); ok {
		count := 0
		for _, property := range properties {
			count += countTypes(property.(map[string]any))
		}
		return count
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return countTypes(items)
	}
	return 1
}

func TestClassesOfOtherSchemas(t *testing.T) {
	one, two := int64(1), int64(2)
	text := props{Type: "string", Enum: nil, MaxLength: &two, Pattern: "^a+$"}
	for name, test := range map[string]struct {
		schema props
		want   string
	}{
		"quantity": {props{XIntOrString: true, Pattern: "^[0-9]+$"}, "absent null one other wrong form wrong type"},
		"text":     {text, "absent null one other wrong form too long wrong type"},
		"list": {props{Type: "array", MinItems: &one, MaxItems: &two,
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
			"absent null one other too few too many wrong type"},
		"map": {props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
			"absent null one other empty wrong type"},
		"free": {props{Type: "integer", Format: "int32"},
			"absent null min min+1 some max half beyond all numbers wrong type"},
	} {
		var names []string
		for _, class := range (Field{Path: "spec.a", schema: &test.schema}).classes(nil) {
			names = append(names, class.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestCircuit(t *testing.T) {
	for n := 1; n < 9; n++ {
		tour, pairs := circuit(n), map[[2]int]int{}
		for i := range len(tour) - 1 {
			pairs[[2]int{tour[i], tour[i+1]}]++
		}
		if len(pairs) != n*(n-1) || len(tour) != n*(n-1)+1 || tour[0] != 0 || tour[len(tour)-1] != 0 {
			t.Errorf("%d: %v", n, tour)
		}
	}
}

func TestPutAndHas(t *testing.T) {
	for _, kind := range read(t) {
		for _, field := range slices.Concat(kind.Fields, kind.Template) {
			spec, path := map[string]any{}, field.steps("spec")
			if newMaker(1, "").put(spec, kind.spec, path, "mark", false); !has(spec, path) {
				t.Fatalf("%s: %v", field.Path, spec)
			}
		}
	}
}

// What the API server objects to is mended where it is.
func TestMend(t *testing.T) {
	kinds := read(t)
	kind := kinds[slices.IndexFunc(kinds, func(kind Kind) bool { return kind.Name == "CronJob" })]
	template, trip := jobTemplate(), &roundTrip{kind: &kind}
	for field, cause := range map[string]metav1.StatusCause{
		"dnsPolicy":                {Type: "FieldValueNotSupported", Message: `"a": supported values: "Default"`},
		"restartPolicy":            {Type: metav1.CauseTypeForbidden},
		"containers[0].stdin":      {Type: metav1.CauseTypeFieldValueRequired},
		"containers[0].resources":  {Type: metav1.CauseTypeFieldValueRequired},
		"containers[7].image":      {Type: metav1.CauseTypeFieldValueRequired},
		"nodeSelector[a].whatever": {Type: metav1.CauseTypeFieldValueInvalid},
	} {
		cause.Field = "spec.template.spec." + field
		newMaker(1, field).mend(template, trip.schema(), cause)
	}
	pod := at(template, "spec", "template", "spec").(map[string]any)
	container := pod["containers"].([]any)[0].(map[string]any)
	if pod["dnsPolicy"] != "Default" || pod["restartPolicy"] != nil || container["stdin"] == nil ||
		container["resources"] == nil {
		t.Errorf("%v", template)
	}
}

// The refused Jobs are compared, but for what the operator adds.
func TestRefusedJobs(t *testing.T) {
	request := func(name, image, annotations string) testenv.Request {
		return testenv.Request{Resource: "jobs", Name: name, Refused: json.RawMessage(`{"metadata":{"name":"` + name +
			`","annotations":` + annotations + `},"spec":{"name":"` + name + `","image":"` + image + `"}}`)}
	}
	requests := []testenv.Request{
		{Resource: "jobs", Name: "hand"}, // it was not refused
		request("hand", "a", "null"), request("alike", "a", `{"`+child.OwnerAnnotation+`":"1"}`),
		request("annotated", "a", `{"a":"1"}`), request("other", "b", "null"),
	}
	hand := refusedJob(requests, "hand")
	for name, isAlike := range map[string]bool{"alike": true, "annotated": false, "other": false} {
		if err := compare(hand, refusedJob(requests, name)); (err == nil) != isAlike {
			t.Errorf("%s: %v", name, err)
		}
	}
	if refusedJob(requests, "none") != nil {
		t.Error("there is none of that name")
	}
}

// Every write of the operator counts at rest, in the namespace that is asked for, and nothing else does.
func TestRestWrites(t *testing.T) {
	request := func(user, verb, group, resource, namespace string) testenv.Request {
		return testenv.Request{User: user, Verb: verb, Group: group, Resource: resource, Namespace: namespace, Code: 200}
	}
	requests := []testenv.Request{
		request(testenv.OperatorUser, "get", "apps", "deployments", "a"),
		request(testenv.OperatorUser, "update", "coordination.k8s.io", "leases", testenv.OperatorNamespace),
		request(testenv.OperatorUser, "patch", "events.k8s.io", "events", "a"),
		request("admin", "patch", "apps", "deployments", "a"),
		request(testenv.OperatorUser, "create", "cache.example.com", "memcacheds/status", "a"),
	}
	for namespace, want := range map[string]int{"": 1, "a": 1, "b": 0} {
		if writes := restWrites(requests, namespace); len(writes) != want {
			t.Errorf("in %q: %q", namespace, writes)
		}
	}
}

// Whatever is found is a violation, and is missed on the page where it belongs.
func TestViolations(t *testing.T) {
	field := func(result Result) []Result { return []Result{result} }
	for what, report := range map[string]*Report{
		"end otherwise":  {Results: field(Result{Ends: 2, Violations: []string{"it is wrong"}})},
		"or are not":     {RoundTrip: RoundTrip{Violations: []string{"it is wrong"}}},
		"without effect": {Results: field(Result{Transitions: 2, Ends: 1})},
		"a settled":      {Results: field(Result{Ends: 2, RestWindows: 1, RestWrites: []string{"patch foos"}})},
		"was deleted":    {EndWrites: []string{"patch foos"}},
		"children left":  {Left: []string{"Job a/b"}},
		"panics":         {Defects: []string{"panic"}},
		"except those":   {Fields: 1},
		"that arrived":   {RoundTrip: RoundTrip{}},
	} {
		isCount := what == "except those" || what == "that arrived"
		report.sum()
		if report.sum(); (len(report.Violations) != 1) != isCount {
			t.Errorf("%s: %q", what, report.Violations)
		}
		claims := report.claims()
		i := slices.IndexFunc(claims, func(claim proof.Claim) bool { return strings.Contains(claim.What, what) })
		if i < 0 || claims[i].Verdict != proof.Missed {
			t.Errorf("%s: %+v", what, claims)
		}
	}
}

// A seed chooses what a short run tests, and every kind is in it.
func TestShortRunsBySeed(t *testing.T) {
	chosen := func(seed uint64) (names []string) {
		w := &World{options: Options{Short: true, Seed: seed}}
		trials, all := w.choose(read(t))
		for _, trial := range trials {
			names = append(names, trial.result.name()+fmt.Sprint(trial.result.Classes))
			if class := trial.watchedClass(); class < 1 || class >= len(trial.accepted) {
				t.Errorf("%s is watched with class %d of %d", trial.field.Path, class, len(trial.accepted))
			}
		}
		for _, field := range all[0].fields {
			names = append(names, field.Path)
		}
		return names
	}
	if first := chosen(1); !slices.Equal(first, chosen(1)) || slices.Equal(first, chosen(2)) ||
		len(first) != 8+shortFields {
		t.Errorf("%v", first)
	}
}

type logs struct{ text string }

func (l logs) Kill()        {}
func (l logs) Logs() string { return l.text }

// What any manager has logged counts, not only what the last one has.
func TestDefectsOfAllManagers(t *testing.T) {
	w := &World{managers: []manager{logs{"panic: first\n"}, logs{"well\n"}, logs{"panic: last\n"}}}
	if found := w.Defects(); !slices.Equal(found, []string{"panic: first", "panic: last"}) || w.Managers() != 3 {
		t.Errorf("%q of %d managers", found, w.Managers())
	}
}
