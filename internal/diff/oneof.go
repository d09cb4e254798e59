package diff

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// alternatives are the fields of a type of which only one may be set. If another writer has replaced the operator's
// field by an alternative, applying the field again would set both, which the API server refuses. The schema does not
// define alternatives. A nil list means all fields except the keys of the list that the type is in.
var alternatives = map[string][]string{
	"io.k8s.api.core.v1.EnvVar":                    {"value", "valueFrom"},
	"io.k8s.api.core.v1.LifecycleHandler":          {"exec", "httpGet", "sleep", "tcpSocket"},
	"io.k8s.api.core.v1.Probe":                     {"exec", "grpc", "httpGet", "tcpSocket"},
	"io.k8s.api.core.v1.Volume":                    nil,
	"io.k8s.api.policy.v1.PodDisruptionBudgetSpec": {"maxUnavailable", "minAvailable"},
}

// Alternatives returns a strategic merge patch that replaces alternatives that another writer has set in live by the
// fields of want; nil if there are none.
func Alternatives(want runtime.ApplyConfiguration, live runtime.Object) (map[string]any, error) {
	t, err := TypeOf(live)
	if err != nil {
		return nil, err
	}
	return t.replace(reflect.ValueOf(want), reflect.ValueOf(live), nil), nil
}

// replace returns the patch for a struct that is the element of a list with these keys, or in no list.
func (t Type) replace(want, live reflect.Value, keys []string) map[string]any {
	want, live = indirect(want), indirect(live)
	if want.Kind() != reflect.Struct || !isConfiguration(want.Type()) || !live.IsValid() {
		return nil
	}
	atom := t.resolve()
	patch := t.swap(atom, want, live, keys)
	for _, field := range fieldsOf(want.Type()) {
		wanted := want.Field(field.index)
		if !isSet(wanted) || live.Kind() != reflect.Struct {
			continue
		}
		has := live.FieldByName(field.goName)
		switch {
		case !has.IsValid():
		case field.isInline:
			// swap has handled its alternatives, which are those of the struct around it.
		case wanted.Kind() == reflect.Slice:
			if elements := t.field(atom, field.jsonName).replaceIn(wanted, has); elements != nil {
				patch[field.jsonName] = elements
			}
		default:
			if inner := t.field(atom, field.jsonName).replace(wanted, has, nil); inner != nil {
				patch[field.jsonName] = inner
			}
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// replaceIn returns the patch for a list whose elements have keys.
func (t Type) replaceIn(want, live reflect.Value) []any {
	atom := t.resolve()
	if atom.List == nil || len(atom.Keys) == 0 {
		return nil
	}
	var elements []any
	for i := range want.Len() {
		j := t.find(atom, want.Index(i), live)
		if j < 0 {
			continue
		}
		patch := t.element(atom).replace(want.Index(i), live.Index(j), atom.Keys)
		if patch == nil {
			continue
		}
		for _, key := range atom.Keys {
			patch[key] = byJSONName(want.Index(i), key).Interface()
		}
		elements = append(elements, patch)
	}
	return elements
}

// swap returns the patch for the alternatives of one struct: it sets the fields of want and removes the others. It is
// empty if none of the others is set.
func (t Type) swap(atom schema.Atom, want, live reflect.Value, keys []string) map[string]any {
	fields, hasAlternatives := alternatives[t.name()]
	if !hasAlternatives {
		return map[string]any{}
	}
	if fields == nil {
		for _, field := range atom.Fields {
			if !slices.Contains(keys, field.Name) {
				fields = append(fields, field.Name)
			}
		}
	}
	desired, others := map[string]any{}, map[string]any{}
	for _, name := range fields {
		wanted, has := byJSONName(want, name), byJSONName(live, name)
		switch {
		case wanted.IsValid() && isSet(wanted):
			desired[name] = wanted.Interface()
		case has.IsValid() && !has.IsZero():
			others[name] = nil
		}
	}
	if len(desired) == 0 || len(others) == 0 {
		return map[string]any{}
	}
	maps.Copy(others, desired)
	return others
}
