package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

// props is the schema of one value.
type props = apiextensionsv1.JSONSchemaProps

// kind is a kind of the operator, described by package kinds and its CustomResourceDefinition.
type kind struct {
	kinds.Kind
	resource string // its name in package history
	spec     *props
	fields   []field
}

// field is a field of a spec without nested fields. A list of objects is one field.
type field struct {
	kinds.Field
	spec, schema *props // the schemas of the whole spec and of the field
	isRequired   bool
}

// templatePath is the field that is copied to Jobs (template.go).
const templatePath = "spec.jobTemplate"

// readKinds reads the CustomResourceDefinitions of all kinds.
func readKinds() ([]*kind, error) {
	all := make([]*kind, 0, len(kinds.All))
	for _, described := range kinds.All {
		crd, err := described.Definition()
		if err != nil {
			return nil, err
		}
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		k := &kind{Kind: described, resource: history.Name(described.GroupVersionResource()), spec: &spec}
		for _, f := range described.Fields(crd) {
			k.fields = append(k.fields, newField(&spec, f))
		}
		all = append(all, k)
	}
	return all, nil
}

func newField(spec *props, described kinds.Field) field {
	f := field{Field: described, spec: spec, schema: spec}
	for _, name := range f.steps() {
		property := f.schema.Properties[name]
		f.schema, f.isRequired = &property, slices.Contains(f.schema.Required, name)
	}
	return f
}

// steps returns the path from the spec to the field, split into names.
func (f field) steps() []string { return strings.Split(f.Path, ".")[1:] }

// in returns base with the field set to a value. Objects on the path to the field get their required fields.
func (f field) in(base map[string]any, value any) map[string]any {
	spec, steps := runtime.DeepCopyJSON(base), f.steps()
	object, schema, last := spec, f.spec, steps[len(steps)-1]
	for _, name := range steps[:len(steps)-1] {
		property := schema.Properties[name]
		if _, ok := object[name].(map[string]any); !ok {
			object[name] = newMaker(0, f.Path).object(&property)
		}
		object, schema = object[name].(map[string]any), &property
	}
	if object[last] = value; value == absent {
		delete(object, last)
	}
	return spec
}

// class is an equivalence class of values of a field, represented by one value.
type class struct {
	name    string
	value   any // absent if the field is not set
	outcome outcome
	words   []string // words that the rejection must contain, besides the path of the field
}

// isMissing reports whether the field has no value.
func (c class) isMissing() bool { return c.value == nil || c.value == absent }

// outcome is the result of setting a value.
type outcome string

const (
	// legal: the children and the status become equal to those of a fresh resource with that value.
	legal outcome = "legal"
	// degraded: the API server accepts it, and the condition Degraded names the field.
	degraded outcome = "degraded"
	// rejected: the API server rejects it, and names the field.
	rejected outcome = "rejected"
)

type marker string

// absent is the value of a field that is not set.
const absent marker = "absent"

// classes returns the classes of the values of a field, each value once. The listed classes, if any, replace the
// accepted values of package kinds.
func (f field) classes(listed []class) []class {
	all := slices.Clone(listed)
	for _, value := range f.Values {
		if !value.IsAccepted() {
			all = append(all, class{value.Name, value.Value, rejected, value.Words})
		} else if len(listed) == 0 {
			all = append(all, class{value.Name, value.Value, legal, nil})
		}
	}
	all = append(all, f.beyondLimits()...)
	if f.schema.Default != nil {
		all = append(all, class{"default", decode(f.schema.Default.Raw), legal, nil})
	}
	if len(listed) == 0 {
		all = append(all, f.withinLimits()...)
	}
	missing := legal
	if f.isRequired {
		missing = rejected
	}
	all = append(all, class{"absent", absent, missing, nil}, class{"null", nil, missing, nil})
	known := map[string]bool{}
	return slices.DeleteFunc(all, func(c class) bool {
		key := fmt.Sprintf("%T %v", c.value, c.value)
		isDouble := known[key]
		known[key] = true
		return isDouble
	})
}

// withinLimits returns classes at the limits of the schema, or of the format, for integers. For other types without
// accepted values in package kinds, such as lists and maps, it returns two values and an empty one.
func (f field) withinLimits() []class {
	if f.schema.Type == "integer" {
		lowest, highest := int64(math.MinInt32), int64(math.MaxInt32)
		if f.schema.Format == "int64" {
			lowest, highest = -1<<53, 1<<53 // as far as JSON is exact
		}
		lowest = int64(ptr.Deref(f.schema.Minimum, float64(lowest)))
		highest = int64(ptr.Deref(f.schema.Maximum, float64(highest)))
		return []class{{"min", lowest, legal, nil}, {"min+1", lowest + 1, legal, nil}, {"min+2", lowest + 2, legal, nil},
			{"max", highest, legal, nil}}
	}
	if len(f.Accepted()) > 0 {
		return nil
	}
	m := newMaker(0, f.Path)
	one := m.value(f.schema)
	other := one
	for range 100 {
		if fmt.Sprint(other) == fmt.Sprint(one) {
			other = m.value(f.schema)
		}
	}
	classes := []class{{"one", one, legal, nil}, {"other", other, legal, nil}}
	switch {
	case f.schema.Type == "array" && ptr.Deref(f.schema.MinItems, 0) == 0:
		classes = append(classes, class{"empty", []any{}, legal, nil})
	case f.schema.Type == "object" && f.schema.AdditionalProperties != nil && f.schema.MinProperties == nil:
		classes = append(classes, class{"empty", map[string]any{}, legal, nil})
	}
	return classes
}

// beyondLimits returns values that violate a pattern, a format, a type or the limits of a list.
func (f field) beyondLimits() []class {
	s := f.schema
	classes := []class{{"wrong type", wrongType(s), rejected, nil}}
	add := func(isLimited bool, name string, value any) {
		if isLimited {
			classes = append(classes, class{name, value, rejected, nil})
		}
	}
	isText := s.Type == "string" && len(s.Enum) == 0 || s.XIntOrString
	add(isText && (s.Pattern != "" || s.Format != ""), "wrong form", "(")
	add(s.Type == "integer", "beyond all integers", math.MaxFloat64)
	if s.Type == "array" {
		elements := func(n int64) any {
			list := make([]any, max(0, n))
			for i := range list {
				list[i] = newMaker(uint64(i), f.Path).value(s.Items.Schema)
			}
			return list
		}
		add(ptr.Deref(s.MinItems, 0) > 0, "too few", elements(ptr.Deref(s.MinItems, 0)-1))
		add(s.MaxItems != nil, "too many", elements(ptr.Deref(s.MaxItems, 0)+1))
		add(len(s.Items.Schema.Enum) > 0, "no such word", []any{"Sometimes"})
	}
	return classes
}

// wrongType returns a value of a type that a schema does not allow.
func wrongType(schema *props) any {
	switch {
	case schema.XIntOrString:
		return true
	case schema.Type == "string":
		return int64(5)
	}
	return "two"
}

// tour returns the indexes of n classes in an order that contains every ordered pair as neighbors.
func tour(n int) []int {
	order := make([]int, 0, n*n)
	for i := range n {
		order = append(order, i)
		for j := i + 1; j < n; j++ {
			order = append(order, j, i)
		}
	}
	return order
}

// decode parses JSON. Whole numbers become int64.
func decode(raw []byte) any {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		panic(fmt.Sprintf("schema: %v: %s", err, raw))
	}
	if number, ok := value.(float64); ok && number == math.Trunc(number) {
		return int64(number)
	}
	return value
}

func decodeObject(text string) map[string]any {
	object, _ := decode([]byte(text)).(map[string]any)
	return object
}
