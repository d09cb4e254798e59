package bundle

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const definition = `
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing, shortNames: [th], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}
    selectableFields: [{jsonPath: .spec.mode}]
    additionalPrinterColumns: [{name: Mode, type: string, jsonPath: .spec.mode}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, format: int32, minimum: 1, maximum: 9}
              mode: {type: string, enum: [a, b], default: a}
              host: {type: string, pattern: a, x-kubernetes-validations: [{rule: self != 'b', message: not b}]}
              list: {type: array, x-kubernetes-list-type: set, items: {type: string, maxLength: 2}}
              maps: {type: object, additionalProperties: {type: string}}
          status:
            type: object
            properties:
              size: {type: integer}
status: {storedVersions: [v1]}
`

func TestTightened(t *testing.T) {
	for _, test := range []struct {
		before, after string // a piece of the definition and its replacement
		want          string // one of the sentences found begins with it; none is found if it is empty
	}{
		{"scope: Namespaced", "scope: Cluster", `scope: scope changed : "Namespaced" -> "Cluster"`},
		{"group: example.com", "group: example.org", "group example.com: no longer"},
		{"kind: Thing,", "kind: Thin,", "kind Thing: no longer"},
		{"plural: things", "plural: thingies", "plural things: no longer"},
		{"singular: thing", "singular: thin", "singular thing: no longer"},
		{"singular: thing,", "", ""},
		{"listKind: ThingList", "listKind: Things", "list kind ThingList: no longer"},
		{"[th]", "[ti]", "short name th: no longer"},
		{"[th]", "[th, ti]", ""},
		{"categories: [all]", "", "category all: no longer"},
		{"scope:", "conversion: {strategy: Webhook}\n  scope:", "conversion None: no longer"},
		{"scope:", "conversion: {strategy: None}\n  scope:", ""},
		{"name: v1", "name: v2", "version v1 exists: no longer"},
		{"name: v1", "name: v2", "storedVersionRemoval: stored versions removed : [v1]"},
		{"served: true", "served: false", "version v1 is served: no longer"},
		{"status: {}", "", "version v1 has the subresource status: true: no longer"},
		{"specReplicasPath: .spec.size", "specReplicasPath: .spec.count", "version v1 scales by .spec.size"},
		{"statusReplicasPath: .status.size", "statusReplicasPath: .status.count", "version v1 scales by .spec.size"},
		{", labelSelectorPath: .status.selector", "", "version v1 reports the selector of its pods in .status.selector"},
		{"[{jsonPath: .spec.mode}]", "[{jsonPath: .spec.host}]", "version v1 has the selectable field .spec.mode"},
		{"additionalPrinterColumns: [{name: Mode, type: string, jsonPath: .spec.mode}]", "", ""},

		{"mode: {", "kind: {", "existingFieldRemoval: removed field : v1.^.spec.mode"},
		{"size: {type: integer}", "", "existingFieldRemoval: removed field : v1.^.status.size"},
		{"mode: {", "more: {type: object, required: [a], properties: {a: {type: string, maxLength: 1}}}\n" +
			strings.Repeat(" ", 14) + "mode: {", ""},
		{"required: [size]", "required: [size, mode]", "v1 spec: required: new required fields"},
		{"required: [size]", "required: []", ""},
		{"size: {type: integer}", "size: {type: string}", "v1 status.size: type: type changed"},
		{"maximum: 9", "maximum: 8", "v1 spec.size: maximum: maximum decreased : 9 -> 8"},
		{"maximum: 9", "maximum: 10", ""},
		{"minimum: 1", "minimum: 2", "v1 spec.size: minimum: minimum increased : 1 -> 2"},
		{"minimum: 1", "minimum: 0", ""},
		{"minimum: 1", "minimum: 1, exclusiveMinimum: true", "v1 spec.size: unhandled: "},
		{"minimum: 1", "minimum: 1, multipleOf: 2", "v1 spec.size: unhandled: "},
		{"int32", "int64", "v1 spec.size: unhandled: "},
		{"[a, b]", "[a]", `v1 spec.mode: enum: allowed enum values removed : ["b"]`},
		{"[a, b]", "[a, b, c]", ""},
		{"default: a", "default: b", "v1 spec.mode: default: default value changed"},
		{"default: a", "description: it may be a", "v1 spec.mode: default: default value removed"},
		{"mode: {", "mode: {description: it may be a, ", ""},
		{"host: {type: string", "host: {type: string, nullable: true", "v1 spec.host: nullable: nullable added"},
		{"pattern: a", "pattern: b", "v1 spec.host: pattern: pattern changed"},
		{"self != 'b'", "self != 'c'", "v1 spec.host: unhandled: "},
		{"message: not b", "message: no b", "v1 spec.host: unhandled: "},
		{"list-type: set", "list-type: atomic", "v1 spec.list: unhandled: "},
		{"list-type: set", "list-type: set, maxItems: 9", "v1 spec.list: maxItems: maximum constraint added"},
		{"maxLength: 2", "maxLength: 1", "v1 spec.list.items: maxLength: maximum decreased : 2 -> 1"},
		{"additionalProperties: {type: string}", "additionalProperties: {type: integer}",
			"v1 spec.maps.additionalProperties: type: type changed"},
		{"additionalProperties: {type: string}", "maxProperties: 2", "v1 spec.maps: unhandled: "},
	} {
		changed := strings.Replace(definition, test.before, test.after, 1)
		if changed == definition {
			t.Errorf("%s: nothing is changed", test.before)
		}
		found := Tightened(parse(t, definition), parse(t, changed))
		isFound := slices.ContainsFunc(found, func(sentence string) bool {
			return strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(sentence, "things.example.com"), ":/ "), test.want)
		})
		if (test.want == "") != (len(found) == 0) || test.want != "" && !isFound {
			t.Errorf("%q to %q: found %q, want %q", test.before, test.after, found, test.want)
		}
	}
}

func TestTightenedComparesServedVersions(t *testing.T) {
	before, after := parse(t, definition), parse(t, definition)
	added := *after.Spec.Versions[0].DeepCopy()
	added.Name, added.Storage = "v2", false
	after.Spec.Versions = append(after.Spec.Versions, added)
	if found := Tightened(before, after); len(found) > 0 {
		t.Errorf("a version with the same schema: %q", found)
	}
	properties := added.Schema.OpenAPIV3Schema.Properties
	spec := properties["spec"]
	spec.Required = append(spec.Required, "mode")
	properties["spec"] = spec
	if found := Tightened(before, after); len(found) != 1 || !strings.Contains(found[0], "/v1 -> v2 spec: required") {
		t.Errorf("a version that requires another field: %q", found)
	}
}

func parse(t *testing.T, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict([]byte(text), &crd); err != nil {
		t.Fatal(err)
	}
	return &crd
}
