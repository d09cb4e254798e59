package diff

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Type is a type of Kubernetes' own API with its schema, which says of each list and map whether it is one value
// (atomic) or shared by several writers (granular), and by which keys the elements of a shared list are told apart.
type Type struct {
	schema *schema.Schema
	ref    schema.TypeRef
	// isInAtomic tells that the value is part of an atomic one, which belongs to its writer with all that is in it.
	isInAtomic bool
}

// converter knows the schemas that client-go's apply configurations were generated with. Parsing them takes a moment,
// so it is done once.
var converter = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)
})

// Load parses the schemas. Without it the first comparison does, and the first pass of a manager that has just won the
// election is late by that time.
func Load() {
	converter()
}

// known are the types that [TypeOf] has found, by reflect.Type.
var known sync.Map

// TypeOf returns the type of an object. It fails for types that are not Kubernetes' own.
func TypeOf(object runtime.Object) (Type, error) {
	goType := reflect.TypeOf(object)
	if found, ok := known.Load(goType); ok {
		return found.(Type), nil
	}
	gvks, _, err := clientgoscheme.Scheme.ObjectKinds(object)
	if err != nil {
		return Type{}, fmt.Errorf("finding the schema of %T: %w", object, err)
	}
	empty := reflect.New(goType.Elem()).Interface().(runtime.Object)
	empty.GetObjectKind().SetGroupVersionKind(gvks[0])
	typed, err := converter().ObjectToTyped(empty)
	if err != nil {
		return Type{}, fmt.Errorf("finding the schema of %T: %w", object, err)
	}
	found := Type{schema: typed.Schema(), ref: typed.TypeRef()}
	known.Store(goType, found)
	return found, nil
}

// resolve returns what the schema says of a type; nothing where it has no type of that name.
func (t Type) resolve() schema.Atom {
	atom, _ := t.schema.Resolve(t.ref)
	return atom
}

// name returns the name of a type, such as io.k8s.api.core.v1.Container; "" if it has none.
func (t Type) name() string {
	if t.ref.NamedType == nil {
		return ""
	}
	return *t.ref.NamedType
}

// field returns the type of a field of a struct, or of a value of a map.
func (t Type) field(atom schema.Atom, name string) Type {
	inner := Type{schema: t.schema, isInAtomic: t.isAtomic(atom)}
	if atom.Map == nil {
		return inner
	}
	inner.ref = atom.Map.ElementType
	if field, ok := atom.FindField(name); ok {
		inner.ref = field.Type
	}
	return inner
}

// element returns the type of the elements of a list.
func (t Type) element(atom schema.Atom) Type {
	return Type{schema: t.schema, ref: atom.List.ElementType, isInAtomic: t.isAtomic(atom)}
}

// isAtomic reports whether a struct, map or list is one value, by itself or because it is part of one.
func (t Type) isAtomic(atom schema.Atom) bool {
	switch {
	case t.isInAtomic:
		return true
	case atom.Map != nil:
		return atom.Map.ElementRelationship == schema.Atomic
	case atom.List != nil:
		return atom.List.ElementRelationship == schema.Atomic
	}
	return true
}

// configField is a field of an apply configuration.
type configField struct {
	index    int
	goName   string // of the same field in the API type
	jsonName string
	isInline bool // an embedded struct whose fields are those of the struct around it
}

// configFields are the fields of apply configurations, by reflect.Type.
var configFields sync.Map

// fieldsOf returns the fields of an apply configuration that say something about the object. Its kind and the resource
// version address a request.
func fieldsOf(configuration reflect.Type) []configField {
	if found, ok := configFields.Load(configuration); ok {
		return found.([]configField)
	}
	fields := make([]configField, 0, configuration.NumField())
	for i := range configuration.NumField() {
		field := configuration.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Name == "TypeMetaApplyConfiguration" || field.Name == "ResourceVersion" {
			continue
		}
		fields = append(fields, configField{
			index:    i,
			goName:   strings.TrimSuffix(field.Name, "ApplyConfiguration"),
			jsonName: name,
			isInline: name == "" && (field.Anonymous || strings.Contains(options, "inline")),
		})
	}
	configFields.Store(configuration, fields)
	return fields
}

// isSet reports whether a configuration states a field.
func isSet(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return !value.IsNil()
	}
	return true // an embedded struct
}

// byJSONName returns the field of a struct, an API type or an apply configuration, that has this JSON name; the zero
// Value if none has.
func byJSONName(value reflect.Value, name string) reflect.Value {
	value = indirect(value)
	if value.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for _, field := range fieldsOf(value.Type()) {
		switch {
		case field.jsonName == name:
			return value.Field(field.index)
		case field.isInline:
			if found := byJSONName(value.Field(field.index), name); found.IsValid() {
				return found
			}
		}
	}
	return reflect.Value{}
}

// indirect returns what a pointer points to; of a nil pointer the zero Value.
func indirect(value reflect.Value) reflect.Value {
	if value.Kind() == reflect.Pointer {
		return value.Elem()
	}
	return value
}
