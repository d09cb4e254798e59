package owned

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// Server-side apply treats lists, maps and structs as the API's schema says (listType, mapType, structType), and so must
// a comparison that foresees what it would do. These are the places where the schema of the kinds we write differs
// from the plain rule: a list or map belongs to us as a whole, a struct field by field.
var (
	// listKeys are the fields by which the elements of a list are told apart (listType=map). Others may add theirs.
	// A builder has to state them all, defaults included.
	listKeys = map[reflect.Type][]string{
		reflect.TypeFor[metav1ac.OwnerReferenceApplyConfiguration]():           {"UID"},
		reflect.TypeFor[corev1ac.ContainerApplyConfiguration]():                {"Name"},
		reflect.TypeFor[corev1ac.ContainerPortApplyConfiguration]():            {"ContainerPort", "Protocol"},
		reflect.TypeFor[corev1ac.EnvVarApplyConfiguration]():                   {"Name"},
		reflect.TypeFor[corev1ac.VolumeApplyConfiguration]():                   {"Name"},
		reflect.TypeFor[corev1ac.VolumeMountApplyConfiguration]():              {"MountPath"},
		reflect.TypeFor[corev1ac.TopologySpreadConstraintApplyConfiguration](): {"TopologyKey", "WhenUnsatisfiable"},
		reflect.TypeFor[corev1ac.ServicePortApplyConfiguration]():              {"Port", "Protocol"},
	}
	// sharedMaps are the map fields in which others may have keys of their own (mapType=granular).
	sharedMaps = []string{"Labels", "Annotations", "Limits", "Requests"}
	// wholeStructs are the structs that belong to us with the fields we leave out (structType=atomic).
	wholeStructs = []reflect.Type{reflect.TypeFor[metav1ac.LabelSelectorApplyConfiguration]()}
	// notWanted are fields of a configuration that address a request and say nothing about the object.
	notWanted = []string{"TypeMetaApplyConfiguration", "ResourceVersion"}
)

// covers tells whether live already says all that want says, so that applying want would change nothing.
// Want is an apply configuration, in which absent means no opinion; live is the API type of the same kind.
func covers(want, live any) bool {
	return coversValue(reflect.ValueOf(want), reflect.ValueOf(live), false)
}

func coversValue(want, live reflect.Value, shared bool) bool {
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if live.Kind() == reflect.Pointer {
		if live.IsNil() {
			return false
		}
		live = live.Elem()
	}
	if quantity, ok := want.Interface().(resource.Quantity); ok {
		return quantity.Cmp(live.Interface().(resource.Quantity)) == 0
	}
	switch {
	case want.Type() == live.Type() && want.Kind() != reflect.Map:
		return reflect.DeepEqual(want.Interface(), live.Interface())
	case want.Kind() == reflect.Struct:
		return coversStruct(want, live)
	case want.Kind() == reflect.Map:
		return coversMap(want, live, shared)
	case want.Kind() == reflect.Slice:
		return coversList(want, live)
	}
	panic(fmt.Sprintf("owned: cannot compare %s with %s", want.Type(), live.Type()))
}

func coversStruct(want, live reflect.Value) bool {
	whole := slices.Contains(wholeStructs, want.Type())
	for i := range want.NumField() {
		name, isSet := field(want, i)
		if name == "" || !isSet && !whole {
			continue
		}
		liveField := live.FieldByName(name)
		if !liveField.IsValid() {
			panic(fmt.Sprintf("owned: %s has no field %s of %s", live.Type(), name, want.Type()))
		}
		if !isSet {
			if !liveField.IsZero() {
				return false
			}
			continue
		}
		if !coversValue(want.Field(i), liveField, slices.Contains(sharedMaps, name)) {
			return false
		}
	}
	return true
}

func coversMap(want, live reflect.Value, shared bool) bool {
	if !shared && want.Len() != live.Len() {
		return false
	}
	for keys := want.MapRange(); keys.Next(); {
		liveValue := live.MapIndex(keys.Key())
		if !liveValue.IsValid() || !coversValue(keys.Value(), liveValue, false) {
			return false
		}
	}
	return true
}

func coversList(want, live reflect.Value) bool {
	keys, keyed := listKeys[want.Type().Elem()]
	if !keyed && want.Len() != live.Len() {
		return false
	}
	for i := range want.Len() {
		j := i
		if keyed {
			j = find(want.Index(i), live, keys)
		}
		if j < 0 || !coversValue(want.Index(i), live.Index(j), false) {
			return false
		}
	}
	return true
}

// find returns the index of the element of live that has the keys of want, or -1.
func find(want, live reflect.Value, keys []string) int {
	for i := range live.Len() {
		if !slices.ContainsFunc(keys, func(key string) bool {
			return !coversValue(want.FieldByName(key), live.Index(i).FieldByName(key), false)
		}) {
			return i
		}
	}
	return -1
}

// field returns the name that field i of a configuration has in the API type, and whether it is set. The name is empty
// for a field that says nothing about the object.
func field(want reflect.Value, i int) (name string, isSet bool) {
	structField := want.Type().Field(i)
	if slices.Contains(notWanted, structField.Name) {
		return "", false
	}
	value := want.Field(i)
	if value.Kind() == reflect.Struct { // embedded, such as the VolumeSource of a Volume
		return strings.TrimSuffix(structField.Name, "ApplyConfiguration"), true
	}
	return strings.TrimSuffix(structField.Name, "ApplyConfiguration"), !value.IsNil()
}

// fieldsHash returns a hash of the names of all fields that want sets: not of their values, which covers compares.
func fieldsHash(want any) string {
	var names strings.Builder
	writeFieldNames(&names, reflect.ValueOf(want))
	hash := fnv.New64a()
	hash.Write([]byte(names.String()))
	return strconv.FormatUint(hash.Sum64(), 36)
}

func writeFieldNames(to *strings.Builder, want reflect.Value) {
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	to.WriteString("{")
	defer to.WriteString("}")
	switch {
	case want.Kind() == reflect.Struct && strings.HasSuffix(want.Type().Name(), "ApplyConfiguration"):
		for i := range want.NumField() {
			if name, isSet := field(want, i); name != "" && isSet {
				to.WriteString(name)
				writeFieldNames(to, want.Field(i))
			}
		}
	case want.Kind() == reflect.Map:
		names := make([]string, 0, want.Len())
		for keys := want.MapRange(); keys.Next(); {
			names = append(names, keys.Key().String())
		}
		fmt.Fprintf(to, "%q", slices.Sorted(slices.Values(names)))
	case want.Kind() == reflect.Slice:
		keys, keyed := listKeys[want.Type().Elem()]
		for i := 0; keyed && i < want.Len(); i++ {
			for _, key := range keys {
				fmt.Fprintf(to, "%v,", reflect.Indirect(want.Index(i).FieldByName(key)))
			}
			writeFieldNames(to, want.Index(i))
		}
	}
}
