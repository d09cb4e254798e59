package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// Processes, and the controller of batch/v1's CronJobs as kube-controller-manager calls it.
const (
	controllerManager = "kube-controller-manager"
	apiServer         = "kube-apiserver"
	etcd              = "etcd"
	cronJobController = "cronjob-controller"
)

// side is one of the controllers that are compared.
type side struct {
	name      string
	namespace string // of its CronJobs
	user      string // that it makes its requests as
	// rate is a low guess of how many requests it makes in a second, for the time between the two times that are due.
	rate int
	// settling is how long it must have been running before the first time. Ours makes sure of what its caches show by
	// requests until it has led for a minute, which is not the cost of a run.
	settling time.Duration
	// cronJob returns a CronJob of its kind.
	cronJob func(name, schedule string) client.Object
	// start starts it and returns when it is ready.
	start func(ctx context.Context) (*measure.Process, error)
}

// inTree is the controller of batch/v1.
func (b *bench) inTree() side {
	return side{
		name:      "in-tree default",
		namespace: "bench-in-tree",
		user:      "system:serviceaccount:kube-system:" + cronJobController,
		rate:      20, // --kube-api-qps
		cronJob: func(name, schedule string) client.Object {
			return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.CronJobSpec{
				Schedule: schedule, TimeZone: ptr.To("Etc/UTC"), SuccessfulJobsHistoryLimit: ptr.To[int32](1),
				JobTemplate: jobTemplate(),
			}}
		},
		start: func(ctx context.Context) (*measure.Process, error) {
			port := testenv.FreePort()
			return b.startProcess(ctx, "https://127.0.0.1:"+port+"/healthz", filepath.Join(b.bin, controllerManager),
				"--kubeconfig="+filepath.Join(b.state, "pki", "controller-manager.kubeconfig"),
				"--controllers="+cronJobController, "--use-service-account-credentials", "--leader-elect=false",
				"--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+b.work)
		},
	}
}

// ours is the operator of this tree.
func (b *bench) ours() side {
	return side{
		name:      "ours",
		namespace: "bench-ours",
		user:      "system:serviceaccount:" + namespace + ":" + serviceAccount,
		rate:      100,
		settling:  65 * time.Second,
		cronJob: func(name, schedule string) client.Object {
			return &tutorialv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: tutorialv1.CronJobSpec{
				Schedule: schedule, TimeZone: ptr.To("Etc/UTC"), SuccessfulJobsHistoryLimit: ptr.To[int32](1),
				JobTemplate: jobTemplate(),
			}}
		},
		start: func(ctx context.Context) (*measure.Process, error) {
			kubeconfig, err := b.kubeconfig(ctx)
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

// serviceAccount is the manager's.
const serviceAccount = "bench-controller-manager"

// kubeconfig writes a kubeconfig with a token of the manager's service account, which is valid for longer than a
// measurement.
func (b *bench) kubeconfig(ctx context.Context) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceAccount}}
	request := &authenticationv1.TokenRequest{}
	request.Spec.ExpirationSeconds = ptr.To[int64](4 * 3600)
	if err := b.client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("asking for a token of %s: %w", serviceAccount, err)
	}
	path := filepath.Join(b.work, "kubeconfig")
	return path, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{namespace: {
			Server: b.config.Host, CertificateAuthority: b.config.CAFile, CertificateAuthorityData: b.config.CAData,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{namespace: {Token: request.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{namespace: {Cluster: namespace, AuthInfo: namespace}},
		CurrentContext: namespace,
	}, path)
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
