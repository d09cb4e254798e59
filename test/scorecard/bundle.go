package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/kinds"
)

// contents are what the tests read of a bundle.
type contents struct {
	csv  *operatorsv1alpha1.ClusterServiceVersion
	crds []*apiextensionsv1.CustomResourceDefinition
}

// read reads the manifests of a bundle.
func read(dir string) (*contents, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "manifests", "*.yaml"))
	if err != nil {
		return nil, err
	}
	c := &contents{}
	for _, path := range paths {
		if err := c.add(path); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	if c.csv == nil || len(c.crds) == 0 {
		return nil, fmt.Errorf("%s is no bundle: it has no ClusterServiceVersion or no CustomResourceDefinition in "+
			"manifests", dir)
	}
	return c, nil
}

func (c *contents) add(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var object metav1.TypeMeta
	if err := yaml.Unmarshal(text, &object); err != nil {
		return err
	}
	switch object.Kind {
	case "ClusterServiceVersion":
		c.csv = &operatorsv1alpha1.ClusterServiceVersion{}
		return yaml.Unmarshal(text, c.csv)
	case "CustomResourceDefinition":
		crd := &apiextensionsv1.CustomResourceDefinition{}
		c.crds = append(c.crds, crd)
		return yaml.Unmarshal(text, crd)
	}
	return nil
}

// sample returns the example of a kind that the bundle offers to users. A field that the kind does not have is a
// failure.
func (c *contents) sample(k kind) (client.Object, error) {
	var examples []json.RawMessage
	if err := json.Unmarshal([]byte(c.csv.Annotations["alm-examples"]), &examples); err != nil {
		return nil, failed("the annotation alm-examples of %s has to be a list in JSON: %w; look at config/samples",
			c.csv.Name, err)
	}
	for _, example := range examples {
		var object metav1.TypeMeta
		if err := json.Unmarshal(example, &object); err != nil || object.Kind != k.Name {
			continue
		}
		sample := k.New()
		unknown, err := kjson.UnmarshalStrict(example, sample)
		if err := errors.Join(append(unknown, err)...); err != nil {
			return nil, failed("the example of a %s has to be one: %w; look at config/samples", k.Name, err)
		}
		return sample, nil
	}
	return nil, failed("%s has to offer an example of a %s, and has none in alm-examples; look at config/samples",
		c.csv.Name, k.Name)
}

// crd returns the definition of a name, or nil.
func (c *contents) crd(name string) *apiextensionsv1.CustomResourceDefinition {
	for _, crd := range c.crds {
		if crd.Name == name {
			return crd
		}
	}
	return nil
}

// lastRelease returns the latest bundle that was released before the one of a version, or nil if there is none.
// The directories below dir are named by their versions.
func lastRelease(dir string, before semver.Version) (*contents, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var last semver.Version
	var path string
	for _, entry := range entries {
		version, err := semver.ParseTolerant(entry.Name()) // with or without a v
		if err != nil || !entry.IsDir() || version.GTE(before) {
			continue
		}
		if path == "" || version.GT(last) {
			last, path = version, filepath.Join(dir, entry.Name())
		}
	}
	if path == "" {
		return nil, nil
	}
	return read(path)
}

// otherFields returns writes of the fields of the spec that no write of a kind changes, the number of pods first, with
// values that the schema accepts, and the fields for which there is no such value, both without those that are slow.
func (c *contents) otherFields(k kind) (derived []write, untried []string) {
	crd := c.crd(k.CRD())
	if crd == nil {
		return nil, nil
	}
	for _, field := range k.Fields(crd) {
		path := strings.TrimPrefix(field.Path, "spec.")
		isTried := slices.ContainsFunc(k.writes, func(w write) bool { return w.field == path }) ||
			slices.Contains(k.slow, path)
		values := field.Accepted()
		switch {
		case isTried:
		case field.Path == k.ScalePath(crd):
			derived = slices.Insert(derived, 0, write{field: path, change: addPod(k.Kind)})
		case len(values) < 2 || !k.Deploys:
			untried = append(untried, path)
		default:
			derived = append(derived,
				write{field: path, value: func(object client.Object) any { return otherThan(object, field.Path, values) }})
		}
	}
	return derived, untried
}

// otherThan returns a value that a field of an object does not have.
func otherThan(object client.Object, path string, values []any) any {
	current, _, _ := unstructured.NestedFieldNoCopy(map[string]any{"spec": kinds.Spec(object)},
		strings.Split(path, ".")...)
	if current == values[0] {
		return values[1]
	}
	return values[0]
}
