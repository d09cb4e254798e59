package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/example/memcached-operator/test/testenv"
)

// releases is the directory with the commit of each release.
const releases = "config/catalog/released"

// LastRelease returns the version of the last release and the commit that it was built from. It fails if the release
// cannot be built.
func LastRelease(ctx context.Context) (last, commit string, err error) {
	directories, err := filepath.Glob(filepath.Join(testenv.Root(), releases, "*", "commit"))
	if err != nil || len(directories) == 0 {
		return "", "", errors.Join(errors.New("there is no release yet"), err)
	}
	newest := slices.MaxFunc(directories, func(a, b string) int {
		return semver.MustParse(filepath.Base(filepath.Dir(a))).Compare(semver.MustParse(filepath.Base(filepath.Dir(b))))
	})
	content, err := os.ReadFile(newest)
	if err != nil {
		return "", "", err
	}
	last, commit = filepath.Base(filepath.Dir(newest)), strings.TrimSpace(string(content))
	if err := run(ctx, testenv.Root(), "git", "cat-file", "-e", commit+"^{commit}"); err != nil {
		return "", "", fmt.Errorf("this clone has no commit of release %s ('git fetch --unshallow'): %w", last, err)
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
	if err := errors.Join(os.Mkdir(source, 0o755), run(ctx, testenv.Root(), "sh", "-c",
		`git archive --format=tar "$0" | tar --extract --directory="$1"`, commit, source)); err != nil {
		return "", err
	}
	return program, run(ctx, source, "go", "build", "-buildvcs=false", "-o", program, "./cmd")
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
