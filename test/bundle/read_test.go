package bundle

import (
	"cmp"
	"errors"
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

// readBundle reads a bundle of the repository.
func readBundle(t *testing.T, dir string) *Contents {
	t.Helper()
	return must(Read(filepath.Join(repo, dir)))(t)
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

// as converts an object into its type, in which all its fields have to exist.
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

// look reads all of config/, so that "go test" does not take a result from its cache after a change: it does not know
// which files kubectl and scripts read.
func look(t *testing.T) {
	t.Helper()
	must(true, os.CopyFS(t.TempDir(), os.DirFS(filepath.Join(repo, "config"))))(t)
}

// rendered returns the objects of a kustomization.
func rendered(t *testing.T, dir string) []unstructured.Unstructured {
	t.Helper()
	look(t)
	return must(decode([]byte(run(t, kubectl(), "kustomize", filepath.Join(repo, dir)))))(t)
}

// kubectl returns the program that the Makefile names, or else the one of the machine.
func kubectl() string { return cmp.Or(os.Getenv("KUBECTL"), "kubectl") }

// run runs a program that has to succeed and returns its output.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, exit.Stderr)
	}
	return string(must(out, err)(t))
}
