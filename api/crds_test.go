// Package api_test checks what the generated CustomResourceDefinitions say of every kind.
package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// schema is as much of an OpenAPI schema as is looked at.
type schema struct {
	Type        string
	Description string
	Properties  map[string]schema
	Items       *schema
	Required    []string
	Minimum     *float64
	Maximum     *float64
	MaxLength   *int64
	ListType    string `json:"x-kubernetes-list-type"`
}

type crd struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct {
		Group    string
		Names    struct{ ShortNames, Categories []string }
		Versions []struct {
			Schema                   struct{ OpenAPIV3Schema schema }
			Subresources             struct{ Status, Scale map[string]string }
			AdditionalPrinterColumns []struct{ Name string }
		}
	}
}

func TestCRDs(t *testing.T) {
	paths, err := filepath.Glob("../config/crd/bases/*.yaml")
	if err != nil || len(paths) < 2 {
		t.Fatalf("found %v, %v", paths, err)
	}
	columns := map[string]string{
		"foos.samplecontroller.k8s.io": "Deployment Desired Available Ready Age",
		"memcacheds.cache.example.com": "Size Ready Status Age",
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd crd
		if err := yaml.Unmarshal(content, &crd); err != nil {
			t.Fatal(err)
		}
		t.Run(crd.Metadata.Name, func(t *testing.T) {
			version := crd.Spec.Versions[0]
			root := version.Schema.OpenAPIV3Schema
			described(t, "spec", root.Properties["spec"])
			described(t, "status", root.Properties["status"])
			limited(t, "spec", root.Properties["spec"])
			for name, property := range root.Properties["status"].Properties {
				// Lists that are one thing are written as one; a set would have an entry for each element in managedFields.
				if want := map[string]string{"conditions": "map", "nodes": "atomic"}[name]; property.ListType != want {
					t.Errorf("status.%s: list type %q, want %q", name, property.ListType, want)
				}
			}
			if len(root.Required) != 1 || root.Required[0] != "spec" {
				t.Errorf("required: %v", root.Required)
			}
			var names []string
			for _, column := range version.AdditionalPrinterColumns {
				names = append(names, column.Name)
			}
			if got := strings.Join(names, " "); got != columns[crd.Metadata.Name] {
				t.Errorf("columns: %s", got)
			}
			scale := version.Subresources.Scale
			if version.Subresources.Status == nil || scale["labelSelectorPath"] != ".status.selector" || scale["specReplicasPath"] == "" || scale["statusReplicasPath"] == "" {
				t.Errorf("subresources: %v", version.Subresources)
			}
			if len(crd.Spec.Names.ShortNames) == 0 || len(crd.Spec.Names.Categories) == 0 {
				t.Errorf("names: %v", crd.Spec.Names)
			}
			// The API server serves groups under k8s.io only with this annotation.
			const approved = "api-approved.kubernetes.io"
			if got, isNeeded := crd.Metadata.Annotations[approved], strings.HasSuffix(crd.Spec.Group, ".k8s.io"); isNeeded && got != "unapproved, experimental-only" {
				t.Errorf("%s: %q", approved, got)
			}
		})
	}
}

// PROJECT tells operator-sdk and kubebuilder what there is.
func TestPROJECT(t *testing.T) {
	content, err := os.ReadFile("../PROJECT")
	if err != nil {
		t.Fatal(err)
	}
	var project struct {
		Layout     []string
		Multigroup bool
		Repo       string
		Resources  []struct {
			API                                struct{ CRDVersion string }
			Controller                         bool
			Group, Domain, Kind, Version, Path string
		}
	}
	if err := yaml.Unmarshal(content, &project); err != nil {
		t.Fatal(err)
	}
	if project.Layout[0] != "go.kubebuilder.io/v4" || !project.Multigroup || project.Repo != "github.com/example/memcached-operator" {
		t.Errorf("%+v", project)
	}
	bases, err := filepath.Glob("../config/crd/bases/*.yaml")
	if err != nil || len(bases) != len(project.Resources) {
		t.Errorf("%d resources for %d CustomResourceDefinitions, %v", len(project.Resources), len(bases), err)
	}
	for _, resource := range project.Resources {
		base := "../config/crd/bases/" + resource.Group + "." + resource.Domain + "_" + strings.ToLower(resource.Kind) + "s.yaml"
		types := strings.TrimPrefix(resource.Path, project.Repo+"/api/") + "/" + strings.ToLower(resource.Kind) + "_types.go"
		for _, path := range []string{base, types} {
			if _, err := os.Stat(path); err != nil || !resource.Controller || resource.API.CRDVersion != "v1" {
				t.Errorf("%s: %v", resource.Kind, err)
			}
		}
	}
}

// described checks that kubectl explain has something to say of every field.
func described(t *testing.T, path string, s schema) {
	t.Helper()
	if s.Description == "" {
		t.Errorf("%s has no description", path)
	}
	if strings.Contains(s.Description, "+operator-sdk") {
		t.Errorf("%s: a marker is in its description: %s", path, s.Description)
	}
	for name, property := range s.Properties {
		described(t, path+"."+name, property)
	}
	if s.Items != nil {
		for name, property := range s.Items.Properties {
			described(t, path+"[]."+name, property)
		}
	}
}

// limited checks that every field that users write has limits, and says what changing it does.
func limited(t *testing.T, path string, s schema) {
	t.Helper()
	for name, property := range s.Properties {
		path := path + "." + name
		switch property.Type {
		case "integer":
			if property.Minimum == nil || property.Maximum == nil {
				t.Errorf("%s has no minimum or no maximum", path)
			}
		case "string":
			if property.MaxLength == nil {
				t.Errorf("%s has no maximal length", path)
			}
		}
		if !strings.Contains(property.Description, "Changing it") || !strings.Contains(property.Description, "Required") && !strings.Contains(property.Description, "Optional") {
			t.Errorf("%s: its description does not say whether it is needed, or what changing it does: %s", path, property.Description)
		}
		limited(t, path, property)
	}
}
