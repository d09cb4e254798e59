package main

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/testenv"
)

// newBundle returns a directory with a copy of the bundle.
func newBundle() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.CopyFS(dir, os.DirFS(filepath.Join(testenv.Root(), "bundle")))).To(Succeed())
	return dir
}

// newReleased returns a directory of released bundles with one of a version that is lower than that of any bundle.
func newReleased() (released, release string) {
	GinkgoHelper()
	released = GinkgoT().TempDir()
	release = filepath.Join(released, "0.0.9")
	Expect(os.CopyFS(release, os.DirFS(newBundle()))).To(Succeed())
	return released, release
}

// edit changes the only manifest of a bundle whose name has a word in it.
func edit(bundle, word string, change func(manifest map[string]any)) {
	GinkgoHelper()
	paths, err := filepath.Glob(filepath.Join(bundle, "manifests", "*"+word+"*.yaml"))
	Expect(paths, err).To(HaveLen(1))
	text, err := os.ReadFile(paths[0])
	Expect(err).NotTo(HaveOccurred())
	var manifest map[string]any
	Expect(yaml.Unmarshal(text, &manifest)).To(Succeed())
	change(manifest)
	text, err = yaml.Marshal(manifest)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(paths[0], text, 0o600)).To(Succeed())
}

// at returns what lies on a path in a manifest: names of fields, and numbers of items.
func at[T any](manifest any, path ...any) T {
	GinkgoHelper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			manifest = manifest.(map[string]any)[step]
		case int:
			manifest = manifest.([]any)[step]
		}
	}
	return manifest.(T)
}
