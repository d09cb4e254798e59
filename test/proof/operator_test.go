package proof

import (
	"os"
	"path/filepath"
	"testing"
)

// Only what says what the operator does changes what stands for it.
func TestOperator(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	operator := func() string {
		t.Helper()
		digits, err := Operator(root)
		if err != nil || len(digits) != 12 {
			t.Fatalf("%q, %v", digits, err)
		}
		return digits
	}
	for _, name := range []string{"api/v1/types.go", "cmd/main.go", "internal/status/status.go", "config/crd/foos.yaml",
		"config/manager/manager.yaml",
		"config/rbac/role.yaml", "go.mod", "go.sum"} {
		write(name, "one")
	}
	before := operator()
	for name, isOf := range map[string]bool{
		"cmd/main.go": true, "config/rbac/role.yaml": true, "internal/status/new.go": true, "go.sum": true,
		"internal/README.md": false, "internal/foo/testdata/full.yaml": false,
		"internal/status/status_test.go": false, "test/e2e/suite.go": false, "config/samples/foo.yaml": false,
	} {
		write(name, "two")
		after := operator()
		if (after != before) != isOf {
			t.Errorf("%s: %s after %s", name, after, before)
		}
		before = after
	}
	if _, err := Operator(t.TempDir()); err == nil {
		t.Error("there is no operator there")
	}
}
