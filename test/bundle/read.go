package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Contents are the manifests of a bundle.
type Contents struct {
	CSV     *operatorsv1alpha1.ClusterServiceVersion
	CRDs    map[string]*apiextensionsv1.CustomResourceDefinition // by name
	Objects []unstructured.Unstructured                          // all manifests
}

// Read reads the manifests of the bundle in a directory.
func Read(dir string) (*Contents, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "manifests", "*.yaml"))
	if err != nil {
		return nil, err
	}
	c := &Contents{CRDs: map[string]*apiextensionsv1.CustomResourceDefinition{}}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		objects, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		c.Objects = append(c.Objects, objects...)
	}
	for _, object := range c.Objects {
		switch object.GetKind() {
		case "ClusterServiceVersion":
			c.CSV, err = convert[operatorsv1alpha1.ClusterServiceVersion](object)
		case "CustomResourceDefinition":
			c.CRDs[object.GetName()], err = convert[apiextensionsv1.CustomResourceDefinition](object)
		}
		if err != nil {
			return nil, err
		}
	}
	if c.CSV == nil || len(c.CRDs) == 0 {
		return nil, fmt.Errorf("%s is no bundle: it has no ClusterServiceVersion or no CustomResourceDefinition in "+
			"manifests", dir)
	}
	return c, nil
}

// decode decodes the documents of a YAML text.
func decode(text []byte) (all []unstructured.Unstructured, err error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// convert converts an object into its type. A field that the type does not have is an error.
func convert[T any](object unstructured.Unstructured) (*T, error) {
	into := new(T)
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return into, nil
}
