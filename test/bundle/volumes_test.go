package bundle

import (
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

const sound = `
volumes:
- {name: tmp, emptyDir: {}}
containers:
- name: manager
  command: [/manager]
  args: [--leader-elect, --metrics-bind-address=:8443,
    "--token-file=/var/run/secrets/kubernetes.io/serviceaccount/token", --work=/tmp/work]
  env:
  - {name: A, value: b}
  - {name: WATCH_NAMESPACE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['olm.targetNamespaces']"}}}
  volumeMounts:
  - {name: tmp, mountPath: /tmp}
`

func TestDangling(t *testing.T) {
	for _, test := range []struct {
		name, before, after string // a piece of the pod, and what it becomes
		want                string
	}{
		{"nothing", "", "", ""},
		{"a mount of nothing", "- {name: tmp, emptyDir: {}}", "",
			"container manager mounts the volume tmp at /tmp, and there is no such volume"},
		{"a device of nothing", "  volumeMounts:", "  volumeDevices: [{name: disk, devicePath: /dev/disk}]\n  volumeMounts:",
			"mounts the volume disk at /dev/disk"},
		{"a volume that nobody mounts", "volumes:", "volumes:\n- {name: left-over, emptyDir: {}}",
			"no container mounts the volume left-over"},
		{"a Secret", "emptyDir: {}", "secret: {secretName: server-cert}", "the volume tmp needs the Secret server-cert"},
		{"an optional Secret", "emptyDir: {}", "secret: {secretName: server-cert, optional: true}", ""},
		{"a ConfigMap", "emptyDir: {}", "configMap: {name: settings}", "the volume tmp needs the ConfigMap settings"},
		{"the ConfigMap that is in every namespace", "emptyDir: {}", "configMap: {name: kube-root-ca.crt}", ""},
		{"a claim", "emptyDir: {}", "persistentVolumeClaim: {claimName: data}",
			"the volume tmp needs the PersistentVolumeClaim data"},
		{"a projected Secret", "emptyDir: {}", "projected: {sources: [{secret: {name: server-cert}}]}",
			"needs the Secret server-cert"},
		{"a projected ConfigMap", "emptyDir: {}",
			"projected: {sources: [{serviceAccountToken: {path: token}}, {configMap: {name: settings}}]}",
			"needs the ConfigMap settings"},
		{"a variable from a Secret", "{name: A, value: b}", "{name: A, valueFrom: {secretKeyRef: {name: password, key: a}}}",
			"the environment of container manager needs the Secret password"},
		{"a variable from a ConfigMap", "{name: A, value: b}",
			"{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}", "needs the ConfigMap settings"},
		{"a variable from an optional ConfigMap", "{name: A, value: b}",
			"{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a, optional: true}}}", ""},
		{"variables from a Secret", "  env:", "  envFrom: [{secretRef: {name: password}}]\n  env:",
			"needs the Secret password"},
		{"variables from a ConfigMap", "  env:", "  envFrom: [{configMapRef: {name: settings}}]\n  env:",
			"needs the ConfigMap settings"},
		{"a certificate without a mount", "--leader-elect", "--metrics-cert-path=/certs",
			"container manager has the argument --metrics-cert-path=/certs, which lies in no mount"},
		{"a relative one", "--leader-elect", "--metrics-cert-dir=certs/metrics",
			"--metrics-cert-dir=certs/metrics, which lies in no mount"},
		{"a file without a mount", "--leader-elect", "--config-file, /etc/operator.yaml",
			"--config-file=/etc/operator.yaml, which lies in no mount"},
		{"one that only begins like a mount", "/tmp/work", "/tmpwork", "--work=/tmpwork, which lies in no mount"},
		{"one that leaves its mount", "/tmp/work", "/tmp/../etc", "--work=/tmp/../etc, which lies in no mount"},
		{"one that is not set", "--leader-elect", "--metrics-cert-dir=", ""},
		{"the second of two", "--leader-elect", "--config-file=/tmp/a, --config-file=/etc/b",
			"--config-file=/etc/b, which lies in no mount"},
		{"an init container", "containers:", "initContainers:\n- {name: first, args: [--ca-file=/ca.crt]}\ncontainers:",
			"container first has the argument --ca-file=/ca.crt"},
	} {
		text := strings.Replace(sound, test.before, test.after, 1)
		if test.before != "" && text == sound {
			t.Errorf("%s: nothing is changed", test.name)
		}
		csv := csvOf(t, text)
		if wrong := wrongIn(Dangling(csv), "deployment controller-manager", test.want); wrong != "" {
			t.Errorf("%s: %s", test.name, wrong)
		}
	}
}

// csvOf returns a ClusterServiceVersion with a Deployment whose pods have a spec.
func csvOf(t *testing.T, podSpec string) *operatorsv1alpha1.ClusterServiceVersion {
	t.Helper()
	deployment := operatorsv1alpha1.StrategyDeploymentSpec{Name: "controller-manager"}
	if err := yaml.UnmarshalStrict([]byte(podSpec), &deployment.Spec.Template.Spec); err != nil {
		t.Fatalf("%s: %v", podSpec, err)
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{deployment}
	return csv
}

// OLM mounts the certificates of webhooks itself.
func TestDanglingWebhooks(t *testing.T) {
	csv := csvOf(t, "containers: [{name: manager, args: [--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs]}]")
	for _, test := range []struct{ webhooksOf, want string }{
		{"", "--webhook-cert-path"}, {"another", "--webhook-cert-path"}, {"controller-manager", ""},
	} {
		csv.Spec.WebhookDefinitions = nil
		if test.webhooksOf != "" {
			csv.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{DeploymentName: test.webhooksOf}}
		}
		if wrong := wrongIn(Dangling(csv), "deployment controller-manager", test.want); wrong != "" {
			t.Errorf("with webhooks of %q: %s", test.webhooksOf, wrong)
		}
	}
}
