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

// cronJobController is the controller of batch/v1's CronJobs, as kube-controller-manager calls it.
const cronJobController = "cronjob-controller"

// side is one of the controllers that are compared.
type side struct {
	name string
	user string // that it makes its requests as
	// rate is a low guess of how many requests it makes in a second, for the time between the two times that are due.
	rate int
	// settling is how long it must have been running before the first time. Ours makes sure of what its caches show by
	// requests until it has led for a minute, which is not the cost of a run.
	settling time.Duration
	// cronJob returns a CronJob of its kind.
	cronJob func(metadata metav1.ObjectMeta, schedule string) client.Object
	// start starts it and returns when it is ready.
	start func(context.Context, *testenv.ControlPlane) (*measure.Process, error)
}

// inTree is the controller of batch/v1.
func (b *bench) inTree() side {
	return side{
		name: "in-tree default",
		user: "system:serviceaccount:kube-system:" + cronJobController,
		rate: 20, // --kube-api-qps
		cronJob: func(metadata metav1.ObjectMeta, schedule string) client.Object {
			return &batchv1.CronJob{ObjectMeta: metadata, Spec: batchv1.CronJobSpec{
				Schedule: schedule, TimeZone: ptr.To("Etc/UTC"), SuccessfulJobsHistoryLimit: ptr.To[int32](1),
				JobTemplate: jobTemplate(),
			}}
		},
		start: func(ctx context.Context, cp *testenv.ControlPlane) (*measure.Process, error) {
			program := cmp.Or(os.Getenv("KUBE_CONTROLLER_MANAGER"),
				filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager"))
			port := testenv.FreePort()
			return b.startProcess(ctx, "https://127.0.0.1:"+port+"/healthz", program,
				"--kubeconfig="+cp.AdminKubeconfig(), "--controllers="+cronJobController,
				"--use-service-account-credentials", "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+port,
				"--cert-dir="+b.work)
		},
	}
}

// ours is the operator of this tree.
func (b *bench) ours() side {
	return side{
		name:     "ours",
		user:     testenv.OperatorUser,
		rate:     100,
		settling: 65 * time.Second,
		cronJob: func(metadata metav1.ObjectMeta, schedule string) client.Object {
			return &tutorialv1.CronJob{ObjectMeta: metadata, Spec: tutorialv1.CronJobSpec{
				Schedule: schedule, TimeZone: ptr.To("Etc/UTC"), SuccessfulJobsHistoryLimit: ptr.To[int32](1),
				JobTemplate: jobTemplate(),
			}}
		},
		start: func(ctx context.Context, cp *testenv.ControlPlane) (*measure.Process, error) {
			kubeconfig, err := cp.Kubeconfig(ctx, testenv.OperatorNamespace, testenv.OperatorServiceAccount)
			if err != nil {
				return nil, err
			}
			probes := testenv.FreeAddresses(1)[0]
			return b.startProcess(ctx, "http://"+probes+"/readyz", filepath.Join(b.work, "manager"),
				"--kubeconfig="+kubeconfig, "--controllers=cronjob", "--metrics-bind-address=0",
				"--health-probe-bind-address="+probes)
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

// startProcess starts a program and waits until it is ready.
func (b *bench) startProcess(ctx context.Context, ready, program string, args ...string) (*measure.Process, error) {
	p, err := measure.Start(b.work, nil, program, args...)
	if err != nil {
		return nil, err
	}
	if err := p.WaitUntil(ctx, "it is ready", measure.Answers(ready)); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}
