package bundle

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is left out of the bundle can be added over config/default, and fits what is there.
func TestComponents(t *testing.T) {
	all := rendered(t, "test/bundle/testdata/everything")
	plain := rendered(t, "config/default")
	one := func(kind, name string) unstructured.Unstructured {
		t.Helper()
		i := slices.IndexFunc(all, func(o unstructured.Unstructured) bool {
			return o.GetKind() == kind && strings.HasSuffix(o.GetName(), name)
		})
		if i < 0 {
			t.Fatalf("no %s is rendered", kind)
		}
		return all[i]
	}
	if len(all) != len(plain)+3 {
		t.Errorf("%d objects with the components, %d without", len(all), len(plain))
	}
	deployment := as[appsv1.Deployment](t, one("Deployment", ""))
	service := as[corev1.Service](t, one("Service", "metrics-service"))
	monitor, policy := one("ServiceMonitor", ""), as[networkingv1.NetworkPolicy](t, one("NetworkPolicy", ""))
	for _, object := range all {
		if namespace := object.GetNamespace(); namespace != "" && namespace != deployment.Namespace {
			t.Errorf("%s %s is in %s", object.GetKind(), object.GetName(), namespace)
		}
	}

	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	if diff := cmp.Diff(service.Labels, selector); diff != "" {
		t.Errorf("the labels of the Service and what the ServiceMonitor selects: %s", diff)
	}
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	if port := endpoints[0].(map[string]any)["port"]; len(endpoints) != 1 || port != service.Spec.Ports[0].Name {
		t.Errorf("the ServiceMonitor asks for the port %v, the Service has %s", port, service.Spec.Ports[0].Name)
	}
	rules := string(readFile(t, filepath.Join(repo, "config/prometheus/rule.yaml")))
	if strings.Count(rules, "{job=") < 4 ||
		strings.Count(rules, "{job=") != strings.Count(rules, `{job="`+service.Name+`"}`) {
		t.Errorf("not every alert is about the job %s", service.Name)
	}

	if diff := cmp.Diff(*deployment.Spec.Selector, policy.Spec.PodSelector); diff != "" {
		t.Errorf("the pods of the Deployment and of the NetworkPolicy: %s", diff)
	}
	port := policy.Spec.Ingress[0].Ports[0].Port.StrVal
	if service.Spec.Ports[0].TargetPort.StrVal != port ||
		!slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports,
			func(p corev1.ContainerPort) bool { return p.Name == port }) {
		t.Errorf("the NetworkPolicy opens the port %q", port)
	}
}

// "make deploy", "make build-installer" and "make bundle" choose images by it.
func TestRenderPutsImagesIn(t *testing.T) {
	look(t)
	render := func(args ...string) (string, error) {
		out, err := exec.Command("../../config/render.sh",
			append([]string{"../../config/default"}, args...)...).CombinedOutput()
		return string(out), err
	}
	t.Setenv("KUBECTL", kubectl())
	out, err := render("controller:latest=registry:5000/a/b@sha256:0", "RELATED_IMAGE_NGINX=here/nginx:1",
		"RELATED_IMAGE_MEMCACHED=")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, object := range must(decode([]byte(out)))(t) {
		if object.GetKind() != "Deployment" {
			continue
		}
		container := as[appsv1.Deployment](t, object).Spec.Template.Spec.Containers[0]
		got := map[string]string{"": container.Image}
		for _, variable := range container.Env {
			got[variable.Name] = variable.Value
		}
		if got[""] != "registry:5000/a/b@sha256:0" || got["RELATED_IMAGE_NGINX"] != "here/nginx:1" ||
			!strings.HasPrefix(got["RELATED_IMAGE_MEMCACHED"], "docker.io/library/memcached:") {
			t.Errorf("%v", got)
		}
	}
	if out, err := render("RELATED_IMAGE_NGNIX=here/nginx:1"); err == nil ||
		!strings.Contains(out, "no RELATED_IMAGE_NGNIX to put here/nginx:1 in") {
		t.Errorf("an image that goes nowhere: %v, %s", err, out)
	}
}

// Every version follows the next older one of its channel, and can be skipped to from every older one; the fix of an
// old release too, which is never led back to.
func TestEnter(t *testing.T) {
	look(t)
	path := filepath.Join(t.TempDir(), "template.yaml")
	const channel = "schema: olm.channel\npackage: memcached-operator\nname: "
	const first = "# A package.\nschema: olm.package\nname: memcached-operator\n---\n" + channel +
		"candidate\nentries:\n---\n# A channel.\n" + channel + "stable\nentries:\n"
	if err := os.WriteFile(path, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	enter := func(version string, channels ...string) string {
		out, _ := exec.Command("../../config/catalog/enter.sh",
			append([]string{path, version}, channels...)...).CombinedOutput()
		return string(out)
	}
	for _, step := range []struct {
		version  string
		channels []string
		words    string
	}{
		{"0.1.0", []string{"candidate", "stable"}, ""},
		{"0.2.0", []string{"candidate"}, ""},
		{"0.2.1", []string{"candidate"}, ""},
		{"0.2.1", []string{"stable"}, ""},     // it has proven itself
		{"0.10.0", []string{"candidate"}, ""}, // is no smaller than 0.2.0
		{"0.1.1", []string{"candidate", "stable"}, ""},
		{"0.1.0", []string{"stable"}, "memcached-operator.v0.1.0 is in the channel stable already"},
		{"0.2.0", []string{"candidate"}, "memcached-operator.v0.2.0 is in the channel candidate already"},
		{"0.3.0", []string{"candidate", "fast"}, "there is no channel fast"},
	} {
		if got := enter(step.version, step.channels...); !strings.Contains(got, step.words) ||
			(got == "") != (step.words == "") {
			t.Errorf("%s in %v: %q", step.version, step.channels, got)
		}
	}
	want := `# A package.
schema: olm.package
name: memcached-operator
---
` + channel + `candidate
entries:
- name: memcached-operator.v0.1.0
- name: memcached-operator.v0.1.1
  replaces: memcached-operator.v0.1.0
  skipRange: '>=0.1.0 <0.1.1'
- name: memcached-operator.v0.2.0
  replaces: memcached-operator.v0.1.1
  skipRange: '>=0.1.0 <0.2.0'
- name: memcached-operator.v0.2.1
  replaces: memcached-operator.v0.2.0
  skipRange: '>=0.1.0 <0.2.1'
- name: memcached-operator.v0.10.0
  replaces: memcached-operator.v0.2.1
  skipRange: '>=0.1.0 <0.10.0'
---
# A channel.
` + channel + `stable
entries:
- name: memcached-operator.v0.1.0
- name: memcached-operator.v0.1.1
  replaces: memcached-operator.v0.1.0
  skipRange: '>=0.1.0 <0.1.1'
- name: memcached-operator.v0.2.1
  replaces: memcached-operator.v0.1.1
  skipRange: '>=0.1.0 <0.2.1'
`
	if diff := cmp.Diff(want, string(readFile(t, path))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := os.WriteFile(path, []byte(want+"# Not 0.2.0.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := enter("0.4.0", "stable"); !strings.Contains(got, "is what cannot be kept: # Not 0.2.0.") {
		t.Errorf("a comment among the entries: %q", got)
	}
}

// The sed of macOS and the BSDs takes "sed -i" otherwise, and would fail halfway.
func TestScriptsAskForGNUSed(t *testing.T) {
	dir := t.TempDir()
	write := func(path string, mode os.FileMode, content []byte) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/sed", 0o755, []byte("#!/bin/sh\necho 'sed: illegal option' >&2\nexit 1\n"))
	write("bundle/kept", 0o644, nil)
	write("out/catalog/kept", 0o644, nil)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	for script, args := range map[string][]string{
		"config/manifests/bundle.sh": {"0.1.0", "a", "b"},
		"config/catalog/release.sh":  {"0.1.0", "candidate"},
		"config/catalog/render.sh":   {filepath.Join(dir, "out")},
	} {
		write(script, 0o755, readFile(t, filepath.Join(repo, script)))
		out, err := exec.Command(filepath.Join(dir, script), args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "this sed is not GNU's") || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: %v, %s", script, err, out)
		}
	}
	for _, kept := range []string{"bundle/kept", "out/catalog/kept"} {
		readFile(t, filepath.Join(dir, kept))
	}
}

// Every image that a release names is one that its instructions have pushed.
func TestImagesArePushed(t *testing.T) {
	makefile := string(readFile(t, filepath.Join(repo, "Makefile")))
	manual := string(readFile(t, filepath.Join(repo, "docs/releasing.md")))
	script := string(readFile(t, filepath.Join(repo, "config/catalog/release.sh")))
	images := map[string]bool{}
	for _, dir := range []string{"bundle", "config/catalog"} {
		if err := filepath.WalkDir(filepath.Join(repo, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			for _, match := range regexp.MustCompile(`ghcr\.io/example/([a-z-]+)`).
				FindAllStringSubmatch(string(readFile(t, path)), -1) {
				images[match[1]] = true
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(images) < 3 {
		t.Errorf("only %v are named", images)
	}
	for image := range images {
		variable := find(t, "Makefile", `(?m)^(\w+) \?= \$\(REGISTRY\)/`+image+`:`)[0]
		var targets []string
		for _, match := range regexp.MustCompile(`(?m)^([a-z-]+):.*\n((?:\t.*\n)+)`).FindAllStringSubmatch(makefile, -1) {
			for line := range strings.Lines(match[2]) {
				if strings.Contains(line, "push") && strings.Contains(line, "$("+variable+")") {
					targets = append(targets, match[1])
				}
			}
		}
		named := regexp.MustCompile(`make [a-z -]*\b(` + strings.Join(targets, "|") + `)\b`)
		if len(targets) == 0 || !named.MatchString(manual) || !named.MatchString(script) {
			t.Errorf("%s: of the targets %v that push it, docs/releasing.md and what release.sh says at the end must both "+
				"name one", image, targets)
		}
	}
}

// Images of tools are those of the tools that are pinned.
func TestVersionsOfTools(t *testing.T) {
	opm := find(t, "test/cluster/olm/go.mod", `github.com/operator-framework/operator-registry (v\S+)`)[0]
	if got := find(t, "config/catalog/Dockerfile", `opm:(v\S+)`)[0]; got != opm {
		t.Errorf("the catalog is served by opm %s and rendered by %s", got, opm)
	}
	sdk := find(t, "test/tools/operator-sdk/go.mod", `github.com/operator-framework/operator-sdk (v\S+)`)[0]
	for _, file := range []string{"basic", "olm"} {
		for _, got := range find(t, "config/scorecard/patches/"+file+".config.yaml", `scorecard-test:(v\S+)`) {
			if got != sdk {
				t.Errorf("%s: the scorecard's tests are %s and operator-sdk is %s", file, got, sdk)
			}
		}
	}
}
