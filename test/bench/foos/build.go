package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/example/memcached-operator/test/testenv"
)

// Programs that are measured, as they are called in their directory.
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
	changed, err := unlimited(ctx, module, b.programs)
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
		{unlimitedProgram, module, "k8s.io/sample-controller", []string{"-modfile=" + changed}},
	} {
		args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(b.programs, program.name)}, program.flags...)
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

// unlimited makes a copy of the client-go of a module that has no limit, and a go.mod that has the module built with it, whose path it
// returns. It is a copy, as the go command takes no build overlay of its module cache.
func unlimited(ctx context.Context, module, directory string) (string, error) {
	const clientGo = "k8s.io/client-go"
	if _, err := golang(ctx, module, "mod", "download", clientGo); err != nil { // to list it does not fetch it
		return "", err
	}
	out, err := golang(ctx, module, "list", "-m", "-f", "{{.Dir}}", clientGo)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(directory, "client-go")
	if err := os.RemoveAll(changed); err != nil {
		return "", err
	}
	if err := os.CopyFS(changed, os.DirFS(strings.TrimSpace(out))); err != nil {
		return "", err
	}
	path := filepath.Join(changed, limitFile)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if found := bytes.Count(source, []byte(limit)); found != 1 {
		return "", fmt.Errorf("%s has %q %d times", path, limit, found)
	}
	if err := os.WriteFile(path, bytes.Replace(source, []byte(limit), []byte(noLimit), 1), 0o600); err != nil {
		return "", err
	}
	goMod, modErr := os.ReadFile(filepath.Join(module, "go.mod"))
	goSum, sumErr := os.ReadFile(filepath.Join(module, "go.sum"))
	modfile := filepath.Join(directory, "unlimited.mod")
	goMod = fmt.Appendf(goMod, "\nreplace k8s.io/client-go => %s\n", changed)
	return modfile, errors.Join(modErr, sumErr, os.WriteFile(modfile, goMod, 0o600), os.WriteFile(filepath.Join(directory, "unlimited.sum"), goSum, 0o600))
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
