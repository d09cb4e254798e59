// Command community writes what a pull request to a community catalog adds for a release:
//
//	OUT/community-operators/        of k8s-operatorhub, for OperatorHub.io
//	OUT/community-operators-prod/   of redhat-openshift-ecosystem, for the console of OpenShift
//
// The former takes the bundle. The latter takes it, too, and a template of the catalog, to which its pipeline adds the
// release as release-config.yaml says.
//
// Usage: go run ./config/catalog/community VERSION OUT
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	packageName = "memcached-operator"
	// registry is where the pipeline of community-operators-prod pushes bundles.
	registry     = "quay.io/community-operator-pipeline-prod/" + packageName
	templateName = "basic.yaml"
	templateType = "olm.template.basic"
	everyRelease = "candidate" // the channel that has every release, in their order
)

// reviewers are the GitHub users whose pull requests the pipelines merge.
var reviewers = []string{"example"}

// openshift are the catalogs of the versions of OpenShift with the minKubeVersion of the bundle.
var openshift = []string{"v4.17", "v4.18", "v4.19", "v4.20", "v4.21"}

// ciConfig is the content of ci.yaml.
type ciConfig struct {
	UpdateGraph string     `json:"updateGraph"`
	Reviewers   []string   `json:"reviewers"`
	FBC         *fbcConfig `json:"fbc,omitempty"`
}

type fbcConfig struct {
	Enabled        bool             `json:"enabled"`
	CatalogMapping []catalogMapping `json:"catalog_mapping"`
}

type catalogMapping struct {
	TemplateName string   `json:"template_name"`
	Type         string   `json:"type"`
	CatalogNames []string `json:"catalog_names"`
}

// releaseConfig is the content of release-config.yaml.
type releaseConfig struct {
	CatalogTemplates []releaseTemplate `json:"catalog_templates"`
}

type releaseTemplate struct {
	TemplateName string   `json:"template_name"`
	Channels     []string `json:"channels"`
	Replaces     string   `json:"replaces,omitempty"`
	SkipRange    string   `json:"skipRange,omitempty"`
}

// document is one of the documents in config/catalog/template.yaml.
type document struct {
	Schema         string  `json:"schema"`
	Package        string  `json:"package,omitempty"`
	Name           string  `json:"name,omitempty"`
	DefaultChannel string  `json:"defaultChannel,omitempty"`
	Description    string  `json:"description,omitempty"`
	Icon           *icon   `json:"icon,omitempty"`
	Entries        []entry `json:"entries,omitempty"`
	Image          string  `json:"image,omitempty"`
}

type icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type entry struct {
	Name      string `json:"name"`
	Replaces  string `json:"replaces,omitempty"`
	SkipRange string `json:"skipRange,omitempty"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "community: usage: make community VERSION=0.3.0 OUT=directory")
		os.Exit(2)
	}
	if err := write(".", os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "community:", err)
		os.Exit(1)
	}
}

// write writes the files for the release of a version in a repository.
func write(repository, version, out string) error {
	bundle := filepath.Join(repository, "config/catalog/released", version)
	if _, err := semver.Parse(version); err != nil {
		return fmt.Errorf("%q is not a version: %w", version, err)
	}
	if _, err := os.Stat(bundle); err != nil {
		return fmt.Errorf("%s is not released: %w", version, err)
	}
	template, release, err := templateFor(repository, version)
	if err != nil {
		return err
	}
	plain := ciConfig{UpdateGraph: "semver-mode", Reviewers: reviewers}
	withCatalog := plain
	withCatalog.FBC = &fbcConfig{Enabled: true, CatalogMapping: []catalogMapping{
		{TemplateName: templateName, Type: templateType, CatalogNames: openshift},
	}}
	kubernetes := filepath.Join(out, "community-operators/operators", packageName)
	prod := filepath.Join(out, "community-operators-prod/operators", packageName)
	return errors.Join(
		copyBundle(bundle, filepath.Join(kubernetes, version)),
		copyBundle(bundle, filepath.Join(prod, version)),
		writeYAML(filepath.Join(kubernetes, "ci.yaml"), plain),
		writeYAML(filepath.Join(prod, "ci.yaml"), withCatalog),
		writeYAML(filepath.Join(prod, version, "release-config.yaml"), release),
		writeYAML(filepath.Join(prod, "catalog-templates", templateName), template),
	)
}

// templateFor returns the template of the catalog without a version and without later ones, and how the pipeline adds
// the version.
func templateFor(repository, version string) (template map[string]any, release releaseConfig, err error) {
	documents, err := readTemplate(repository)
	if err != nil {
		return nil, release, err
	}
	added := releaseTemplate{TemplateName: templateName}
	var before, bundles []document
	for _, d := range documents {
		var earlier []entry
		for _, e := range d.Entries {
			switch compare(e.Name, version) {
			case -1:
				earlier = append(earlier, e)
				if d.Name == everyRelease {
					version := strings.TrimPrefix(e.Name, packageName+".v")
					bundles = append(bundles, document{Schema: "olm.bundle", Image: registry + ":" + version})
				}
			case 0:
				added.Channels = append(added.Channels, d.Name)
				added.Replaces, added.SkipRange = e.Replaces, e.SkipRange
			}
		}
		d.Entries = earlier
		if d.Schema != "olm.channel" || len(earlier) > 0 {
			before = append(before, d)
		}
	}
	if len(added.Channels) == 0 {
		return nil, release, fmt.Errorf("config/catalog/template.yaml has %s in no channel", version)
	}
	template = map[string]any{"schema": templateType, "entries": append(before, bundles...)}
	return template, releaseConfig{CatalogTemplates: []releaseTemplate{added}}, nil
}

// readTemplate reads config/catalog/template.yaml and the icon that it names.
func readTemplate(repository string) ([]document, error) {
	file, err := os.Open(filepath.Join(repository, "config/catalog/template.yaml"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	image, err := os.ReadFile(filepath.Join(repository, "config/manifests/icon.svg"))
	if err != nil {
		return nil, err
	}
	var documents []document
	for decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var d struct {
			document
			Icon map[string]string `json:"icon"`
		}
		if err := decoder.Decode(&d); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, fmt.Errorf("config/catalog/template.yaml: %w", err)
		}
		if d.Icon != nil {
			d.document.Icon = &icon{Data: image, MediaType: d.Icon["mediatype"]}
		}
		documents = append(documents, d.document)
	}
}

// compare compares the version in the name of a bundle with a version.
func compare(name, version string) int {
	return semver.MustParse(strings.TrimPrefix(name, packageName+".v")).Compare(semver.MustParse(version))
}

// copyBundle copies the directories of a bundle.
func copyBundle(from, to string) error {
	for _, directory := range []string{"manifests", "metadata", "tests"} {
		target := filepath.Join(to, directory)
		err := errors.Join(os.RemoveAll(target), os.CopyFS(target, os.DirFS(filepath.Join(from, directory))))
		if err != nil {
			return err
		}
	}
	return nil
}

func writeYAML(path string, content any) error {
	text, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644) //nolint:gosec // others may read it
}
