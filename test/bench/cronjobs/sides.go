package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// side is one of the controllers that are compared.
type side struct {
	name string
	user string // the user name of its requests
	// lead is how long it must have been running before the first run. Until the operator has led for a minute it confirms
	// by requests what its caches show, which is not the cost of a run.
	lead    time.Duration
	version string // of its kind CronJob
	// start starts the controller, and returns the URL of its readiness probe.
	start func(context.Context, *testenv.ControlPlane) (p *measure.Process, ready string, err error)
}

// inTree is the controller of batch/v1.
func (b *bench) inTree() side {
	return side{
		name:    inTreeName,
		user:    "system:serviceaccount:kube-system:cronjob-controller",
		version: batchv1.SchemeGroupVersion.String(),
		start: func(_ context.Context, cp *testenv.ControlPlane) (*measure.Process, string, error) {
			program := cmp.Or(os.Getenv("KUBE_CONTROLLER_MANAGER"),
				filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager"))
			port := testenv.FreePort()
			p, err := measure.Start(b.work, nil, program, "--kubeconfig="+cp.AdminKubeconfig(),
				"--controllers=cronjob-controller", "--use-service-account-credentials", "--leader-elect=false",
				"--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+b.work)
			return p, "https://127.0.0.1:" + port + "/healthz", err
		},
	}
}

// operator is the controller of this tree.
func (b *bench) operator() side {
	return side{
		name:    ownName,
		user:    testenv.OperatorUser,
		lead:    65 * time.Second,
		version: tutorialv1.GroupVersion.String(),
		start: func(ctx context.Context, cp *testenv.ControlPlane) (*measure.Process, string, error) {
			kubeconfig, err := cp.Kubeconfig(ctx, testenv.OperatorNamespace, testenv.OperatorServiceAccount)
			if err != nil {
				return nil, "", err
			}
			probes := testenv.FreeAddresses(1)[0]
			p, err := measure.Start(b.work, nil, filepath.Join(b.work, "manager"), "--kubeconfig="+kubeconfig,
				"--controllers=cronjob", "--metrics-bind-address=0", "--health-probe-bind-address="+probes)
			return p, "http://" + probes + "/readyz", err
		},
	}
}

// cronJob returns a CronJob of the side, whose Jobs are complete as soon as the Job controller sees them.
func (s side) cronJob(name, schedule string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	return object, yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: %s
kind: CronJob
metadata: {namespace: %s, name: %s}
spec:
  schedule: %s
  timeZone: Etc/UTC
  successfulJobsHistoryLimit: 1
  jobTemplate:
    spec:
      completions: 0
      template: {spec: {restartPolicy: Never, containers: [{name: none, image: none}]}}
`, s.version, namespace, name, schedule), object)
}
