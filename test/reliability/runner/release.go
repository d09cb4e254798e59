package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/example/memcached-operator/test/testenv"
)

// releases is the directory that names the commit of each release, and is not among the files of one.
const releases = "config/catalog/released"

// LastRelease returns the version of the last release and the commit that it was built from. The error says why there
// is none to be had.
func LastRelease(ctx context.Context) (last, commit string, err error) {
	entries, err := os.ReadDir(filepath.Join(testenv.Root(), releases))
	if err != nil {
		return "", "", err
	}
	newest := version.MustParseGeneric("0.0.0")
	for _, entry := range entries {
		if v, err := version.ParseSemantic(entry.Name()); err == nil && newest.LessThan(v) {
			newest, last = v, entry.Name()
		}
	}
	if last == "" {
		return "", "", errors.New("nothing has been released yet")
	}
	content, err := os.ReadFile(filepath.Join(testenv.Root(), releases, last, "commit"))
	if err != nil {
		return "", "", err
	}
	commit = strings.TrimSpace(string(content))
	if err := git(ctx, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return "", "",
			fmt.Errorf("the commit of release %s is not in this clone; 'git fetch --unshallow' gets the whole history: %w",
				last, err)
	}
	return last, commit, nil
}

// buildRelease builds the manager of the last release and returns its path.
func (e *Environment) buildRelease(ctx context.Context) (string, error) {
	_, commit, err := LastRelease(ctx)
	if err != nil {
		return "", err
	}
	source, program := filepath.Join(e.dir, "released"), filepath.Join(e.dir, "released-manager")
	if err := git(ctx, "archive", "--format=tar", "--output="+source+".tar", commit); err != nil {
		return "", err
	}
	if err := os.Mkdir(source, 0o755); err != nil {
		return "", err
	}
	if err := run(ctx, source, "tar", "--extract", "--file="+source+".tar"); err != nil {
		return "", err
	}
	return program, run(ctx, source, "go", "build", "-race", "-buildvcs=false", "-o", program, "./cmd")
}

func git(ctx context.Context, args ...string) error {
	return run(ctx, testenv.Root(), "git", args...)
}

// run runs a program in a directory.
func run(ctx context.Context, dir, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return nil
}
