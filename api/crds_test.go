// Package api_test checks what the generated CustomResourceDefinitions say of every kind.
package api_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
	Enum        []string
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
	if err != nil || len(paths) < 3 {
		t.Fatalf("found %v, %v", paths, err)
	}
	columns := map[string]string{
		"cronjobs.batch.tutorial.kubebuilder.io": "Schedule,TimeZone,Suspend,Active,Last Schedule,Age",
		"foos.samplecontroller.k8s.io":           "Deployment,Desired,Available,Ready,Age",
		"memcacheds.cache.example.com":           "Size,Ready,Status,Age",
	}
	// Kubernetes has a kind of that name, whose short names its users mean; and nothing of it scales.
	const cronJobs = "cronjobs.batch.tutorial.kubebuilder.io"
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
				if want := map[string]string{"active": "atomic", "conditions": "map",
					"nodes": "atomic"}[name]; property.ListType != want {
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
			if got := strings.Join(names, ","); got != columns[crd.Metadata.Name] {
				t.Errorf("columns: %s", got)
			}
			scale := version.Subresources.Scale
			isScaled := scale["labelSelectorPath"] == ".status.selector" && scale["specReplicasPath"] != "" &&
				scale["statusReplicasPath"] != ""
			if version.Subresources.Status == nil || isScaled == (crd.Metadata.Name == cronJobs) {
				t.Errorf("subresources: %v", version.Subresources)
			}
			hasShortNames := len(crd.Spec.Names.ShortNames) > 0
			if hasShortNames == (crd.Metadata.Name == cronJobs) ||
				!slices.Equal(crd.Spec.Names.Categories, []string{"all", "memcached-operator"}) {
				t.Errorf("names: %v", crd.Spec.Names)
			}
			// The API server serves groups under k8s.io only with this annotation.
			const approved = "api-approved.kubernetes.io"
			if got, isNeeded := crd.Metadata.Annotations[approved], strings.HasSuffix(crd.Spec.Group, ".k8s.io"); isNeeded &&
				got != "unapproved, experimental-only" {
				t.Errorf("%s: %q", approved, got)
			}
		})
	}
}

// What "kubectl apply" notes of an object, in an annotation, to see next time what has been taken out of it. The API
// server takes 256 KiB of all annotations together.
func TestCRDsCanBeApplied(t *testing.T) {
	paths, err := filepath.Glob("../config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		noted, err := yaml.YAMLToJSONStrict(content)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", path, len(noted))
		// What it may become before anybody has to think of something else.
		if len(noted) > 200_000 {
			t.Errorf("%s: kubectl apply notes %d bytes of it, and 262144 are allowed: see config/crd/slim", path, len(noted))
		}
	}
}

// The template of Jobs is all that Kubernetes has, without a word of it, and with the labels and annotations of Jobs
// and pods: the API server drops what is not in the schema.
func TestJobTemplateIsWhole(t *testing.T) {
	content, err := os.ReadFile("../config/crd/bases/batch.tutorial.kubebuilder.io_cronjobs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd crd
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	template := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["jobTemplate"]
	for name, property := range template.Properties {
		undescribed(t, "spec.jobTemplate."+name, property)
	}
	pod := template.Properties["spec"].Properties["template"]
	for _, metadata := range []schema{template.Properties["metadata"], pod.Properties["metadata"]} {
		for _, field := range []string{"labels", "annotations"} {
			if metadata.Properties[field].Type != "object" {
				t.Errorf("%s would be dropped of %v", field, metadata)
			}
		}
	}
	for path, has := range map[string]struct {
		schema schema
		fields reflect.Type
	}{
		"spec.jobTemplate.spec":               {template.Properties["spec"], reflect.TypeFor[batchv1.JobSpec]()},
		"spec.jobTemplate.spec.template.spec": {pod.Properties["spec"], reflect.TypeFor[corev1.PodSpec]()},
	} {
		for i := range has.fields.NumField() {
			name, _, _ := strings.Cut(has.fields.Field(i).Tag.Get("json"), ",")
			if _, ok := has.schema.Properties[name]; !ok {
				t.Errorf("%s.%s would be dropped", path, name)
			}
		}
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
	if project.Layout[0] != "go.kubebuilder.io/v4" || !project.Multigroup ||
		project.Repo != "github.com/example/memcached-operator" {
		t.Errorf("%+v", project)
	}
	bases, err := filepath.Glob("../config/crd/bases/*.yaml")
	if err != nil || len(bases) != len(project.Resources) {
		t.Errorf("%d resources for %d CustomResourceDefinitions, %v", len(project.Resources), len(bases), err)
	}
	for _, resource := range project.Resources {
		base := "../config/crd/bases/" + resource.Group + "." + resource.Domain + "_" + strings.ToLower(resource.Kind) +
			"s.yaml"
		types := strings.TrimPrefix(resource.Path, project.Repo+"/api/") + "/" + strings.ToLower(resource.Kind) + "_types.go"
		for _, path := range []string{base, types} {
			if _, err := os.Stat(path); err != nil || !resource.Controller || resource.API.CRDVersion != "v1" {
				t.Errorf("%s: %v", resource.Kind, err)
			}
		}
	}
}

// jobTemplate is Kubernetes' own below this, and kubectl explain tells it of Jobs.
const jobTemplate = "spec.jobTemplate"

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
		if path+"."+name == jobTemplate {
			property.Properties = nil
		}
		described(t, path+"."+name, property)
	}
	if s.Items != nil {
		for name, property := range s.Items.Properties {
			described(t, path+"[]."+name, property)
		}
	}
}

// undescribed checks that kubectl explain has nothing to say of any field.
func undescribed(t *testing.T, path string, s schema) {
	t.Helper()
	if s.Description != "" {
		t.Errorf("%s has a description: 'make manifests' leaves it out", path)
	}
	for name, property := range s.Properties {
		undescribed(t, path+"."+name, property)
	}
	if s.Items != nil {
		undescribed(t, path+"[]", *s.Items)
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
			if property.MaxLength == nil && len(property.Enum) == 0 {
				t.Errorf("%s has no maximal length", path)
			}
		}
		if !strings.Contains(property.Description, "Changing it") || !strings.Contains(property.Description, "Required") &&
			!strings.Contains(property.Description, "Optional") {
			t.Errorf("%s: its description does not say whether it is needed, or what changing it does: %s", path,
				property.Description)
		}
		if path != jobTemplate {
			limited(t, path, property)
		}
	}
}
