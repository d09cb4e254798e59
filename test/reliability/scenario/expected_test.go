package scenario

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// Each scenario has its expectation, and there is none of a scenario that there is not.
func TestExpected(t *testing.T) {
	all := All()
	var expected map[string]Expected
	if err := yaml.UnmarshalStrict(expectedOf, &expected); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if len(s.Expected.Events) == 0 {
			t.Errorf("%s: the operator tells nobody of anything", s.Name)
		}
		for reason, events := range s.Expected.Events {
			if events[0] > events[1] {
				t.Errorf("%s: %v events %s", s.Name, events, reason)
			}
		}
		delete(expected, s.Name)
	}
	for name := range expected {
		t.Errorf("there is no scenario %s", name)
	}
}
