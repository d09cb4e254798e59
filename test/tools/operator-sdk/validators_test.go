// Package validators runs the validators of community catalogs that operator-sdk does not select.
package validators

import (
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

// kubernetes are the versions of Kubernetes that the operator is tested with.
var kubernetes = []string{"1.30", "1.33", "1.35", "1.36", "1.37"}

// Warnings fail, too. MultipleArchitecturesValidator is missing, because it pulls the images; test/bundle tests what it
// reads in the bundle.
func TestValidators(t *testing.T) {
	bundle, err := manifests.GetBundleFromDir("../../../bundle")
	if err != nil {
		t.Fatal(err)
	}
	validators := validation.DefaultBundleValidators.WithValidators(validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator, validation.GoodPracticesValidator,
		validation.AlphaDeprecatedAPIsValidator, validation.ObjectValidator)
	for _, version := range kubernetes {
		t.Run(version, func(t *testing.T) {
			objects := append(bundle.ObjectsToValidate(), map[string]string{"k8s-version": version})
			for i, validator := range validators {
				results := validator.Validate(objects...)
				if len(results) == 0 {
					t.Errorf("validator %d has not judged the bundle", i)
				}
				for _, result := range results {
					for _, problem := range slices.Concat(result.Errors, result.Warnings) {
						t.Error(problem)
					}
				}
			}
		})
	}
}
