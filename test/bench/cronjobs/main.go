// Command cronjobs compares the controller of our CronJobs with that of batch/v1: many CronJobs that are due in the
// same minute. It measures how late their Jobs start, and what a run costs in requests and CPU time.
//
// "make bench-cronjobs" runs it, on the cluster of "make cluster", which must run nothing else. Both controllers are
// processes on this machine, and only one of them runs at a time:
//
//   - in-tree: kube-controller-manager with only the CronJob controller, with its default limits;
//   - ours: the manager of this tree with the rights of config/rbac and --controllers=cronjob.
//
// The Jobs are the same and have no pods (completions: 0), so that no node is measured. The cluster's own controller
// manager completes them, for both sides with limits that do not slow it down.
//
// Every CronJob is due twice. The second time, an old Job has to be deleted, as in the long run: that run is compared.
// Times are those of a watch on this machine; the API server's creation timestamps, in whole seconds, are compared with
// them.
//
// The exit code is 1 if ours sends too many requests. No duration makes it fail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/testenv"
)

// maxCount is for how many CronJobs the two minutes that they are due in fit into the same hour of a clock.
const maxCount = 5000

// namespace is where test/bench/kustomization.yaml puts the operator.
const namespace = "bench"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-cronjobs:", err)
		os.Exit(1)
	}
}

// bench is what all measurements need.
type bench struct {
	count        int
	state, bin   string // directories of the cluster
	work         string // a directory that goes away in the end
	config       *rest.Config
	client       client.WithWatch
	audit        *testenv.Audit
	beganAt      time.Time
	clusterParts map[string]int // process IDs
}

func run(ctx context.Context) (err error) {
	b := &bench{beganAt: time.Now()}
	flag.IntVar(&b.count, "count", 1000, "how many CronJobs are due at the same time")
	pairs := flag.Int("pairs", 1, "how many times to measure both sides")
	flag.StringVar(&b.state, "cluster", "", "the `directory` that the cluster keeps its things in")
	flag.StringVar(&b.bin, "bin", "", "the `directory` with the cluster's programs")
	output := flag.String("json", "", "a `file` for all that was measured, as JSON")
	flag.Parse()
	if b.count < 1 || b.count > maxCount || *pairs < 1 {
		return fmt.Errorf("-count must be 1 to %d, and -pairs at least 1", maxCount)
	}
	if b.work, err = os.MkdirTemp("", "bench-cronjobs-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.work) }()
	if err := b.connect(); err != nil {
		return err
	}
	defer func() {
		// Also when it was interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		err = errors.Join(err, b.uninstall(ctx))
	}()
	if err := b.install(ctx); err != nil {
		return err
	}

	report := &report{Count: b.count, CPUs: runtime.NumCPU(), Begun: b.beganAt.UTC().Truncate(time.Second)}
	versions, err := discovery.NewDiscoveryClientForConfig(b.config)
	if err != nil {
		return err
	}
	version, err := versions.ServerVersion()
	if err != nil {
		return err
	}
	report.Kubernetes = version.GitVersion
	for pair := range *pairs {
		for _, s := range []side{b.inTree(), b.ours()} {
			b.say("%s, %d of %d", s.name, pair+1, *pairs)
			result, err := b.measure(ctx, s)
			if err != nil {
				return fmt.Errorf("measuring %s: %w", s.name, err)
			}
			report.Results = append(report.Results, result)
		}
	}
	if *output != "" {
		if err := proof.Keep(*output, report); err != nil {
			return err
		}
	}
	return report.print(os.Stdout)
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(b.beganAt).Seconds(), fmt.Sprintf(format, args...))
}

// connect finds the cluster and its processes.
func (b *bench) connect() (err error) {
	scheme := clientgoscheme.Scheme
	if err := errors.Join(tutorialv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return err
	}
	if b.config, err = config.GetConfig(); err != nil {
		return fmt.Errorf("%w; 'make bench-cronjobs' sets all that is needed", err)
	}
	b.config.QPS = -1
	if b.client, err = client.NewWithWatch(b.config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	b.clusterParts = map[string]int{}
	for _, part := range []string{controllerManager, apiServer, etcd} {
		content, err := os.ReadFile(filepath.Join(b.state, "run", part+".pid"))
		if err != nil {
			return fmt.Errorf("-cluster must name the directory of a cluster that is up: %w", err)
		}
		var pid int
		if _, err := fmt.Sscan(string(content), &pid); err != nil {
			return fmt.Errorf("the process of %s: %w", part, err)
		}
		b.clusterParts[part] = pid
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", b.clusterParts[controllerManager]))
	if err != nil {
		return err
	}
	if !strings.Contains(string(line), "-"+cronJobController) {
		return errors.New("the cluster's controller manager runs the controller of CronJobs too; 'make bench-cronjobs' " +
			"leaves it out")
	}
	b.audit, err = testenv.OpenAudit(filepath.Join(b.state, "logs", "audit.log"))
	return err
}

// install installs our kinds and the manager's rights, but no manager.
func (b *bench) install(ctx context.Context) error {
	// Kinds without the namespace were installed by something else.
	installed := b.client.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	kind := b.client.Get(ctx, client.ObjectKey{Name: "cronjobs.batch.tutorial.kubebuilder.io"},
		&apiextensionsv1.CustomResourceDefinition{})
	if apierrors.IsNotFound(installed) && kind == nil {
		b.clusterParts = nil // uninstall must not delete what it has not installed
		return errors.New("the cluster has the operator, or remains of it: uninstall it, as the README says, or 'make " +
			"cluster-down'")
	}
	if err := errors.Join(client.IgnoreNotFound(installed), client.IgnoreNotFound(kind)); err != nil {
		return err
	}
	if err := b.uninstall(ctx); err != nil { // what an interrupted run has left
		return err
	}
	return errors.Join(
		b.command(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o",
			filepath.Join(b.work, "manager"), "./cmd"),
		b.kubectl(ctx, "apply", "--server-side", "--kustomize=test/bench"),
		b.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "--filename=config/crd/bases"))
}

// uninstall deletes everything again.
func (b *bench) uninstall(ctx context.Context) error {
	if b.clusterParts == nil {
		return nil
	}
	for _, s := range []side{b.inTree(), b.ours()} {
		if err := b.deleteNamespace(ctx, s.namespace); err != nil {
			return err
		}
	}
	return b.kubectl(ctx, "delete", "--ignore-not-found", "--kustomize=test/bench")
}

// deleteNamespace deletes a namespace and waits for its end.
func (b *bench) deleteNamespace(ctx context.Context, name string) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreNotFound(b.client.Delete(ctx, object)); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, 5*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			return apierrors.IsNotFound(b.client.Get(ctx, client.ObjectKeyFromObject(object), object)), nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the deletion of the namespace %s: %w", name, err)
	}
	return nil
}

func (b *bench) kubectl(ctx context.Context, args ...string) error {
	program := os.Getenv("KUBECTL")
	if program == "" {
		program = "kubectl"
	}
	return b.command(ctx, program, args...)
}

// command runs a command in the repository.
func (b *bench) command(ctx context.Context, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = testenv.Root()
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
