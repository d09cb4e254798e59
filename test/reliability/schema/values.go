package schema

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// maker makes random values that a schema allows.
type maker struct{ *rand.Rand }

// newMaker returns a maker whose values are always the same for a seed and a path.
func newMaker(seed uint64, path string) maker {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(path))
	return maker{rand.New(rand.NewPCG(seed, hash.Sum64()))}
}

// texts have the forms that Kubernetes asks for where its schema only says "string": names, words, numbers, addresses
// and paths.
var texts = []string{"a", "b", "c-1", "example.com/a", "example.com/b", "Never", "Failed", "Indexed", "1", "0-2", "2",
	"10.0.0.1", "/a", "metadata.name", "limits.cpu", "ReadWriteOnce", "kernel.shm_rmid_forced",
	"iqn.2001-04.com.example:a", "a:1"}

// mapKeys are names of labels, and of resources that a container can request.
var mapKeys = []string{"a", "example.com/b", "cpu", "memory", "storage", "example.com/c"}

func pick[T any](m maker, values []T) T { return values[m.IntN(len(values))] }

// value returns a value of a schema.
func (m maker) value(schema *props) any {
	switch {
	case len(schema.Enum) > 0:
		return decode(pick(m, schema.Enum).Raw)
	case schema.XIntOrString:
		return int64(1 + m.IntN(9))
	case len(schema.Properties) > 0:
		return m.object(schema)
	}
	switch schema.Type {
	case "integer":
		return pick(m, []int64{1, 2, 3, 600, 601, 3600, 30000})
	case "boolean":
		return m.IntN(2) == 0
	case "array":
		return []any{m.value(schema.Items.Schema)}
	case "object":
		made := map[string]any{}
		if schema.AdditionalProperties != nil {
			made[pick(m, mapKeys)] = m.value(schema.AdditionalProperties.Schema)
		}
		return made
	}
	return pick(m, texts)
}

// object returns an object with all that its schema requires.
func (m maker) object(schema *props) map[string]any {
	made := map[string]any{}
	for _, name := range schema.Required {
		property := schema.Properties[name]
		made[name] = m.value(&property)
	}
	return made
}

// grow adds a random field to an object. A required choice, such as the type of a volume, is one among fields that are
// objects.
func (m maker) grow(object map[string]any, schema *props) {
	names := slices.Sorted(maps.Keys(schema.Properties))
	if objects := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return schema.Properties[name].Type != "object"
	}); len(objects) > 0 && m.IntN(4) > 0 {
		names = objects
	}
	name := pick(m, names)
	if property := schema.Properties[name]; object[name] == nil {
		object[name] = m.value(&property)
	}
}

// put sets the field at a path below an object. What the field is in is created with all that its schema requires; of a
// list, the last element is meant, or a new one.
func (m maker) put(object map[string]any, schema *props, path []string, value any, isNewElement bool) {
	name, isList := strings.CutSuffix(path[0], "[]")
	if len(path) == 1 {
		object[name] = value
		return
	}
	inner := schema.Properties[name]
	if isList {
		elements, _ := object[name].([]any)
		if len(elements) == 0 || isNewElement {
			elements = append(elements, m.object(inner.Items.Schema))
		}
		object[name] = elements
		m.put(elements[len(elements)-1].(map[string]any), inner.Items.Schema, path[1:], value, isNewElement)
		return
	}
	if _, ok := object[name].(map[string]any); !ok {
		object[name] = m.object(&inner)
	}
	m.put(object[name].(map[string]any), &inner, path[1:], value, isNewElement)
}

// has returns whether an object has a field at a path, in any element of a list.
func has(value any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	object, _ := value.(map[string]any)
	inner, ok := object[name]
	if elements, _ := inner.([]any); isList {
		return slices.ContainsFunc(elements, func(element any) bool { return has(element, path[1:]) })
	}
	return ok && has(inner, path[1:])
}
