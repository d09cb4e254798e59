package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/testenv"
)

// The name and version of the bundle that is tested, where there is none but the one made here.
const version = "0.1.0"

// newBundle returns a directory with a copy of the bundle, to be changed. Without a bundle in the repository it is made of
// the CustomResourceDefinitions, the samples and the manager's Deployment.
func newBundle() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	root := testenv.Root()
	if _, err := os.Stat(filepath.Join(root, "bundle", "manifests")); err == nil {
		Expect(os.CopyFS(dir, os.DirFS(filepath.Join(root, "bundle")))).To(Succeed())
		return dir
	}
	manifests := filepath.Join(dir, "manifests")
	Expect(os.CopyFS(manifests, os.DirFS(filepath.Join(root, "config", "crd", "bases")))).To(Succeed())

	var examples []any
	for _, path := range glob(filepath.Join(root, "config", "samples", "*_v*.yaml")) {
		var sample any
		unmarshal(path, &sample)
		examples = append(examples, sample)
	}
	samples, err := json.Marshal(examples)
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, "config", "manager", "manager.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var deployment struct{ Spec any }
	_, manager, _ := strings.Cut(string(text), "\n---\n")
	Expect(yaml.Unmarshal([]byte(manager), &deployment)).To(Succeed())
	marshal(filepath.Join(manifests, "memcached-operator.clusterserviceversion.yaml"), map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "ClusterServiceVersion",
		"metadata":   map[string]any{"name": "memcached-operator.v" + version, "annotations": map[string]string{"alm-examples": string(samples)}},
		"spec": map[string]any{
			"version": version,
			"install": map[string]any{"strategy": "deployment", "spec": map[string]any{
				"deployments": []any{map[string]any{"name": "controller-manager", "spec": deployment.Spec}}}},
		},
	})
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
	paths := glob(filepath.Join(bundle, "manifests", "*"+word+"*.yaml"))
	Expect(paths).To(HaveLen(1))
	var manifest map[string]any
	unmarshal(paths[0], &manifest)
	change(manifest)
	marshal(paths[0], manifest)
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

func glob(pattern string) []string {
	GinkgoHelper()
	paths, err := filepath.Glob(pattern)
	Expect(err).NotTo(HaveOccurred())
	Expect(paths).NotTo(BeEmpty(), pattern)
	return paths
}

func unmarshal(path string, into any) {
	GinkgoHelper()
	text, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(text, into)).To(Succeed(), path)
}

func marshal(path string, from any) {
	GinkgoHelper()
	text, err := yaml.Marshal(from)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
}
