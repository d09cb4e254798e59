// Command slim removes the descriptions below a field from a CustomResourceDefinition that controller-gen has written,
// but not that of the field itself. "make manifests" runs it for a field that contains a Job: with the descriptions of
// all fields of pods, the definition would exceed the 262144 bytes of the annotation of "kubectl apply", and "kubectl
// explain job.spec" shows them as well. It also removes transition rules, which keep parts of an existing Job as they
// are: a template may change, because it is for new Jobs.
//
// Usage: slim FILE FIELD, such as slim config/crd/bases/foos.yaml spec.template
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: slim FILE FIELD")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "slim: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(file, field string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if content, err = slim(content, field); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// slim returns a definition, in the format of controller-gen, without the descriptions and transition rules below a
// field.
func slim(content []byte, field string) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return nil, err
	}
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	if len(versions) == 0 {
		return nil, errors.New("not a CustomResourceDefinition: it has no versions")
	}
	path := []string{"schema", "openAPIV3Schema"}
	for name := range strings.SplitSeq(field, ".") {
		path = append(path, "properties", name)
	}
	for _, version := range versions {
		version, _ := version.(map[string]any)
		schema, found, err := unstructured.NestedMap(version, path...)
		if err != nil {
			return nil, fmt.Errorf("version %v: %w", version["name"], err)
		}
		if !found {
			return nil, fmt.Errorf("version %v has no field %s", version["name"], field)
		}
		description, isDescribed := schema["description"]
		strip(schema)
		if isDescribed {
			schema["description"] = description
		}
		if err := unstructured.SetNestedMap(version, schema, path...); err != nil {
			return nil, err
		}
	}
	if err := unstructured.SetNestedSlice(crd, versions, "spec", "versions"); err != nil {
		return nil, err
	}
	content, err := yaml.Marshal(crd)
	return append([]byte("---\n"), content...), err
}

// strip removes descriptions and transition rules from a schema and the schemas in it.
func strip(value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			strip(element)
		}
	case map[string]any:
		if _, ok := value["description"].(string); ok { // otherwise it is a property of that name
			delete(value, "description")
		}
		const rules = "x-kubernetes-validations"
		if all, ok := value[rules].([]any); ok {
			value[rules] = slices.DeleteFunc(all, func(rule any) bool {
				text, _, _ := unstructured.NestedString(rule.(map[string]any), "rule")
				return strings.Contains(text, "oldSelf")
			})
			if len(value[rules].([]any)) == 0 {
				delete(value, rules)
			}
		}
		for _, element := range value {
			strip(element)
		}
	}
}
