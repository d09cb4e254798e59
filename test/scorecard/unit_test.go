package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/bundle"
)

func TestLastRelease(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"0.1.0", "v0.2.0", "0.10.0", "0.11.0-rc.1", "not-a-version"} {
		manifests := filepath.Join(dir, version, "manifests")
		if err := os.MkdirAll(manifests, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"csv.yaml": "kind: ClusterServiceVersion\nmetadata: {name: " + version + "}",
			"crd.yaml": "kind: CustomResourceDefinition\nmetadata: {name: foos}",
		} {
			if err := os.WriteFile(filepath.Join(manifests, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "0.9.0"), nil, 0o600); err != nil { // no directory
		t.Fatal(err)
	}
	for before, want := range map[string]string{
		"0.1.0": "", "0.1.1": "0.1.0", "0.2.0": "0.1.0", "0.3.0": "v0.2.0", "0.10.0": "v0.2.0", "0.11.0": "0.11.0-rc.1",
		"1.0.0": "0.11.0-rc.1",
	} {
		last, err := lastRelease(dir, semver.MustParse(before))
		got := ""
		if last != nil {
			got = last.CSV.Name
		}
		if err != nil || got != want {
			t.Errorf("before %s: %q, %v, want %q", before, got, err, want)
		}
	}

	if err := os.RemoveAll(filepath.Join(dir, "0.1.0", "manifests", "crd.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := lastRelease(dir, semver.MustParse("0.2.0")); err == nil ||
		!strings.Contains(err.Error(), "is no bundle") {
		t.Errorf("a release without definitions: %v", err)
	}
	if last, err := lastRelease(filepath.Join(dir, "none"), semver.MustParse("1.0.0")); last != nil || err != nil {
		t.Errorf("no directory: %v, %v", last, err)
	}
}

// A field of a spec that no test writes, and for which the schema has no values, is told of; one with values is
// written.
func TestOtherFields(t *testing.T) {
	c := &bundle.Contents{CRDs: map[string]*apiextensionsv1.CustomResourceDefinition{}}
	for _, k := range allKinds {
		crd, err := k.Definition()
		if err != nil {
			t.Fatal(err)
		}
		c.CRDs[crd.Name] = crd
	}
	for _, k := range allKinds {
		derived, untried := otherFields(c, k)
		if len(untried) > 0 {
			t.Errorf("%s: %v", k.Name, untried)
		}
		if k.Deploys && derived[0].change == nil {
			t.Errorf("%s: the first write is of spec.%s, not of the number of pods", k.Name, derived[0].field)
		}
		if len(k.writes) == 0 {
			continue
		}
		k.writes = k.writes[1:]
		moreDerived, untried := otherFields(c, k)
		if len(moreDerived)+len(untried) != len(derived)+1 || (len(untried) == 1) == k.Deploys {
			t.Errorf("%s with one write less: %d writes from the schema, not %d, and %v", k.Name, len(moreDerived), len(derived),
				untried)
		}
	}
	before, _ := otherFields(c, memcacheds)
	properties := c.CRDs[memcacheds.CRD()].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	properties["zThreads"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: ptr.To(1.0), Maximum: ptr.To(64.0)}
	properties["zOptions"] = apiextensionsv1.JSONSchemaProps{Type: "array"}
	derived, untried := otherFields(c, memcacheds)
	if len(derived) != len(before)+1 || derived[len(before)].field != "zThreads" ||
		derived[len(before)].value(memcacheds.New()) != int64(2) || len(untried) != 1 || untried[0] != "zOptions" {
		t.Errorf("with two more fields: %+v, %v", derived, untried)
	}
}

// The service account may do nothing with a kind that the rights do not name.
func TestRightsNameEveryKind(t *testing.T) {
	for _, file := range []string{"role.yaml", "crd_reader_role.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../config/scorecard/rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range allKinds {
			plural, group, _ := strings.Cut(k.CRD(), ".")
			if !strings.Contains(string(text), plural) || !strings.Contains(string(text), group) {
				t.Errorf("%s does not name %s: the tests of a %s would be refused", file, k.CRD(), k.Name)
			}
		}
	}
}

// Scorecard runs what its configuration names, and nothing else.
func TestConfigurationNamesEveryTest(t *testing.T) {
	text, err := os.ReadFile("../../config/scorecard/patches/custom.config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var patches []struct {
		Value struct{ Entrypoint []string }
	}
	if err := yaml.Unmarshal(text, &patches); err != nil {
		t.Fatal(err)
	}
	named := map[string]int{}
	for _, patch := range patches {
		named[strings.Join(patch.Value.Entrypoint, " ")]++
	}
	for _, test := range tests {
		if named["memcached-operator-scorecard "+test.name] != 1 {
			t.Errorf("%s is run %d times", test.name, named["memcached-operator-scorecard "+test.name])
		}
	}
	if len(named) != len(tests) {
		t.Errorf("%v, and there are %d tests", named, len(tests))
	}
}
