package bundle

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// The components for monitoring and the NetworkPolicy fit config/default.
func TestComponents(t *testing.T) {
	g := NewWithT(t)
	all := rendered(t, "test/bundle/testdata/everything")
	g.Expect(all).To(HaveLen(len(rendered(t, "config/default")) + 6))
	one := func(kind, suffix string) unstructured.Unstructured { return pick(t, all, kind, suffix) }
	deployment := as[appsv1.Deployment](t, one("Deployment", ""))
	service := as[corev1.Service](t, one("Service", "metrics-service"))
	monitor, policy := one("ServiceMonitor", ""), as[networkingv1.NetworkPolicy](t, one("NetworkPolicy", ""))
	for _, object := range all {
		g.Expect(object.GetNamespace()).To(BeElementOf("", deployment.Namespace), key(object))
	}

	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	g.Expect(selector).To(Equal(service.Labels), "the ServiceMonitor selects the Service")
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	g.Expect(endpoints).To(ConsistOf(HaveKeyWithValue("port", service.Spec.Ports[0].Name)))
	rules := string(readFile(t, filepath.Join(repo, "config/prometheus/rule.yaml")))
	count := strings.Count(rules, "{job=")
	g.Expect(count).To(BeNumerically(">=", 4))
	g.Expect(strings.Count(rules, `{job="`+service.Name+`"`)).To(Equal(count), "alerts about the job %s", service.Name)

	g.Expect(policy.Spec.PodSelector).To(Equal(*deployment.Spec.Selector))
	port := policy.Spec.Ingress[0].Ports[0].Port.StrVal
	g.Expect(service.Spec.Ports[0].TargetPort.StrVal).To(Equal(port), "the NetworkPolicy opens the port of the Service")
	g.Expect(deployment.Spec.Template.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", port)))
}

// pick returns the object of a kind whose name ends with a suffix.
func pick(t *testing.T, all []unstructured.Unstructured, kind, suffix string) unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(all, func(o unstructured.Unstructured) bool {
		return o.GetKind() == kind && strings.HasSuffix(o.GetName(), suffix)
	})
	NewWithT(t).Expect(i).NotTo(Equal(-1), kind)
	return all[i]
}

// On OpenShift, the service CA issues the certificate of the metrics, and Prometheus has a token in a Secret.
func TestOpenShiftComponent(t *testing.T) {
	g := NewWithT(t)
	all := rendered(t, "test/bundle/testdata/openshift")
	deployment := as[appsv1.Deployment](t, pick(t, all, "Deployment", ""))
	service := as[corev1.Service](t, pick(t, all, "Service", "metrics-service"))
	secret := as[corev1.Secret](t, pick(t, all, "Secret", ""))
	monitor := pick(t, all, "ServiceMonitor", "")
	pod := deployment.Spec.Template.Spec
	g.Expect(pod.Volumes).To(ConsistOf(HaveField("Secret.SecretName",
		service.Annotations["service.beta.openshift.io/serving-cert-secret-name"])))
	g.Expect(pod.Containers[0].Args).To(ContainElements("--leader-elect",
		"--metrics-cert-dir="+pod.Containers[0].VolumeMounts[0].MountPath))
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	endpoint := endpoints[0].(map[string]any)
	g.Expect(endpoint).NotTo(HaveKey("bearerTokenFile"))
	g.Expect(endpoint["authorization"]).To(Equal(map[string]any{"credentials": map[string]any{
		"name": secret.Name, "key": corev1.ServiceAccountTokenKey}}))
	g.Expect(endpoint["tlsConfig"]).To(And(Not(HaveKey("insecureSkipVerify")),
		HaveKeyWithValue("serverName", service.Name+"."+service.Namespace+".svc")))
	account := pick(t, all, "ServiceAccount", "metrics")
	g.Expect(secret.Annotations[corev1.ServiceAccountNameKey]).To(Equal(account.GetName()))
	policy := as[networkingv1.NetworkPolicy](t, pick(t, all, "NetworkPolicy", ""))
	g.Expect(policy.Spec.Ingress[0].From[0].NamespaceSelector.MatchExpressions).To(ConsistOf(
		HaveField("Key", corev1.LabelMetadataName)))
}

// "make deploy", "make build-installer" and "make bundle" choose images by it.
func TestRenderPutsImagesIn(t *testing.T) {
	g := NewWithT(t)
	look(t)
	t.Setenv("KUBECTL", kubectl())
	render := func(images ...string) (string, error) {
		out, err := exec.Command("../../config/render.sh",
			append([]string{"../../config/default"}, images...)...).CombinedOutput()
		return string(out), err
	}
	out, err := render("controller:latest=registry:5000/a/b@sha256:0", "RELATED_IMAGE_NGINX=here/nginx:1",
		"RELATED_IMAGE_MEMCACHED=")
	g.Expect(err).NotTo(HaveOccurred(), out)
	objects := must(decode([]byte(out)))(t)
	i := slices.IndexFunc(objects, func(o unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	container := as[appsv1.Deployment](t, objects[i]).Spec.Template.Spec.Containers[0]
	g.Expect(container.Image).To(Equal("registry:5000/a/b@sha256:0"))
	g.Expect(container.Env).To(ContainElements(
		corev1.EnvVar{Name: "RELATED_IMAGE_NGINX", Value: "here/nginx:1"},
		And(HaveField("Name", "RELATED_IMAGE_MEMCACHED"), HaveField("Value", HavePrefix("docker.io/library/memcached:")))))

	out, err = render("RELATED_IMAGE_NGNIX=here/nginx:1")
	g.Expect(err).To(HaveOccurred())
	g.Expect(out).To(ContainSubstring("does not contain RELATED_IMAGE_NGNIX, so the image here/nginx:1 cannot be set"))
}

// Every version follows the next older one of its channel, and can be skipped to from every older one; the fix of an
// old release too, which is never led back to.
func TestEnter(t *testing.T) {
	g := NewWithT(t)
	look(t)
	path := filepath.Join(t.TempDir(), "template.yaml")
	const channel = "schema: olm.channel\npackage: memcached-operator\nname: "
	const first = "# A package.\nschema: olm.package\nname: memcached-operator\n---\n" + channel +
		"candidate\nentries:\n---\n# A channel.\n" + channel + "stable\nentries:\n"
	g.Expect(os.WriteFile(path, []byte(first), 0o600)).To(Succeed())
	enter := func(version string, channels ...string) string {
		out, _ := exec.Command("../../config/catalog/enter.sh",
			append([]string{path, version}, channels...)...).CombinedOutput()
		return string(out)
	}
	g.Expect(enter("0.1.0", "candidate", "stable")).To(BeEmpty())
	g.Expect(enter("0.2.0", "candidate")).To(BeEmpty())
	g.Expect(enter("0.2.1", "candidate")).To(BeEmpty())
	g.Expect(enter("0.2.1", "stable")).To(BeEmpty())
	g.Expect(enter("0.10.0", "candidate")).To(BeEmpty()) // is no smaller than 0.2.0
	g.Expect(enter("0.1.1", "candidate", "stable")).To(BeEmpty())
	g.Expect(enter("0.1.0", "stable")).To(ContainSubstring("memcached-operator.v0.1.0 is in the channel stable already"))
	g.Expect(enter("0.2.0", "candidate")).To(ContainSubstring("v0.2.0 is in the channel candidate already"))
	g.Expect(enter("0.3.0", "candidate", "fast")).To(ContainSubstring("there is no channel fast"))
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
	g.Expect(string(readFile(t, path))).To(BeComparableTo(want))
	g.Expect(os.WriteFile(path, []byte(want+"# Not 0.2.0.\n"), 0o600)).To(Succeed())
	g.Expect(enter("0.4.0", "stable")).To(ContainSubstring("contain a line that would be lost: # Not 0.2.0."))
}

// The sed of macOS and the BSDs has another "sed -i", which would fail halfway.
func TestScriptsAskForGNUSed(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	write := func(path string, mode os.FileMode, content []byte) {
		path = filepath.Join(dir, path)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, content, mode)).To(Succeed())
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
		g.Expect(err).To(HaveOccurred(), script)
		g.Expect(string(out)).To(MatchRegexp("^.*GNU sed is required.*\n$"), script)
	}
	for _, kept := range []string{"bundle/kept", "out/catalog/kept"} {
		g.Expect(filepath.Join(dir, kept)).To(BeAnExistingFile())
	}
}

// A release pushes every image that it names.
func TestImagesArePushed(t *testing.T) {
	g := NewWithT(t)
	makefile := string(readFile(t, filepath.Join(repo, "Makefile")))
	images := sets.New[string]()
	for _, pattern := range []string{"bundle/*/*.yaml", "bundle/*/*/*.yaml", "config/catalog/*.yaml",
		"config/catalog/*/*.yaml", "config/catalog/released/*/*/*.yaml", "config/catalog/released/*/*/*/*.yaml"} {
		for _, path := range must(filepath.Glob(filepath.Join(repo, pattern)))(t) {
			for _, match := range regexp.MustCompile(`ghcr\.io/example/([a-z-]+)`).FindAllSubmatch(readFile(t, path), -1) {
				images.Insert(string(match[1]))
			}
		}
	}
	g.Expect(len(images)).To(BeNumerically(">=", 3), "%v", images)
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
		g.Expect(targets).NotTo(BeEmpty(), "targets that push %s", image)
		for _, instructions := range []string{"docs/releasing.md", "config/catalog/release.sh"} {
			g.Expect(string(readFile(t, filepath.Join(repo, instructions)))).
				To(MatchRegexp(`make [a-z -]*\b(`+strings.Join(targets, "|")+`)\b`), "%s pushes %s", instructions, image)
		}
	}
}

// The agent has a version of its own, so that a release of the operator alone restarts no node.
func TestAgentImageHasItsVersion(t *testing.T) {
	g := NewWithT(t)
	version := strings.TrimSpace(string(readFile(t, filepath.Join(repo, "cmd/agent/VERSION"))))
	for _, file := range []string{"config/manager/manager.yaml", "cmd/options.go"} {
		g.Expect(find(t, file, `memcached-operator-agent:v([0-9.]+)`)).To(HaveEach(version), file)
	}
}

// Secrets are mounted by name; the operator reads none.
func TestNoRoleContainsSecrets(t *testing.T) {
	g := NewWithT(t)
	csv := readBundle(t, "bundle").CSV
	for _, permissions := range slices.Concat(csv.Spec.InstallStrategy.StrategySpec.Permissions,
		csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions) {
		for _, rule := range permissions.Rules {
			g.Expect(rule.Resources).NotTo(ContainElements(Or(HavePrefix("secrets"), Equal("*"))), "%v", rule)
		}
	}
	for _, directory := range []string{"config/default", "config/scorecard"} {
		for _, object := range rendered(t, directory) {
			if strings.HasSuffix(object.GetKind(), "Role") {
				for _, rule := range as[rbacv1.ClusterRole](t, object).Rules {
					g.Expect(rule.Resources).NotTo(ContainElements(Or(HavePrefix("secrets"), Equal("*"))), object.GetName())
				}
			}
		}
	}
}

// The images of tools have the versions of the tools in go.mod.
func TestVersionsOfTools(t *testing.T) {
	g := NewWithT(t)
	opm := find(t, "test/cluster/olm/go.mod", `github.com/operator-framework/operator-registry (v\S+)`)[0]
	g.Expect(find(t, "config/catalog/Dockerfile", `opm:(v\S+)`)[0]).To(Equal(opm))
	sdk := find(t, "test/tools/operator-sdk/go.mod", `github.com/operator-framework/operator-sdk (v\S+)`)[0]
	for _, file := range []string{"basic", "olm"} {
		g.Expect(find(t, "config/scorecard/patches/"+file+".config.yaml", `scorecard-test:(v\S+)`)).To(HaveEach(sdk))
	}
}

// Each version of Kubernetes that a control plane can be built of is tested and documented, the oldest being that of
// the bundle.
func TestVersionsOfKubernetes(t *testing.T) {
	g := NewWithT(t)
	oldest := find(t, "test/cluster/controlplane/go.mod", `k8s.io/kubernetes v(1\.\d+)`)[0]
	newest := find(t, "test/cluster/kubernetes/go.mod", `k8s.io/kubernetes v(1\.\d+)`)[0]
	versions := []string{oldest}
	for _, path := range must(filepath.Glob(filepath.Join(repo, "test/cluster/controlplane/*.*.mod")))(t) {
		versions = append(versions, strings.TrimSuffix(filepath.Base(path), ".mod"))
	}
	g.Expect(readBundle(t, "bundle").CSV.Spec.MinKubeVersion).To(Equal(oldest + ".0"))
	g.Expect(find(t, ".ci/run", `KUBERNETES=(\S+)`)).To(ConsistOf(oldest))
	g.Expect(find(t, ".github/workflows/ci.yml", `KUBERNETES=([0-9.]+)`)).To(ConsistOf(versions))
	for _, version := range append(versions, newest) {
		g.Expect(find(t, "docs/compatibility.md", `\b(1\.3\d)\b`)).To(ContainElement(version))
		g.Expect(find(t, "test/tools/operator-sdk/validators_test.go", `"(1\.\d+)"`)).To(ContainElement(version))
	}
}
