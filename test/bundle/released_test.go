package bundle

import (
	"crypto/sha1" // what git names files by
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// releases returns the directories of the bundles that have been released, in the order of their versions.
func releases(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(repo, "config/catalog/released/*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range dirs {
		dirs[i] = strings.TrimPrefix(dirs[i], repo+"/")
	}
	slices.SortFunc(dirs, func(a, b string) int {
		return semver.MustParse(filepath.Base(a)).Compare(semver.MustParse(filepath.Base(b)))
	})
	if version := find(t, "Makefile", `(?m)^VERSION \?= (.*)$`)[0]; len(dirs) == 0 && version != "0.1.0" {
		t.Errorf("nothing is frozen, and %s is not the first version", version)
	}
	return dirs
}

// A bundle that is released is installed somewhere: upgrades are tested from it, so it has to be what it was.
func TestReleasesAreFrozen(t *testing.T) {
	for _, dir := range releases(t) {
		version := filepath.Base(dir)
		commit := strings.TrimSpace(string(readFile(t, filepath.Join(repo, dir, "commit"))))
		files := string(readFile(t, filepath.Join(repo, dir, "files")))
		if diff := cmp.Diff(strings.Split(files, "\n"), strings.Split(list(t, filepath.Join(repo, dir)), "\n")); diff != "" {
			t.Errorf("%s is not what was released: put it back (-released +now)\n%s", dir, diff)
		}
		// The list could have been changed with the files. The commit cannot, but is not in every copy of the repository.
		if err := git("cat-file", "-e", commit); err != nil {
			t.Logf("%s: the commit %s is not here to compare with: %v", version, commit, err)
			continue
		}
		if released := string(run(t, "git", "-C", repo, "ls-tree", "-r", commit+":bundle")); released != files {
			t.Errorf("%s is not the bundle of the commit %s: 'git diff %s:bundle HEAD:%s' tells the difference", dir, commit,
				commit, dir)
		}
		if err := git("rev-parse", "-q", "--verify", "refs/tags/v"+version); err == nil {
			if tagged := strings.TrimSpace(string(run(t, "git", "-C", repo, "rev-parse",
				"v"+version+"^{commit}"))); tagged != commit {
				t.Errorf("the tag v%s is on the commit %s, and the frozen bundle is of %s", version, tagged, commit)
			}
		}
	}
}

// git tells whether a command of git succeeds.
func git(args ...string) error {
	return exec.Command("git", append([]string{"-C", repo}, args...)...).Run()
}

// list lists the files of a frozen bundle as "git ls-tree -r" does, without git.
func list(t *testing.T, dir string) string {
	t.Helper()
	var lines strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, dir+"/")
		if err != nil || entry.IsDir() || name == "commit" || name == "files" {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&lines, "100644 blob %x\t%s\n", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)), name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines.String()
}

// Who has a resource that one release took, must be able to keep it with every later one.
func TestCRDsNeverTighten(t *testing.T) {
	dirs := append(releases(t), "bundle")
	for i, dir := range dirs[:len(dirs)-1] {
		for _, later := range dirs[i+1:] {
			bundle := readBundle(t, later)
			for name, old := range readBundle(t, dir).CRDs {
				if bundle.CRDs[name] == nil {
					t.Errorf("%s had %s, %s has not", dir, name, later)
					continue
				}
				for _, sentence := range Tightened(old, bundle.CRDs[name]) {
					t.Errorf("%s, held against %s: %s", later, dir, sentence)
				}
			}
		}
	}
}

// A version that is in no channel cannot be installed; one that has been and is not any more cannot be upgraded from.
func TestEveryReleaseIsInAChannel(t *testing.T) {
	channels := map[string][]string{}
	for _, document := range objects(t, readFile(t, filepath.Join(repo, "config/catalog/template.yaml"))) {
		entries, _, _ := unstructured.NestedSlice(document.Object, "entries")
		for _, entry := range entries {
			name := document.Object["name"].(string)
			channels[name] = append(channels[name],
				strings.TrimPrefix(entry.(map[string]any)["name"].(string), "memcached-operator.v"))
		}
	}
	dirs := releases(t)
	for _, dir := range dirs {
		version := filepath.Base(dir)
		if !slices.Contains(channels["candidate"], version) {
			t.Errorf("%s is not in the channel candidate of config/catalog/template.yaml, which has every release", version)
		}
		if csv := readBundle(t, dir).CSV; csv.Spec.Version.String() != version {
			t.Errorf("%s has the version %s", dir, csv.Spec.Version)
		}
	}
	for channel, versions := range channels {
		for _, version := range versions {
			if !slices.Contains(dirs, "config/catalog/released/"+version) {
				t.Errorf("%s is in the channel %s, and no bundle of it is frozen", version, channel)
			}
			if !slices.Contains(channels["candidate"], version) {
				t.Errorf("%s is in the channel %s and not in candidate: who changes to candidate could not be upgraded", version,
					channel)
			}
		}
	}
	if len(dirs) > 0 {
		version := find(t, "Makefile", `(?m)^VERSION \?= (.*)$`)[0]
		if last := filepath.Base(dirs[len(dirs)-1]); !semver.MustParse(version).GT(semver.MustParse(last)) {
			t.Errorf("the version in the making is %s, and %s has been released", version, last)
		}
	}
}
