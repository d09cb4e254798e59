package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildManager returns the manager to test: the program that MANAGER names, or else that of this tree, built with the
// race detector into a directory. Its version is v9.9.9 and its commit abcdef, as the Makefile builds it for several
// suites. The race detector leaves the YAML parser out: each start of a manager parses Kubernetes' schemas.
func BuildManager(dir string) (string, error) {
	if program := os.Getenv("MANAGER"); program != "" {
		return program, nil
	}
	program := filepath.Join(dir, "manager")
	const version = "-X main.version=v9.9.9 -X main.commit=abcdef"
	build := exec.Command("go", "build", "-race", "-gcflags=go.yaml.in/yaml/v2=-race=false", "-buildvcs=false",
		"-ldflags="+version, "-o", program, "./cmd")
	build.Dir = Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the manager: %w\n%s", err, out)
	}
	return program, nil
}
