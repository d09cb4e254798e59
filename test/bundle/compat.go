package bundle

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version"
)

// operatorController is the configuration with which operator-controller of OLM v1 runs crdify before an upgrade
// (defaultConfig in internal/operator-controller/rukpak/preflights/crdupgradesafety/crdupgradesafety.go, v1.11.0).
var operatorController = &config.Config{
	Conversion:           config.ConversionPolicyIgnore,
	UnhandledEnforcement: config.EnforcementPolicyError,
	Validations: []config.ValidationConfig{
		{Name: "description", Enforcement: config.EnforcementPolicyNone},
		{Name: "enum", Enforcement: config.EnforcementPolicyError,
			Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow}},
	},
}

// Tightened returns why a CustomResourceDefinition cannot replace an earlier one, one sentence for each reason: the
// errors of crdify, for which OLM v1 refuses to upgrade, and our own rules for what crdify does not compare.
func Tightened(old, updated *apiextensionsv1.CustomResourceDefinition) []string {
	// Set the defaults of the API server, so that a definition read from a cluster compares with one from a file.
	old, updated = old.DeepCopy(), updated.DeepCopy()
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{old, updated} {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	}
	crdify, err := runner.New(operatorController, runner.DefaultRegistry())
	if err != nil {
		panic(err) // the configuration is constant
	}
	results := crdify.Run(old, updated)
	found := errorsOf(updated.Name, results.CRDValidation)
	for _, result := range slices.Concat(results.SameVersionValidation, results.ServedVersionValidation) {
		found = append(found, errorsOfVersion(updated.Name, result)...)
	}
	kept := promises(updated)
	for _, promise := range promises(old) {
		if !slices.Contains(kept, promise) {
			found = append(found, fmt.Sprintf("%s: %s: no longer, restore it", updated.Name, promise))
		}
	}
	slices.Sort(found)
	return found
}

func errorsOf(where string, results []validations.ComparisonResult) (found []string) {
	for _, result := range results {
		for _, err := range result.Errors {
			found = append(found, fmt.Sprintf("%s: %s: %s", where, result.Name, err))
		}
	}
	return found
}

func errorsOfVersion(crd string, result version.VersionedPropertyComparisonResult) (found []string) {
	for _, field := range result.PropertyComparisons {
		where := fmt.Sprintf("%s/%s %s", crd, result.Version, strings.TrimPrefix(field.Property, "^."))
		found = append(found, errorsOf(where, field.ComparisonResults)...)
	}
	return found
}

// promises returns what a definition promises to its clients, except for its scope and schemas, which crdify compares.
func promises(crd *apiextensionsv1.CustomResourceDefinition) []string {
	names := crd.Spec.Names
	all := []string{"group " + crd.Spec.Group, "kind " + names.Kind, "list kind " + names.ListKind,
		"plural " + names.Plural, "singular " + names.Singular, "conversion " + string(crd.Spec.Conversion.Strategy)}
	for _, name := range names.ShortNames {
		all = append(all, "short name "+name)
	}
	for _, name := range names.Categories {
		all = append(all, "category "+name)
	}
	for _, version := range crd.Spec.Versions {
		promise := func(what string) { all = append(all, "version "+version.Name+" "+what) }
		promise("exists")
		if version.Served {
			promise("is served")
		}
		subresources := ptr.Deref(version.Subresources, apiextensionsv1.CustomResourceSubresources{})
		// Neither may change: with the subresource, a write of the whole object does not write the status.
		promise(fmt.Sprintf("has the subresource status: %t", subresources.Status != nil))
		if scale := subresources.Scale; scale != nil {
			promise("scales by " + scale.SpecReplicasPath + ", reported in " + scale.StatusReplicasPath)
			if scale.LabelSelectorPath != nil {
				promise("reports the selector of its pods in " + *scale.LabelSelectorPath)
			}
		}
		for _, field := range version.SelectableFields {
			promise("has the selectable field " + field.JSONPath)
		}
	}
	return all
}
