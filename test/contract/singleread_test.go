package contract

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/controller/foo"
	"github.com/example/memcached-operator/internal/operand"
)

// A cache can fill between two reads of one pass. A pass that reads a child twice decides from one state and writes
// over another.
var _ = Describe("With a cache that fills during a pass, a Foo", ownManager, SpecPriority(1), func() {
	var ns string
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx)
		startDefault(ctx)
		kinds[0].create(ctx, newFoo(ns, "example", "web", nil))
		stop()
		deployment := get(ctx, &appsv1.Deployment{ObjectMeta: newFoo(ns, "web", "", nil).ObjectMeta})
		edit(ctx, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) })
		Eventually(ctx, func() int32 { return get(ctx, deployment).Status.AvailableReplicas }).Should(Equal(int32(5)))
	})

	// run has a manager in this process reconcile Foos, with a cache in which every other read of a Deployment finds
	// nothing, until it has read it a few times.
	run := func(ctx context.Context) {
		GinkgoHelper()
		reads := &atomic.Int32{}
		mgr, err := ctrl.NewManager(cp.Config, ctrl.Options{
			Scheme:     k8s.Scheme(),
			Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}},
			Metrics:    server.Options{BindAddress: "0"},
			Controller: controllerConfig(),
			NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
				options.FieldOwner = string(child.FieldOwner)
				c, err := client.New(config, options)
				return &filling{Client: c, reads: reads}, err
			},
		})
		Expect(err).NotTo(HaveOccurred())
		holdOff := &operand.HoldOff{Delay: time.Hour, Clock: clock.RealClock{}}
		reconciler := &foo.Reconciler{Image: operand.Image{Name: "example.com/n:2", HoldOff: holdOff},
			Clock: clock.RealClock{}}
		Expect(reconciler.SetupWithManager(mgr, controller.Options{})).To(Succeed())
		running, end := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- mgr.Start(running) }()
		Eventually(ctx, reads.Load).Should(BeNumerically(">=", 4))
		time.Sleep(time.Second)
		end()
		Eventually(ctx, ended).Should(Receive(Succeed()))
	}

	It("without replicas is not scaled to 1, and keeps its image during the hold-off", func(ctx context.Context) {
		run(ctx)
		deployment := get(ctx, &appsv1.Deployment{ObjectMeta: newFoo(ns, "web", "", nil).ObjectMeta})
		Expect(deployment.Spec.Replicas).To(HaveValue(Equal(int32(5))))
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:latest"))
	})
})

// filling is a client whose cache does not have a Deployment at every other read of it.
type filling struct {
	client.Client
	reads *atomic.Int32
}

func (f *filling) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	if _, ok := object.(*appsv1.Deployment); ok && f.reads.Add(1)%2 == 1 {
		return apierrors.NewNotFound(appsv1.Resource("deployments"), key.Name)
	}
	return f.Client.Get(ctx, key, object, options...)
}

// controllerConfig lets the controller of a kind run in this process more than once.
func controllerConfig() config.Controller {
	return config.Controller{SkipNameValidation: ptr.To(true)}
}
