// Package security shows that all pods of the operator comply with the Pod Security Standard "restricted", by the code
// of Kubernetes' own admission controller.
package security

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const repo = "../../.."

// sources are files with pod templates: of the operator, of what it creates, and of examples.
var sources = []string{
	"internal/controller/foo/testdata/*.golden.yaml",
	"internal/controller/memcached/testdata/*.golden.yaml",
	"config/samples/*_cronjob.yaml",
	"bundle/manifests/*.clusterserviceversion.yaml",
}

// pods returns all pod templates, by where they are.
func pods(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	found := map[string]corev1.PodTemplateSpec{}
	read := func(source string, content []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		for i, document := range bytes.Split(content, []byte("\n---\n")) {
			var object map[string]any
			if err := yaml.Unmarshal(document, &object); err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			addPods(t, found, fmt.Sprintf("%s %d", source, i), object)
		}
	}
	kubectl := cmp.Or(os.Getenv("KUBECTL"), "kubectl")
	content, err := exec.Command(kubectl, "kustomize", filepath.Join(repo, "config/default")).Output()
	read("config/default", content, err)
	if len(found) == 0 {
		t.Fatal("config/default has no pod")
	}
	for _, pattern := range sources {
		before := len(found)
		files, _ := filepath.Glob(filepath.Join(repo, pattern)) // the patterns are valid
		for _, file := range files {
			content, err := os.ReadFile(file)
			read(file, content, err)
		}
		if len(found) == before {
			t.Fatalf("%s: there is no pod in %d files", pattern, len(files))
		}
	}
	return found
}

// addPods adds the pod templates in a value: objects that have a spec with containers.
func addPods(t *testing.T, found map[string]corev1.PodTemplateSpec, path string, value any) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		if spec, ok := value["spec"].(map[string]any); ok && spec["containers"] != nil {
			var template corev1.PodTemplateSpec
			content, err := yaml.Marshal(value)
			if err == nil {
				err = yaml.UnmarshalStrict(content, &template)
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			found[path] = template
		}
		for field, inner := range value {
			addPods(t, found, path+" "+field, inner)
		}
	case []any:
		for i, inner := range value {
			addPods(t, found, fmt.Sprintf("%s %d", path, i), inner)
		}
	}
}

// refusal returns why a namespace that enforces "restricted" refuses a pod; empty if it does not.
func refusal(t *testing.T, pod corev1.PodTemplateSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

func TestPodsAreRestricted(t *testing.T) {
	all := pods(t)
	for path, pod := range all {
		if refused := refusal(t, pod); refused != "" {
			t.Errorf("%s: %s", path, refused)
		}
	}
	t.Logf("%d pod templates are restricted", len(all))
}

func TestBrokenPodsAreRefused(t *testing.T) {
	for path, pod := range pods(t) {
		for name, damage := range map[string]func(*corev1.PodSpec){
			"host network": func(spec *corev1.PodSpec) { spec.HostNetwork = true },
			"root":         func(spec *corev1.PodSpec) { spec.SecurityContext.RunAsUser = ptr.To[int64](0) },
			"privileged":   func(spec *corev1.PodSpec) { spec.Containers[0].SecurityContext.Privileged = ptr.To(true) },
			"privilege escalation": func(spec *corev1.PodSpec) {
				spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
			},
			"capabilities": func(spec *corev1.PodSpec) { spec.Containers[0].SecurityContext.Capabilities = nil },
		} {
			broken := *pod.DeepCopy()
			damage(&broken.Spec)
			if refusal(t, broken) == "" {
				t.Errorf("%s with %s is accepted", path, name)
			}
		}
	}
}
