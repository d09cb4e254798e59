// Package testenv provides a real Kubernetes control plane for tests, and runs the operator as users do: as a separate
// process with the permissions in config/rbac and no others.
//
// It runs etcd, an API server and a controller manager, so Deployments create ReplicaSets and pods, quotas are counted,
// and the garbage collector deletes objects without an owner. [ControlPlane.Kubelet] simulates the nodes.
package testenv

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/example/memcached-operator/test/kinds"
)

// The namespace and the service account of the operator in config/default.
const (
	OperatorNamespace      = "memcached-operator-system"
	OperatorServiceAccount = "memcached-operator-controller-manager"
	OperatorUser           = "system:serviceaccount:" + OperatorNamespace + ":" + OperatorServiceAccount
)

// controllers are the controllers of the controller manager that need no nodes.
var controllers = []string{
	"deployment-controller", "replicaset-controller", "statefulset-controller", "job-controller",
	"disruption-controller", "garbage-collector-controller", "namespace-controller", "resourcequota-controller",
}

// auditPolicy logs every write of the operator's kinds and their children with the response, and the metadata of the
// operator's other requests.
func auditPolicy() string {
	children := kinds.ChildResources()
	resources := make([]string, 0, len(kinds.All)+len(children))
	for _, k := range kinds.All {
		resources = append(resources, fmt.Sprintf("{group: %s}", k.GroupVersion.Group))
	}
	for _, child := range children {
		resources = append(resources, fmt.Sprintf("{group: %q, resources: [%s, %[2]s/status]}", child.Group, child.Resource))
	}
	return `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources: [` + strings.Join(resources, ", ") + `]
- level: Metadata
  users: ["` + OperatorUser + `"]
- level: None
`
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Config is the configuration of an administrator.
	Config *rest.Config
	// Client reads and writes without a cache, as an administrator.
	Client client.WithWatch
	// Audit is the API server's audit log.
	Audit *Audit

	dir               string
	env               *envtest.Environment
	adminKubeconfig   string
	controllerManager *exec.Cmd
}

// Settings override the defaults of a control plane.
type Settings struct {
	// AuditPolicy is the audit policy of the API server; by default, it logs what tests of the operator need.
	AuditPolicy string
	// Etcd and APIServer are flags, without dashes.
	Etcd, APIServer map[string]string
}

// Start starts etcd and the API server. KUBEBUILDER_ASSETS names the directory of its programs.
func Start() (*ControlPlane, error) {
	return StartWith(Settings{})
}

// StartWith starts etcd and the API server with other settings.
func StartWith(settings Settings) (_ *ControlPlane, err error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set: run 'make test', or for go test alone 'export " +
			"KUBEBUILDER_ASSETS=$(make -s control-plane)'")
	}
	cp := &ControlPlane{env: &envtest.Environment{ControlPlaneStartTimeout: time.Minute}} // for a busy machine
	if cp.dir, err = os.MkdirTemp("", "controlplane-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cp.Stop())
		}
	}()

	policy := filepath.Join(cp.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(cmp.Or(settings.AuditPolicy, auditPolicy())), 0o600); err != nil {
		return nil, err
	}
	cp.Audit = &Audit{path: filepath.Join(cp.dir, "audit.log")}
	// If the machine fails, so does the test: nothing has to be durable on disk.
	cp.env.ControlPlane.Etcd = &envtest.Etcd{}
	cp.env.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	cp.env.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policy).
		Set("audit-log-path", cp.Audit.path).
		Set("audit-log-maxsize", "100000"). // MiB: one file, which is read as it grows
		// As on OpenShift: setting blockOwnerDeletion needs permission to update the owner's finalizers.
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	for flag, value := range settings.Etcd {
		cp.env.ControlPlane.Etcd.Configure().Set(flag, value)
	}
	for flag, value := range settings.APIServer {
		cp.env.ControlPlane.GetAPIServer().Configure().Set(flag, value)
	}
	if cp.Config, err = cp.env.Start(); err != nil {
		return nil, fmt.Errorf("starting etcd and the API server from %s: %w", assets, err)
	}
	cp.Config.QPS = -1
	admin, err := cp.env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := admin.KubeConfig()
	if err != nil {
		return nil, err
	}
	if cp.adminKubeconfig, err = cp.writeKubeconfig("admin", kubeconfig); err != nil {
		return nil, err
	}
	scheme := clientgoscheme.Scheme
	if err := kinds.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if cp.Client, err = client.NewWithWatch(cp.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	return cp, nil
}

// Stop stops all processes of the control plane.
func (cp *ControlPlane) Stop() error {
	cp.stopControllerManager()
	return errors.Join(cp.env.Stop(), os.RemoveAll(cp.dir))
}

// RestartControllerManager restarts the controller manager, which can take a minute to reconnect to an API server.
func (cp *ControlPlane) RestartControllerManager() error {
	cp.stopControllerManager()
	return cp.startControllerManager()
}

func (cp *ControlPlane) stopControllerManager() {
	if cp.controllerManager != nil {
		_ = cp.controllerManager.Process.Kill()
		_ = cp.controllerManager.Wait()
	}
}

// startControllerManager starts the controller manager. The CustomResourceDefinitions must exist: the garbage collector
// discovers kinds when it starts, and later only every 30 s.
func (cp *ControlPlane) startControllerManager() error {
	program := os.Getenv("KUBE_CONTROLLER_MANAGER")
	if program == "" {
		program = filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	}
	logs, err := os.Create(filepath.Join(cp.dir, "kube-controller-manager.log"))
	if err != nil {
		return err
	}
	cp.controllerManager = exec.Command(program,
		"--kubeconfig="+cp.adminKubeconfig,
		"--controllers="+strings.Join(controllers, ","),
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port="+FreePort(),
		"--kube-api-qps=1000", "--kube-api-burst=2000", // with the defaults of 20 and 30, tests would measure these limits
	)
	cp.controllerManager.Stdout, cp.controllerManager.Stderr = logs, logs
	if err := cp.controllerManager.Start(); err != nil {
		return fmt.Errorf("starting the controller manager: %w; KUBE_CONTROLLER_MANAGER or KUBEBUILDER_ASSETS has to "+
			"name one", err)
	}
	return nil
}

// Install applies config/default without the operator's Deployment, as there are no nodes. It waits until the API
// server serves the operator's kinds, and starts the controller manager.
func (cp *ControlPlane) Install() error {
	if err := cp.Apply(); err != nil {
		return err
	}
	return cp.startControllerManager()
}

// Apply does the same as Install, but does not start the controller manager.
func (cp *ControlPlane) Apply() error {
	for _, step := range [][]string{
		{"apply", "--server-side", "-k", filepath.Join(Root(), "config", "default")},
		{"-n", OperatorNamespace, "delete", "deployment", "--all"},
	} {
		if out, err := cp.Kubectl(step...); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}
	return until(context.Background(), "the API server serves the operator's kinds", func(context.Context) (bool, error) {
		_, err := cp.Kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
		return err == nil, nil // kubectl fails if a definition has no conditions yet
	})
}

// Kubectl runs kubectl as an administrator and returns what it prints.
func (cp *ControlPlane) Kubectl(args ...string) (string, error) {
	program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	out, err := exec.Command(program, append([]string{"--kubeconfig=" + cp.adminKubeconfig}, args...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}

// AdminKubeconfig returns the path of an administrator's kubeconfig.
func (cp *ControlPlane) AdminKubeconfig() string {
	return cp.adminKubeconfig
}

// ClientAs returns a client that acts as another user.
func (cp *ControlPlane) ClientAs(user string) (client.Client, error) {
	config := rest.CopyConfig(cp.Config)
	config.Impersonate.UserName = user
	return client.New(config, client.Options{})
}

// Kubeconfig writes a kubeconfig for a service account and returns its path.
func (cp *ControlPlane) Kubeconfig(ctx context.Context, namespace, serviceAccount string) (string, error) {
	token, err := cp.Token(ctx, namespace, serviceAccount)
	if err != nil {
		return "", err
	}
	return cp.writeKubeconfig(namespace+"-"+serviceAccount, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: test, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`, cp.Config.Host, base64.StdEncoding.EncodeToString(cp.Config.CAData), token))
}

// Token returns a token of a service account, valid for an hour.
func (cp *ControlPlane) Token(ctx context.Context, namespace, serviceAccount string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceAccount}}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)},
	}
	if err := cp.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token of %s/%s: %w", namespace, serviceAccount, err)
	}
	return request.Status.Token, nil
}

// writeKubeconfig writes a file of its own, since several programs may start at the same time.
func (cp *ControlPlane) writeKubeconfig(name string, content []byte) (string, error) {
	file, err := os.CreateTemp(cp.dir, name+"-*.kubeconfig")
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	return file.Name(), errors.Join(err, file.Close())
}

// Root returns the directory of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// FreeAddresses returns unused addresses of the loopback interface. All are reserved until the last is found: the
// next one can be a released port.
func FreeAddresses(n int) []string {
	addresses := make([]string, n)
	for i := range addresses {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(fmt.Errorf("no port is free: %w", err))
		}
		defer listener.Close()
		addresses[i] = listener.Addr().String()
	}
	return addresses
}

// FreePort returns an unused port of the loopback interface.
func FreePort() string {
	_, port, _ := net.SplitHostPort(FreeAddresses(1)[0])
	return port
}

// until polls until done returns true, or a minute is over.
func until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, done); err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}
