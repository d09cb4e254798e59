// Package api_test checks the generated CustomResourceDefinitions.
package api_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

type schema = apiextensionsv1.JSONSchemaProps

const (
	cronJobs   = "cronjobs.batch.tutorial.kubebuilder.io"
	memcacheds = "memcacheds.cache.example.com"
)

// definitions returns the CustomResourceDefinitions by name.
func definitions(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds := map[string]apiextensionsv1.CustomResourceDefinition{}
	paths, _ := filepath.Glob("../config/crd/bases/*.yaml")
	for _, path := range paths {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(read(t, path), &crd); err != nil {
			t.Fatal(err)
		}
		crds[crd.Name] = crd
	}
	if len(crds) < 3 {
		t.Fatalf("found %d definitions", len(crds))
	}
	return crds
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// root returns the schema of the only version.
func root(crd apiextensionsv1.CustomResourceDefinition) *schema {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func TestCRDs(t *testing.T) {
	columns := map[string]string{
		cronJobs:                       "Schedule,TimeZone,Suspend,Active,Last Schedule,Age",
		"foos.samplecontroller.k8s.io": "Deployment,Desired,Available,Ready,Age",
		memcacheds:                     "Size,Ready,Status,Memory,Workload,Service,Degraded,Age", // the wide ones included
	}
	for name, crd := range definitions(t) {
		t.Run(name, func(t *testing.T) {
			version := crd.Spec.Versions[0]
			root := root(crd)
			expectDescriptions(t, "spec", root.Properties["spec"])
			expectDescriptions(t, "status", root.Properties["status"])
			expectLimits(t, "spec", root.Properties["spec"])
			for name, property := range root.Properties["status"].Properties {
				// With list type "set", managedFields would have an entry for each element.
				want := map[string]string{"active": "atomic", "conditions": "map", "nodes": "atomic", "servers": "atomic"}[name]
				if got := ptr.Deref(property.XListType, ""); got != want {
					t.Errorf("status.%s: list type %q, want %q", name, got, want)
				}
			}
			if !slices.Equal(root.Required, []string{"spec"}) {
				t.Errorf("required: %v", root.Required)
			}
			var names []string
			for _, column := range version.AdditionalPrinterColumns {
				names = append(names, column.Name)
			}
			if got := strings.Join(names, ","); got != columns[name] {
				t.Errorf("columns: %s", got)
			}
			// A CronJob does not scale, and its short names would be those of Kubernetes' own CronJob.
			scale := ptr.Deref(version.Subresources.Scale, apiextensionsv1.CustomResourceSubresourceScale{})
			isScaled := ptr.Deref(scale.LabelSelectorPath, "") == ".status.selector" && scale.SpecReplicasPath != "" &&
				scale.StatusReplicasPath != ""
			if version.Subresources.Status == nil || isScaled == (name == cronJobs) {
				t.Errorf("subresources: %v", version.Subresources)
			}
			if (len(crd.Spec.Names.ShortNames) > 0) == (name == cronJobs) ||
				!slices.Equal(crd.Spec.Names.Categories, []string{"all", "memcached-operator"}) {
				t.Errorf("names: %v", crd.Spec.Names)
			}
			// The API server serves groups under k8s.io only with this annotation.
			approval := crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]
			if strings.HasSuffix(crd.Spec.Group, ".k8s.io") && approval != "unapproved, experimental-only" {
				t.Errorf("approval: %q", approval)
			}
		})
	}
}

// "kubectl apply" stores the object in an annotation, and the API server accepts 262144 bytes of annotations.
func TestCRDsFitIntoAnnotations(t *testing.T) {
	paths, _ := filepath.Glob("../config/crd/bases/*.yaml")
	for _, path := range paths {
		annotation, err := yaml.YAMLToJSONStrict(read(t, path))
		if err != nil || len(annotation) > 200_000 {
			t.Errorf("%s has %d of at most 200000 bytes (%v): see config/crd/slim", path, len(annotation), err)
		}
	}
}

// The API server drops fields that are not in the schema.
func TestJobTemplateHasAllFields(t *testing.T) {
	template := root(definitions(t)[cronJobs]).Properties["spec"].Properties["jobTemplate"]
	for name, property := range template.Properties {
		expectNoDescriptions(t, "spec.jobTemplate."+name, property)
	}
	pod := template.Properties["spec"].Properties["template"]
	for _, metadata := range []schema{template.Properties["metadata"], pod.Properties["metadata"]} {
		for _, field := range []string{"labels", "annotations"} {
			if metadata.Properties[field].Type != "object" {
				t.Errorf("%s is missing in %v", field, metadata)
			}
		}
	}
	expectFields(t, template.Properties["spec"], reflect.TypeFor[batchv1.JobSpec]())
	expectFields(t, pod.Properties["spec"], reflect.TypeFor[corev1.PodSpec]())
}

// expectFields checks that a schema has all fields of a type.
func expectFields(t *testing.T, s schema, fields reflect.Type) {
	t.Helper()
	for field := range fields.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, ok := s.Properties[name]; !ok {
			t.Errorf("%s is missing in %s", name, fields)
		}
	}
}

// operator-sdk and kubebuilder read PROJECT.
func TestPROJECT(t *testing.T) {
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
	if err := yaml.Unmarshal(read(t, "../PROJECT"), &project); err != nil {
		t.Fatal(err)
	}
	if project.Layout[0] != "go.kubebuilder.io/v4" || !project.Multigroup ||
		project.Repo != "github.com/example/memcached-operator" {
		t.Errorf("%+v", project)
	}
	if got, want := len(project.Resources), len(definitions(t)); got != want {
		t.Errorf("%d resources, want %d", got, want)
	}
	for _, resource := range project.Resources {
		kind := strings.ToLower(resource.Kind)
		for _, path := range []string{
			"../config/crd/bases/" + resource.Group + "." + resource.Domain + "_" + kind + "s.yaml",
			strings.TrimPrefix(resource.Path, project.Repo+"/api/") + "/" + kind + "_types.go",
		} {
			if _, err := os.Stat(path); err != nil || !resource.Controller || resource.API.CRDVersion != "v1" {
				t.Errorf("%s: %v", resource.Kind, err)
			}
		}
	}
}

// isOfKubernetes reports whether the field of a path has a type of Kubernetes, whose fields "kubectl explain" describes
// for Jobs and pods.
func isOfKubernetes(path string) bool {
	_, isOfPod := podFields[strings.TrimPrefix(path, podSpec)]
	return path == "spec.jobTemplate" || strings.HasPrefix(path, podSpec) && isOfPod
}

// podFields are the fields of podSpec with fields of their own.
const podSpec = "spec.podTemplate.spec."

var podFields = map[string]reflect.Type{
	"affinity":                  reflect.TypeFor[corev1.Affinity](),
	"securityContext":           reflect.TypeFor[corev1.PodSecurityContext](),
	"tolerations":               reflect.TypeFor[corev1.Toleration](),
	"topologySpreadConstraints": reflect.TypeFor[corev1.TopologySpreadConstraint](),
}

func TestPodTemplateHasAllFields(t *testing.T) {
	spec := root(definitions(t)[memcacheds]).Properties["spec"].Properties["podTemplate"].Properties["spec"]
	for name, fields := range podFields {
		field := spec.Properties[name]
		if field.Items != nil {
			field = *field.Items.Schema
		}
		expectFields(t, field, fields)
		for name, property := range field.Properties {
			expectNoDescriptions(t, podSpec+name, property)
		}
	}
}

// nested returns the schemas in a schema by path.
func nested(path string, s schema) map[string]schema {
	all := map[string]schema{}
	for name, property := range s.Properties {
		all[path+"."+name] = property
	}
	if s.Items != nil {
		maps.Copy(all, nested(path+"[]", *s.Items.Schema))
	}
	return all
}

// expectDescriptions checks that "kubectl explain" describes every field.
func expectDescriptions(t *testing.T, path string, s schema) {
	t.Helper()
	if s.Description == "" || strings.Contains(s.Description, "+operator-sdk") {
		t.Errorf("%s has no description, or a marker in it: %q", path, s.Description)
	}
	if isOfKubernetes(path) {
		return
	}
	for path, property := range nested(path, s) {
		expectDescriptions(t, path, property)
	}
}

func expectNoDescriptions(t *testing.T, path string, s schema) {
	t.Helper()
	if s.Description != "" || s.Items != nil && s.Items.Schema.Description != "" {
		t.Errorf("%s has a description: run 'make manifests'", path)
	}
	for path, property := range nested(path, s) {
		expectNoDescriptions(t, path, property)
	}
}

// expectLimits checks that every field of a spec has limits and documents what changing it does.
func expectLimits(t *testing.T, path string, s schema) {
	t.Helper()
	for name, property := range s.Properties {
		path := path + "." + name
		switch {
		case property.Type == "integer" && (property.Minimum == nil || property.Maximum == nil):
			t.Errorf("%s has no minimum or no maximum", path)
		case property.Type == "string" && property.MaxLength == nil && len(property.Enum) == 0:
			t.Errorf("%s has no maximum length", path)
		}
		text := property.Description
		isOptional := strings.Contains(text, "Optional") || strings.Contains(text, "Required")
		if !isOptional || !strings.Contains(text, "Changing it") {
			t.Errorf("the description of %s must contain Required or Optional, and what changing it does: %s", path, text)
		}
		if !isOfKubernetes(path) {
			expectLimits(t, path, property)
		}
	}
}
