package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/testenv"
)

// What a leaf shows in is told by what the worlds, and the Jobs made and asked for by hand, differ in.
func TestEffects(t *testing.T) {
	for _, test := range []struct {
		ends, handed, asked int
		said, want          string
	}{
		{ends: 2, want: differ},
		{ends: 2, handed: 2, want: differ},
		{ends: 1, handed: 2, want: differ},
		{ends: 3, handed: 2, asked: 1, want: differ},
		{ends: 2, handed: 1, asked: 1, want: someRefused},
		{ends: 3, asked: 3, want: someRefused},
		{ends: 1, asked: 3, want: allRefused},
		{ends: 1, asked: 1, want: unknown},
		{ends: 1, handed: 1, want: unknown},
		{ends: 1, want: ""},
		{ends: 1, handed: 1, said: forbidden, want: forbidden},
	} {
		tried := &trial{world: &World{}, kind: &Kind{Resource: history.CronJobs}, leaf: Leaf{Path: templatePath + ".spec.a", schema: &props{Type: "string"}},
			ends: map[string]history.Normal{}, handed: numbered(test.handed), asked: numbered(test.asked), result: Result{Effect: test.said}}
		for i := range test.ends {
			tried.ends[fmt.Sprint(i)] = history.Normal{history.CronJobs + "/" + objectName: fmt.Sprintf(`{"status":{"end":%d}}`, i)}
		}
		if tried.judge(); tried.result.Effect != test.want {
			t.Errorf("%d ends, %d Jobs and %d refused: %q, not %q", test.ends, test.handed, test.asked, tried.result.Effect, test.want)
		}
	}
}

func numbered(n int) map[string]bool {
	names := map[string]bool{}
	for i := range n {
		names[fmt.Sprint(i)] = true
	}
	return names
}

// What the operator has asked for is compared with what was asked for by hand, but for what Jobs of the operator have besides.
func TestRefusedJobs(t *testing.T) {
	request := func(name, image, annotations string) testenv.Request {
		return testenv.Request{Resource: "jobs", Name: name, Refused: json.RawMessage(
			`{"metadata":{"name":"` + name + `","annotations":` + annotations + `},"spec":{"name":"` + name + `","image":"` + image + `"}}`)}
	}
	requests := []testenv.Request{
		{Resource: "jobs", Name: "hand"}, // which was not refused
		request("hand", "a", "null"),
		request("alike", "a", `{"`+child.OwnerAnnotation+`":"1"}`),
		request("annotated", "a", `{"a":"1"}`),
		request("other", "b", "null"),
	}
	hand := handedOn(refusedJob(requests, "hand"))
	if diff := history.Diff(hand, handedOn(refusedJob(requests, "alike"))); diff != "" {
		t.Errorf("they are alike, but for their names: %s", diff)
	}
	for _, name := range []string{"annotated", "other"} {
		if diff := history.Diff(hand, handedOn(refusedJob(requests, name))); diff == "" {
			t.Errorf("%s is not like the one by hand", name)
		}
	}
	if text := fmt.Sprint(hand); !strings.Contains(text, `"name": "JOB"`) || !strings.Contains(text, `"image": "a"`) {
		t.Errorf("what has no UID is not told as it is: %s", text)
	}
	if refusedJob(requests, "none") != nil {
		t.Error("there is none of that name")
	}
}

// A leaf that was not tried is missed, whatever the others have come to; what nobody can tell is not counted as tried.
func TestFieldsTried(t *testing.T) {
	tried := []Result{
		{Kind: "Foo", Path: "spec.a", Transitions: 2, Effect: differ},
		{Kind: "CronJob", Path: templatePath + ".a", Transitions: 6, Refusals: 3, Effect: unknown},
		{Kind: "CronJob", Path: templatePath + ".b", Transitions: 6, Refusals: 3, Effect: only},
		{Kind: "CronJob", Path: templatePath + ".c", Refusals: 3, Effect: forbidden},
	}
	for name, test := range map[string]struct {
		change  func([]Result) []Result
		found   string
		verdict proof.Verdict
	}{
		"all":         {func(all []Result) []Result { return all }, "2 of 6", proof.NotJudged},
		"one is not":  {func(all []Result) []Result { return all[1:] }, "1 of 6", proof.Missed},
		"one no pair": {func(all []Result) []Result { all[0].Transitions = 0; return all }, "1 of 6", proof.Missed},
	} {
		report := &Report{Leaves: 4, Opaque: []string{"CronJob x", "CronJob y"}, Results: test.change(slices.Clone(tried))}
		report.sum()
		claims := report.claims(false)
		if claims[0].Found != test.found || claims[0].Verdict != test.verdict {
			t.Errorf("%s: %+v", name, claims[0])
		}
		for i, left := range []struct{ why, fields string }{{"declare no fields", "CronJob x, CronJob y"}, {"one value", "CronJob " + templatePath + ".b"},
			{"does not know", "CronJob " + templatePath + ".a"}} {
			if claim := claimOf(t, claims, left.why); claim.Verdict != proof.NotJudged || claim.Note != "named below" {
				t.Errorf("%s: %+v", name, claim)
			}
			if told := report.leftOut()[i]; !strings.Contains(told, left.why) || !strings.HasSuffix(told, ": "+left.fields+".") {
				t.Errorf("%s: %s", name, told)
			}
		}
	}
	whole := &Report{Leaves: 1, Results: tried[:1]}
	whole.sum()
	if claim := whole.claims(false)[0]; claim.Found != "1 of 1" || claim.Verdict != proof.Met || claim.Note != "" {
		t.Errorf("where none is left out: %+v", claim)
	}
}

func claimOf(t *testing.T, claims []proof.Claim, what string) proof.Claim {
	t.Helper()
	i := slices.IndexFunc(claims, func(claim proof.Claim) bool { return strings.Contains(claim.What, what) })
	if i < 0 {
		t.Fatalf("there is no claim of %q", what)
	}
	return claims[i]
}

// Whatever is found is a violation, and missed on the page where it belongs.
func TestViolations(t *testing.T) {
	for what, report := range map[string]*Report{
		"end otherwise":        {Results: []Result{{Kind: "Foo", Path: "spec.a", Violations: []string{"it is wrong"}}}},
		"without effect":       {Results: []Result{{Kind: "Foo", Path: "spec.a", Transitions: 2}}},
		"has come to rest":     {Results: []Result{{Kind: "Foo", Path: "spec.a", Effect: differ, RestWindows: 1, RestWrites: []string{"patch foos"}}}},
		"when all was deleted": {EndWrites: []string{"patch foos"}},
		"are gone":             {Left: []string{"Job a/b"}},
		"in the log":           {Defects: []string{"panic"}},
	} {
		report.sum()
		if report.sum(); len(report.Violations) != 1 {
			t.Errorf("%s: %q", what, report.Violations)
		}
		if claim := claimOf(t, report.claims(false), what); claim.Verdict != proof.Missed {
			t.Errorf("%s: %+v", what, claim)
		}
	}
	if claim := claimOf(t, (&Report{}).claims(false), "has come to rest"); claim.Verdict != proof.NotJudged {
		t.Errorf("nobody has watched: %+v", claim)
	}
}

// The fields of the template are told of by what they show in, each where it belongs.
func TestRows(t *testing.T) {
	report := &Report{Results: []Result{
		{Kind: "CronJob", Path: templatePath + ".a", Classes: []string{"absent", "one"}, Transitions: 6, Ends: 3, Effect: differ},
		{Kind: "CronJob", Path: templatePath + ".b", Classes: []string{"one", "other"}, Transitions: 2, Ends: 1, Effect: differ},
		{Kind: "CronJob", Path: templatePath + ".c", Transitions: 6, Ends: 3, Effect: differ, IsGated: true},
		{Kind: "CronJob", Path: templatePath + ".d", Ends: 1, Effect: unknown},
		{Kind: "Foo", Path: "spec.a", Transitions: 1, Effect: differ},
		{Kind: "Foo", Path: "spec.b"},
	}}
	var rows []string
	for _, row := range report.rows() {
		rows = append(rows, fmt.Sprintf("%s %v %d %d: %s", row.label, row.Classes, row.Transitions, row.Ends, row.shown()))
	}
	want := []string{
		"Foo spec.a [] 1 0: " + differ,
		"Foo spec.b [] 0 0: nothing",
		"CronJob spec.jobTemplate.*, 1 of them [] 0 1: " + unknown,
		"CronJob spec.jobTemplate.*, 2 of them [absent one other] 8 4: " + differ,
		"CronJob spec.jobTemplate.*, 1 of them [] 6 3: " + differ + ", with its feature gate open",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("%s", strings.Join(rows, "\n"))
	}
}

// What was tried again counts as what came of it then, and nothing that was wrong before is forgotten.
func TestAdd(t *testing.T) {
	report := &Report{Leaves: 2, EndWrites: []string{"a"}, Results: []Result{
		{Kind: "CronJob", Path: templatePath + ".a", Transitions: 6, Effect: unknown, Violations: []string{"wrong"}},
		{Kind: "CronJob", Path: templatePath + ".b", Transitions: 6, Effect: unknown},
	}}
	report.sum()
	report.add(&Report{Defects: []string{"panic"}, Results: []Result{
		{Kind: "CronJob", Path: templatePath + ".a", Transitions: 6, Effect: differ},
		{Kind: "CronJob", Path: templatePath + ".b", Transitions: 6, Effect: unknown},
	}})
	if len(report.Unknown) != 1 || report.Tried != 1 || report.Transitions != 24 || len(report.Violations) != 3 {
		t.Errorf("%+v", report)
	}
	if a, b := report.Results[0], report.Results[1]; !a.IsGated || b.IsGated {
		t.Errorf("%+v, %+v", a, b)
	}
}
