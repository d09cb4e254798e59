package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// side is one of the controllers that are compared.
type side struct {
	index int
	name  string
	user  string // that it makes its requests as
	// lead is how long it must have been running before the first run. Until it has led for a minute, ours confirms by
	// requests what its caches show, which is not the cost of a run.
	lead    time.Duration
	cronJob func(metadata metav1.ObjectMeta, schedule string) client.Object
	// start starts it, and returns the URL that answers when it is ready.
	start func(context.Context, *testenv.ControlPlane) (p *measure.Process, ready string, err error)
}

// inTree is the controller of batch/v1.
func (b *bench) inTree() side {
	return side{
		name: sideNames[0],
		user: "system:serviceaccount:kube-system:cronjob-controller",
		cronJob: func(metadata metav1.ObjectMeta, schedule string) client.Object {
			return &batchv1.CronJob{ObjectMeta: metadata, Spec: batchv1.CronJobSpec{
				Schedule: schedule, TimeZone: ptr.To("Etc/UTC"), SuccessfulJobsHistoryLimit: ptr.To[int32](1),
				JobTemplate: jobTemplate(),
			}}
		},
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

// ours is the operator of this tree.
func (b *bench) ours() side {
	return side{
		index: 1,
		name:  sideNames[1],
		user:  testenv.OperatorUser,
		lead:  65 * time.Second,
		cronJob: func(metadata metav1.ObjectMeta, schedule string) client.Object {
			return &tutorialv1.CronJob{ObjectMeta: metadata, Spec: tutorialv1.CronJobSpec{
				Schedule: schedule, TimeZone: ptr.To("Etc/UTC"), SuccessfulJobsHistoryLimit: ptr.To[int32](1),
				JobTemplate: jobTemplate(),
			}}
		},
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

// jobTemplate is of Jobs that are complete as soon as the Job controller sees them.
func jobTemplate() batchv1.JobTemplateSpec {
	return batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
		Completions: ptr.To[int32](0),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "none", Image: "none"}},
		}},
	}}
}
