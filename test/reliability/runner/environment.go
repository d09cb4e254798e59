// Package runner plays scenarios with faults against the real operator, and records what happens.
//
// All plans share one control plane; each has its own namespace, proxy and operator. The operator is the program that
// users run, with the permissions in config/rbac. The controllers of Deployments, ReplicaSets and Jobs and the garbage
// collector are those of kube-controller-manager. Only nodes are simulated, by testenv.Kubelet.
package runner

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/testenv"
)

// Environment is the control plane that all plans share. It is safe for concurrent use.
type Environment struct {
	ControlPlane *testenv.ControlPlane
	// Recorder records all versions of all objects.
	Recorder *history.Recorder

	// These are set if the control plane can be killed. The recorder then has its own API server, without a watch cache,
	// so that it misses no version.
	apiServer, etcd, recorderServer *part
	recorderConfig                  *rest.Config

	program string                 // the path of the operator
	raced   func() (string, error) // the path of the operator with the race detector; the first call builds it
	release func() (string, error) // the path of the last release's operator, without the race detector; likewise
	dir     string
	tls     *tls.Config
	plans   atomic.Int64
	active  chan struct{} // a semaphore for plans that are not idle
	cancel  context.CancelFunc
}

// Start starts the control plane; with hasOutages, its parts can be killed. Program is the path of the operator. If it
// is empty, the operator is built, and again with the race detector for the first plan that needs that. At most active
// plans are not idle at the same time; others wait.
func Start(ctx context.Context, program string, active int, hasOutages bool) (_ *Environment, err error) {
	ctx, cancel := context.WithCancel(ctx)
	e := &Environment{program: program, active: make(chan struct{}, active), cancel: cancel}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Stop())
		}
	}()
	if e.dir, err = os.MkdirTemp("", "reliability-"); err != nil {
		return nil, err
	}
	e.raced = func() (string, error) { return program, nil }
	if program == "" {
		if e.program, err = testenv.Build(ctx, filepath.Join(e.dir, "manager")); err != nil {
			return nil, err
		}
		e.raced = sync.OnceValues(func() (string, error) {
			return testenv.BuildRaced(ctx, filepath.Join(e.dir, "manager-race"))
		})
	}
	e.release = sync.OnceValues(func() (string, error) { return e.buildRelease(ctx) })
	// Without compaction, the recorder can resume every broken watch.
	settings := testenv.Settings{APIServer: map[string]string{"etcd-compaction-interval": "0s"}}
	if e.ControlPlane, err = testenv.StartWith(settings); err != nil {
		return nil, err
	}
	if err := e.ControlPlane.Install(); err != nil {
		return nil, err
	}
	// Without the administrator's certificate, the token authenticates the operator.
	anonymous := rest.AnonymousClientConfig(e.ControlPlane.Config)
	if e.tls, err = rest.TLSConfigFor(anonymous); err != nil {
		return nil, err
	}
	e.tls.NextProtos = []string{"h2", "http/1.1"}
	e.recorderConfig = e.ControlPlane.Config
	if hasOutages {
		if err := e.findParts(ctx); err != nil {
			return nil, err
		}
	}
	if e.Recorder, err = history.Record(ctx, e.recorderConfig); err != nil {
		return nil, err
	}
	go e.ControlPlane.Kubelet(ctx)
	return e, nil
}

// findParts finds the processes that can be killed, and starts the recorder's API server.
func (e *Environment) findParts(ctx context.Context) (err error) {
	if e.apiServer, err = runningPart("kube-apiserver"); err != nil {
		return err
	}
	if e.etcd, err = runningPart("etcd"); err != nil {
		return err
	}
	port := testenv.FreePort()
	e.recorderServer = e.apiServer.another(map[string]string{
		"--secure-port": port, "--watch-cache": "false", "--audit-log-path": "", "--audit-policy-file": "",
		"--audit-log-maxsize": "",
	})
	if err := e.recorderServer.start(); err != nil {
		return err
	}
	e.recorderConfig = rest.CopyConfig(e.ControlPlane.Config)
	e.recorderConfig.Host = "https://127.0.0.1:" + port
	return isReady(ctx, e.recorderConfig)
}

// Stop stops the control plane.
func (e *Environment) Stop() error {
	e.cancel()
	err := killStarted(e.recorderServer, e.apiServer, e.etcd)
	if e.ControlPlane != nil {
		err = errors.Join(err, e.ControlPlane.Stop())
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}

// Program returns the path of the operator.
func (e *Environment) Program() string {
	return e.program
}

// clear deletes all resources of the operator's kinds, and all their children, in a namespace.
func (e *Environment) clear(ctx context.Context, namespace string) error {
	all := make([]client.Object, 0, len(kinds.All))
	for _, k := range kinds.All {
		all = append(all, k.New())
	}
	for _, child := range kinds.ChildResources() {
		all = append(all, child.New())
	}
	for _, object := range all {
		if err := e.ControlPlane.Client.DeleteAllOf(ctx, object, client.InNamespace(namespace),
			client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfig writes a kubeconfig for a proxy and a service account in the operator's namespace, and returns its path.
func (e *Environment) kubeconfig(ctx context.Context, p *proxy.Proxy, serviceAccount string) (string, error) {
	token, err := e.ControlPlane.Token(ctx, testenv.OperatorNamespace, serviceAccount)
	if err != nil {
		return "", err
	}
	path := filepath.Join(e.dir, strings.TrimPrefix(p.URL, "https://")+".kubeconfig")
	return path, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"proxy": {Server: p.URL, CertificateAuthorityData: p.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"operator": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy", AuthInfo: "operator"}},
		CurrentContext: "proxy",
	}, path)
}

// lastTick returns a recent scheduled time. The next one, an hour later, is after the end of every plan.
func lastTick() time.Time {
	return time.Now().UTC().Truncate(time.Minute).Add(-5 * time.Minute)
}

// nextTick waits until a full minute is 15 to 40 s ahead, and returns it.
func (e *Environment) nextTick(ctx context.Context) time.Time {
	for {
		tick := time.Now().UTC().Add(15 * time.Second).Truncate(time.Minute).Add(time.Minute)
		early := time.Until(tick) - 40*time.Second
		if early <= 0 || ctx.Err() != nil {
			return tick
		}
		e.idle(ctx, early) // which may take longer, as others are active
	}
}
