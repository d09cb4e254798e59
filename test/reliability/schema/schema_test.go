package schema

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/example/memcached-operator/test/kinds"
)

func read(t *testing.T) []*kind {
	t.Helper()
	all, err := readKinds()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each field needs accepted and rejected values. Where a CEL rule restricts it, package kinds must list some.
func TestEveryFieldHasClasses(t *testing.T) {
	known := map[string]bool{}
	for _, k := range read(t) {
		known[k.Name] = true
		for _, f := range k.fields {
			known[k.Name+" "+f.Path] = true
			if f.Path == templatePath {
				continue
			}
			outcomes := map[outcome]int{}
			for _, c := range f.classes(specialOf(k, f).values) {
				outcomes[c.outcome]++
			}
			if outcomes[legal] < 2 || outcomes[rejected] < 1 {
				t.Errorf("%s %s: %v", k.Name, f.Path, outcomes)
			}
			isListed := slices.ContainsFunc(k.Values[f.Path], func(value kinds.Value) bool { return !value.IsAccepted() })
			if len(f.schema.XValidations) > 0 && !isListed {
				t.Errorf("%s %s has a rule, and package kinds lists no value that the rule rejects", k.Name, f.Path)
			}
		}
	}
	for name := range specials {
		if !known[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// The schemas of the present fields do not have all of this.
func TestClassesOfOtherSchemas(t *testing.T) {
	one, two := int64(1), int64(2)
	text := props{Type: "string", MaxLength: &two, Pattern: "^a+$"}
	for name, test := range map[string]struct {
		schema props
		want   string
	}{
		"quantity": {props{XIntOrString: true, Pattern: "^[0-9]+$"}, "wrong type, wrong form, one, other, absent, null"},
		"text":     {text, "wrong type, wrong form, one, other, absent, null"},
		"list": {props{Type: "array", MinItems: &one, MaxItems: &two,
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
			"wrong type, too few, too many, one, other, absent, null"},
		"map": {props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text}},
			"wrong type, one, other, empty, absent, null"},
		"free": {props{Type: "integer", Format: "int32"},
			"wrong type, beyond all integers, min, min+1, min+2, max, absent, null"},
	} {
		spec := props{Properties: map[string]props{"a": {Properties: map[string]props{"b": test.schema}}}}
		var names []string
		f := newField(&spec, kinds.Field{Path: "spec.a.b"})
		for _, c := range f.classes(nil) {
			names = append(names, c.name)
		}
		if got := strings.Join(names, ", "); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
		if got := at(f.in(map[string]any{}, "mark"), "a", "b"); got != "mark" {
			t.Errorf("%s: %v", name, got)
		}
	}
}
