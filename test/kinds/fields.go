package kinds

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Field is a field of spec that holds a value and has no fields of its own.
type Field struct {
	Path   string // such as spec.size
	Values []Value
}

// Value represents an equivalence class of values of a field.
type Value struct {
	Name  string
	Value any
	// Words are what the API server's error has to contain, besides the path of the field; nil for a value that it
	// accepts.
	Words []string
}

// IsAccepted reports whether the API server accepts the value.
func (v Value) IsAccepted() bool { return v.Words == nil }

func accepted(texts ...string) []Value {
	values := make([]Value, len(texts))
	for i, text := range texts {
		values[i] = Value{Name: fmt.Sprintf("%.40q", text), Value: text}
	}
	return values
}

func rejected(value string, words ...string) Value {
	return Value{Name: fmt.Sprintf("%.40q", value), Value: value, Words: words}
}

// Accepted returns the values that the API server accepts.
func (f Field) Accepted() []any {
	var values []any
	for _, value := range f.Values {
		if value.IsAccepted() {
			values = append(values, value.Value)
		}
	}
	return values
}

// Fields returns the fields of spec that the schema of a definition declares, with the values that the schema or
// [Kind.Values] provides. Lists, maps and fields that belong to a Kubernetes type, such as a Job template, have none.
func (k Kind) Fields(crd *apiextensionsv1.CustomResourceDefinition) []Field {
	var fields []Field
	for _, version := range crd.Spec.Versions {
		if version.Name == k.GroupVersion.Version && version.Schema != nil {
			spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
			fields = k.collect(fields, "spec", spec)
		}
	}
	return fields
}

func (k Kind) collect(fields []Field, path string, schema apiextensionsv1.JSONSchemaProps) []Field {
	if len(schema.Properties) == 0 || slices.Contains(k.Kubernetes, path) {
		return append(fields, Field{Path: path, Values: slices.Concat(values(schema), k.Values[path])})
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		fields = k.collect(fields, path+"."+name, schema.Properties[name])
	}
	return fields
}

// Required returns the paths of the required fields of spec.
func (k Kind) Required(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var paths []string
	for _, version := range crd.Spec.Versions {
		if version.Name == k.GroupVersion.Version && version.Schema != nil {
			for _, name := range version.Schema.OpenAPIV3Schema.Properties["spec"].Required {
				paths = append(paths, "spec."+name)
			}
		}
	}
	return paths
}

// values returns the values that a schema provides. For a string with CEL rules or a pattern, these are only rejected
// values.
func values(schema apiextensionsv1.JSONSchemaProps) []Value {
	wrongType := Value{"wrong type", "two", []string{"must be of type " + schema.Type}}
	switch schema.Type {
	case "boolean":
		return []Value{{"true", true, nil}, {"false", false, nil}, wrongType}
	case "integer":
		found := []Value{wrongType, {"a fraction", 1.5, []string{"must be of type integer"}},
			{"beyond all numbers", int64(99999999999), []string{}}}
		if schema.Minimum != nil {
			low := int64(*schema.Minimum)
			found = append(found, Value{"one more than the minimum", low + 1, nil}, Value{"the minimum", low, nil},
				Value{"less than the minimum", low - 1, []string{fmt.Sprintf("greater than or equal to %d", low)}})
		}
		if schema.Maximum != nil {
			high := int64(*schema.Maximum)
			found = append(found, Value{"the maximum", high, nil},
				Value{"more than the maximum", high + 1, []string{fmt.Sprint(high)}})
		}
		return found
	case "string":
		return stringValues(schema)
	}
	return nil
}

func stringValues(schema apiextensionsv1.JSONSchemaProps) []Value {
	found := []Value{{"wrong type", int64(5), []string{"must be of type string"}}}
	var words []string
	for _, value := range schema.Enum {
		var word string
		if err := json.Unmarshal(value.Raw, &word); err == nil {
			found = append(found, Value{word, word, nil})
			words = append(words, string(value.Raw))
		}
	}
	if len(schema.Enum) > 0 {
		return append(found, Value{"no such word", "Sometimes", words}, Value{"empty", "", words})
	}
	hasRules := schema.Pattern != "" || schema.Format != "" || len(schema.XValidations) > 0
	if schema.MinLength != nil && *schema.MinLength > 0 {
		short := strings.Repeat("a", int(*schema.MinLength)-1)
		found = append(found, Value{"too short", short, []string{fmt.Sprintf("at least %d chars", *schema.MinLength)}})
	}
	if schema.MaxLength != nil {
		long := strings.Repeat("a", int(*schema.MaxLength))
		found = append(found, Value{"too long", long + "a", []string{fmt.Sprint(*schema.MaxLength)}})
		if !hasRules {
			found = append(found, Value{"as long as it may be", long, nil}, Value{"a letter", "a", nil})
		}
	}
	return found
}

// Set sets a field in the content of an object, or of a merge patch, and those that have to be set beside it unless
// they are.
func (k Kind) Set(content map[string]any, path string, value any) {
	names := strings.Split(path, ".")
	for i, name := range names {
		for other, needed := range k.Needs[strings.Join(names[:i+1], ".")] {
			if _, isSet := content[other]; !isSet {
				content[other] = needed
			}
		}
		if i == len(names)-1 {
			content[name] = value
			return
		}
		inner, ok := content[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			content[name] = inner
		}
		content = inner
	}
}

// Definition reads the CustomResourceDefinition of the kind in config/crd/bases.
func (k Kind) Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	_, file, _, _ := runtime.Caller(0)
	name := k.GroupVersion.Group + "_" + k.Resource + ".yaml"
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "config", "crd", "bases", name))
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, yaml.UnmarshalStrict(text, crd)
}

// ScalePath returns the path of the field that the scale subresource of a definition sets, or nothing.
func (k Kind) ScalePath(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Name == k.GroupVersion.Version && version.Subresources != nil && version.Subresources.Scale != nil {
			return strings.TrimPrefix(version.Subresources.Scale.SpecReplicasPath, ".")
		}
	}
	return ""
}
