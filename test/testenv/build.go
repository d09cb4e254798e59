package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// BuildManager returns the manager to test: the program that MANAGER names, or else that of BuildRaced in a directory.
func BuildManager(dir string) (string, error) {
	if program := os.Getenv("MANAGER"); program != "" {
		return program, nil
	}
	return BuildRaced(context.Background(), filepath.Join(dir, "manager"))
}

// BuildRaced builds the manager of this tree with the race detector, and returns its path. Its version is v9.9.9 and
// its commit abcdef, as the Makefile builds it for contract and reliability-short. The race detector leaves the YAML
// parser out: each start of a manager parses Kubernetes' schemas.
func BuildRaced(ctx context.Context, path string) (string, error) {
	return Build(ctx, path, "-race", "-gcflags=go.yaml.in/yaml/v2=-race=false",
		"-ldflags=-X main.version=v9.9.9 -X main.commit=abcdef")
}

// Build builds the manager of this tree, without the race detector unless flags add it, and returns its path. Flags are
// those of go build; an -ldflags among them replaces the default.
func Build(ctx context.Context, path string, flags ...string) (string, error) {
	args := slices.Concat([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", path}, flags, []string{"./cmd"})
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return path, nil
}
