package bundle

import (
	"crypto/sha1" // git names files by it
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// releases returns the directories of the released bundles, in the order of their versions.
func releases(t *testing.T) []string {
	t.Helper()
	dirs := must(filepath.Glob(filepath.Join(repo, "config/catalog/released/*")))(t)
	for i := range dirs {
		dirs[i] = strings.TrimPrefix(dirs[i], repo+"/")
	}
	slices.SortFunc(dirs, func(a, b string) int {
		return semver.MustParse(filepath.Base(a)).Compare(semver.MustParse(filepath.Base(b)))
	})
	if len(dirs) == 0 {
		NewWithT(t).Expect(find(t, "Makefile", `(?m)^VERSION \?= (.*)$`)).To(ConsistOf("0.1.0"), "nothing is released")
	}
	return dirs
}

// Upgrades are tested from released bundles, so those have to remain what users have installed.
func TestReleasesAreFrozen(t *testing.T) {
	g := NewWithT(t)
	for _, dir := range releases(t) {
		tag := "v" + filepath.Base(dir)
		commit := strings.TrimSpace(string(readFile(t, filepath.Join(repo, dir, "commit"))))
		files := string(readFile(t, filepath.Join(repo, dir, "files")))
		g.Expect(list(t, filepath.Join(repo, dir))).To(BeComparableTo(files), "restore %s", dir)
		// The list could have changed with the files. The commit cannot, but not every copy of the repository has it.
		if err := git("cat-file", "-e", commit); err != nil {
			t.Logf("%s: the commit %s is not here to compare with: %v", tag, commit, err)
			continue
		}
		g.Expect(run(t, "git", "-C", repo, "ls-tree", "-r", commit+":bundle")).To(Equal(files),
			"see 'git diff %s:bundle HEAD:%s'", commit, dir)
		if git("rev-parse", "-q", "--verify", "refs/tags/"+tag) == nil {
			g.Expect(run(t, "git", "-C", repo, "rev-parse", tag+"^{commit}")).To(Equal(commit+"\n"), "the tag %s", tag)
		}
	}
}

// Releases since 0.4.0 name images by digest, so that clusters with a mirror can run them.
func TestReleasesArePinned(t *testing.T) {
	g := NewWithT(t)
	for _, dir := range releases(t) {
		csv := readBundle(t, dir).CSV
		isPinned := semver.MustParse(filepath.Base(dir)).GTE(semver.MustParse("0.4.0"))
		g.Expect(csv.Annotations["features.operators.openshift.io/disconnected"]).To(Equal(fmt.Sprint(isPinned)), dir)
		if isPinned {
			g.Expect(csv.Spec.RelatedImages).To(HaveEach(HaveField("Image", MatchRegexp(`@sha256:[0-9a-f]{64}$`))), dir)
		}
	}
}

func TestPin(t *testing.T) {
	if len(digests(t)) > 0 {
		t.Skip("the bundle of a release is pinned")
	}
	g := NewWithT(t)
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	pin := func(lines ...string) (dir, problem string) {
		dir = t.TempDir()
		g.Expect(os.CopyFS(dir, os.DirFS(filepath.Join(repo, "bundle")))).To(Succeed())
		path := filepath.Join(t.TempDir(), "digests")
		g.Expect(os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)).To(Succeed())
		out, err := exec.Command(filepath.Join(repo, "config/manifests/pin.sh"), path, dir).CombinedOutput()
		g.Expect(err != nil).To(Equal(len(out) > 0), "%s", out)
		return dir, string(out)
	}
	var lines []string
	for _, related := range readBundle(t, "bundle").CSV.Spec.RelatedImages {
		lines = append(lines, related.Image+" "+digest)
	}
	g.Expect(len(lines)).To(BeNumerically(">=", 4))
	_, problem := pin("example.com/another:v1 " + digest)
	g.Expect(problem).To(ContainSubstring("does not contain example.com/another:v1"))
	_, problem = pin(lines[1:]...)
	g.Expect(problem).To(ContainSubstring("there is no digest of " + strings.TrimSuffix(lines[0], " "+digest)))
	dir, problem := pin(lines...)
	g.Expect(problem).To(BeEmpty())
	pinned := string(readFile(t, filepath.Join(dir, "manifests/memcached-operator.clusterserviceversion.yaml")))
	var tags []string
	for _, line := range lines {
		image := strings.TrimSuffix(line, " "+digest)
		g.Expect(pinned).To(MatchRegexp(`[^=]` + image[:strings.LastIndex(image, ":")] + "@" + digest))
		g.Expect(pinned).NotTo(MatchRegexp(`[^=]`+image), "in deployments, annotations and examples")
		tags = append(tags, image[:strings.LastIndex(image, ":")]+"@"+digest+"="+image)
	}
	g.Expect(pinned).To(ContainSubstring("- name: IMAGE_TAGS\n                  value: " + strings.Join(tags, ",") + "\n"))
	g.Expect(pinned).To(ContainSubstring(`features.operators.openshift.io/disconnected: "true"`))
}

func git(args ...string) error {
	return exec.Command("git", append([]string{"-C", repo}, args...)...).Run()
}

// list lists the files of a frozen bundle as "git ls-tree -r" does.
func list(t *testing.T, dir string) string {
	t.Helper()
	var lines strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, dir+"/")
		if err != nil || entry.IsDir() || name == "commit" || name == "files" || name == "digests" {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&lines, "100644 blob %x\t%s\n", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)), name)
		return err
	})
	return must(lines.String(), err)(t)
}

// Users have to be able to keep a resource that one release accepts with every later one.
func TestCRDsNeverTighten(t *testing.T) {
	g := NewWithT(t)
	dirs := append(releases(t), "bundle")
	for i, dir := range dirs {
		for _, later := range dirs[i+1:] {
			updated := readBundle(t, later).CRDs
			for name, crd := range readBundle(t, dir).CRDs {
				g.Expect(updated).To(HaveKey(name), later)
				g.Expect(Tightened(crd, updated[name])).To(BeEmpty(), "%s, compared with %s", later, dir)
			}
		}
	}
}

// A version that is in no channel cannot be installed, and one that has left its channel cannot be upgraded.
func TestEveryReleaseIsInAChannel(t *testing.T) {
	g := NewWithT(t)
	channels := map[string][]string{}
	for _, document := range must(decode(readFile(t, filepath.Join(repo, "config/catalog/template.yaml"))))(t) {
		entries, _, _ := unstructured.NestedSlice(document.Object, "entries")
		for _, entry := range entries {
			name := document.Object["name"].(string)
			channels[name] = append(channels[name],
				strings.TrimPrefix(entry.(map[string]any)["name"].(string), "memcached-operator.v"))
		}
	}
	var released []string
	for _, dir := range releases(t) {
		released = append(released, filepath.Base(dir))
		g.Expect(readBundle(t, dir).CSV.Spec.Version.String()).To(Equal(filepath.Base(dir)))
	}
	g.Expect(channels["candidate"]).To(ConsistOf(released), "candidate has every release, and all are frozen")
	for channel, versions := range channels {
		g.Expect(channels["candidate"]).To(ContainElements(versions), "who leaves %s for candidate can upgrade", channel)
	}
	if len(released) > 0 {
		version := semver.MustParse(find(t, "Makefile", `(?m)^VERSION \?= (.*)$`)[0])
		g.Expect(version.GT(semver.MustParse(released[len(released)-1]))).To(BeTrue(), "%s is not released", version)
	}
}

// A release with another image of the agent restarts nodes, so the agent has a new version if and only if its sources
// have changed since the last release. The images exist before the release, which names them by digest.
func TestWhatReleaseRefuses(t *testing.T) {
	g := NewWithT(t)
	if shallow, err := exec.Command("git", "-C", repo, "rev-parse", "--is-shallow-repository").Output(); err != nil ||
		string(shallow) != "false\n" {
		t.Skip("a release needs the whole history")
	}
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, "git", "clone", "--quiet", "--shared", "--no-tags", repo, clone)
	in := func(args ...string) string {
		t.Helper()
		identity := []string{"-C", clone, "-c", "user.name=test", "-c", "user.email=test@example.com"}
		return run(t, "git", append(identity, args...)...)
	}
	if in("branch", "--show-current") == "" { // CI checks out a commit
		in("checkout", "--quiet", "-b", "test")
	}
	// Of the clone: "make release" runs this test before it commits the next version.
	makefile := string(readFile(t, filepath.Join(clone, "Makefile")))
	version := regexp.MustCompile(`(?m)^VERSION \?= (.*)$`).FindStringSubmatch(makefile)[1]
	digests := "true"
	check := func() string {
		in("add", "--all")
		in("commit", "--quiet", "--allow-empty", "--message=test")
		command := exec.Command("config/catalog/release.sh", "--check", version, "candidate", "stable")
		command.Dir = clone
		command.Env = append(os.Environ(), "GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com",
			"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com", "DIGESTS="+digests)
		out, _ := command.CombinedOutput()
		return string(out)
	}
	write := func(path, content string) {
		path = filepath.Join(clone, path)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	// The latest release is this commit.
	write("config/catalog/released/"+version+"-test/commit", in("rev-parse", "HEAD"))
	g.Expect(check()).To(BeEmpty(), "nothing has changed")
	write("cmd/agent/VERSION", "99.0.0\n")
	g.Expect(check()).To(ContainSubstring("cmd/agent has not changed since the last release: set cmd/agent/VERSION back"))
	write("cmd/agent/more.go", "package main\n")
	g.Expect(check()).To(BeEmpty(), "both have changed")
	in("checkout", "HEAD~2", "--", "cmd/agent/VERSION")
	g.Expect(check()).To(ContainSubstring("cmd/agent has changed since the last release: increment cmd/agent/VERSION"))
	in("checkout", "HEAD~2", "--", "cmd/agent")
	digests = "false"
	g.Expect(check()).To(ContainSubstring("build and push the images of this commit first"))
}
