package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// Processes other than the one that is measured.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
	harness   = "harness" // makes, watches, and plays the Deployment controller
)

// rightsNamespace is where the service accounts of the others are.
const rightsNamespace = "bench"

// auditPolicy has every request logged of those that are measured, and nothing else.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + testenv.OperatorUser + `", "` + userPrefix + stockProgram + `", "` + userPrefix + floorProgram + `"]
- level: None
`

const userPrefix = "system:serviceaccount:" + rightsNamespace + ":"

// Flags of the control plane that differ from those of testenv. Room for all objects, and quick to take them away again.
var (
	etcdFlags      = map[string]string{"quota-backend-bytes": "8589934592"}
	apiServerFlags = map[string]string{"delete-collection-workers": "16"}
)

// plane is a control plane without controllers, and what plays them.
type plane struct {
	*testenv.ControlPlane
	bench *bench
	pids  map[string]int
	// Connections of their own: a watch must not wait for writes.
	making, watching, playing client.WithWatch
	token                     string // to read metrics with
	namespaces                int    // made so far
}

// start starts a control plane, in which nothing is yet but our kinds and who may do what.
func (b *bench) start(ctx context.Context) (_ *plane, err error) {
	cp, err := testenv.StartWith(testenv.Settings{AuditPolicy: auditPolicy, Etcd: etcdFlags, APIServer: apiServerFlags})
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
	for _, connection := range []*client.WithWatch{&p.making, &p.watching, &p.playing} {
		config := rest.CopyConfig(cp.Config)
		config.Dial = (&net.Dialer{}).DialContext // client-go shares connections of equal configurations, and those with a Dial are not
		if *connection, err = client.NewWithWatch(config, client.Options{Scheme: cp.Client.Scheme()}); err != nil {
			return nil, err
		}
	}
	if err := cp.Apply(); err != nil {
		return nil, err
	}
	if err := p.grantRights(ctx); err != nil {
		return nil, err
	}
	p.token, err = cp.Token(ctx, rightsNamespace, "reader")
	return p, err
}

// grantRights lets the others do what they do, and no more, and the harness read metrics.
func (p *plane) grantRights(ctx context.Context) error {
	rights := []rbacv1.PolicyRule{
		{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos/status"}, Verbs: []string{"update", "patch"}},
		{APIGroups: []string{"samplecontroller.k8s.io"}, Resources: []string{"foos/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "create", "update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rightsNamespace}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Rules: rights},
		account("reader"), binding("reader", "memcached-operator-metrics-reader"),
		account(stockProgram), binding(stockProgram, "bench"),
		account(floorProgram), binding(floorProgram, "bench"),
	}
	for _, object := range objects {
		if err := p.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func account(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: rightsNamespace, Name: name}}
}

// binding gives a role to a service account.
func binding(account, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: rightsNamespace, Name: account}},
	}
}

// namespace makes a namespace that nothing has been in.
func (p *plane) namespace(ctx context.Context) (string, error) {
	p.namespaces++
	name := fmt.Sprintf("foos-%d", p.namespaces)
	return name, p.making.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// clear deletes what is in a namespace. There is nobody to collect it.
func (p *plane) clear(ctx context.Context, namespace string) error {
	for _, kind := range []struct {
		object client.Object
		list   client.ObjectList
	}{{&samplev1alpha1.Foo{}, &samplev1alpha1.FooList{}}, {&appsv1.Deployment{}, &appsv1.DeploymentList{}}} {
		for begun := time.Now(); ; {
			deleteErr := p.making.DeleteAllOf(ctx, kind.object, client.InNamespace(namespace)) // of many, the answer may take too long
			if err := p.making.List(ctx, kind.list, client.InNamespace(namespace), client.Limit(1)); err != nil {
				return err
			}
			if isEmpty(kind.list) {
				break
			}
			if time.Since(begun) > 10*time.Minute {
				return fmt.Errorf("the namespace %s does not become empty: %w", namespace, deleteErr)
			}
		}
	}
	return nil
}

func isEmpty(list client.ObjectList) bool {
	switch list := list.(type) {
	case *samplev1alpha1.FooList:
		return len(list.Items) == 0
	case *appsv1.DeploymentList:
		return len(list.Items) == 0
	}
	return false
}
