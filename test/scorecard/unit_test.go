package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	scorecardv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/bundle"
)

func TestLastRelease(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	write := func(text string, path ...string) {
		name := filepath.Join(dir, filepath.Join(path...))
		g.Expect(os.MkdirAll(filepath.Dir(name), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(name, []byte(text), 0o600)).To(Succeed())
	}
	for _, version := range []string{"0.1.0", "v0.2.0", "0.10.0", "0.11.0-rc.1", "not-a-version"} {
		write("kind: ClusterServiceVersion\nmetadata: {name: "+version+"}", version, "manifests", "csv.yaml")
		write("kind: CustomResourceDefinition\nmetadata: {name: foos}", version, "manifests", "crd.yaml")
	}
	write("not a directory", "0.9.0")
	for before, want := range map[string]string{
		"0.1.1": "0.1.0", "0.2.0": "0.1.0", "0.3.0": "v0.2.0", "0.10.0": "v0.2.0", "0.11.0": "0.11.0-rc.1",
		"1.0.0": "0.11.0-rc.1",
	} {
		last, err := lastRelease(dir, semver.MustParse(before))
		g.Expect(last, err).To(HaveField("CSV.Name", want), "before %s", before)
	}
	g.Expect(lastRelease(dir, semver.MustParse("0.1.0"))).To(BeNil())
	g.Expect(lastRelease(filepath.Join(dir, "none"), semver.MustParse("1.0.0"))).To(BeNil())

	g.Expect(os.Remove(filepath.Join(dir, "0.1.0", "manifests", "crd.yaml"))).To(Succeed())
	_, err := lastRelease(dir, semver.MustParse("0.2.0"))
	g.Expect(err).To(MatchError(ContainSubstring("is no bundle")))
}

// A field that no test writes is written if the schema has values for it, and reported otherwise.
func TestOtherFields(t *testing.T) {
	g := NewWithT(t)
	c := &bundle.Contents{CRDs: map[string]*apiextensionsv1.CustomResourceDefinition{}}
	for _, k := range allKinds {
		crd, err := k.Definition()
		g.Expect(err).NotTo(HaveOccurred())
		c.CRDs[crd.Name] = crd

		derived, untried := otherFields(c, k)
		g.Expect(untried).To(BeEmpty(), k.Name)
		if k.Deploys {
			g.Expect(derived[0].change).NotTo(BeNil(), "the first write of a %s is of the number of pods", k.Name)
		}
		if len(k.writes) == 0 {
			continue
		}
		k.writes = k.writes[1:]
		more, untried := otherFields(c, k)
		g.Expect(len(more)+len(untried)).To(Equal(len(derived)+1), "%s with one write less", k.Name)
		g.Expect(untried).To(HaveLen(map[bool]int{true: 0, false: 1}[k.Deploys]), "%s with one write less", k.Name)
	}
	before, _ := otherFields(c, memcacheds)
	properties := c.CRDs[memcacheds.CRD()].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	properties["zThreads"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: ptr.To(1.0), Maximum: ptr.To(64.0)}
	properties["zOptions"] = apiextensionsv1.JSONSchemaProps{Type: "array"}
	derived, untried := otherFields(c, memcacheds)
	g.Expect(untried).To(ConsistOf("zOptions"))
	g.Expect(derived).To(HaveLen(len(before) + 1))
	g.Expect(derived[len(before)].field).To(Equal("zThreads"))
	g.Expect(derived[len(before)].value(memcacheds.New())).To(Equal(int64(2)))
}

func TestPermissionsNameEveryKind(t *testing.T) {
	g := NewWithT(t)
	for _, file := range []string{"role.yaml", "crd_reader_role.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../config/scorecard/rbac", file))
		g.Expect(err).NotTo(HaveOccurred())
		for _, k := range allKinds {
			g.Expect(string(text)).To(And(ContainSubstring(k.Resource), ContainSubstring(k.GroupVersion.Group)), file)
		}
	}
}

func TestConfigurationNamesEveryTest(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../config/scorecard/custom/config.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var configuration scorecardv1alpha3.Configuration
	g.Expect(yaml.UnmarshalStrict(text, &configuration)).To(Succeed())
	g.Expect(configuration.Stages).To(HaveLen(1))
	var configured, all []string
	for _, test := range configuration.Stages[0].Tests {
		configured = append(configured, strings.Join(test.Entrypoint, " "))
	}
	for _, test := range tests {
		all = append(all, "memcached-operator-scorecard "+test.name)
	}
	g.Expect(configured).To(ConsistOf(all))
}
