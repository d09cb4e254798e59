// Command slim takes the descriptions below a field out of a CustomResourceDefinition that controller-gen has written,
// and leaves that of the field itself. "make manifests" runs it for a field that has the whole of a Job in it: with all
// that Kubernetes says of pods, the definition would be larger than what "kubectl apply" can note of it in an
// annotation (262144 bytes), and "kubectl explain job.spec" tells it as well. It takes out, too, the rules that keep
// parts of a Job as they were: they are for a Job that there is, and a template may change, for the Jobs to come.
//
// Usage: slim FILE FIELD, such as slim config/crd/bases/foos.yaml spec.template
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

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

// slim returns a definition without the descriptions below a field and without the rules there that speak of what was
// before, in the form that controller-gen gives it.
func slim(content []byte, field string) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return nil, err
	}
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return nil, fmt.Errorf("it has no versions, so it is no CustomResourceDefinition")
	}
	for _, version := range versions {
		version, _ := version.(map[string]any)
		schema, _ := version["schema"].(map[string]any)
		found, _ := schema["openAPIV3Schema"].(map[string]any)
		for name := range strings.SplitSeq(field, ".") {
			properties, _ := found["properties"].(map[string]any)
			found, _ = properties[name].(map[string]any)
		}
		if found == nil {
			return nil, fmt.Errorf("version %v has no field %s", version["name"], field)
		}
		description, isDescribed := found["description"]
		strip(found)
		if isDescribed {
			found["description"] = description
		}
	}
	content, err := yaml.Marshal(crd)
	return append([]byte("---\n"), content...), err
}

// strip takes the descriptions and the rules that speak of what was before out of a schema and of all schemas in it. A
// property that is called description stays.
func strip(schema map[string]any) {
	delete(schema, "description")
	stripRules(schema)
	if properties, ok := schema["properties"].(map[string]any); ok {
		for _, property := range properties {
			stripAny(property)
		}
	}
	for _, keyword := range []string{"items", "additionalProperties", "not"} {
		stripAny(schema[keyword])
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		alternatives, _ := schema[keyword].([]any)
		for _, alternative := range alternatives {
			stripAny(alternative)
		}
	}
}

// stripRules takes the rules that compare a value with the one before out of a schema.
func stripRules(schema map[string]any) {
	const rules = "x-kubernetes-validations"
	all, _ := schema[rules].([]any)
	kept := slices.DeleteFunc(all, func(rule any) bool {
		said, _ := rule.(map[string]any)["rule"].(string)
		return strings.Contains(said, "oldSelf")
	})
	if len(kept) == 0 {
		delete(schema, rules)
		return
	}
	schema[rules] = kept
}

// stripAny strips what is a schema; additionalProperties may be true or false.
func stripAny(value any) {
	if schema, ok := value.(map[string]any); ok {
		strip(schema)
	}
}
