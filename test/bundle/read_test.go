package bundle

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// repo is the directory of the repository.
const repo = "../.."

// readBundle reads a bundle: the tree's is the directory bundle.
func readBundle(t *testing.T, dir string) *Contents {
	t.Helper()
	c := must(Read(filepath.Join(repo, dir)))(t)
	if len(c.Objects) < 3 {
		t.Fatalf("%s has %d manifests", dir, len(c.Objects))
	}
	return c
}

// must returns a value, unless there is an error.
func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// objects decodes the documents of a YAML text.
func objects(t *testing.T, text []byte) []unstructured.Unstructured {
	t.Helper()
	return must(decode(text))(t)
}

// as converts an object into its type. A field that the type does not have is a mistake.
func as[T any](t *testing.T, object unstructured.Unstructured) *T {
	t.Helper()
	return must(convert[T](object))(t)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	return must(os.ReadFile(path))(t)
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
