package api_test

import (
	"math"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldest is the minKubeVersion in config/manifests/bases. Later versions have more CEL functions.
var oldest = version.MajorMinor(1, 30)

// Half of the limits of the API server for one rule and for all rules of a definition, because the estimates differ
// between versions.
const (
	costOfRule = 10_000_000 / 2
	costOfAll  = 100_000_000 / 2
)

// The API server rejects a definition with a rule that does not compile or is too expensive.
func TestRulesCompileOnOldestKubernetes(t *testing.T) {
	rules := 0
	for name, crd := range definitions(t) {
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
		t.Logf("%s: %d rules cost %d", name, n, cost)
		if cost > costOfAll {
			t.Errorf("%s: its rules cost %d, more than %d", name, cost, costOfAll)
		}
	}
	if rules < 10 {
		t.Errorf("found only %d rules", rules)
	}
}

// compile compiles all rules of a schema and returns their number and their cost in the worst case.
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
			t.Errorf("%s: %s costs %d, more than %d", path, schema.XValidations[i].Rule, result.MaxCost, costOfRule)
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
