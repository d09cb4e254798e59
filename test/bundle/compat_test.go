package bundle

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const definition = `
metadata:
  name: things.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing, shortNames: [th], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [field]
            properties:
              field: {}
              other: {type: string}
          status:
            type: object
            properties:
              ready: {type: integer}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}
    selectableFields:
    - jsonPath: .spec.other
    additionalPrinterColumns:
    - {name: Other, type: string, jsonPath: .spec.other}
`

func parse(t *testing.T, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict([]byte(text), &crd); err != nil {
		t.Fatal(err)
	}
	return &crd
}

// wrongIn returns what is wrong with what was found: exactly one sentence about a place is wanted, or none.
func wrongIn(found []string, where, want string) string {
	switch {
	case want == "" && len(found) > 0:
		return "found " + strings.Join(found, "; ") + ", want nothing"
	case want != "" && (len(found) != 1 || !strings.HasPrefix(found[0], where+": ") || !strings.Contains(found[0], want)):
		return "found " + strings.Join(found, "; ") + ", want one of " + where + " with " + want
	}
	return ""
}

// changeField checks what is found when the schema of a field changes, both in JSON, and returns both.
func changeField(t *testing.T, before, after, where, want string) (was, is apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	definitions := [2]*apiextensionsv1.CustomResourceDefinition{parse(t, definition), parse(t, definition)}
	for i, text := range []string{before, after} {
		schema := []*apiextensionsv1.JSONSchemaProps{&was, &is}[i]
		if err := yaml.UnmarshalStrict([]byte(text), schema); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		definitions[i].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["field"] = *schema
	}
	found := Tightened(definitions[0], definitions[1])
	if wrong := wrongIn(found, "things.example.com/v1 spec.field"+where, want); wrong != "" {
		t.Errorf("%s to %s: %s", before, after, wrong)
	}
	return was, is
}

// One field, before and after, and in the sentence that is wanted about it.
var fields = []struct{ before, after, want string }{
	{`{type: string}`, `{type: integer}`, `the type is "integer" and was "string"`},
	{`{type: integer}`, `{type: number}`, `the type is "number"`},
	{`{x-kubernetes-int-or-string: true}`, `{type: integer}`, `it was an integer or a string and is of type "integer"`},
	{`{nullable: true}`, `{}`, `it could be null`},
	{`{}`, `{nullable: true}`, ``},
	{`{x-kubernetes-preserve-unknown-fields: true}`, `{}`, `unknown fields were kept`},
	{`{}`, `{x-kubernetes-preserve-unknown-fields: true}`, ``},
	{`{}`, `{x-kubernetes-embedded-resource: true}`, `x-kubernetes-embedded-resource is "true"`},
	{`{x-kubernetes-list-type: set}`, `{x-kubernetes-list-type: atomic}`, `the list type is "atomic" and was "set"`},
	{`{}`, `{x-kubernetes-list-type: atomic}`, ``},
	{`{x-kubernetes-list-map-keys: [a]}`, `{x-kubernetes-list-map-keys: [a, b]}`,
		`the list of map keys is "a,b" and was "a"`},
	{`{}`, `{x-kubernetes-map-type: atomic}`, `the map type is "atomic"`},

	{`{maximum: 2147483647}`, `{maximum: 8}`, `maximum is 8 and was 2147483647`},
	{`{}`, `{maximum: 9}`, `maximum 9 is new`},
	{`{maximum: 9}`, `{maximum: 10}`, ``},
	{`{maximum: 9}`, `{}`, ``},
	{`{maximum: 9}`, `{maximum: 9, exclusiveMaximum: true}`, `the maximum itself`},
	{`{minimum: 1}`, `{minimum: 2}`, `minimum is 2 and was 1`},
	{`{}`, `{minimum: 0}`, `minimum 0 is new`},
	{`{minimum: 1}`, `{minimum: 0}`, ``},
	{`{minimum: 1}`, `{minimum: 1, exclusiveMinimum: true}`, `the minimum itself`},
	{`{}`, `{multipleOf: 2}`, `a multiple of 2`},
	{`{multipleOf: 2}`, `{}`, ``},
	{`{maxLength: 9}`, `{maxLength: 8}`, `maxLength is 8 and was 9`},
	{`{}`, `{maxLength: 9}`, `maxLength 9 is new`},
	{`{maxLength: 9}`, `{maxLength: 10}`, ``},
	{`{}`, `{minLength: 1}`, `minLength is 1 and was 0`},
	{`{}`, `{minLength: 0}`, ``},
	{`{maxItems: 9}`, `{maxItems: 8}`, `maxItems is 8`},
	{`{minItems: 1}`, `{minItems: 2}`, `minItems is 2`},
	{`{maxProperties: 9}`, `{maxProperties: 8}`, `maxProperties is 8`},
	{`{minProperties: 1}`, `{minProperties: 2}`, `minProperties is 2`},
	{`{}`, `{uniqueItems: true}`, `have to be different`},

	{`{}`, `{pattern: a}`, `pattern "a" is new`},
	{`{pattern: a}`, `{pattern: b}`, `has changed from "a"`},
	{`{pattern: a}`, `{}`, ``},
	{`{}`, `{format: int32}`, `format "int32" is new`},
	{`{format: int32}`, `{format: int64}`, `has changed from "int32"`},
	{`{format: int32}`, `{}`, ``},
	{`{}`, `{enum: [a]}`, `only listed values`},
	{`{enum: [a, b]}`, `{enum: [a]}`, `the allowed value "b" is gone`},
	{`{enum: [a]}`, `{enum: [b, a]}`, ``},
	{`{enum: [a]}`, `{}`, ``},
	{`{}`, `{default: 1}`, `default 1 is new`},
	{`{default: 1}`, `{}`, `default 1 is gone`},
	{`{default: 1}`, `{default: 2}`, `the default is 2 and was 1`},
	{`{default: {a: 1, b: 2}}`, `{default: {b: 2, a: 1}}`, ``},
	{`{}`, `{x-kubernetes-validations: [{rule: self > 0}]}`, `the rule "self > 0" is new`},
	{`{x-kubernetes-validations: [{rule: self > 0}]}`, `{x-kubernetes-validations: [{rule: self > 1}]}`,
		`the rule "self > 1" is new or has changed`},
	{`{x-kubernetes-validations: [{rule: self > 0}]}`,
		`{x-kubernetes-validations: [{rule: self > 0, optionalOldSelf: true}]}`, `is new or has changed`},
	{`{x-kubernetes-validations: [{rule: self > 0}]}`,
		`{x-kubernetes-validations: [{rule: self > 0, message: more}]}`, ``},
	{`{x-kubernetes-validations: [{rule: self > 0}]}`, `{}`, ``},
	{`{}`, `{allOf: [{maximum: 1}]}`, `a schema in allOf`},
	{`{allOf: [{maximum: 1}]}`, `{}`, ``},
	{`{}`, `{anyOf: [{maximum: 1}]}`, `anyOf is new`},
	{`{anyOf: [{maximum: 1}]}`, `{anyOf: [{maximum: 2}]}`, `a schema in anyOf is gone`},
	{`{anyOf: [{maximum: 1}]}`, `{anyOf: [{maximum: 1}, {minimum: 3}]}`, ``},
	{`{}`, `{oneOf: [{maximum: 1}]}`, `oneOf is new`},
	{`{}`, `{not: {maximum: 1}}`, `not is new`},
	{`{not: {maximum: 1}}`, `{}`, ``},

	{`{description: a, title: b, example: c}`, `{description: d, title: e, example: f, externalDocs: {url: g}}`, ``},
}

func TestTightenedField(t *testing.T) {
	changed := map[string]bool{}
	for _, test := range fields {
		was, now := changeField(t, test.before, test.after, "", test.want)
		for i := range reflect.TypeOf(was).NumField() {
			if !equality.Semantic.DeepEqual(reflect.ValueOf(was).Field(i).Interface(),
				reflect.ValueOf(now).Field(i).Interface()) {
				changed[reflect.TypeOf(was).Field(i).Name] = true
			}
		}
	}

	// What is tested below, and what the API server takes in no schema of a CustomResourceDefinition.
	elsewhere := []string{"Required", "Properties", "Items", "AdditionalProperties"}
	forbidden := []string{"ID", "Schema", "Ref", "PatternProperties", "Dependencies", "AdditionalItems", "Definitions"}
	for i := range reflect.TypeFor[apiextensionsv1.JSONSchemaProps]().NumField() {
		name := reflect.TypeFor[apiextensionsv1.JSONSchemaProps]().Field(i).Name
		if !changed[name] && !slices.Contains(elsewhere, name) && !slices.Contains(forbidden, name) {
			t.Errorf("no test changes %s: Kubernetes may have added it to schemas, and Tightened does not know it", name)
		}
	}
}

// Whole parts, and where fields lie.
var parts = []struct {
	name, before, after string // a piece of the definition, and what it becomes
	where, want         string
}{
	{"the scope", "scope: Namespaced", "scope: Cluster", "things.example.com",
		`the scope is "Cluster" and was "Namespaced"`},
	{"the group", "group: example.com", "group: example.org", "things.example.com", `the group is "example.org"`},
	{"the kind", "kind: Thing,", "kind: Thin,", "things.example.com", `the kind is "Thin"`},
	{"the plural", "plural: things", "plural: thingies", "things.example.com", `the plural is "thingies"`},
	{"the singular", "singular: thing", "singular: thin", "things.example.com", `the singular is "thin"`},
	{"the singular left out", "singular: thing,", "", "", ""},
	{"the list kind", "listKind: ThingList", "listKind: Things", "things.example.com", `the list kind is "Things"`},
	{"a short name", "[th]", "[ti]", "things.example.com", `the short name th is gone`},
	{"another short name", "[th]", "[th, ti]", "", ""},
	{"a category", "[all]", "[]", "things.example.com", `the category all is gone`},
	{"conversion", "scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: Webhook}", "things.example.com",
		`the conversion is "Webhook" and was "None"`},
	{"conversion as it is", "scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: None}", "", ""},
	{"a version", "name: v1", "name: v2", "things.example.com/v1", "the version is gone"},
	{"served", "served: true", "served: false", "things.example.com/v1", "not served any more"},
	{"a field", "field: {}", "", "things.example.com/v1 spec.field", "the field is gone"},
	{"a field's name", "other: {type: string}", "another: {type: string}", "things.example.com/v1 spec.other",
		"the field is gone"},
	{"a field of the status", "ready: {type: integer}", "", "things.example.com/v1 status.ready", "the field is gone"},
	{"the type of a field of the status", "ready: {type: integer}", "ready: {type: string}",
		"things.example.com/v1 status.ready", "the type"},
	{"an optional field", "field: {}",
		"field: {}\n              more: {type: object, required: [a], properties: {a: {type: string, maxLength: 1}}}",
		"", ""},
	{"a required field", "field: {}", "field: {}\n              more: {type: string}", "", ""},
	{"a field that is required", "required: [field]", "required: [field, other]", "things.example.com/v1 spec.other",
		"it is required, which is new"},
	{"a field that is optional", "required: [field]", "required: []", "", ""},
	{"the status", "status: {}", "", "things.example.com/v1", "the subresource status is gone"},
	{"the scale",
		"scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}", "",
		"things.example.com/v1", "the subresource scale is gone"},
	{"where scale writes", "specReplicasPath: .spec.size", "specReplicasPath: .spec.count", "things.example.com/v1",
		`specReplicasPath is ".spec.count" and was ".spec.size"`},
	{"where scale reads", "statusReplicasPath: .status.size", "statusReplicasPath: .status.count", "things.example.com/v1",
		"statusReplicasPath"},
	{"the selector of scale", ", labelSelectorPath: .status.selector", "", "things.example.com/v1",
		`labelSelectorPath is "" and was ".status.selector"`},
	{"a selectable field", "- jsonPath: .spec.other", "- jsonPath: .spec.field", "things.example.com/v1",
		"the selectable field .spec.other is gone"},
	{"a column", "- {name: Other, type: string, jsonPath: .spec.other}", "", "", ""},
}

func TestTightenedPart(t *testing.T) {
	for _, test := range parts {
		changed := strings.Replace(definition, test.before, test.after, 1)
		if changed == definition {
			t.Errorf("%s: nothing is changed", test.name)
		}
		if wrong := wrongIn(Tightened(parse(t, definition), parse(t, changed)), test.where, test.want); wrong != "" {
			t.Errorf("%s: %s", test.name, wrong)
		}
	}
}

// What lists and maps hold, and maps as such.
var nested = []struct{ before, after, where, want string }{
	{`{items: {maxLength: 2}}`, `{items: {maxLength: 1}}`, "[]", "maxLength is 1"},
	{`{items: {properties: {a: {}}}}`, `{items: {properties: {}}}`, "[].a", "the field is gone"},
	{`{}`, `{items: {}}`, "[]", "which is new"},
	{`{items: {}}`, `{}`, "[]", "is gone"},
	{`{additionalProperties: {maximum: 2}}`, `{additionalProperties: {maximum: 1}}`, "{}", "maximum is 1"},
	{`{additionalProperties: {items: {minimum: 2}}}`, `{additionalProperties: {items: {minimum: 3}}}`, "{}[]",
		"minimum is 3"},
	{`{additionalProperties: true}`, `{additionalProperties: {type: string}}`, "{}", "which is new"},
	{`{additionalProperties: true}`, `{additionalProperties: false}`, "", "cannot any more"},
	{`{additionalProperties: {}}`, `{}`, "", "cannot any more"},
	{`{additionalProperties: {}}`, `{additionalProperties: true}`, "", ""},
	{`{}`, `{additionalProperties: {}}`, "", ""},
	{`{additionalProperties: false}`, `{}`, "", ""},
	{`{properties: {a: {properties: {b: {maximum: 2}}}}}`, `{properties: {a: {properties: {b: {maximum: 1}}}}}`, ".a.b",
		"maximum is 1"},
	{`{x-kubernetes-preserve-unknown-fields: true}`, `{x-kubernetes-preserve-unknown-fields: true, properties: {a: {}}}`,
		".a", "new where any name was allowed"},
}

func TestTightenedInside(t *testing.T) {
	for _, test := range nested {
		changeField(t, test.before, test.after, test.where, test.want)
	}
}

func TestTightenedVersions(t *testing.T) {
	addVersion := func(crd *apiextensionsv1.CustomResourceDefinition) {
		added := *crd.Spec.Versions[0].DeepCopy()
		added.Name, added.Storage = "v2", false
		crd.Spec.Versions = append(crd.Spec.Versions, added)
	}
	addTighter := func(crd *apiextensionsv1.CustomResourceDefinition) {
		addVersion(crd)
		properties := crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties
		spec := properties["spec"]
		spec.Required = []string{"field", "other"}
		properties["spec"] = spec
	}
	same := func(*apiextensionsv1.CustomResourceDefinition) {}
	for _, test := range []struct {
		name          string
		before, after func(*apiextensionsv1.CustomResourceDefinition)
		where, want   string
	}{
		{"a version that is the same", same, addVersion, "", ""},
		{"a version that is tighter", same, addTighter, "things.example.com/v2, compared with v1, spec.other",
			"it is required"},
		{"a version that is converted", same, func(crd *apiextensionsv1.CustomResourceDefinition) {
			addTighter(crd)
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
		}, "things.example.com", "the conversion"},
		{"a stored version", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Status.StoredVersions = []string{"v0", "v1"}
		}, same, "things.example.com", "objects are stored in version v0"},
		{"unknown fields", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.PreserveUnknownFields = true
		}, same, "things.example.com", "preserveUnknownFields"},
		{"a new status", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Versions[0].Subresources.Status = nil
		}, same, "things.example.com/v1", "the subresource status is new"},
	} {
		before, after := parse(t, definition), parse(t, definition)
		test.before(before)
		test.after(after)
		if wrong := wrongIn(Tightened(before, after), test.where, test.want); wrong != "" {
			t.Errorf("%s: %s", test.name, wrong)
		}
	}

	full, bare := parse(t, definition), parse(t, definition)
	bare.Spec.Versions[0].Schema, bare.Spec.Versions[0].Subresources = nil, nil
	bare.Spec.Versions[0].SelectableFields = nil
	if len(Tightened(bare, full)) == 0 || len(Tightened(full, bare)) == 0 {
		t.Error("a schema that is new or gone is not found")
	}
}

// Our own definitions have not tightened since themselves, and every limit in them is seen when it moves inward.
func TestTightenedOfOurs(t *testing.T) {
	paths, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(paths) < 2 {
		t.Fatalf("found %v, %v", paths, err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := parse(t, string(content))
		if found := Tightened(crd, crd.DeepCopy()); len(found) > 0 {
			t.Errorf("%s: %v", path, found)
		}
		tighter := crd.DeepCopy()
		spec := tighter.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		moved := 0
		for name, field := range spec.Properties {
			if field.Maximum != nil {
				field.Maximum = ptr.To(*field.Maximum - 1)
				moved++
			}
			if field.MaxLength != nil {
				field.MaxLength = ptr.To(*field.MaxLength - 1)
				moved++
			}
			spec.Properties[name] = field
		}
		if found := Tightened(crd, tighter); len(found) != moved || moved == 0 {
			t.Errorf("%s: %d limits moved inward, found %v", path, moved, found)
		}
	}
}
