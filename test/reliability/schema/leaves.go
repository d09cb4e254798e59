package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/testenv"
)

// props is the schema of one value.
type props = apiextensionsv1.JSONSchemaProps

// Kind is one of our kinds, as its CustomResourceDefinition says.
type Kind struct {
	Name, APIVersion string
	// Resource is how history calls it.
	Resource string
	spec     *props
	// Leaves are all fields of spec that hold a value.
	Leaves []Leaf
	// Opaque are the fields of spec that declare no fields of their own: there is nothing in them to vary.
	Opaque []string
}

// Leaf is a field that holds a value and has no fields of its own.
type Leaf struct {
	// Path is where it is: spec.replicas, spec.jobTemplate.spec.template.spec.containers[].image. [] is an element of a list.
	Path string
	// isRequired tells whether what the leaf is in cannot be without it.
	isRequired bool
	schema     *props
}

// inTemplate tells whether the leaf is handed on to Jobs, and so is Kubernetes' and not ours.
func (l Leaf) inTemplate() bool {
	return strings.HasPrefix(l.Path, templatePath+".")
}

const templatePath = "spec.jobTemplate"

// Kinds reads the CustomResourceDefinitions in config/crd/bases.
func Kinds() ([]Kind, error) {
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var kinds []Kind
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		version := crd.Spec.Versions[0]
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
		kind := Kind{Name: crd.Spec.Names.Kind, APIVersion: crd.Spec.Group + "/" + version.Name, Resource: crd.Spec.Group + "/" + crd.Spec.Names.Plural, spec: &spec}
		kind.collect("spec", &spec, true)
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// collect adds the leaves at a path and below.
func (k *Kind) collect(path string, schema *props, isRequired bool) {
	switch {
	case len(schema.Properties) > 0:
		for _, name := range sortedNames(schema.Properties) {
			field := schema.Properties[name]
			k.collect(path+"."+name, &field, slices.Contains(schema.Required, name))
		}
	case schema.Type == "array" && len(schema.Items.Schema.Properties) > 0:
		k.collect(path+"[]", schema.Items.Schema, isRequired)
	case schema.Type == "object" && schema.AdditionalProperties == nil:
		k.Opaque = append(k.Opaque, path)
	default:
		k.Leaves = append(k.Leaves, Leaf{Path: path, isRequired: isRequired, schema: schema})
	}
}

func sortedNames(properties map[string]props) []string {
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// step is one field on the way to a leaf.
type step struct {
	name   string
	isList bool // of which the first element is meant
}

// steps takes the path of a leaf apart, without the leading spec.
func steps(path string) []step {
	var steps []step
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "spec."), ".") {
		name, isList := strings.CutSuffix(name, "[]")
		steps = append(steps, step{name, isList})
	}
	return steps
}

// put sets the value of a leaf in a spec. What the leaf is in is made if it is not there, with all that it requires.
func (k *Kind) put(spec map[string]any, leaf Leaf, value any) {
	way := steps(leaf.Path)
	object, schema, path := spec, k.spec, "spec"
	for _, step := range way[:len(way)-1] {
		next := schema.Properties[step.name]
		schema = &next
		path += "." + step.name
		if step.isList {
			path += "[]"
			schema = schema.Items.Schema
			list, _ := object[step.name].([]any)
			if len(list) == 0 {
				list = []any{required(path, schema, leaf.Path)}
				object[step.name] = list
			}
			object = list[0].(map[string]any)
			continue
		}
		if _, ok := object[step.name].(map[string]any); !ok {
			object[step.name] = required(path, schema, leaf.Path)
		}
		object = object[step.name].(map[string]any)
	}
	object[way[len(way)-1].name] = value
}

// drop takes the value of a leaf out of a spec, and leaves what it was in.
func drop(spec map[string]any, leaf Leaf) {
	way := steps(leaf.Path)
	object := spec
	for _, step := range way[:len(way)-1] {
		if step.isList {
			object = object[step.name].([]any)[0].(map[string]any)
		} else {
			object = object[step.name].(map[string]any)
		}
	}
	delete(object, way[len(way)-1].name)
}
