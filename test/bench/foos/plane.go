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

// Names of the processes whose CPU time is measured in addition to that of controllerProcess.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
	harness   = "benchmark" // this process, which creates and watches Foos and simulates the Deployment controller
)

// benchNamespace is the namespace of the service accounts in rights.yaml.
const benchNamespace = "bench"

// Flags in addition to those that testenv sets.
var (
	etcdFlags      = map[string]string{"quota-backend-bytes": "8589934592"} // 8 GiB: all objects have to fit
	apiServerFlags = map[string]string{"delete-collection-workers": "16"}   // so that clear is fast
)

// plane is a control plane without a controller manager. Its simulate method replaces the Deployment controller.
type plane struct {
	*testenv.ControlPlane
	bench *bench
	pids  map[string]int
	// Each client has its own connection, so that the watch of Foos does not wait for the writes of the others. The first
	// creates, scales and deletes objects, the second watches Foos, and the third simulates the Deployment controller.
	making, watching, simulating client.WithWatch
	token                        string // of the service account that reads the operator's metrics
}

// start starts a control plane, and applies config/default without the operator's Deployment, and rights.yaml.
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
	for _, c := range []*client.WithWatch{&p.making, &p.watching, &p.simulating} {
		config := rest.CopyConfig(cp.Config)
		config.Dial = (&net.Dialer{}).DialContext // clients without their own dialer share a transport
		if *c, err = client.NewWithWatch(config, client.Options{Scheme: cp.Client.Scheme()}); err != nil {
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

// namespace creates a namespace with a generated name, which it returns.
func (p *plane) namespace(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "foos-"}}
	err := p.making.Create(ctx, namespace)
	return namespace.Name, err
}

// clear deletes the Foos and Deployments in a namespace: no garbage collector runs that would delete the Deployments.
func (p *plane) clear(ctx context.Context, namespace string) error {
	var deleteErr error
	for _, object := range []client.Object{&samplev1alpha1.Foo{}, &appsv1.Deployment{}} {
		err := wait.PollUntilContextTimeout(ctx, time.Second, 10*time.Minute, true,
			func(ctx context.Context) (bool, error) {
				deleteErr = p.making.DeleteAllOf(ctx, object, client.InNamespace(namespace))
				return deleteErr == nil, nil // retry: deleting many objects may time out
			})
		if err != nil {
			return fmt.Errorf("deleting the Foos and Deployments in namespace %s: %w", namespace, errors.Join(err, deleteErr))
		}
	}
	return nil
}

// settings returns what affects the results: the machine, versions, flags, and how the programs were built.
func (p *plane) settings() ([]proof.Setting, error) {
	version, err := discovery.NewDiscoveryClientForConfigOrDie(p.Config).ServerVersion()
	if err != nil {
		return nil, err
	}
	return []proof.Setting{
		{Name: "platform", Value: runtime.GOOS + "/" + runtime.GOARCH},
		{Name: "Go", Value: runtime.Version()},
		{Name: "Kubernetes", Value: version.GitVersion},
		{Name: "etcd", Value: fmt.Sprintf("--unsafe-no-fsync, %v", etcdFlags)}, // the first is set by testenv
		{Name: "kube-apiserver", Value: fmt.Sprintf("%v; the programs' requests are audited at the Metadata level",
			apiServerFlags)},
		{Name: "programs", Value: "CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w'; each logs to a file"},
	}, nil
}

// simulate simulates the Deployment controller until ctx is canceled or stop is called. Unlike the real controller, it
// makes a Deployment available with a single status write, without ReplicaSets and pods. stop cancels pending writes.
func (p *plane) simulate(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	slots := semaphore.NewWeighted(16)
	var running sync.WaitGroup
	running.Go(func() {
		measure.Follow(ctx, p.simulating, &appsv1.DeploymentList{}, func(event watch.EventType, object client.Object) {
			d := object.(*appsv1.Deployment)
			if event == watch.Deleted || d.Status.ObservedGeneration >= d.Generation {
				return
			}
			running.Go(func() { // a slow write must not delay later events
				if slots.Acquire(ctx, 1) == nil {
					defer slots.Release(1)
					p.makeAvailable(ctx, d)
				}
			})
		})
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// makeAvailable writes a status that reports all replicas of a Deployment as available. It retries until that succeeds,
// the Deployment is deleted, or ctx is canceled.
func (p *plane) makeAvailable(ctx context.Context, d *appsv1.Deployment) {
	before := d.DeepCopy()
	now, replicas := metav1.Now(), *d.Spec.Replicas
	condition := func(conditionType appsv1.DeploymentConditionType, reason string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: conditionType, Status: corev1.ConditionTrue, Reason: reason,
			LastUpdateTime: now, LastTransitionTime: now}
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation,
		Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
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
