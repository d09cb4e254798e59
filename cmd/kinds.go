package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/controller/cronjob"
	"github.com/example/memcached-operator/internal/controller/foo"
	"github.com/example/memcached-operator/internal/controller/memcached"
	"github.com/example/memcached-operator/internal/operand"
)

// kind is a kind that the manager can reconcile.
type kind struct {
	name        string // in --controllers
	gvk         schema.GroupVersionKind
	resource    string
	addToScheme func(*runtime.Scheme) error
	list        client.ObjectList // an empty one
	conditions  func(runtime.Object) []metav1.Condition
	children    []client.Object // empty objects of the types that the controller watches and caches
	setup       func(ctrl.Manager, controller.Options, operands) error
}

// operands is what the reconcilers need to know about the operands and the cluster.
type operands struct {
	nginx, memcached, agent operand.Image
	platform                operand.Platform
	clock                   clock.WithTicker
}

// kinds are all kinds that the manager can reconcile.
var kinds = []kind{
	{
		name:        "foo",
		gvk:         samplev1alpha1.GroupVersion.WithKind("Foo"),
		resource:    "foos",
		addToScheme: samplev1alpha1.AddToScheme,
		list:        &samplev1alpha1.FooList{},
		conditions:  func(o runtime.Object) []metav1.Condition { return o.(*samplev1alpha1.Foo).Status.Conditions },
		children:    foo.Children,
		setup: func(mgr ctrl.Manager, c controller.Options, operands operands) error {
			return (&foo.Reconciler{Image: operands.nginx, Platform: operands.platform, Clock: operands.clock}).
				SetupWithManager(mgr, c)
		},
	},
	{
		name:        "memcached",
		gvk:         cachev1alpha1.GroupVersion.WithKind("Memcached"),
		resource:    "memcacheds",
		addToScheme: cachev1alpha1.AddToScheme,
		list:        &cachev1alpha1.MemcachedList{},
		conditions:  func(o runtime.Object) []metav1.Condition { return o.(*cachev1alpha1.Memcached).Status.Conditions },
		children:    memcached.Children,
		setup: func(mgr ctrl.Manager, c controller.Options, operands operands) error {
			reconciler := &memcached.Reconciler{Image: operands.memcached, AgentImage: operands.agent,
				Platform: operands.platform, Clock: operands.clock}
			return reconciler.SetupWithManager(mgr, c)
		},
	},
	{
		name:        "cronjob",
		gvk:         tutorialv1.GroupVersion.WithKind("CronJob"),
		resource:    "cronjobs",
		addToScheme: tutorialv1.AddToScheme,
		list:        &tutorialv1.CronJobList{},
		conditions:  func(o runtime.Object) []metav1.Condition { return o.(*tutorialv1.CronJob).Status.Conditions },
		children:    cronjob.Children,
		setup: func(mgr ctrl.Manager, c controller.Options, operands operands) error {
			// Runs that are due must not wait long: neither after a failure, nor behind status updates (a FIFO queue has no
			// priorities).
			c.RateLimiter = newBackOff(10*time.Second, clock.RealClock{})
			c.UsePriorityQueue = ptr.To(false)
			return (&cronjob.Reconciler{Clock: operands.clock}).SetupWithManager(mgr, c)
		},
	},
}

func kindNames() []string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.name
	}
	return names
}

// inspectServer checks that the API server serves the kinds to reconcile, and returns the properties of the platform.
func inspectServer(ctx context.Context, config *rest.Config, controllers []string) (operand.Platform, error) {
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return operand.Platform{}, err
	}
	groups, err := server.ServerGroupsWithContext(ctx)
	if err != nil {
		return operand.Platform{}, fmt.Errorf("cannot reach the Kubernetes API server at %s: %w; "+
			"check that it is running, and that --kubeconfig or KUBECONFIG is correct", config.Host, err)
	}
	for _, kind := range kinds {
		if !slices.Contains(controllers, kind.name) {
			continue
		}
		resources, err := server.ServerResourcesForGroupVersionWithContext(ctx, kind.gvk.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			return operand.Platform{},
				fmt.Errorf("listing the resources of the API server at %s in %s: %w", config.Host, kind.gvk.GroupVersion(), err)
		}
		if err != nil ||
			!slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.resource }) {
			return operand.Platform{},
				fmt.Errorf("the API server at %s does not serve %s in %s: install the CustomResourceDefinition %s.%s "+
					"with 'make install' or 'kubectl apply -k config/crd', or exclude the kind with --controllers",
					config.Host, kind.gvk.Kind, kind.gvk.GroupVersion(), kind.resource, kind.gvk.Group)
		}
	}
	isOpenShift := slices.ContainsFunc(groups.Groups,
		func(group metav1.APIGroup) bool { return group.Name == "security.openshift.io" })
	return operand.Platform{AssignsUsers: isOpenShift}, nil
}
