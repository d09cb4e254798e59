// Package security shows that all pods of ours keep to the Pod Security Standard "restricted", in the judgement of the
// code by which Kubernetes itself refuses pods.
package security

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

const repo = "../../.."

// pod is a pod template of ours.
type pod struct {
	from string // the file or manifest that it is in, and the object
	meta metav1.ObjectMeta
	spec corev1.PodSpec
}

// sources are where pods of ours are described: what runs the operator, what it runs, and what is offered as an
// example.
var sources = []string{
	"internal/controller/foo/testdata/*.golden.yaml",
	"internal/controller/memcached/testdata/*.golden.yaml",
	"config/samples/*_cronjob.yaml",
	"bundle/manifests/*.clusterserviceversion.yaml",
}

// pods returns all pod templates of ours.
func pods(t *testing.T) []pod {
	t.Helper()
	var found []pod
	for _, pattern := range sources {
		files, err := filepath.Glob(filepath.Join(repo, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		before := len(found)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, podsIn(t, strings.TrimPrefix(file, repo+"/"), content)...)
		}
		if len(found) == before {
			t.Fatalf("%s: there is no pod in it", pattern)
		}
	}
	kubectl := cmp.Or(os.Getenv("KUBECTL"), "kubectl")
	rendered, err := exec.Command(kubectl, "kustomize", filepath.Join(repo, "config/default")).Output()
	if err != nil {
		t.Fatalf("%s kustomize: %v; KUBECTL names another kubectl", kubectl, err)
	}
	before := len(found)
	if found = append(found, podsIn(t, "config/default", rendered)...); len(found) == before {
		t.Fatal("config/default: there is no pod in it")
	}
	return found
}

// podsIn returns the pod templates in YAML documents, wherever they are: a template is what has a spec with containers.
func podsIn(t *testing.T, from string, content []byte) []pod {
	t.Helper()
	var found []pod
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		var look func(path string, value any)
		look = func(path string, value any) {
			switch value := value.(type) {
			case map[string]any:
				if spec, ok := value["spec"].(map[string]any); ok && spec["containers"] != nil {
					found = append(found, decode(t, from+path, value))
				}
				for name, inner := range value {
					look(path+" "+name, inner)
				}
			case []any:
				for _, inner := range value {
					look(path, inner)
				}
			}
		}
		look("", object)
	}
	return found
}

func decode(t *testing.T, from string, template map[string]any) pod {
	t.Helper()
	content, err := yaml.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	var typed corev1.PodTemplateSpec
	if err := yaml.UnmarshalStrict(content, &typed); err != nil {
		t.Fatalf("%s: %v", from, err)
	}
	return pod{from: from, meta: typed.ObjectMeta, spec: typed.Spec}
}

// judge returns why a namespace that enforces "restricted" would refuse a pod; nothing if it would not.
func judge(t *testing.T, p pod) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &p.meta, &p.spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

func TestPodsAreRestricted(t *testing.T) {
	all := pods(t)
	for _, p := range all {
		if refusal := judge(t, p); refusal != "" {
			t.Errorf("%s: %s", p.from, refusal)
		}
	}
	t.Logf("%d pod templates keep to restricted", len(all))
}

// A pod that breaks the standard is refused, or the test above would show nothing.
func TestBrokenPodsAreRefused(t *testing.T) {
	for _, p := range pods(t) {
		for name, breaks := range map[string]func(*corev1.PodSpec){
			"host network": func(spec *corev1.PodSpec) { spec.HostNetwork = true },
			"is root":      func(spec *corev1.PodSpec) { spec.SecurityContext.RunAsUser = ptr.To[int64](0) },
			"privileged": func(spec *corev1.PodSpec) {
				spec.Containers[0].SecurityContext.Privileged = ptr.To(true)
			},
			"privilege escalation": func(spec *corev1.PodSpec) {
				spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
			},
			"capabilities kept": func(spec *corev1.PodSpec) { spec.Containers[0].SecurityContext.Capabilities = nil },
		} {
			broken := pod{from: p.from, meta: p.meta, spec: *p.spec.DeepCopy()}
			breaks(&broken.spec)
			if judge(t, broken) == "" {
				t.Errorf("%s, %s: nobody minds", p.from, name)
			}
		}
	}
}
