package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// Processes other than the one that is measured.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
	harness   = "benchmark" // creates and watches Foos, and simulates the Deployment controller
)

// benchNamespace has the service accounts of rights.yaml.
const benchNamespace = "bench"

// Flags of the control plane that differ from those of testenv: space for all objects, and fast deletion.
var (
	etcdFlags      = map[string]string{"quota-backend-bytes": "8589934592"}
	apiServerFlags = map[string]string{"delete-collection-workers": "16"}
)

// plane is a control plane without controllers, and a simulation of the Deployment controller.
type plane struct {
	*testenv.ControlPlane
	bench *bench
	pids  map[string]int
	// Separate connections, as a watch must not wait for writes.
	making, watching, simulating client.WithWatch
	token                        string // to read metrics with
}

// start starts a control plane with only the operator's kinds and the permissions of the programs.
func (b *bench) start(ctx context.Context) (_ *plane, err error) {
	cp, err := testenv.StartWith(testenv.Settings{
		AuditPolicy: measure.AuditPolicy(operator.user(), sampleController.user()),
		Etcd:        etcdFlags, APIServer: apiServerFlags,
	})
	if err != nil {
		return nil, err
	}
	p := &plane{ControlPlane: cp, bench: b, pids: map[string]int{harness: os.Getpid()}}
	defer func() {
		if err != nil {
			err = errors.Join(err, cp.Stop())
		}
	}()
	for _, name := range []string{apiServer, etcd} {
		if p.pids[name], err = measure.Child(name); err != nil {
			return nil, err
		}
	}
	for _, connection := range []*client.WithWatch{&p.making, &p.watching, &p.simulating} {
		config := rest.CopyConfig(cp.Config)
		config.Dial = (&net.Dialer{}).DialContext // else client-go shares connections
		if *connection, err = client.NewWithWatch(config, client.Options{Scheme: cp.Client.Scheme()}); err != nil {
			return nil, err
		}
	}
	if err := cp.Apply(); err != nil {
		return nil, err
	}
	rights := filepath.Join(testenv.Root(), "test", "bench", "foos", "rights.yaml")
	if out, err := cp.Kubectl("apply", "--server-side", "-f", rights); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	p.token, err = cp.Token(ctx, benchNamespace, "reader")
	return p, err
}

// namespace creates a namespace.
func (p *plane) namespace(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "foos-"}}
	err := p.making.Create(ctx, namespace)
	return namespace.Name, err
}

// clear deletes the Foos and Deployments of a namespace. No controller collects garbage.
func (p *plane) clear(ctx context.Context, namespace string) error {
	var deleteErr error
	for _, object := range []client.Object{&samplev1alpha1.Foo{}, &appsv1.Deployment{}} {
		err := wait.PollUntilContextTimeout(ctx, time.Second, 10*time.Minute, true,
			func(ctx context.Context) (bool, error) {
				deleteErr = p.making.DeleteAllOf(ctx, object, client.InNamespace(namespace))
				return deleteErr == nil, nil // a request to delete many objects may time out
			})
		if err != nil {
			return fmt.Errorf("deleting all objects of the namespace %s: %w", namespace, errors.Join(err, deleteErr))
		}
	}
	return nil
}

// settings returns what the numbers depend on, beside the programs.
func (p *plane) settings() ([]proof.Setting, error) {
	version, err := discovery.NewDiscoveryClientForConfigOrDie(p.Config).ServerVersion()
	if err != nil {
		return nil, err
	}
	return []proof.Setting{
		{Name: "machine", Value: fmt.Sprintf("%d CPUs, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)},
		{Name: "Go", Value: runtime.Version()},
		{Name: "Kubernetes", Value: version.GitVersion},
		{Name: "etcd", Value: fmt.Sprintf("--unsafe-no-fsync, %v", etcdFlags)},
		{Name: "kube-apiserver", Value: fmt.Sprintf("%v; the requests of the programs are audited at the level Metadata",
			apiServerFlags)},
		{Name: "programs", Value: "CGO_ENABLED=0 go build -trimpath -ldflags='-s -w'; each logs to a file"},
	}, nil
}

// simulate simulates the Deployment controller until stop is called: one write of its status makes a Deployment
// available.
func (p *plane) simulate(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	writing := semaphore.NewWeighted(16)
	var simulating sync.WaitGroup
	simulating.Go(func() {
		measure.Follow(ctx, p.simulating, &appsv1.DeploymentList{}, func(event watch.EventType, object client.Object) {
			d := object.(*appsv1.Deployment)
			if event == watch.Deleted || d.Status.ObservedGeneration >= d.Generation {
				return
			}
			simulating.Go(func() { // the watch must not wait
				if writing.Acquire(ctx, 1) == nil {
					defer writing.Release(1)
					p.finish(ctx, d)
				}
			})
		})
	})
	return func() {
		cancel()
		simulating.Wait()
	}
}

// finish writes the status of a Deployment whose pods are all available. It retries until that succeeds or the
// Deployment is deleted.
func (p *plane) finish(ctx context.Context, d *appsv1.Deployment) {
	before := d.DeepCopy()
	now, pods := metav1.Now(), *d.Spec.Replicas
	condition := func(of appsv1.DeploymentConditionType, reason string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: of, Status: corev1.ConditionTrue, Reason: reason, LastUpdateTime: now,
			LastTransitionTime: now}
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation,
		Replicas: pods, UpdatedReplicas: pods, ReadyReplicas: pods, AvailableReplicas: pods,
		Conditions: []appsv1.DeploymentCondition{condition(appsv1.DeploymentAvailable, "MinimumReplicasAvailable"),
			condition(appsv1.DeploymentProgressing, "NewReplicaSetAvailable")}}
	for ctx.Err() == nil {
		err := p.simulating.Status().Patch(ctx, d.DeepCopy(), client.MergeFrom(before))
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		_ = measure.Pause(ctx, 100*time.Millisecond)
	}
}
