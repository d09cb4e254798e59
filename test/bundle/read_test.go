package bundle

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// repo is the directory of the repository.
const repo = "../.."

// contents is what a bundle has.
type contents struct {
	csv     *operatorsv1alpha1.ClusterServiceVersion
	crds    map[string]*apiextensionsv1.CustomResourceDefinition
	objects []unstructured.Unstructured // those two as well
}

// readBundle reads a bundle: the tree's is the directory bundle.
func readBundle(t *testing.T, dir string) contents {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repo, dir, "manifests", "*.yaml"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("%s: %v, %v", dir, paths, err)
	}
	c := contents{crds: map[string]*apiextensionsv1.CustomResourceDefinition{}}
	for _, path := range paths {
		c.objects = append(c.objects, objects(t, readFile(t, path))...)
	}
	for _, object := range c.objects {
		switch object.GetKind() {
		case "ClusterServiceVersion":
			c.csv = as[operatorsv1alpha1.ClusterServiceVersion](t, object)
		case "CustomResourceDefinition":
			c.crds[object.GetName()] = as[apiextensionsv1.CustomResourceDefinition](t, object)
		}
	}
	if c.csv == nil || len(c.crds) == 0 {
		t.Fatalf("%s has no ClusterServiceVersion or no CustomResourceDefinition", dir)
	}
	return c
}

// objects decodes the documents of a YAML text.
func objects(t *testing.T, text []byte) (all []unstructured.Unstructured) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// as converts an object into its type. A field that the type does not have is a mistake.
func as[T any](t *testing.T, object unstructured.Unstructured) *T {
	t.Helper()
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return into
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// find returns what a pattern finds in a file of the repository.
func find(t *testing.T, path, pattern string) (found []string) {
	t.Helper()
	for _, match := range regexp.MustCompile(pattern).
		FindAllStringSubmatch(string(readFile(t, filepath.Join(repo, path))), -1) {
		found = append(found, match[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has nothing like %s", path, pattern)
	}
	return found
}

// look reads all of config/. "go test" repeats a test when a file has changed that the test has read; it does not see
// which files kubectl and scripts have read.
func look(t *testing.T) {
	t.Helper()
	if err := filepath.WalkDir(filepath.Join(repo, "config"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			_, err = os.ReadFile(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// rendered returns what a kustomization renders to.
func rendered(t *testing.T, dir string) []unstructured.Unstructured {
	t.Helper()
	look(t)
	return objects(t, run(t, kubectl(), "kustomize", filepath.Join(repo, dir)))
}

// kubectl is what the Makefile names, or else the one of the machine.
func kubectl() string {
	if kubectl := os.Getenv("KUBECTL"); kubectl != "" {
		return kubectl
	}
	return "kubectl"
}

// run runs a program that has to succeed.
func run(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, &stderr)
	}
	return stdout.Bytes()
}
