package proof

import (
	"os"
	"path/filepath"
	"testing"
)

// The hash changes with the operator's sources, and with nothing else.
func TestOperator(t *testing.T) {
	root := t.TempDir()
	change := func(name, content string) {
		t.Helper()
		if err := write(filepath.Join(root, name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"api/v1/types.go", "cmd/main.go", "internal/status/status.go", "config/crd/foos.yaml",
		"config/manager/manager.yaml", "config/rbac/role.yaml", "go.mod", "go.sum"} {
		change(name, "one")
	}
	before, err := Operator(root)
	if err != nil || len(before) != 12 {
		t.Fatalf("%q, %v", before, err)
	}
	for name, isOfOperator := range map[string]bool{
		"cmd/main.go": true, "config/rbac/role.yaml": true, "internal/status/new.go": true, "go.sum": true,
		"internal/README.md": false, "internal/foo/testdata/full.yaml": false,
		"internal/status/status_test.go": false, "test/e2e/suite.go": false, "config/samples/foo.yaml": false,
	} {
		change(name, "two")
		after, err := Operator(root)
		if err != nil || (after != before) != isOfOperator {
			t.Errorf("%s: %s after %s, %v", name, after, before, err)
		}
		before = after
	}
	if err := os.Remove(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	if _, err := Operator(root); err == nil {
		t.Error("a missing file is no error")
	}
}
