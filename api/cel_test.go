package api_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// The oldest Kubernetes that the operator installs on: minKubeVersion in config/manifests/bases. It does not know every
// function of CEL that later ones know.
var oldest = version.MajorMinor(1, 30)

// What the API server takes of one rule and of all rules of a definition, in its own units of cost; half of that is
// left for what other versions of it may reckon.
const (
	costOfRule = 10_000_000 / 2
	costOfAll  = 100_000_000 / 2
)

// An API server that does not understand a rule, or takes it for too expensive, refuses the whole definition.
func TestRulesAreUnderstoodEverywhere(t *testing.T) {
	paths, err := filepath.Glob("../config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			t.Fatal(err)
		}
		var root apiextensions.JSONSchemaProps
		convert := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps
		if err := convert(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &root, nil); err != nil {
			t.Fatal(err)
		}
		schema, err := structural.NewStructural(&root)
		if err != nil {
			t.Fatal(err)
		}
		n, cost := compile(t, crd.Spec.Names.Kind, schema, true)
		rules += n
		t.Logf("%s: %d rules cost %d", crd.Name, n, cost)
		if cost > costOfAll {
			t.Errorf("%s: its rules cost %d; %d are allowed here", crd.Name, cost, costOfAll)
		}
	}
	if rules < 10 {
		t.Errorf("found %d rules only: the test does not see them any more", rules)
	}
}

// compile compiles all rules of a schema and returns how many there are, and what they cost in the worst case.
func compile(t *testing.T, path string, schema *structural.Structural, isRoot bool) (rules int, cost uint64) {
	t.Helper()
	compiled, err := cel.Compile(schema, model.SchemaDeclType(schema, isRoot), math.MaxUint64,
		environment.MustBaseEnvSet(oldest), cel.NewExpressionsEnvLoader())
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	for i, result := range compiled {
		if result.Error != nil {
			t.Errorf("%s: %s: %v", path, schema.XValidations[i].Rule, result.Error)
		}
		if result.MaxCost > costOfRule {
			t.Errorf("%s: %s costs %d; %d are allowed here", path, schema.XValidations[i].Rule, result.MaxCost, costOfRule)
		}
		rules++
		cost += result.MaxCost
	}
	add := func(path string, schema *structural.Structural) {
		n, c := compile(t, path, schema, false)
		rules += n
		cost += c
	}
	for name, property := range schema.Properties {
		add(path+"."+name, &property)
	}
	if schema.Items != nil {
		add(path+"[]", schema.Items)
	}
	return rules, cost
}
