package schema

import "strings"

// words are two values each for fields whose schema says only that they are strings or numbers, while Kubernetes takes certain ones.
// The longest name that ends a path counts.
var words = map[string][2]any{}

// companion is what Kubernetes asks for beside some leaves although their schema does not.
type companion struct {
	leaves string // those whose path begins so, below spec.jobTemplate
	path   string // of what is set besides
	value  any
}

var companions []companion

// accompany sets in a spec what has to be beside a leaf.
func (k *Kind) accompany(spec map[string]any, leaf Leaf) {
	for _, c := range companions {
		if strings.HasPrefix(leaf.Path, templatePath+c.leaves) {
			k.put(spec, Leaf{Path: templatePath + c.path}, cloneValue(c.value))
		}
	}
}

// twoValues returns two legal values of a leaf.
func (l Leaf) twoValues() [2]any {
	last := l.Path[strings.LastIndexByte(l.Path, '.')+1:]
	return twoOf(last, l.schema)
}

// twoOf returns two legal values of a field.
func twoOf(name string, schema *props) [2]any {
	if pair, ok := words[name]; ok {
		return pair
	}
	switch {
	case len(schema.Enum) >= 2:
		return [2]any{unquote(schema.Enum[0].Raw), unquote(schema.Enum[1].Raw)}
	case schema.XIntOrString:
		return [2]any{int64(1), int64(2)}
	}
	switch schema.Type {
	case "integer":
		return [2]any{int64(1), int64(2)}
	case "boolean":
		return [2]any{true, false}
	case "array":
		if schema.Items.Schema.Type == "integer" {
			return [2]any{[]any{int64(1)}, []any{int64(2)}}
		}
		return [2]any{[]any{"a"}, []any{"b"}}
	case "object":
		return [2]any{map[string]any{"a": "1"}, map[string]any{"a": "2", "b": "1"}}
	}
	return [2]any{"a", "b"}
}
