package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Class stands for all values of a field that are to be treated alike.
type Class struct {
	Name    string
	value   any // absent for a field that is left out
	outcome outcome
}

// outcome is what a value leads to.
type outcome string

const (
	// legal: the children and the status become what a fresh resource with that value has.
	legal outcome = "legal"
	// degraded: the API server accepts it, and the condition Degraded names the field.
	degraded outcome = "degraded"
	// rejected: the API server rejects it, and names the field.
	rejected outcome = "rejected"
)

type marker string

// absent is the value of a field that is left out.
const absent marker = "absent"

// classes returns the classes of the values of a field: those of its schema, with values that are listed by hand in
// place of values that the schema describes too loosely.
func (f Field) classes(listed []Class) []Class {
	missing := legal
	if f.isRequired {
		missing = rejected
	}
	classes := append([]Class{{"absent", absent, missing}, {"null", nil, missing}}, listed...)
	if f.schema.Default != nil {
		classes = append(classes, Class{"default", decode(f.schema.Default.Raw), legal})
	}
	switch {
	case f.schema.Type == "integer":
		classes = append(classes, f.numbers()...)
	case f.schema.Type == "boolean":
		classes = append(classes, Class{"true", true, legal}, Class{"false", false, legal})
	case len(f.schema.Enum) > 0:
		for _, value := range f.schema.Enum {
			classes = append(classes, Class{fmt.Sprint(decode(value.Raw)), decode(value.Raw), legal})
		}
		classes = append(classes, Class{"no such word", "Sometimes", rejected}, Class{"empty", "", rejected})
	case len(listed) == 0:
		classes = append(classes, f.any()...)
	}
	return append(append(classes, f.beyondLimits()...), Class{"wrong type", f.wrongType(), rejected})
}

// numbers are the bounds of an integer, those next to them, and what is no integer. Without bounds of its own it has
// those of its format.
func (f Field) numbers() []Class {
	lowest, highest := int64(math.MinInt32), int64(math.MaxInt32)
	if f.schema.Format == "int64" {
		lowest, highest = -1<<53, 1<<53 // as far as JSON is exact
	}
	var beyond []Class
	if f.schema.Minimum != nil {
		lowest = int64(*f.schema.Minimum)
		beyond = append(beyond, Class{"min-1", lowest - 1, rejected})
	}
	if f.schema.Maximum != nil {
		highest = int64(*f.schema.Maximum)
		beyond = append(beyond, Class{"max+1", highest + 1, rejected})
	}
	return append([]Class{{"min", lowest, legal}, {"min+1", lowest + 1, legal}, {"some", lowest + 2, legal},
		{"max", highest, legal},
		{"half", 1.5, rejected}, {"beyond all numbers", math.MaxFloat64, rejected}}, beyond...)
}

// any are two values of a string, list, map or object of which nothing is listed.
func (f Field) any() []Class {
	m := newMaker(0, f.Path)
	one := m.value(f.schema)
	classes := []Class{{"one", one, legal}}
	for range 100 {
		if other := m.value(f.schema); fmt.Sprint(other) != fmt.Sprint(one) {
			classes = append(classes, Class{"other", other, legal})
			break
		}
	}
	switch {
	case f.schema.Type == "array" && (f.schema.MinItems == nil || *f.schema.MinItems == 0):
		classes = append(classes, Class{"empty", []any{}, legal})
	case f.schema.Type == "object" && f.schema.AdditionalProperties != nil && f.schema.MinProperties == nil:
		classes = append(classes, Class{"empty", map[string]any{}, legal})
	}
	return classes
}

// beyondLimits are values that a limit on lengths, a pattern, a format or the elements of a list rule out.
func (f Field) beyondLimits() []Class {
	var classes []Class
	add := func(name string, value any) { classes = append(classes, Class{name, value, rejected}) }
	isText := f.schema.Type == "string" && len(f.schema.Enum) == 0 || f.schema.XIntOrString
	if isText && (f.schema.Pattern != "" || f.schema.Format != "") {
		add("wrong form", "(")
	}
	if limit := f.schema.MinLength; limit != nil && *limit > 0 {
		add("too short", strings.Repeat("a", int(*limit)-1))
	}
	if limit := f.schema.MaxLength; limit != nil {
		add("too long", strings.Repeat("a", int(*limit)+1))
	}
	if f.schema.Type != "array" {
		return classes
	}
	m := newMaker(0, f.Path)
	elements := func(n int64) (list []any) {
		for range n {
			list = append(list, m.value(f.schema.Items.Schema))
		}
		return list
	}
	if limit := f.schema.MinItems; limit != nil && *limit > 0 {
		add("too few", slices.Clip(elements(*limit-1)))
	}
	if limit := f.schema.MaxItems; limit != nil {
		add("too many", elements(*limit+1))
	}
	if len(f.schema.Items.Schema.Enum) > 0 {
		add("no such word", []any{"Sometimes"})
	}
	return classes
}

// wrongType returns a value of a type that the field does not have.
func (f Field) wrongType() any {
	switch {
	case f.schema.XIntOrString:
		return true
	case f.schema.Type == "string":
		return int64(5)
	}
	return "two"
}

// apply returns a spec with a value of the field.
func (k *Kind) apply(base map[string]any, field Field, class Class) map[string]any {
	spec, path := runtime.DeepCopyJSON(base), field.steps("spec")
	newMaker(0, field.Path).put(spec, k.spec, path, class.value, false)
	if class.value != absent {
		return spec
	}
	object := spec
	for _, step := range path[:len(path)-1] {
		object = object[step].(map[string]any)
	}
	delete(object, path[len(path)-1])
	return spec
}

// circuit returns the indexes of n classes in an order in which each follows each other one once. It begins and ends
// with the first.
func circuit(n int) []int {
	left := make([][]int, n)
	for i := range n {
		for j := range n {
			if i != j {
				left[i] = append(left[i], j)
			}
		}
	}
	var tour []int
	for stack := []int{0}; len(stack) > 0; {
		at := stack[len(stack)-1]
		if len(left[at]) == 0 {
			tour = append(tour, at)
			stack = stack[:len(stack)-1]
			continue
		}
		next := left[at][len(left[at])-1]
		left[at] = left[at][:len(left[at])-1]
		stack = append(stack, next)
	}
	slices.Reverse(tour)
	return tour
}

// decode reads JSON. A whole number becomes an int64.
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
