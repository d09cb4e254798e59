package owned

import (
	"reflect"
	"slices"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
)

// oneOfs are the structs of which only one member may be set. Where somebody has replaced our member by another, applying ours
// again would add it beside theirs, which the API server refuses.
var oneOfs = []reflect.Type{
	reflect.TypeFor[corev1ac.ProbeHandlerApplyConfiguration](),
	reflect.TypeFor[corev1ac.LifecycleHandlerApplyConfiguration](),
	reflect.TypeFor[corev1ac.VolumeSourceApplyConfiguration](),
	reflect.TypeFor[policyv1ac.PodDisruptionBudgetSpecApplyConfiguration](),
}

// members returns a strategic merge patch that makes the one-ofs in live have the members that want sets, and no others; nil when
// they have no others.
func members(want, live reflect.Value) map[string]any {
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if live.Kind() == reflect.Pointer {
		if live.IsNil() {
			return nil
		}
		live = live.Elem()
	}
	if want.Kind() != reflect.Struct || live.Kind() != reflect.Struct || want.Type() == live.Type() {
		return nil
	}
	if slices.Contains(oneOfs, want.Type()) {
		return swap(want, live)
	}
	patch := map[string]any{}
	for i := range want.NumField() {
		name, isSet := field(want, i)
		if name == "" || !isSet {
			continue
		}
		if inner := inside(want.Field(i), live.FieldByName(name)); inner != nil {
			put(patch, jsonName(want, i), inner)
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// inside returns the patch for one field: of a struct, or of a list whose elements are told apart by keys.
func inside(want, live reflect.Value) any {
	if want.Kind() != reflect.Slice {
		if patch := members(want, live); patch != nil {
			return patch
		}
		return nil
	}
	keys, keyed := listKeys[want.Type().Elem()]
	var elements []any
	for i := 0; keyed && i < want.Len(); i++ {
		j := find(want.Index(i), live, keys)
		if j < 0 {
			continue
		}
		if patch := members(want.Index(i), live.Index(j)); patch != nil {
			for _, key := range keys {
				structField, _ := want.Type().Elem().FieldByName(key)
				put(patch, tagOf(structField), want.Index(i).FieldByName(key).Interface())
			}
			elements = append(elements, patch)
		}
	}
	if elements == nil {
		return nil
	}
	return elements
}

// swap returns the patch for a one-of itself.
func swap(want, live reflect.Value) map[string]any {
	patch, hasOthers := map[string]any{}, false
	for i := range want.NumField() {
		name, isSet := field(want, i)
		switch {
		case isSet:
			patch[jsonName(want, i)] = want.Field(i).Interface()
		case !live.FieldByName(name).IsZero():
			patch[jsonName(want, i)] = nil
			hasOthers = true
		}
	}
	if !hasOthers {
		return nil
	}
	return patch
}

// put adds a value to a patch; that of an embedded struct, which has no name, field by field.
func put(patch map[string]any, name string, value any) {
	if name != "" {
		patch[name] = value
		return
	}
	for name, value := range value.(map[string]any) {
		patch[name] = value
	}
}

func jsonName(want reflect.Value, i int) string {
	return tagOf(want.Type().Field(i))
}

func tagOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
