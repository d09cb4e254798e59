package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/jobstate"
	testkinds "github.com/example/memcached-operator/test/kinds"
)

var _ = Describe("A CronJob", Ordered, func() {
	// Their Jobs take minutes altogether, so all CronJobs start before the first spec.
	var reported, forbidding, replacing, failing, shared, limited *tutorialv1.CronJob
	var mostPods func() int
	var deletedJobs <-chan time.Duration

	BeforeAll(func(ctx SpecContext) {
		deploy(ctx)
		watching, stop := context.WithCancel(context.Background())
		DeferCleanup(stop)
		namespaces := newNamespaces(ctx, restrictedLevel, slices.Repeat([]string{"cronjob-"}, 6)...)
		limited = newCronJob(namespaces[0], "limited", "@every 20s", "echo hello")
		limited.Spec.SuccessfulJobsHistoryLimit = ptr.To(int32(1))
		deletedJobs = watchDeletedJobs(watching, limited.Namespace)
		forbidding = newCronJob(namespaces[1], "forbidding", "@every 5s", "sleep 12")
		forbidding.Spec.ConcurrencyPolicy = tutorialv1.ForbidConcurrent
		mostPods = watchPods(watching, forbidding.Namespace)
		replacing = newCronJob(namespaces[2], "replacing", "@every 20s", "sleep 3600")
		replacing.Spec.ConcurrencyPolicy = tutorialv1.ReplaceConcurrent
		failing = newCronJob(namespaces[3], "failing", "@every 10s", "echo the disk is full; exit 3")
		shared = newCronJob(namespaces[4], "shared", "@every 10s", "echo hello")
		reported = newCronJob(namespaces[5], "reported", "@every 10s", "echo the report is written; sleep 5")
		create(ctx, limited, forbidding, replacing, failing, shared, reported)
	}, NodeTimeout(2*stepTimeout))

	It("runs a Job to completion and reports the progress", func(ctx SpecContext) {
		cj := reported
		var job *batchv1.Job
		Eventually(func(g Gomega, ctx context.Context) {
			var err error
			job, err = lastJob(ctx, cj, jobstate.IsActive)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(conditionsOf(ctx, cj)).To(ContainElements("Available=True/Scheduled", "Progressing=True/JobsRunning",
				"Degraded=False/AsExpected"))
			g.Expect(cj.Status.Active).To(ContainElement(HaveField("UID", job.UID)))
			g.Expect(cj.Status.LastScheduleTime.UTC().Format(time.RFC3339)).To(Equal(jobstate.ScheduledAt(job)))
			g.Expect(cj.Status.NextScheduleTime.Sub(cj.Status.LastScheduleTime.Time)).To(Equal(10 * time.Second))
			g.Expect(cj.Status.LastScheduleTime.Sub(cj.CreationTimestamp.Time) % (10 * time.Second)).To(BeZero())
		}).WithContext(ctx).Should(Succeed())

		suspend(ctx, cj)
		Eventually(func(ctx context.Context) (bool, error) {
			err := kube.Get(ctx, client.ObjectKeyFromObject(job), job)
			return jobstate.IsComplete(job), err
		}).WithContext(ctx).Should(BeTrue(), "a running Job completes although its CronJob is suspended")
		Expect(logOfJob(ctx, job)).To(Equal("the report is written\n"))
		awaitConditions(ctx, cj, "Available=False/Suspended", "Progressing=False/Idle", "Degraded=False/AsExpected")
		Expect(cj.Status.Active).To(BeEmpty())
		Expect(cj.Status.ActiveJobs).To(BeZero())
		Expect(cj.Status.NextScheduleTime).To(BeNil())
		Expect(cj.Status.LastSuccessfulTime.Time).To(BeTemporally(">=", job.Status.CompletionTime.Time))
	}, SpecTimeout(stepTimeout))

	It("reports a failed Job and how to see why, until one succeeds", func(ctx SpecContext) {
		cj := failing
		awaitConditions(ctx, cj, "Degraded=True/LastRunFailed")
		message := meta.FindStatusCondition(cj.Status.Conditions, tutorialv1.ConditionDegraded).Message
		advice := regexp.MustCompile(`kubectl (-n \S+ logs \S+)`).FindStringSubmatch(message)
		Expect(advice).NotTo(BeNil(), message)
		Expect(kubectl(ctx, strings.Fields(advice[1])...)).To(ContainSubstring("the disk is full"))

		change(ctx, cj, func() { setScript(cj, "echo the disk has room") })
		awaitConditions(ctx, cj, "Degraded=False/AsExpected")
		job, err := lastJob(ctx, cj, jobstate.IsComplete)
		Expect(err).NotTo(HaveOccurred())
		Expect(logOfJob(ctx, job)).To(Equal("the disk has room\n"))
		suspend(ctx, cj)
	}, SpecTimeout(stepTimeout))

	// If this fails because the Job stays, Kubernetes issue 120181 is fixed, and the warning is obsolete.
	It("warns of a Kubernetes CronJob with the same name, which deletes its Jobs", func(ctx SpecContext) {
		cj := shared
		job := awaitJob(ctx, cj, jobstate.IsComplete)
		suspend(ctx, cj)
		awaitConditions(ctx, cj, "Available=False/Suspended", "Degraded=False/AsExpected")

		namesake := &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: cj.Namespace, Name: cj.Name},
			Spec: batchv1.CronJobSpec{
				Schedule: "0 0 1 1 *", Suspend: ptr.To(true), JobTemplate: cj.Spec.JobTemplate,
				SuccessfulJobsHistoryLimit: ptr.To(int32(0)), FailedJobsHistoryLimit: ptr.To(int32(0)),
			},
		}
		create(ctx, namesake)
		awaitConditions(ctx, cj, "Degraded=True/NameShared")
		Eventually(kube.Get).WithContext(ctx).WithArguments(client.ObjectKeyFromObject(job), job).WithTimeout(time.Minute).
			Should(MatchError(apierrors.IsNotFound, "IsNotFound"),
				"the CronJob controller of Kubernetes deletes a Job that it does not control")
		deleteAll(ctx, namesake)
		awaitConditions(ctx, cj, "Degraded=False/AsExpected")
	}, SpecTimeout(stepTimeout))

	It("replaces the running Job with concurrencyPolicy Replace", func(ctx SpecContext) {
		cj := replacing
		var first *batchv1.Job
		var firstPod corev1.Pod
		Eventually(func(ctx context.Context) (err error) {
			if first, err = lastJob(ctx, cj, jobstate.IsActive); err == nil {
				firstPod, err = runningPod(ctx, first)
			}
			return err
		}).WithContext(ctx).Should(Succeed())
		second := awaitJob(ctx, cj, func(job *batchv1.Job) bool { return jobstate.IsActive(job) && job.UID != first.UID })
		suspend(ctx, cj)
		awaitDeleted(ctx, first)
		awaitDeleted(ctx, &firstPod)
		Eventually(runningPod).WithContext(ctx).WithArguments(second).ShouldNot(BeZero())
		awaitConditions(ctx, cj, "Available=False/Suspended", "Progressing=True/JobsRunning")
		Expect(cj.Status.Active).To(ConsistOf(HaveField("UID", second.UID)))
	}, SpecTimeout(stepTimeout))

	It("never runs two Jobs at once with concurrencyPolicy Forbid", func(ctx SpecContext) {
		cj := forbidding
		awaitConditions(ctx, cj, "Progressing=True/WaitingForJob")
		Expect(cj.Status.ActiveJobs).To(BeEquivalentTo(1))
		Eventually(func(ctx context.Context) (int, error) {
			jobs, err := jobstate.Owned(ctx, kube, cj, jobstate.IsComplete)
			return len(jobs), err
		}).WithContext(ctx).Should(BeNumerically(">=", 3), "each starts when the previous one has finished")
		Expect(mostPods()).To(Equal(1), "pods at once")
		Expect(conditionsOf(ctx, cj)).To(ContainElement("Degraded=False/AsExpected"))
	}, SpecTimeout(stepTimeout))

	It("deletes Jobs beyond the history limit, but none younger than a minute", func(ctx SpecContext) {
		cj := limited
		for range 2 {
			var age time.Duration
			Eventually(ctx, deletedJobs).Should(Receive(&age))
			Expect(age).To(BeNumerically(">=", time.Minute), "the age of a deleted Job")
		}
		suspend(ctx, cj)
		var latest *batchv1.Job
		Eventually(func(g Gomega, ctx context.Context) {
			var err error
			latest, err = lastJob(ctx, cj, jobstate.IsComplete)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(childrenOf(ctx, cj)).To(HaveLen(1))
			var pods corev1.PodList
			g.Expect(kube.List(ctx, &pods, client.InNamespace(cj.Namespace))).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(1), "pods are deleted with their Jobs")
			g.Expect(metav1.IsControlledBy(&pods.Items[0], latest)).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
		Expect(conditionsOf(ctx, cj)).To(ContainElement("Degraded=False/AsExpected"))
		Expect(cj.Status.LastScheduleTime.UTC().Format(time.RFC3339)).To(Equal(jobstate.ScheduledAt(latest)),
			"the latest Job is kept")
		Consistently(ctx, deletedJobs).WithTimeout(5 * time.Second).ShouldNot(Receive(BeNumerically("<", time.Minute)))
	}, SpecTimeout(stepTimeout))
})

// jobImage returns an image with a shell.
func jobImage() string {
	return cmp.Or(os.Getenv("BUSYBOX_IMAGE"), "docker.io/library/busybox:1.37")
}

// newCronJob returns a CronJob whose Jobs run a script once.
func newCronJob(namespace, name, schedule, script string) *tutorialv1.CronJob {
	cj := testkinds.CronJob.Make(namespace, name, 1).(*tutorialv1.CronJob)
	cj.Spec.Schedule = schedule
	pod := &cj.Spec.JobTemplate.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = ptr.To(int64(1)) // a shell as process 1 ignores SIGTERM
	pod.AutomountServiceAccountToken = ptr.To(false)
	pod.Containers[0].Image = jobImage()
	pod.SecurityContext.RunAsUser = ptr.To(int64(65534)) // the user of the image may be root
	setScript(cj, script)
	return cj
}

func setScript(cj *tutorialv1.CronJob, script string) {
	cj.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", script}
}

func suspend(ctx context.Context, cj *tutorialv1.CronJob) {
	GinkgoHelper()
	change(ctx, cj, func() { cj.Spec.Suspend = ptr.To(true) })
}

// conditionsOf reads a CronJob and returns its conditions, such as "Available=True/Scheduled". It fails if they are not
// of the latest generation.
func conditionsOf(ctx context.Context, cj *tutorialv1.CronJob) ([]string, error) {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(cj), cj); err != nil {
		return nil, err
	}
	if cj.Status.ObservedGeneration != cj.Generation {
		return nil, fmt.Errorf("generation %d is not observed yet", cj.Generation)
	}
	var conditions []string
	for _, c := range cj.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return conditions, nil
}

// awaitConditions waits until a CronJob has all these conditions.
func awaitConditions(ctx context.Context, cj *tutorialv1.CronJob, conditions ...string) {
	GinkgoHelper()
	Eventually(conditionsOf).WithContext(ctx).WithArguments(cj).Should(ContainElements(conditions))
}

// lastJob returns the Job of a CronJob with the latest scheduled time among those that pass a filter.
func lastJob(ctx context.Context, cj *tutorialv1.CronJob, is func(*batchv1.Job) bool) (*batchv1.Job, error) {
	jobs, err := jobstate.Owned(ctx, kube, cj, is)
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("CronJob %s has no such Job yet", cj.Name)
	}
	if err != nil {
		return nil, err
	}
	return &jobs[len(jobs)-1], nil
}

// awaitJob waits until lastJob returns a Job.
func awaitJob(ctx context.Context, cj *tutorialv1.CronJob, is func(*batchv1.Job) bool) (job *batchv1.Job) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (err error) {
		job, err = lastJob(ctx, cj, is)
		return err
	}).WithContext(ctx).Should(Succeed())
	return job
}

// podOf returns the only pod of a Job.
func podOf(ctx context.Context, job *batchv1.Job) (corev1.Pod, error) {
	var pods corev1.PodList
	err := kube.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err == nil && len(pods.Items) != 1 {
		err = fmt.Errorf("Job %s has %d pods", job.Name, len(pods.Items))
	}
	if err != nil {
		return corev1.Pod{}, err
	}
	return pods.Items[0], nil
}

// runningPod returns the only pod of a Job, and fails unless it is running.
func runningPod(ctx context.Context, job *batchv1.Job) (corev1.Pod, error) {
	pod, err := podOf(ctx, job)
	if err == nil && pod.Status.Phase != corev1.PodRunning {
		return corev1.Pod{}, fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
	}
	return pod, err
}

func logOfJob(ctx context.Context, job *batchv1.Job) string {
	GinkgoHelper()
	pod, err := podOf(ctx, job)
	Expect(err).NotTo(HaveOccurred())
	return logOf(ctx, &pod)
}

// watchDeletedJobs returns a channel of the ages of the Jobs in a namespace when they are deleted, from now on.
func watchDeletedJobs(ctx context.Context, namespace string) <-chan time.Duration {
	GinkgoHelper()
	jobs, err := clients.BatchV1().Jobs(namespace).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	ages := make(chan time.Duration, 1000)
	go func() {
		for event := range jobs.ResultChan() {
			if job, ok := event.Object.(*batchv1.Job); ok && event.Type == watch.Deleted {
				ages <- time.Since(job.CreationTimestamp.Time)
			}
		}
	}()
	return ages
}

// watchPods returns a function that returns the maximum number of pods in a namespace that were active at the same
// time, from now on.
func watchPods(ctx context.Context, namespace string) (most func() int) {
	GinkgoHelper()
	pods, err := clients.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	var count atomic.Int64
	go func() {
		active := sets.New[types.UID]()
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if event.Type == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
				active.Delete(pod.UID)
			} else {
				active.Insert(pod.UID)
			}
			count.Store(max(count.Load(), int64(active.Len())))
		}
	}()
	return func() int { return int(count.Load()) }
}
