package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/example/memcached-operator/test/bundle"
	"github.com/example/memcached-operator/test/kinds"
)

// sample returns the first example of a kind in the bundle that the tests use. A field that the kind does not have is a
// failure.
func sample(c *bundle.Contents, k kind) (client.Object, error) {
	var examples []json.RawMessage
	if err := json.Unmarshal([]byte(c.CSV.Annotations["alm-examples"]), &examples); err != nil {
		return nil, failed("the annotation alm-examples of %s has to be a list in JSON: %w; look at config/samples",
			c.CSV.Name, err)
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
		if k.isSample == nil || k.isSample(sample) {
			return sample, nil
		}
	}
	return nil, failed("%s has to offer an example of a %s, and has none in alm-examples; look at config/samples",
		c.CSV.Name, k.Title())
}

// lastRelease returns the latest bundle that was released before the one of a version, or nil if there is none.
// The directories below dir are named by their versions.
func lastRelease(dir string, before semver.Version) (*bundle.Contents, error) {
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
	return bundle.Read(path)
}

// otherFields returns writes of the fields of the spec that no write of a kind changes, the number of pods first, with
// values that the schema accepts, and the fields for which there is no such value, both without those that are slow. Of
// a variant, which shares the code, it returns the number of pods only.
func otherFields(c *bundle.Contents, k kind) (derived []write, untried []string) {
	crd := c.CRDs[k.CRD()]
	if crd == nil {
		return nil, nil
	}
	for _, field := range k.Fields(crd) {
		path := strings.TrimPrefix(field.Path, "spec.")
		isTried := slices.ContainsFunc(k.writes, func(w write) bool { return w.field == path }) ||
			slices.Contains(k.slow, path) || slices.Contains(k.OwnSpecs, field.Path)
		values := field.Accepted()
		switch {
		case isTried:
		case field.Path == k.ScalePath(crd):
			derived = slices.Insert(derived, 0, write{field: path, change: addPod(k.Kind)})
		case k.Variant != "":
		case len(values) == 0 || !k.Deploys:
			untried = append(untried, path)
		default:
			derived = append(derived,
				write{field: path, value: func(object client.Object) any { return k.otherThan(object, field.Path, values) }})
		}
	}
	return derived, untried
}

// otherThan returns the first of the values that a field of an object does not have, by default or otherwise.
func (k kind) otherThan(object client.Object, path string, values []any) any {
	current, _, _ := unstructured.NestedFieldNoCopy(map[string]any{"spec": kinds.Spec(object)},
		strings.Split(path, ".")...)
	for _, value := range values {
		if !equality.Semantic.DeepEqual(current, value) && !equality.Semantic.DeepEqual(k.Defaults[path], value) {
			return value
		}
	}
	return values[0]
}
