package kinds

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// Every kind has a description, and values are of fields that exist.
func TestDescriptionsMatchDefinitions(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) != len(All) {
		t.Errorf("%d descriptions for %v, %v", len(All), files, err)
	}
	for _, k := range All {
		crd, err := k.Definition()
		if err != nil {
			t.Fatal(err)
		}
		if crd.Name != k.CRD() || crd.Spec.Names.Kind != k.Name {
			t.Errorf("%s describes %s", k.Name, crd.Name)
		}
		fields := k.Fields(crd)
		for path := range k.Values {
			if !slices.ContainsFunc(fields, func(f Field) bool { return f.Path == path }) {
				t.Errorf("%s has values for %s, which is no field that holds a value", k.Name, path)
			}
		}
	}
}

// The operator may create and delete only its children.
func TestChildrenMatchPermissions(t *testing.T) {
	text, err := os.ReadFile("../../config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(text, &role); err != nil {
		t.Fatal(err)
	}
	var granted, described []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.Verbs, "create") && slices.Contains(rule.Verbs, "delete") {
			for _, resource := range rule.Resources {
				granted = append(granted, rule.APIGroups[0]+"/"+resource)
			}
		}
	}
	for _, child := range ChildResources() {
		described = append(described, child.Group+"/"+child.Resource)
	}
	slices.Sort(granted)
	slices.Sort(described)
	if !slices.Equal(granted, described) {
		t.Errorf("config/rbac/role.yaml grants the creation of %v, and the children are %v", granted, described)
	}
}

func TestValuesOfASchema(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: ptr.To[int64](3)}
	withRule := text
	withRule.Pattern = "^a+$"
	for name, test := range map[string]struct {
		schema             apiextensionsv1.JSONSchemaProps
		accepted, rejected []any
	}{
		"a number": {apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: ptr.To(1.0), Maximum: ptr.To(64.0)},
			[]any{int64(2), int64(1), int64(64)}, []any{"two", 1.5, int64(99999999999), int64(0), int64(65)}},
		"a switch": {apiextensionsv1.JSONSchemaProps{Type: "boolean"}, []any{true, false}, []any{"two"}},
		"words": {apiextensionsv1.JSONSchemaProps{Type: "string",
			Enum: []apiextensionsv1.JSON{{Raw: []byte(`"A"`)}, {Raw: []byte(`"B"`)}}},
			[]any{"A", "B"}, []any{int64(5), "Sometimes", ""}},
		"text":                     {text, []any{"aaa", "a"}, []any{int64(5), "aaaa"}},
		"text with a rule":         {withRule, nil, []any{int64(5), "aaaa"}},
		"what no value stands for": {apiextensionsv1.JSONSchemaProps{Type: "array"}, nil, nil},
	} {
		field := Field{Values: values(test.schema)}
		var rejected []any
		for _, value := range field.Values {
			if !value.IsAccepted() {
				rejected = append(rejected, value.Value)
			}
		}
		if !slices.Equal(field.Accepted(), test.accepted) || !slices.Equal(rejected, test.rejected) {
			t.Errorf("%s: %v and %v", name, field.Accepted(), rejected)
		}
	}
}
