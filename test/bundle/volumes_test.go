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
		before, after string // a piece of the pod and its replacement
		want          string // in the only sentence found; none is found if it is empty
	}{
		{"{name: A, value: b}", "{name: A, value: c}", ""},
		{"- {name: tmp, emptyDir: {}}", "", "the volume tmp is mounted and does not exist"},
		{"  volumeMounts:", "  volumeDevices: [{name: disk, devicePath: /dev/disk}]\n  volumeMounts:",
			"the volume disk is mounted and does not exist"},
		{"volumes:", "volumes:\n- {name: left-over, emptyDir: {}}", "no container mounts the volume left-over"},

		{"emptyDir: {}", "secret: {secretName: cert}", "needs the Secret cert"},
		{"emptyDir: {}", "secret: {secretName: cert, optional: true}", ""},
		{"emptyDir: {}", "configMap: {name: settings}", "needs the ConfigMap settings"},
		{"emptyDir: {}", "configMap: {name: kube-root-ca.crt}", ""},
		{"emptyDir: {}", "persistentVolumeClaim: {claimName: data}", "needs the PersistentVolumeClaim data"},
		{"emptyDir: {}", "projected: {sources: [{serviceAccountToken: {path: token}}, {secret: {name: cert}}]}",
			"needs the Secret cert"},
		{"emptyDir: {}", "projected: {sources: [{configMap: {name: settings}}]}", "needs the ConfigMap settings"},
		{"value: b", "valueFrom: {secretKeyRef: {name: password, key: a}}", "needs the Secret password"},
		{"value: b", "valueFrom: {configMapKeyRef: {name: settings, key: a}}", "needs the ConfigMap settings"},
		{"value: b", "valueFrom: {configMapKeyRef: {name: settings, key: a, optional: true}}", ""},
		{"  env:", "  envFrom: [{secretRef: {name: password}}]\n  env:", "needs the Secret password"},
		{"  env:", "  envFrom: [{configMapRef: {name: settings}}]\n  env:", "needs the ConfigMap settings"},

		{"--leader-elect", "--metrics-cert-path=/certs", "container manager has the argument --metrics-cert-path=/certs,"},
		{"--leader-elect", "--metrics-cert-dir=certs/metrics", "--metrics-cert-dir=certs/metrics, which is in no mount"},
		{"--leader-elect", "--config-file, /etc/operator.yaml", "--config-file=/etc/operator.yaml, which is in no mount"},
		{"--leader-elect", "--metrics-cert-dir=", ""},
		{"--leader-elect", "--config-file=/tmp/a, --config-file=/etc/b", "--config-file=/etc/b, which is in no mount"},
		{"/tmp/work", "/tmpwork", "--work=/tmpwork, which is in no mount"},
		{"/tmp/work", "/tmp/../etc", "--work=/tmp/../etc, which is in no mount"},
		{"containers:", "initContainers:\n- {name: first, args: [--ca-file=/ca.crt]}\ncontainers:",
			"container first has the argument --ca-file=/ca.crt"},
	} {
		text := strings.Replace(sound, test.before, test.after, 1)
		deployment := operatorsv1alpha1.StrategyDeploymentSpec{Name: "controller-manager"}
		if err := yaml.UnmarshalStrict([]byte(text), &deployment.Spec.Template.Spec); err != nil || text == sound {
			t.Fatalf("%s: %v", text, err)
		}
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{deployment}
		found := Dangling(csv)
		if test.want == "" && len(found) > 0 || test.want != "" && (len(found) != 1 ||
			!strings.HasPrefix(found[0], "deployment controller-manager: ") || !strings.Contains(found[0], test.want)) {
			t.Errorf("%q to %q: found %q, want %q", test.before, test.after, found, test.want)
		}
	}
}
