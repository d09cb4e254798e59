package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/jobstate"
	testkinds "github.com/example/memcached-operator/test/kinds"
)

var _ = Describe("A CronJob", Ordered, func() {
	var namespace string
	var history *tutorialv1.CronJob // which takes minutes to grow, beside the other specs
	var gone <-chan time.Duration

	BeforeAll(func(ctx SpecContext) {
		deploy(ctx)
		watching, stop := context.WithCancel(context.Background())
		DeferCleanup(stop)
		history = newCronJob(newNamespace(ctx, "cronjob-"), "report", "@every 20s", "echo hello")
		history.Spec.SuccessfulJobsHistoryLimit = ptr.To(int32(1))
		gone = watchJobs(watching, history.Namespace)
		create(ctx, history)
	}, NodeTimeout(2*patience))
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx, "cronjob-") }, NodeTimeout(time.Minute))

	It("runs a Job to its end, and its status tells how far it is", func(ctx SpecContext) {
		cj := newCronJob(namespace, "report", "@every 10s", "echo the report is written; sleep 5")
		create(ctx, cj)
		var job *batchv1.Job
		Eventually(func(g Gomega, ctx context.Context) {
			var err error
			job, err = lastJob(ctx, cj, jobstate.IsActive)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(said(ctx, cj)).To(ContainElements("Available=True/Scheduled", "Progressing=True/JobsRunning",
				"Degraded=False/AsExpected"))
			g.Expect(cj.Status.Active).To(ContainElement(HaveField("UID", job.UID)))
			g.Expect(cj.Status.LastScheduleTime.UTC().Format(time.RFC3339)).
				To(Equal(job.Annotations[tutorialv1.ScheduledAtAnnotation]))
			g.Expect(cj.Status.NextScheduleTime.Sub(cj.Status.LastScheduleTime.Time)).To(Equal(10 * time.Second))
			g.Expect(cj.Status.LastScheduleTime.Sub(cj.CreationTimestamp.Time) % (10 * time.Second)).To(BeZero())
		}).WithContext(ctx).Should(Succeed())

		suspend(ctx, cj)
		Eventually(func(ctx context.Context) (bool, error) {
			err := kube.Get(ctx, client.ObjectKeyFromObject(job), job)
			return jobstate.IsComplete(job), err
		}).WithContext(ctx).Should(BeTrue(), "a Job that runs goes on when its CronJob is suspended")
		Expect(logOf(ctx, job)).To(Equal("the report is written\n"))
		awaitSaid(ctx, cj, "Available=False/Suspended", "Progressing=False/Idle", "Degraded=False/AsExpected")
		Expect(cj.Status.Active).To(BeEmpty())
		Expect(cj.Status.ActiveJobs).To(BeZero())
		Expect(cj.Status.NextScheduleTime).To(BeNil())
		Expect(cj.Status.LastSuccessfulTime.Time).To(BeTemporally(">=", job.Status.CompletionTime.Time))
	}, SpecTimeout(patience))

	It("that forbids two at once never runs two at once", func(ctx SpecContext) {
		most := watchPods(ctx, namespace)
		cj := newCronJob(namespace, "long", "@every 5s", "sleep 12")
		cj.Spec.ConcurrencyPolicy = tutorialv1.ForbidConcurrent
		create(ctx, cj)
		awaitSaid(ctx, cj, "Progressing=True/WaitingForJob")
		Expect(cj.Status.ActiveJobs).To(BeEquivalentTo(1))
		Eventually(func(ctx context.Context) (int, error) {
			jobs, err := jobstate.Owned(ctx, kube, cj, jobstate.IsComplete)
			return len(jobs), err
		}).WithContext(ctx).Should(BeNumerically(">=", 3), "each starts when the one before has finished")
		Expect(most()).To(Equal(1), "pods at once")
		Expect(said(ctx, cj)).To(ContainElement("Degraded=False/AsExpected"))
	}, SpecTimeout(patience))

	It("that replaces stops what runs, and starts the next", func(ctx SpecContext) {
		cj := newCronJob(namespace, "endless", "@every 20s", "sleep 3600")
		cj.Spec.ConcurrencyPolicy = tutorialv1.ReplaceConcurrent
		create(ctx, cj)
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
		awaitGone(ctx, first)
		awaitGone(ctx, &firstPod)
		Eventually(runningPod).WithContext(ctx).WithArguments(second).ShouldNot(BeZero())
		awaitSaid(ctx, cj, "Available=False/Suspended", "Progressing=True/JobsRunning")
		Expect(cj.Status.Active).To(ConsistOf(HaveField("UID", second.UID)))
	}, SpecTimeout(patience))

	It("says that a Job has failed and how to see why, until one succeeds", func(ctx SpecContext) {
		cj := newCronJob(namespace, "backup", "@every 10s", "echo the disk is full; exit 3")
		create(ctx, cj)
		awaitSaid(ctx, cj, "Degraded=True/LastRunFailed")
		message := meta.FindStatusCondition(cj.Status.Conditions, tutorialv1.ConditionDegraded).Message
		advice := regexp.MustCompile(`kubectl (-n \S+ logs \S+)`).FindStringSubmatch(message)
		Expect(advice).NotTo(BeNil(), message)
		Expect(kubectl(ctx, strings.Fields(advice[1])...)).To(ContainSubstring("the disk is full"))

		change(ctx, cj, func() { setScript(cj, "echo the disk has room") })
		awaitSaid(ctx, cj, "Degraded=False/AsExpected")
		job, err := lastJob(ctx, cj, jobstate.IsComplete)
		Expect(err).NotTo(HaveOccurred())
		Expect(logOf(ctx, job)).To(Equal("the disk has room\n"))
	}, SpecTimeout(patience))

	// When this fails because the Job stays, Kubernetes has got better (issue 120181), and the warning has outlived its
	// cause.
	It("warns of a CronJob of Kubernetes' own with its name, which deletes its Jobs", func(ctx SpecContext) {
		cj := newCronJob(namespace, "report", "@every 10s", "echo hello")
		create(ctx, cj)
		job := awaitJob(ctx, cj, jobstate.IsComplete)
		suspend(ctx, cj)
		awaitSaid(ctx, cj, "Available=False/Suspended", "Degraded=False/AsExpected")

		namesake := &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cj.Name},
			Spec: batchv1.CronJobSpec{
				Schedule: "0 0 1 1 *", Suspend: ptr.To(true), JobTemplate: cj.Spec.JobTemplate,
				SuccessfulJobsHistoryLimit: ptr.To(int32(0)), FailedJobsHistoryLimit: ptr.To(int32(0)),
			},
		}
		create(ctx, namesake)
		awaitSaid(ctx, cj, "Degraded=True/NameShared")
		Eventually(kube.Get).WithContext(ctx).WithArguments(client.ObjectKeyFromObject(job), job).WithTimeout(time.Minute).
			Should(MatchError(apierrors.IsNotFound, "IsNotFound"),
				"the controller of Kubernetes deletes a Job that is not its own")
		deleteAll(ctx, namesake)
		awaitSaid(ctx, cj, "Degraded=False/AsExpected")
	}, SpecTimeout(patience))

	It("deletes what its history has no room for, and nothing before it is a minute old", func(ctx SpecContext) {
		for range 2 {
			var age time.Duration
			Eventually(ctx, gone).Should(Receive(&age))
			Expect(age).To(BeNumerically(">=", time.Minute), "how old a Job was when it was deleted")
		}
		suspend(ctx, history)
		var latest *batchv1.Job
		Eventually(func(g Gomega, ctx context.Context) {
			var err error
			latest, err = lastJob(ctx, history, jobstate.IsComplete)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(made(ctx, history)).To(HaveLen(1))
			var pods corev1.PodList
			g.Expect(kube.List(ctx, &pods, client.InNamespace(history.Namespace))).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(1), "pods go with their Jobs")
			g.Expect(metav1.IsControlledBy(&pods.Items[0], latest)).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
		Expect(said(ctx, history)).To(ContainElement("Degraded=False/AsExpected"))
		Expect(history.Status.LastScheduleTime.UTC().Format(time.RFC3339)).
			To(Equal(latest.Annotations[tutorialv1.ScheduledAtAnnotation]), "the latest is the one that stays")
		Consistently(ctx, gone).WithTimeout(5 * time.Second).ShouldNot(Receive(BeNumerically("<", time.Minute)))
	}, SpecTimeout(patience))
})

// jobImage is the image of Jobs, one that has a shell.
func jobImage() string {
	return cmp.Or(os.Getenv("BUSYBOX_IMAGE"), "docker.io/library/busybox:1.37")
}

// newCronJob returns one whose Jobs run a script, once.
func newCronJob(namespace, name, schedule, script string) *tutorialv1.CronJob {
	cj := testkinds.CronJob.Make(namespace, name, 1).(*tutorialv1.CronJob)
	cj.Spec.Schedule = schedule
	pod := &cj.Spec.JobTemplate.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = ptr.To(int64(1)) // a shell as process 1 ends by force only
	pod.AutomountServiceAccountToken = ptr.To(false)
	pod.Containers[0].Image = jobImage()
	pod.SecurityContext.RunAsUser = ptr.To(int64(65534)) // the image's may be root
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

// said reads a CronJob and returns what its conditions say of its latest spec, such as "Available=True/Scheduled".
func said(ctx context.Context, cj *tutorialv1.CronJob) ([]string, error) {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(cj), cj); err != nil {
		return nil, err
	}
	if cj.Status.ObservedGeneration != cj.Generation {
		return nil, fmt.Errorf("generation %d is not answered yet", cj.Generation)
	}
	var conditions []string
	for _, c := range cj.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return conditions, nil
}

// awaitSaid waits until the conditions of a CronJob say so.
func awaitSaid(ctx context.Context, cj *tutorialv1.CronJob, conditions ...string) {
	GinkgoHelper()
	Eventually(said).WithContext(ctx).WithArguments(cj).Should(ContainElements(conditions))
}

// lastJob returns the Job of a CronJob for the latest time of those that pass a filter.
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

// awaitJob waits for such a Job.
func awaitJob(ctx context.Context, cj *tutorialv1.CronJob, is func(*batchv1.Job) bool) (job *batchv1.Job) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (err error) {
		job, err = lastJob(ctx, cj, is)
		return err
	}).WithContext(ctx).Should(Succeed())
	return job
}

// podsOfJob are the pods of a Job.
func podsOfJob(ctx context.Context, job *batchv1.Job) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := kube.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	return pods.Items, err
}

// runningPod is the only pod of a Job, which runs.
func runningPod(ctx context.Context, job *batchv1.Job) (corev1.Pod, error) {
	pods, err := podsOfJob(ctx, job)
	if err != nil {
		return corev1.Pod{}, err
	}
	if len(pods) != 1 || pods[0].Status.Phase != corev1.PodRunning {
		return corev1.Pod{}, fmt.Errorf("of %d pods of Job %s, one is to run", len(pods), job.Name)
	}
	return pods[0], nil
}

// logOf is what the only pod of a Job has printed.
func logOf(ctx context.Context, job *batchv1.Job) string {
	GinkgoHelper()
	pods, err := podsOfJob(ctx, job)
	Expect(err).NotTo(HaveOccurred())
	Expect(pods).To(HaveLen(1), "pods of Job %s", job.Name)
	log, err := clients.CoreV1().Pods(job.Namespace).GetLogs(pods[0].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	return string(log)
}

// watchJobs tells of each Job in a namespace that is deleted from now on how old it was.
func watchJobs(ctx context.Context, namespace string) <-chan time.Duration {
	GinkgoHelper()
	jobs, err := clients.BatchV1().Jobs(namespace).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	gone := make(chan time.Duration, 1000)
	go func() {
		for event := range jobs.ResultChan() {
			if job, ok := event.Object.(*batchv1.Job); ok && event.Type == watch.Deleted {
				gone <- time.Since(job.CreationTimestamp.Time)
			}
		}
	}()
	return gone
}

// watchPods returns how many pods in a namespace have been there and not ended at the same time, at most, from now on.
func watchPods(ctx context.Context, namespace string) (most func() int) {
	GinkgoHelper()
	pods, err := clients.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	var lock sync.Mutex
	count := 0
	go func() {
		there := map[types.UID]bool{}
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			there[pod.UID] = event.Type != watch.Deleted && pod.Status.Phase != corev1.PodSucceeded &&
				pod.Status.Phase != corev1.PodFailed
			maps.DeleteFunc(there, func(_ types.UID, active bool) bool { return !active })
			lock.Lock()
			count = max(count, len(there))
			lock.Unlock()
		}
	}()
	return func() int {
		lock.Lock()
		defer lock.Unlock()
		return count
	}
}
