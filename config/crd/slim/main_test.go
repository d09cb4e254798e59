package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSlim(t *testing.T) {
	want := read(t, "testdata/after.yaml")
	for _, file := range []string{"testdata/before.yaml", "testdata/after.yaml"} {
		got, err := slim([]byte(read(t, file)), "spec.template")
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", file, err, diff)
		}
	}
}

// A definition without descriptions below the field stays the same, to the byte.
func TestSlimKeepsTheFormat(t *testing.T) {
	want := read(t, "../bases/cache.example.com_memcacheds.yaml")
	if got, err := slim([]byte(want), "spec.size"); err != nil || string(got) != want {
		t.Errorf("%v: %s", err, cmp.Diff(want, string(got)))
	}
}

func TestSlimReportsErrors(t *testing.T) {
	for content, want := range map[string]string{
		read(t, "testdata/before.yaml"): "has no field spec.missing",
		"kind: Pod":                     "not a CustomResourceDefinition",
		"not: a: do":                    "yaml",
	} {
		if _, err := slim([]byte(content), "spec.missing"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
