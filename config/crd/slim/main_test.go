package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const before = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: the root
        properties:
          spec:
            description: the spec
            properties:
              template:
                description: |-
                  the template,
                  on two lines
                properties:
                  any:
                    additionalProperties:
                      description: a value
                      type: string
                    anyOf:
                    - description: this
                    - description: that
                    description: anything
                    maximum: 3155760000
                  description:
                    type: string
                    description: a property of that name
                  list:
                    description: a list
                    items:
                      description: an item
                      type: string
                      x-kubernetes-validations:
                      - rule: self == oldSelf
                    x-kubernetes-validations:
                    - rule: self.size() > 1
                    - rule: '!has(oldSelf.name) || has(self.name)'
              name:
                description: the name
`

const after = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: the root
        properties:
          spec:
            description: the spec
            properties:
              name:
                description: the name
              template:
                description: |-
                  the template,
                  on two lines
                properties:
                  any:
                    additionalProperties:
                      type: string
                    anyOf:
                    - {}
                    - {}
                    maximum: 3155760000
                  description:
                    type: string
                  list:
                    items:
                      type: string
                    x-kubernetes-validations:
                    - rule: self.size() > 1
`

func TestSlim(t *testing.T) {
	for _, content := range []string{before, after} {
		got, err := slim([]byte(content), "spec.template")
		if diff := cmp.Diff(after, string(got)); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// Nothing but descriptions changes, to the byte: what controller-gen has written for other kinds is of the same form.
func TestSlimKeepsTheForm(t *testing.T) {
	path := filepath.Join("..", "bases", "cache.example.com_memcacheds.yaml")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := slim(want, "spec.size"); err != nil || string(got) != string(want) {
		t.Errorf("%v: %s", err, cmp.Diff(string(want), string(got)))
	}
}

func TestSlimTellsWhatIsWrong(t *testing.T) {
	for content, want := range map[string]string{
		before:       "has no field spec.gone",
		"kind: Pod":  "no CustomResourceDefinition",
		"not: a: do": "yaml",
	} {
		if _, err := slim([]byte(content), "spec.gone"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
