package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

const repository = "../../.."

func TestWrite(t *testing.T) {
	g := NewWithT(t)
	out := t.TempDir()
	g.Expect(write(repository, "0.3.0", out)).To(Succeed())
	// Once more, over what is there.
	g.Expect(write(repository, "0.3.0", out)).To(Succeed())
	read := func(path string, into any) {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(out, path))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(yaml.UnmarshalStrict(content, into)).To(Succeed())
	}
	const kubernetes = "community-operators/operators/memcached-operator/"
	const prod = "community-operators-prod/operators/memcached-operator/"
	var ci, ciProd ciConfig
	read(kubernetes+"ci.yaml", &ci)
	read(prod+"ci.yaml", &ciProd)
	g.Expect(ci).To(Equal(ciConfig{UpdateGraph: "semver-mode", Reviewers: []string{"example"}}))
	g.Expect(ciProd.FBC.CatalogMapping).To(ConsistOf(And(
		HaveField("TemplateName", templateName), HaveField("Type", "olm.template.basic"))))

	// The bundle is that of the release, and its place in the update graph is in the catalog only.
	for _, directory := range []string{kubernetes, prod} {
		released := filepath.Join(repository, "config/catalog/released/0.3.0")
		for _, part := range []string{"manifests", "metadata", "tests"} {
			difference, err := exec.Command("diff", "-r", filepath.Join(released, part),
				filepath.Join(out, directory, "0.3.0", part)).CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), string(difference))
		}
	}
	csv := "0.3.0/manifests/memcached-operator.clusterserviceversion.yaml"
	content, err := os.ReadFile(filepath.Join(out, kubernetes, csv))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).NotTo(Or(ContainSubstring("\n  replaces:"), ContainSubstring("olm.skipRange")))

	var release releaseConfig
	read(prod+"0.3.0/release-config.yaml", &release)
	g.Expect(release.CatalogTemplates).To(ConsistOf(releaseTemplate{
		TemplateName: "basic.yaml", Channels: []string{"candidate", "stable"},
		Replaces: "memcached-operator.v0.2.0", SkipRange: ">=0.1.0 <0.3.0",
	}))
	var template struct {
		Schema  string     `json:"schema"`
		Entries []document `json:"entries"`
	}
	read(prod+"catalog-templates/basic.yaml", &template)
	g.Expect(template.Schema).To(Equal("olm.template.basic"))
	names := make([]string, 0, len(template.Entries))
	for _, d := range template.Entries {
		names = append(names, strings.Join([]string{d.Schema, d.Name, d.Image}, " "))
		if d.Schema == "olm.channel" {
			g.Expect(d.Entries).To(HaveLen(2), "the releases before")
		}
	}
	g.Expect(names).To(Equal([]string{
		"olm.package memcached-operator ", "olm.channel candidate ", "olm.channel stable ",
		"olm.bundle  quay.io/community-operator-pipeline-prod/memcached-operator:0.1.0",
		"olm.bundle  quay.io/community-operator-pipeline-prod/memcached-operator:0.2.0",
	}))
	g.Expect(template.Entries[0].Icon.Data).NotTo(BeEmpty())
}

func TestWriteRefuses(t *testing.T) {
	g := NewWithT(t)
	g.Expect(write(repository, "v0.3.0", t.TempDir())).To(MatchError(ContainSubstring(`"v0.3.0" is not a version`)))
	g.Expect(write(repository, "0.0.1", t.TempDir())).To(MatchError(ContainSubstring("0.0.1 is not released")))
}
