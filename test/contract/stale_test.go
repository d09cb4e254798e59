package contract

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/controller/cronjob"
	"github.com/example/memcached-operator/internal/controller/foo"
	"github.com/example/memcached-operator/internal/operand"
	testkinds "github.com/example/memcached-operator/test/kinds"
)

// These specs run a controller in this process, and control what its cache shows.
var _ = Describe("With a stale cache,", ownManager, SpecPriority(1), func() {
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	type reconciler interface {
		SetupWithManager(mgr ctrl.Manager, options controller.Options) error
	}
	// runHere runs a controller for the namespace of the spec, and returns what stops it.
	runHere := func(options ctrl.Options, reconciler reconciler) (end func()) {
		GinkgoHelper()
		options.Scheme, options.Metrics = k8s.Scheme(), metricsserver.Options{BindAddress: "0"}
		options.Cache.DefaultNamespaces = map[string]cache.Config{ns: {}}
		options.Controller = config.Controller{SkipNameValidation: ptr.To(true)} // a controller may run more than once
		mgr, err := ctrl.NewManager(cp.Config, options)
		Expect(err).NotTo(HaveOccurred())
		Expect(reconciler.SetupWithManager(mgr, controller.Options{})).To(Succeed())
		running, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(running) }()
		end = sync.OnceFunc(func() {
			cancel()
			Expect(<-ended).To(Succeed())
		})
		DeferCleanup(end)
		return end
	}
	// reading returns options with a client that reads by get first, and from the cache if that returns false.
	reading := func(get func(key client.ObjectKey, into client.Object) (bool, error)) ctrl.Options {
		return ctrl.Options{NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			options.FieldOwner = string(child.FieldOwner)
			c, err := client.NewWithWatch(config, options)
			return interceptor.NewClient(c, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
					options ...client.GetOption) error {
					if done, err := get(key, into); done {
						return err
					}
					return c.Get(ctx, key, into, options...)
				},
				List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
					if _, ok := into.(*batchv1.JobList); ok {
						return nil
					}
					return c.List(ctx, into, options...)
				},
			}), err
		}}
	}

	// A pass that reads a child twice could decide from one state and write over another.
	It("a Foo without replicas is not scaled to 1 and keeps its image during the hold-off", func(ctx context.Context) {
		startDefault(ctx)
		kinds[0].create(ctx, newFoo(ns, "example", "web", nil))
		stop()
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
		edit(ctx, deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) })
		Eventually(ctx, func() int32 { return get(ctx, deployment).Status.AvailableReplicas }).Should(Equal(int32(5)))

		var reads atomic.Int32
		holdOff := &operand.HoldOff{Delay: time.Hour, Clock: clock.RealClock{}}
		end := runHere(reading(func(key client.ObjectKey, into client.Object) (bool, error) {
			_, isDeployment := into.(*appsv1.Deployment) // every other read finds none
			return isDeployment && reads.Add(1)%2 == 1, apierrors.NewNotFound(appsv1.Resource("deployments"), key.Name)
		}), &foo.Reconciler{Image: operand.Image{Name: "example.com/n:2", HoldOff: holdOff}, Clock: clock.RealClock{}})
		Eventually(ctx, reads.Load).Should(BeNumerically(">=", 4))
		time.Sleep(time.Second)
		end()
		Expect(get(ctx, deployment).Spec.Replicas).To(HaveValue(Equal(int32(5))))
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:latest"))
	})

	Describe("a CronJob", func() {
		k := kinds[2]
		// passTwice runs the controller with a cache that has a CronJob as it was, and no Job, until it has passed twice.
		passTwice := func(cj *tutorialv1.CronJob) {
			GinkgoHelper()
			cj = cj.DeepCopy()
			var passes atomic.Int32
			runHere(reading(func(key client.ObjectKey, into client.Object) (bool, error) {
				switch into := into.(type) {
				case *tutorialv1.CronJob:
					passes.Add(1)
					cj.DeepCopyInto(into)
					return true, nil
				case *batchv1.Job:
					return true, apierrors.NewNotFound(batchv1.Resource("jobs"), key.Name)
				}
				return false, nil
			}), &cronjob.Reconciler{Clock: clock.RealClock{}})
			Eventually(passes.Load).Should(BeNumerically(">=", 3)) // two passes have ended
		}
		var (
			cj  *tutorialv1.CronJob
			job *batchv1.Job
		)
		// before creates a CronJob that is due while no manager runs.
		before := func(ctx context.Context, change ...func(*tutorialv1.CronJobStatus)) {
			GinkgoHelper()
			stop()
			cj = hourly(ns)
			cj.Spec.ConcurrencyPolicy = tutorialv1.ForbidConcurrent
			Expect(k8s.Create(ctx, cj)).To(Succeed())
			job = jobAt(cj, lastHour)
			backdate(ctx, cj, hoursBefore(2), change...)
		}

		It("does not run a time again whose Job was deleted", func(ctx context.Context) {
			before(ctx)
			old := cj.DeepCopy()
			edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Annotations = map[string]string{"of": "another time"} })
			backdate(ctx, cj, hoursBefore(2), func(status *tutorialv1.CronJobStatus) {
				status.LastScheduleTime = ptr.To(metav1.NewTime(lastHour))
			})
			passTwice(old)
			Expect(jobNames(ctx, ns)).To(BeEmpty())
			Expect(get(ctx, cj).Status.LastScheduleTime.UTC()).To(Equal(lastHour))
		})

		It("records a Job that exists already and that it controls as that of the run", func(ctx context.Context) {
			before(ctx)
			existing := testkinds.NewJob(ns, job.Name)
			existing.OwnerReferences = controlledByCronJob(cj)
			Expect(k8s.Create(ctx, existing)).To(Succeed())
			passTwice(cj)
			Expect(get(ctx, job).UID).To(Equal(existing.UID))
			Expect(k.conditionsOf(cj)(ctx)).To(BeEmpty(), "a status of what was not observed")
		})

		It("waits for an earlier Job that is still active (Forbid; #58748, #107827)", func(ctx context.Context) {
			before(ctx)
			early := testkinds.NewJob(ns, jobName("one", hoursBefore(1)))
			early.OwnerReferences = controlledByCronJob(cj)
			Expect(k8s.Create(ctx, early)).To(Succeed())
			backdate(ctx, cj, hoursBefore(2), func(status *tutorialv1.CronJobStatus) {
				status.Active = []corev1.ObjectReference{{Name: early.Name, Namespace: ns, UID: early.UID}}
				status.ActiveJobs = 1
			})
			passTwice(cj)
			Expect(jobNames(ctx, ns)).To(Equal([]string{early.Name}))
		})

		It("notices that the Job of a run was deleted before a watch showed it", func(ctx context.Context) {
			before(ctx)
			none := labels.SelectorFromSet(labels.Set{"example.com/shown": "never"}) // Nothing() is sent as everything
			runHere(ctrl.Options{Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
				&batchv1.Job{}: {Label: none}}}}, &cronjob.Reconciler{Clock: clock.RealClock{}})
			Eventually(ctx, active(ctx, cj)).Should(Equal([]string{job.Name}))
			Expect(k8s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			// sooner than an answer to a write is forgotten, which is after 30 s
			Eventually(ctx, active(ctx, cj)).WithTimeout(15 * time.Second).Should(BeEmpty())
			Expect(k.conditionsOf(cj)(ctx)).To(HaveKeyWithValue("Progressing", "False/Idle"))
		})

		It("runs at once what came due while the machine was suspended", func(ctx context.Context) {
			stop()
			cj = hourly(ns)
			Expect(k8s.Create(ctx, cj)).To(Succeed())
			suspended := clocktesting.NewFakeClock(time.Now())
			runHere(ctrl.Options{}, &cronjob.Reconciler{Clock: suspended})
			Eventually(ctx, func() *metav1.Time { return get(ctx, cj).Status.NextScheduleTime }).ShouldNot(BeNil())
			next := cj.Status.NextScheduleTime.UTC()
			Expect(next).To(BeTemporally(">", time.Now().Add(time.Minute)), "a timer could trigger the pass")
			// Two more events of the CronJob have been handled by now: of its creation, and of its status.
			Consistently(ctx, jobNames).WithArguments(ns).WithTimeout(2 * time.Second).Should(BeEmpty())
			suspended.SetTime(next.Add(30 * time.Second))
			Eventually(ctx, jobNames).WithArguments(ns).Should(Equal([]string{jobName("one", next)}))
		})
	})
})
