package schema

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/testenv"
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

// Kinds reads the CustomResourceDefinitions in config/crd/bases.
func Kinds() ([]Kind, error) {
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var kinds []Kind
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := readYAML(file, &crd); err != nil {
			return nil, err
		}
		version := crd.Spec.Versions[0]
		spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
		kind := Kind{Name: crd.Spec.Names.Kind, APIVersion: crd.Spec.Group + "/" + version.Name,
			Resource: crd.Spec.Group + "/" + crd.Spec.Names.Plural, spec: &spec}
		kind.collect("spec", &spec, true)
		kinds = append(kinds, kind)
	}
	return kinds, nil
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

// childResources reads from the operator's role which resources it creates, as package history names them.
func childResources() ([]string, error) {
	var role rbacv1.ClusterRole
	if err := readYAML(filepath.Join(testenv.Root(), "config", "rbac", "role.yaml"), &role); err != nil {
		return nil, err
	}
	var resources []string
	for _, rule := range role.Rules {
		if !slices.Contains(rule.Verbs, "create") || slices.Contains(rule.Resources, "events") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resources = append(resources, group+"/"+resource)
			}
		}
	}
	return resources, nil
}

func readYAML(file string, into any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// steps splits the path of a field below an object.
func (f Field) steps(below string) []string {
	return strings.Split(strings.TrimPrefix(f.Path, below+"."), ".")
}
