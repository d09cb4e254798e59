package schema

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
)

// maker generates random values that a schema allows.
type maker struct {
	*rand.Rand
	// isFull generates all fields of objects, without zero values. Otherwise only required fields are generated.
	isFull bool
}

// newMaker returns a maker that always generates the same values for a seed and a path.
func newMaker(seed uint64, path string) maker {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(path))
	return maker{Rand: rand.New(rand.NewPCG(seed, hash.Sum64()))}
}

// texts are values for fields of type "string". Kubernetes requires more than the schema: names, words, numbers,
// addresses or paths.
var texts = []string{"a", "b", "c-1", "example.com/a", "example.com/b", "Never", "Failed", "Indexed", "1", "0-2", "2",
	"10.0.0.1", "/a", "metadata.name", "limits.cpu", "ReadWriteOnce", "kernel.shm_rmid_forced",
	"iqn.2001-04.com.example:a", "a:1"}

// mapKeys are keys for maps: names of labels, and of resources that a container can request.
var mapKeys = []string{"a", "example.com/b", "cpu", "memory", "storage", "example.com/c"}

func pick[T any](m maker, values []T) T { return values[m.IntN(len(values))] }

// value returns a value of a schema.
func (m maker) value(schema *props) any {
	switch {
	case len(schema.Enum) > 0:
		return decode(pick(m, schema.Enum).Raw)
	case schema.XIntOrString && schema.Pattern != "": // a quantity, which is returned as a string
		return pick(m, []string{"1", "2", "30", "40Mi"})
	case schema.XIntOrString:
		return int64(1 + m.IntN(9))
	case len(schema.Properties) > 0:
		return m.object(schema)
	}
	switch schema.Type {
	case "integer":
		return pick(m, []int64{1, 2, 3, 600, 601, 3600, 30000})
	case "boolean":
		return m.isFull || m.IntN(2) == 0
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

// object returns an object with all the fields that its schema requires.
func (m maker) object(schema *props) map[string]any {
	names := schema.Required
	if m.isFull {
		names = slices.Sorted(maps.Keys(schema.Properties))
	}
	made := map[string]any{}
	for _, name := range names {
		property := schema.Properties[name]
		made[name] = m.value(&property)
	}
	return made
}
