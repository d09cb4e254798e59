// Package golden compares the result of a builder with a YAML file. Only tests use it.
package golden

import (
	"flag"
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "update golden files")

// Read reads the resource of a test from testdata/<name>.yaml, as a user would write it.
func Read(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		t.Fatalf("testdata/%s.yaml: %v", name, err)
	}
}

// Check compares objects with testdata/<name>.golden.yaml. "make golden" writes that file.
func Check(t *testing.T, name string, objects ...any) {
	t.Helper()
	var got []byte
	for i, object := range objects {
		content, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			got = append(got, "---\n"...)
		}
		got = append(got, content...)
	}
	file := "testdata/" + name + ".golden.yaml"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; create it with 'make golden'", err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is outdated: run 'make golden' and review the diff. Got:\n%s",
			file, got)
	}
}
