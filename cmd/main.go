// Command manager is the operator: it reconciles Foo, Memcached and CronJob.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/controller/foo"
	"github.com/example/memcached-operator/internal/controller/memcached"
	"github.com/example/memcached-operator/internal/metrics"
	"github.com/example/memcached-operator/internal/metricsauth"
	"github.com/example/memcached-operator/internal/operand"
	"github.com/example/memcached-operator/internal/slim"
)

// Set by the linker; see VERSION in the Makefile.
var (
	version = "devel"
	commit  = "unknown"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	o, err := parse(os.Args[1:], os.Getenv, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "manager: %v\n", err)
		os.Exit(exitUsage)
	case o.version:
		fmt.Printf("memcached-operator %s, commit %s, %s %s/%s\n", version, commit, runtime.Version(), runtime.GOOS,
			runtime.GOARCH)
		return
	}
	// A signal during startup cancels requests in flight; that is not an error.
	if err := run(ctrl.SetupSignalHandler(), o, os.Stderr); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "manager: %v\n", err)
		os.Exit(exitFailed)
	}
}

// run runs the manager until ctx is canceled.
func run(ctx context.Context, o *options, logs io.Writer) error {
	logger := logr.FromSlogHandler(o.logHandler(logs))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger) // of client-go
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no configuration for the Kubernetes API server: %w; set --kubeconfig or KUBECONFIG", err)
	}
	restConfig.UserAgent = "memcached-operator/" + version
	platform, err := inspectServer(ctx, restConfig, o.controllers)
	if err != nil {
		return err
	}
	lease, err := newLease(restConfig, o)
	if err != nil {
		return fmt.Errorf("preparing the leader election: %w", err)
	}
	mgr, err := ctrl.NewManager(restConfig, managerOptions(o, lease))
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	holdOff := &operand.HoldOff{Delay: o.imageDelay, Clock: clock.RealClock{}}
	operands := operands{
		nginx:     operand.Image{Name: o.nginxImage, Tagged: o.imageTags[o.nginxImage], HoldOff: holdOff},
		memcached: operand.Image{Name: o.memcachedImage, Tagged: o.imageTags[o.memcachedImage], HoldOff: holdOff},
		agent:     operand.Image{Name: o.agentImage, Tagged: o.imageTags[o.agentImage], HoldOff: holdOff},
		platform:  platform,
		clock:     clock.RealClock{},
	}
	var counted []metrics.Kind
	for _, kind := range kinds {
		if !slices.Contains(o.controllers, kind.name) {
			continue
		}
		if err := kind.setup(mgr, controllerOptions(), operands); err != nil {
			return fmt.Errorf("creating the controller of %s: %w", kind.gvk.Kind, err)
		}
		counted = append(counted, metrics.Kind{Name: kind.gvk.Kind, List: kind.list, Conditions: kind.conditions})
	}
	err = errors.Join(
		ctrlmetrics.Registry.Register(metrics.NewCollector(mgr.GetCache(), mgr.Elected(), counted...)),
		mgr.Add(holdOff),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", cachesAreSynced(mgr.GetCache())))
	if err != nil {
		return err
	}
	mgr.GetLogger().Info("Starting", "version", version, "commit", commit, "controllers", o.controllers, "namespaces",
		o.watchNamespaces)
	return mgr.Start(ctx)
}

func managerOptions(o *options, lease resourcelock.Interface) ctrl.Options {
	scheme := clientgoscheme.Scheme
	for _, kind := range kinds {
		if err := kind.addToScheme(scheme); err != nil {
			panic(err) // a bug: a type is not registered
		}
	}
	return ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true, // a read must not start a watch
			DefaultNamespaces:           namespaces(o.watchNamespaces),
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject:                    caches(),
			SyncPeriod:                  &o.syncPeriod,
		},
		Client: client.Options{FieldOwner: string(child.FieldOwner)},
		Controller: config.Controller{
			MaxConcurrentReconciles: o.workers,
			EnableWarmup:            ptr.To(true), // a standby fills its caches, too
			ReconciliationTimeout:   30 * time.Second,
		},
		LeaderElection:                      o.leaderElect,
		LeaderElectionResourceLockInterface: lease,
		LeaseDuration:                       ptr.To(leaseDuration),
		RenewDeadline:                       ptr.To(renewDeadline),
		RetryPeriod:                         ptr.To(retryPeriod),
		LeaderElectionReleaseOnCancel:       true, // safe: the process exits when the manager stops
		Metrics:                             metricsOptions(o),
		HealthProbeBindAddress:              o.probeAddress,
		PprofBindAddress:                    o.pprofAddress,
	}
}

func metricsOptions(o *options) metricsserver.Options {
	server := metricsserver.Options{
		BindAddress:    o.metricsAddress,
		SecureServing:  true,
		FilterProvider: metricsauth.NewFilter,
		CertDir:        o.metricsCertDir,
	}
	if server.CertDir == "" {
		server.TLSOpts = []func(*tls.Config){selfSign}
	}
	return server
}

// controllerOptions returns the options of one controller. Failed passes are retried at least once a minute, so that a
// resource recovers soon after, for example, a quota is raised.
func controllerOptions() controller.Options {
	return controller.Options{RateLimiter: newBackOff(time.Minute, clock.RealClock{})}
}

func namespaces(names []string) map[string]cache.Config {
	configs := map[string]cache.Config{}
	for _, name := range names {
		configs[name] = cache.Config{}
	}
	return configs
}

// caches returns the cache options of the types that are not cached in full.
func caches() map[client.Object]cache.ByObject {
	groups := make([]string, len(kinds))
	for i, kind := range kinds {
		groups[i] = kind.gvk.Group
	}
	byObject := memcached.Caches()
	byObject[&samplev1alpha1.Foo{}] = cache.ByObject{Transform: foo.Slim}
	isCached := map[reflect.Type]bool{}
	for _, kind := range kinds {
		for _, object := range kind.children {
			objectType := reflect.TypeOf(object)
			if isCached[objectType] {
				continue
			}
			isCached[objectType] = true
			byObject[object] = cache.ByObject{Transform: slim.Child(object, groups...)}
			if _, isDeployment := object.(*appsv1.Deployment); isDeployment {
				byObject[object] = cache.ByObject{Transform: slim.Deployment(groups...)}
			}
		}
	}
	return byObject
}

// cachesAreSynced returns a readiness check that passes once the caches are synced, on leaders and standbys.
func cachesAreSynced(caches cache.Cache) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !caches.WaitForCacheSync(ctx) {
			return errors.New("the caches are not synced yet")
		}
		return nil
	}
}
