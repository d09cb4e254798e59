package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Class stands for all values of a leaf that are to be treated alike.
type Class struct {
	Name  string
	value any // absent for a field that is left out
	fate  fate
}

// fate is what becomes of a value.
type fate string

const (
	// legal: the children or the status become what a fresh resource with that value has.
	legal fate = "legal"
	// told: the API server takes it, and the condition Degraded names the field.
	told fate = "told"
	// refused: the API server does not take it, and its words name the field.
	refused fate = "refused"
)

// absent is the value of a field that is left out; bare also leaves out what the field is in.
const (
	absent marker = "absent"
	bare   marker = "bare"
)

type marker string

// special are values of strings whose form no schema but a rule of ours says.
var special = map[string][]Class{
	"spec.deploymentName": {
		{"other", "web", legal}, {"longer", "web-2.example", legal}, {"shortest", "a", legal},
		{"longest", strings.Repeat("a", validation.DNS1123SubdomainMaxLength), legal},
		{"upper case", "Web", refused}, {"dash at the end", "web-", refused}, {"space", "a b", refused},
	},
	"spec.schedule": {
		{"fields", "0 0 1 1 *", legal}, {"names and ranges", "30 6 1-15 mar,sep mon-fri", legal}, {"name", "@yearly", legal},
		{"every", "@every 1h", legal}, {"longest", "0 12 29 2 *" + strings.Repeat(" ", 245), legal},
		{"never", "0 0 30 2 *", told}, {"ends before it begins", "30-10 * * * *", told},
		{"no such minute", "60 * * * *", refused}, {"zone inside", "TZ=UTC @daily", refused}, {"every nothing", "@every 0s", refused},
		{"empty", "", refused},
	},
	"spec.timeZone": {
		{"zone", "Europe/Berlin", legal}, {"UTC", "UTC", legal}, {"long", "America/Argentina/ComodRivadavia", legal},
		{"no such zone", "Mars/Olympus_Mons", told}, {"long and no zone", strings.Repeat("a", 64), told},
		{"local", "Local", refused}, {"two words", "New York", refused}, {"empty", "", refused},
	},
}

// Classes returns the classes of the values of a leaf, from its schema. What is handed on to Jobs is judged by the API server's word on
// such a Job, so its fate is not known here.
func (l Leaf) Classes() []Class {
	if l.inTemplate() {
		return l.templateClasses()
	}
	missing := legal
	if l.isRequired {
		missing = refused
	}
	classes := []Class{{"absent", absent, missing}, {"null", nil, missing}}
	classes = append(classes, special[l.Path]...)
	if l.schema.Default != nil {
		classes = append(classes, Class{"default", decode(l.schema.Default.Raw), legal})
	}
	switch l.schema.Type {
	case "integer":
		lowest, highest := int64(*l.schema.Minimum), int64(*l.schema.Maximum)
		classes = append(classes, Class{"min", lowest, legal}, Class{"min+1", lowest + 1, legal}, Class{"some", lowest + 2, legal}, Class{"max", highest, legal},
			Class{"min-1", lowest - 1, refused}, Class{"max+1", highest + 1, refused}, Class{"half", 1.5, refused}, Class{"beyond all numbers", math.MaxFloat64, refused})
	case "boolean":
		classes = append(classes, Class{"true", true, legal}, Class{"false", false, legal})
	case "string":
		for _, value := range l.schema.Enum {
			classes = append(classes, Class{unquote(value.Raw), unquote(value.Raw), legal})
		}
		if len(l.schema.Enum) > 0 {
			classes = append(classes, Class{"no such word", "Sometimes", refused}, Class{"empty", "", refused})
		}
		if l.schema.MinLength != nil {
			classes = append(classes, Class{"too short", strings.Repeat("a", int(*l.schema.MinLength)-1), refused})
		}
		if l.schema.MaxLength != nil {
			classes = append(classes, Class{"too long", strings.Repeat("a", int(*l.schema.MaxLength)+1), refused})
		}
	}
	return append(classes, Class{"wrong type", l.wrongType(), refused})
}

// classesOfTemplate is how many classes each leaf of the template has.
const classesOfTemplate = 4

func (l Leaf) templateClasses() []Class {
	pair := twoOf(l.Path, l.schema)
	missing := Class{"absent", absent, legal}
	if l.isRequired {
		missing = Class{"absent with what it is in", bare, legal}
	}
	return []Class{missing, {"one", pair[0], legal}, {"other", pair[1], legal}, {"wrong type", l.wrongType(), refused}}
}

// wrongType returns a value of a type that the leaf is not.
func (l Leaf) wrongType() any {
	switch {
	case l.schema.XIntOrString:
		return true
	case l.schema.Type == "string":
		return int64(5)
	}
	return "two"
}

// apply returns a spec with a value of the leaf.
func (k *Kind) apply(base map[string]any, leaf Leaf, class Class) map[string]any {
	spec := clone(base)
	if class.value == bare {
		return spec
	}
	if leaf.inTemplate() {
		k.accompany(spec, leaf)
	}
	if class.value != absent {
		k.put(spec, leaf, class.value)
		return spec
	}
	k.put(spec, leaf, sample(leaf.Path, leaf.schema, ""))
	drop(spec, leaf)
	return spec
}

// circuit returns the indexes of n classes in an order in which each follows each other one once: it begins and ends with the first.
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

func clone(object map[string]any) map[string]any {
	copied := maps.Clone(object)
	for name, value := range copied {
		copied[name] = cloneValue(value)
	}
	return copied
}

func cloneValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return clone(value)
	case []any:
		copied := slices.Clone(value)
		for i := range copied {
			copied[i] = cloneValue(copied[i])
		}
		return copied
	}
	return value
}

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
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(fmt.Sprintf("schema: %v: %s", err, text))
	}
	return object
}

func unquote(raw []byte) string {
	text, _ := decode(raw).(string)
	return text
}
