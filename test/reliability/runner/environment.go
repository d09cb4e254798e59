// Package runner plays scenarios against the real operator, with what is to go wrong, and judges what has come of it.
//
// All plans share one control plane; each has a namespace, a proxy and an operator of its own. The operator is the program that
// users run, and has the rights that config/rbac gives it. The controllers of Deployments, ReplicaSets and Jobs and the garbage
// collector are the real ones of kube-controller-manager: a plan costs them a few dozen requests, less than starting an operator
// costs, and what they do while one is away (adopt, collect, count) is what a simulator would get wrong. Only the machines are
// played, by testenv.Kubelet.
package runner

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/testenv"
)

// Environment is what all plans share. It is safe for concurrent use.
type Environment struct {
	// ControlPlane is where plans are played.
	ControlPlane *testenv.ControlPlane
	// Recorder has all that has become of the objects.
	Recorder *history.Recorder

	program string // the operator's
	dir     string
	tls     *tls.Config
	plans   atomic.Int64
	cancel  context.CancelFunc
}

// Start starts the control plane. Program is the operator's; if it is empty, the operator is built.
func Start(ctx context.Context, program string) (_ *Environment, err error) {
	ctx, cancel := context.WithCancel(ctx)
	e := &Environment{program: program, cancel: cancel}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Stop())
		}
	}()
	if e.dir, err = os.MkdirTemp("", "reliability-"); err != nil {
		return nil, err
	}
	if e.program == "" {
		e.program = filepath.Join(e.dir, "manager")
		build := exec.CommandContext(ctx, "go", "build", "-race", "-o", e.program, "./cmd")
		build.Dir = testenv.Root()
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the operator: %w\n%s", err, out)
		}
	}
	if e.ControlPlane, err = testenv.Start(); err != nil {
		return nil, err
	}
	if err := e.ControlPlane.Install(); err != nil {
		return nil, err
	}
	// Without the administrator's certificate: who asks is who the token says.
	anonymous := rest.AnonymousClientConfig(e.ControlPlane.Config)
	if e.tls, err = rest.TLSConfigFor(anonymous); err != nil {
		return nil, err
	}
	e.tls.NextProtos = []string{"h2", "http/1.1"}
	if e.Recorder, err = history.Record(ctx, e.ControlPlane.Config); err != nil {
		return nil, err
	}
	go e.ControlPlane.Kubelet(ctx)
	return e, nil
}

// Stop stops the control plane.
func (e *Environment) Stop() error {
	e.cancel()
	var err error
	if e.ControlPlane != nil {
		err = e.ControlPlane.Stop()
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}

// newProxy starts a proxy between an operator and the API server.
func (e *Environment) newProxy(seed uint64, m *manager) (*proxy.Proxy, error) {
	return proxy.Start(proxy.Options{
		Server: e.ControlPlane.Config.Host, TLS: e.tls, Seed: seed, Version: e.Recorder.Latest,
		IsOwn: func(resource string) bool {
			return resource == history.Foos || resource == history.Memcacheds || resource == history.CronJobs
		},
		Kill: m.kill, Freeze: func() { m.signal(syscall.SIGSTOP) },
	})
}

// kubeconfig writes one that goes through a proxy, with a token of a service account of the operator's namespace, and returns its
// path.
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

// lastTick returns a time that is past, as late as can be with the one an hour after it beyond the end of any plan.
func lastTick() time.Time {
	return time.Now().UTC().Truncate(time.Minute).Add(-5 * time.Minute)
}
