package schema

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

// props is the schema of one value.
type props = apiextensionsv1.JSONSchemaProps

// Kind is a kind of the operator, as its CustomResourceDefinition describes it.
type Kind struct {
	Name, APIVersion string
	// Resource is the name of its resource in package history.
	Resource string
	// Fields are those whose transitions are tested. A list of objects counts as one field.
	Fields []Field
	// Template are the fields below spec.jobTemplate, also those of the elements of lists.
	Template []Field

	spec *props
}

// Field is a field of a spec that has no fields of its own.
type Field struct {
	// Path is such as spec.replicas, or spec.jobTemplate.spec.template.spec.containers[].image; [] is an element of a
	// list.
	Path       string
	isRequired bool
	schema     *props
}

const templatePath = "spec.jobTemplate"

func (f Field) inTemplate() bool { return strings.HasPrefix(f.Path, templatePath+".") }

// Kinds reads the CustomResourceDefinitions of all kinds.
func Kinds() ([]Kind, error) {
	all := make([]Kind, 0, len(kinds.All))
	for _, described := range kinds.All {
		crd, err := described.Definition()
		if err != nil {
			return nil, err
		}
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		kind := Kind{Name: described.Name, APIVersion: described.APIVersion(),
			Resource: history.Name(described.GroupVersionResource()), spec: &spec}
		kind.collect("spec", &spec, true)
		all = append(all, kind)
	}
	return all, nil
}

// collect adds the fields at a path and below.
func (k *Kind) collect(path string, schema *props, isRequired bool) {
	field := Field{Path: path, isRequired: isRequired, schema: schema}
	switch {
	case len(schema.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			k.collect(path+"."+name, &property, slices.Contains(schema.Required, name))
		}
	case !field.inTemplate():
		k.Fields = append(k.Fields, field)
	case schema.Type == "array" && len(schema.Items.Schema.Properties) > 0:
		k.collect(path+"[]", schema.Items.Schema, isRequired)
	default:
		k.Template = append(k.Template, field)
	}
}

// steps splits the path of a field below an object.
func (f Field) steps(below string) []string {
	return strings.Split(strings.TrimPrefix(f.Path, below+"."), ".")
}
