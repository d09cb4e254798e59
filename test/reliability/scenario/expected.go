package scenario

import (
	_ "embed" // what is expected
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed expected.yaml
var expectedOf []byte

// Expected is what the operator does in a scenario in which nothing goes wrong. What it does each time alike need not
// be right.
type Expected struct {
	// Creates and Deletes are how often it creates and deletes each object, named as "group/resource name".
	Creates map[string]int `json:"creates"`
	Deletes map[string]int `json:"deletes"`
	// Events are how many it sends of each reason, at least and at most.
	Events map[string][2]int `json:"events"`
}

// expect has scenarios know what is expected of them. It panics where that is not said.
func expect(scenarios []Scenario) []Scenario {
	var expected map[string]*Expected
	if err := yaml.UnmarshalStrict(expectedOf, &expected); err != nil {
		panic(err)
	}
	for i := range scenarios {
		s := &scenarios[i]
		if expected[s.Name] == nil {
			panic(fmt.Sprintf("expected.yaml does not say what the operator does in %s", s.Name))
		}
		s.Expected = *expected[s.Name]
	}
	return scenarios
}
