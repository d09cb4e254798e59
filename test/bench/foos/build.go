package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/example/memcached-operator/test/testenv"
)

// Programs that are measured, as they are called in the directory of the work.
const (
	managerProgram   = "manager"
	floorProgram     = "floor"
	stockProgram     = "sample-controller"
	unlimitedProgram = "sample-controller-unlimited"
)

// build builds all programs that are measured, the same way.
func (b *bench) build(ctx context.Context) error {
	b.say("building what is measured")
	module := filepath.Join(testenv.Root(), "test", "bench", "samplecontroller")
	overlay, err := unlimited(ctx, module, b.work)
	if err != nil {
		return fmt.Errorf("lifting the limits of client-go: %w", err)
	}
	for _, program := range []struct {
		name, directory, what string
		flags                 []string
	}{
		{managerProgram, testenv.Root(), "./cmd", nil},
		{floorProgram, testenv.Root(), "./test/bench/foos/floor", nil},
		{stockProgram, module, "k8s.io/sample-controller", nil},
		{unlimitedProgram, module, "k8s.io/sample-controller", []string{"-overlay=" + overlay}},
	} {
		args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(b.work, program.name)}, program.flags...)
		if _, err := golang(ctx, program.directory, append(args, program.what)...); err != nil {
			return err
		}
	}
	return nil
}

// Where client-go says how many requests a client makes in a second that has not been told, and how it says that there is no limit.
const (
	limitFile = "rest/config.go"
	limit     = "DefaultQPS   float32 = 5.0"
	noLimit   = "DefaultQPS   float32 = -1"
)

// unlimited makes a build overlay in which the client-go of a module has no limit, and returns its path. The one in the module
// cache stays as it is.
func unlimited(ctx context.Context, module, work string) (string, error) {
	out, err := golang(ctx, module, "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go")
	if err != nil {
		return "", err
	}
	path := filepath.Join(strings.TrimSpace(out), limitFile)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if found := bytes.Count(source, []byte(limit)); found != 1 {
		return "", fmt.Errorf("%s has %q %d times", path, limit, found)
	}
	changed := filepath.Join(work, "unlimited.go")
	if err := os.WriteFile(changed, bytes.Replace(source, []byte(limit), []byte(noLimit), 1), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(work, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o600)
}

// golang runs the go command and returns what it prints.
func golang(ctx context.Context, directory string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = directory
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, problems.String())
	}
	return string(out), nil
}
