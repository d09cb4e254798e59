// Reference writes the API reference, a page in Markdown, to standard output: every field of the
// CustomResourceDefinitions in the files that it is given, with its type, limits, default and documentation.
//
//	go run ./config/crd/reference config/crd/bases/*.yaml > docs/api.md
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const header = `# API reference

Generated from the CustomResourceDefinitions by ` + "`make docs`" + `. The same text is in ` + "`kubectl explain`" + `.
`

// external are fields whose content is defined and documented by Kubernetes, by path.
var external = map[string]string{
	"spec.jobTemplate.spec": "`kubectl explain job.spec`",
	"status.active":         "`kubectl explain cronjob.status.active`",
	"status.conditions":     "[conditions.md](conditions.md)",
}

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, paths []string) error {
	if len(paths) == 0 {
		return errors.New("name the files of CustomResourceDefinitions")
	}
	var page strings.Builder
	page.WriteString(header)
	var crds []apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		crds = append(crds, crd)
	}
	slices.SortFunc(crds, func(a, b apiextensionsv1.CustomResourceDefinition) int {
		return cmp.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind)
	})
	for i := range crds {
		writeKind(&page, &crds[i])
	}
	_, err := io.WriteString(out, page.String())
	return err
}

func writeKind(page *strings.Builder, crd *apiextensionsv1.CustomResourceDefinition) {
	for _, version := range crd.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		fmt.Fprintf(page, "\n## %s\n\n`apiVersion: %s/%s`\n\n%s\n", crd.Spec.Names.Kind, crd.Spec.Group, version.Name,
			schema.Description)
		for _, name := range []string{"spec", "status"} {
			part := schema.Properties[name]
			writeFields(page, name, &part)
		}
	}
}

// writeFields writes the fields of an object, each followed by those inside of it.
func writeFields(page *strings.Builder, path string, object *apiextensionsv1.JSONSchemaProps) {
	names := make([]string, 0, len(object.Properties))
	for name := range object.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		field := object.Properties[name]
		if field.Description == "" {
			continue // part of a Kubernetes type, which Kubernetes documents
		}
		fieldPath := path + "." + name
		facts := []string{typeOf(&field)}
		if slices.Contains(object.Required, name) {
			facts = append(facts, "required")
		}
		facts = append(facts, limitsOf(&field)...)
		fmt.Fprintf(page, "\n### `%s`\n\n%s\n\n%s\n", fieldPath, strings.Join(facts, ", "), field.Description)
		if where, isExternal := external[fieldPath]; isExternal {
			fmt.Fprintf(page, "\nSee %s.\n", where)
			continue
		}
		writeRules(page, &field)
		switch {
		case field.Items != nil && field.Items.Schema != nil:
			writeFields(page, fieldPath+"[]", field.Items.Schema)
		default:
			writeFields(page, fieldPath, &field)
		}
	}
}

// writeRules writes what CEL rules require, in the words of their messages.
func writeRules(page *strings.Builder, field *apiextensionsv1.JSONSchemaProps) {
	if len(field.XValidations) == 0 {
		return
	}
	page.WriteString("\nRejected with these messages:\n\n")
	for _, rule := range field.XValidations {
		fmt.Fprintf(page, "- %s%s\n", strings.TrimPrefix(rule.FieldPath+": ", ": "), rule.Message)
	}
}

func typeOf(field *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case field.Type == "array" && field.Items != nil && field.Items.Schema != nil:
		return "list of " + typeOf(field.Items.Schema)
	case field.XIntOrString:
		return "integer or string"
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(field.AdditionalProperties.Schema)
	case field.Format == "date-time":
		return "time"
	}
	return field.Type
}

// limitsOf returns the default and the limits of a field, in words.
func limitsOf(field *apiextensionsv1.JSONSchemaProps) []string {
	var limits []string
	if field.Default != nil {
		limits = append(limits, fmt.Sprintf("default `%s`", field.Default.Raw))
	}
	if field.Minimum != nil {
		limits = append(limits, fmt.Sprintf("at least %d", int64(*field.Minimum)))
	}
	if field.Maximum != nil {
		limits = append(limits, fmt.Sprintf("at most %d", int64(*field.Maximum)))
	}
	if field.MinLength != nil {
		limits = append(limits, fmt.Sprintf("at least %d characters", *field.MinLength))
	}
	if field.MaxLength != nil {
		limits = append(limits, fmt.Sprintf("at most %d characters", *field.MaxLength))
	}
	if len(field.Enum) > 0 {
		values := make([]string, len(field.Enum))
		for i, value := range field.Enum {
			values[i] = fmt.Sprintf("`%s`", value.Raw)
		}
		limits = append(limits, "one of "+strings.Join(values, ", "))
	}
	return limits
}
