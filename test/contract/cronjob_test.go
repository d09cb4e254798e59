package contract

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/jobstate"
	testkinds "github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

// lastHour is the latest time of an hourly schedule. The one after it is beyond the end of the suite.
var lastHour = time.Now().UTC().Truncate(time.Minute).Add(-5 * time.Minute)

var _ = Describe("CronJob", func() {
	k := kinds[2]
	var ns string
	BeforeEach(func(ctx context.Context) {
		ns = newNamespace(ctx)
		DeferCleanup(func(ctx context.Context) { suspendAll(ctx, ns) })
	})

	It("creates a Job of the template at each time, named after the time", func(ctx context.Context) {
		cj := often(ns)
		cj.Spec.JobTemplate.Labels = map[string]string{"theirs": "label"}
		cj.Spec.JobTemplate.Annotations = map[string]string{"theirs": "annotation",
			tutorialv1.ScheduledAtAnnotation: "yesterday"}
		Expect(k8s.Create(ctx, cj)).To(Succeed())
		Eventually(ctx, func() int { return len(jobNames(ctx, ns)) }).Should(BeNumerically(">=", 3))
		Eventually(ctx, func() *metav1.Time { return get(ctx, cj).Status.LastSuccessfulTime }).ShouldNot(BeNil())
		// On a slow machine, a time can be missed. That is reported after the next Job was created.
		events, jobs := eventsAbout(ctx, cj), jobsIn(ctx, ns)
		for _, job := range jobs {
			tick := tickOf(job.Name)
			Expect(job.Name).To(Equal(jobName("one", tick)))
			Expect(tick).To(And(BeTemporally(">", cj.CreationTimestamp.Time), BeTemporally("<=", job.CreationTimestamp.Time)))
			Expect(job.Labels).To(HaveKeyWithValue("theirs", "label"))
			Expect(job.Annotations).To(And(HaveKeyWithValue("theirs", "annotation"),
				HaveKeyWithValue("batch.tutorial.kubebuilder.io/scheduled-at", tick.Format(time.RFC3339))))
			Expect(metav1.IsControlledBy(&job, cj)).To(BeTrue())
			Expect(job.Spec.Template.Spec.Containers).To(ConsistOf(HaveField("Image", "it")))
			Expect(*job.Spec.BackoffLimit).To(BeZero())
		}
		if missed := skipped(cj.CreationTimestamp.Time, time.Second, jobs); missed > 0 {
			Eventually(ctx, eventsAbout).WithArguments(cj).
				Should(ContainElement(HavePrefix("Warning MissedSchedule")), "%d missed", missed)
		} else {
			Expect(events).To(ConsistOf(HavePrefix("Normal Synced")), "an event for a run")
		}
	})

	// In its first minute, a manager reads once more. It runs alone because reads are repeated while the cache is behind.
	It("costs at most four requests for a run, and none in between", Serial, func(ctx context.Context) {
		cj := often(ns)
		cj.Spec.Schedule = "@every 2s"
		// A mark between two runs could precede the last write of the first.
		mark := cp.Audit.Now()
		Expect(k8s.Create(ctx, cj)).To(Succeed())
		var all []testenv.Request
		var jobs []batchv1.Job
		Eventually(ctx, func(g Gomega) {
			jobs = jobsIn(ctx, ns)
			recorded := get(ctx, cj).Status
			all = requests(mark, ns)
			g.Expect(len(jobs)).To(BeNumerically(">=", 3))
			g.Expect(recorded.LastScheduleTime.UTC()).To(Equal(tickOf(jobs[len(jobs)-1].Name).UTC()))
			g.Expect(recorded.Active).To(BeEmpty())
			g.Expect(all[len(all)-1].Resource).To(Equal("cronjobs/status"), "the next run has begun")
		}).Should(Succeed())
		ofJobs := slices.DeleteFunc(slices.Clone(all), func(r testenv.Request) bool { return r.Resource != "jobs" })
		AddReportEntry("requests", fmt.Sprintf("%v", all), ReportEntryVisibilityFailureOrVerbose)
		// Its creation costs a status and an event. On a slow machine, there may be more runs, and an event for a missed
		// time.
		runs, missed := len(jobs), skipped(cj.CreationTimestamp.Time, 2*time.Second, jobs)
		report(fmt.Sprintf("requests of a CronJob for its creation, and for %d runs", runs), len(all), 2+runs*4+missed)
		report(fmt.Sprintf("requests of a CronJob for Jobs in %d runs", runs), len(ofJobs), runs)

		edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Spec.Suspend = ptr.To(true) })
		k.eventually(ctx, cj, "Available=False/Suspended")
		report("writes of a CronJob that change nothing", noOps(mark, ns), 0)
	})

	It("costs two requests to suspend", func(ctx context.Context) {
		cj := hourly(ns)
		Expect(k8s.Create(ctx, cj)).To(Succeed())
		k.eventually(ctx, cj, "Available=True/Scheduled")
		settledPasses(k.Controller(), ns)
		mark := cp.Audit.Now()
		edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Spec.Suspend = ptr.To(true) })
		k.eventually(ctx, cj, "Available=False/Suspended")
		settledPasses(k.Controller(), ns)
		report("requests of a CronJob for its suspension", len(requests(mark, ns)), 2)
	})

	It("runs the latest missed time, and reports the others once (#42649)", func(ctx context.Context) {
		cj := hourly(ns)
		putSince(ctx, cj, 500)
		Eventually(ctx, eventsAbout).WithArguments(cj).Should(ContainElement(fmt.Sprintf(
			"Warning MissedSchedule: missed 499 runs, from %s to %s; ran the latest, %s",
			hoursBefore(499).Format(time.RFC3339), hoursBefore(1).Format(time.RFC3339), lastHour.Format(time.RFC3339))))
		touch(ctx, cj)
		Expect(jobNames(ctx, ns)).To(Equal([]string{jobName("one", lastHour)}))
		Expect(cj.Status.LastScheduleTime.UTC()).To(Equal(lastHour))
		Expect(get(ctx, cj).Status.NextScheduleTime.UTC()).To(Equal(lastHour.Add(time.Hour)))
		Eventually(ctx, eventsAbout).WithArguments(cj).
			Should(ConsistOf(HavePrefix("Warning MissedSchedule"), HavePrefix("Normal Synced")))
	})

	It("skips runs after the deadline, and reports them once", func(ctx context.Context) {
		cj := hourly(ns)
		cj.Spec.StartingDeadlineSeconds = ptr.To[int64](60)
		putSince(ctx, cj, 3)
		Eventually(ctx, eventsAbout).WithArguments(cj).Should(ConsistOf(HavePrefix("Normal Synced"), And(
			HavePrefix("Warning MissedSchedule: missed 3 runs, from "),
			ContainSubstring("spec.startingDeadlineSeconds has passed"))))
		settledPasses(k.Controller(), ns)
		mark := cp.Audit.Now()
		touch(ctx, cj)
		Expect(requests(mark, ns)).To(BeEmpty())
		Expect(eventsAbout(ctx, cj)).To(ConsistOf(HavePrefix("Warning MissedSchedule"), HavePrefix("Normal Synced")))
		Expect(jobNames(ctx, ns)).To(BeEmpty())
		Expect(get(ctx, cj).Status).
			To(And(HaveField("LastScheduleTime", BeNil()), HaveField("LastMissedTime.Time", BeTemporally("==", lastHour))))

		By("extending the deadline later")
		edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Spec.StartingDeadlineSeconds = nil })
		k.eventually(ctx, cj, "Available=True/Scheduled")
		Expect(jobNames(ctx, ns)).To(BeEmpty())
	})

	It("counts from when it was resumed, also if the status could not be stored", func(ctx context.Context) {
		cj := often(ns)
		cj.Spec.Suspend = ptr.To(true)
		Expect(k8s.Create(ctx, cj)).To(Succeed())
		k.eventually(ctx, cj, "Available=False/Suspended")
		allow := refuseStatus(ctx, kinds[2], cj)
		edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Spec.Suspend = nil })
		Eventually(ctx, jobNames).WithArguments(ns).ShouldNot(BeEmpty(), "every pass starts to count again")
		Expect(get(ctx, cj).Status.ScheduledSince).To(BeNil())
		allow(ctx)
		Eventually(ctx, func() *metav1.Time { return get(ctx, cj).Status.LastScheduleTime }).ShouldNot(BeNil())
		Expect(cj.Status.ScheduledSince.Before(cj.Status.LastScheduleTime)).To(BeTrue())
	})

	It("does not run a time again whose status could not be stored, as long as the manager runs",
		func(ctx context.Context) {
			cj := hourly(ns)
			var allow func(context.Context)
			mark := cp.Audit.Now()
			putSince(ctx, cj, 1, func() { allow = refuseStatus(ctx, kinds[2], cj) })
			job := jobAt(cj, lastHour)
			Eventually(ctx, func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(job), job) }).Should(Succeed())
			made := func() []testenv.Request {
				return requests(mark, ns, testenv.Request.IsCreation, isOf("jobs"))
			}
			refused := func(since testenv.Mark) func() []testenv.Request {
				return func() []testenv.Request {
					return requests(since, ns, isOf("cronjobs/status"), func(r testenv.Request) bool { return r.Code >= 400 })
				}
			}
			Eventually(refused(mark)).ShouldNot(BeEmpty())
			Expect(k8s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			deleted := cp.Audit.Now()
			touch(ctx, cj)
			Eventually(refused(deleted)).ShouldNot(BeEmpty(), "the operator has not tried")
			touch(ctx, cj)
			Expect(made()).To(HaveLen(1), "the manager remembers it")
			Expect(jobNames(ctx, ns)).To(BeEmpty())
			Expect(get(ctx, cj).Status.LastScheduleTime).To(BeNil())

			allow(ctx)
			Eventually(ctx, func() *metav1.Time {
				touch(ctx, cj) // instead of waiting for the retry
				return get(ctx, cj).Status.LastScheduleTime
			}).Should(HaveField("Time", BeTemporally("==", lastHour)))
			touch(ctx, cj)
			Expect(made()).To(HaveLen(1), "the status records it")
			Expect(jobNames(ctx, ns)).To(BeEmpty())
		})

	Describe("with an earlier Job that is still active", func() {
		var (
			cj    *tutorialv1.CronJob
			early *batchv1.Job
		)
		put := func(ctx context.Context, policy tutorialv1.ConcurrencyPolicy, change ...func(*batchv1.Job)) {
			GinkgoHelper()
			cj = hourly(ns)
			cj.Spec.ConcurrencyPolicy = policy
			putSince(ctx, cj, 4, func() { early = adopt(ctx, cj, jobName("one", hoursBefore(3)), change...) })
		}

		It("runs both (Allow)", func(ctx context.Context) {
			put(ctx, tutorialv1.AllowConcurrent)
			Eventually(ctx, jobNames).WithArguments(ns).Should(Equal([]string{early.Name, jobName("one", lastHour)}))
			k.eventually(ctx, cj, "Progressing=True/JobsRunning")
		})

		It("waits for it, and then runs the latest (Forbid)", func(ctx context.Context) {
			put(ctx, tutorialv1.ForbidConcurrent)
			k.eventually(ctx, cj, "Progressing=True/WaitingForJob")
			Expect(k.message(cj, "Progressing")).To(ContainSubstring("due since " + hoursBefore(2).Format(time.RFC3339)))
			touch(ctx, cj)
			Expect(jobNames(ctx, ns)).To(Equal([]string{early.Name}))
			Eventually(ctx, eventsAbout).WithArguments(cj).
				Should(ConsistOf(HavePrefix("Normal Synced")), "nothing is missed yet")

			finish(ctx, early, batchv1.JobComplete)
			Eventually(ctx, jobNames).WithArguments(ns).Should(Equal([]string{early.Name, jobName("one", lastHour)}))
			Eventually(ctx, eventsAbout).WithArguments(cj).
				Should(ContainElement(HavePrefix("Warning MissedSchedule: missed 2 runs")))
			k.eventually(ctx, cj, "Progressing=False/Idle")
		})

		It("deletes it, and no other of its name, once, and then runs (Replace; #59676)", func(ctx context.Context) {
			mark := cp.Audit.Now()
			put(ctx, tutorialv1.ReplaceConcurrent, func(job *batchv1.Job) { job.Finalizers = []string{"example.com/hold"} })
			Eventually(ctx, jobNames).WithArguments(ns).Should(Equal([]string{early.Name, jobName("one", lastHour)}))
			Expect(get(ctx, early).DeletionTimestamp).NotTo(BeNil())
			for range 2 {
				touch(ctx, cj)
			}
			Eventually(func() []testenv.Request { return deletions(mark, ns) }).Should(ConsistOf(And(
				HaveField("Name", early.Name), HaveField("OnlyUID", string(early.UID)))))
			edit(ctx, early, func(job *batchv1.Job) { job.Finalizers = nil })
			Eventually(ctx, jobNames).WithArguments(ns).Should(Equal([]string{jobName("one", lastHour)}))
		})

		It("which has lost its owner reference, gets that back at once, and is waited for (Forbid)",
			func(ctx context.Context) {
				put(ctx, tutorialv1.ForbidConcurrent, func(job *batchv1.Job) {
					job.Annotations = map[string]string{child.OwnerAnnotation: string(job.OwnerReferences[0].UID)}
				})
				k.eventually(ctx, cj, "Progressing=True/WaitingForJob")
				// Recorded after the status is stored; it must not count as a request of what follows.
				Eventually(ctx, eventsAbout).WithArguments(cj).ShouldNot(BeEmpty())
				references, mark := early.OwnerReferences, cp.Audit.Now()
				edit(ctx, early, func(job *batchv1.Job) { job.OwnerReferences = nil })
				Eventually(ctx, func() []metav1.OwnerReference { return get(ctx, early).OwnerReferences }).
					Should(Equal(references))
				touch(ctx, cj)
				Expect(jobNames(ctx, ns)).To(Equal([]string{early.Name}))
				Expect(requests(mark, ns, testenv.Request.IsWrite)).To(ConsistOf(And(
					HaveField("Verb", "patch"), HaveField("Resource", "jobs"), HaveField("Name", early.Name))))
			})

		// The controller of batch/v1 knows Jobs by their owner's name (#120181).
		It("which was that of another CronJob of its name, runs all the same (Forbid)", func(ctx context.Context) {
			put(ctx, tutorialv1.ForbidConcurrent, func(job *batchv1.Job) {
				job.OwnerReferences[0].UID = "00000000-0000-0000-0000-000000000001"
				job.Finalizers = []string{"example.com/hold"} // the garbage collector would end it
			})
			Eventually(ctx, jobNames).WithArguments(ns).Should(ContainElement(jobName("one", lastHour)))
			k.eventually(ctx, cj, "Progressing=False/Idle")
		})
	})

	It("identifies runs by the names of Jobs, not by their annotations", func(ctx context.Context) {
		cj := hourly(ns)
		lies := func(job *batchv1.Job) {
			job.Annotations = map[string]string{tutorialv1.ScheduledAtAnnotation: "2099-01-01T00:00:00Z"}
		}
		putSince(ctx, cj, 1, func() {
			adopt(ctx, cj, jobName("one", hoursBefore(1)), lies)
			adopt(ctx, cj, "one-by-hand", lies)
			adopt(ctx, cj, jobName("one", time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)))
		})
		Eventually(ctx, jobNames).WithArguments(ns).Should(ContainElement(jobName("one", lastHour)))
		Eventually(ctx, func() *metav1.Time { return get(ctx, cj).Status.LastSuccessfulTime }).ShouldNot(BeNil())
		Expect(cj.Status.LastScheduleTime.UTC()).To(Equal(lastHour))
		Expect(k.conditionsOf(cj)(ctx)).To(HaveKeyWithValue("Degraded", "False/AsExpected"))
	})

	DescribeTable("reports an accepted schedule that is wrong, sends no request, and recovers:",
		func(ctx context.Context, change func(*tutorialv1.CronJob), reason, message string) {
			cj := hourly(ns)
			schedule := cj.Spec.Schedule
			change(cj)
			Expect(k8s.Create(ctx, cj)).To(Succeed())
			Eventually(ctx, k.conditionsOf(cj)).Should(And(HaveKeyWithValue("Available", "False/"+reason),
				HaveKeyWithValue("Progressing", "False/Blocked"), HaveKeyWithValue("Degraded", "True/"+reason)))
			Expect(k.message(cj, "Degraded")).To(ContainSubstring(message))
			Expect(cj.Status.NextScheduleTime).To(BeNil())
			Eventually(ctx, eventsAbout).WithArguments(cj).Should(ConsistOf(HavePrefix("Warning " + reason)))

			passesBefore, mark := settledPasses(k.Controller(), ns), cp.Audit.Now()
			time.Sleep(500 * time.Millisecond)
			Expect(passes(k.Controller(), ns)).To(Equal(passesBefore), "passes with nothing to do")
			touch(ctx, cj)
			Expect(requests(mark, ns)).To(BeEmpty())
			Expect(eventsAbout(ctx, cj)).To(HaveLen(1))

			edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Spec.Schedule, cj.Spec.TimeZone = schedule, nil })
			k.eventually(ctx, cj, "Available=True/Scheduled", "Degraded=False/AsExpected")
			Expect(jobNames(ctx, ns)).To(BeEmpty())
			Expect(cj.Status.NextScheduleTime.UTC()).To(Equal(lastHour.Add(time.Hour)))
		},
		Entry("a range ends before it begins", func(cj *tutorialv1.CronJob) { cj.Spec.Schedule = "5-1 * * * *" },
			"InvalidSchedule", `spec.schedule "5-1 * * * *" is not valid`),
		Entry("no time matches", func(cj *tutorialv1.CronJob) { cj.Spec.Schedule = "0 0 31 2 *" }, "NeverFires",
			`"0 0 31 2 *"`),
		Entry("the time zone is unknown", func(cj *tutorialv1.CronJob) { cj.Spec.TimeZone = ptr.To("Atlantis/Nowhere") },
			"UnknownTimeZone", `"Atlantis/Nowhere"`))

	Describe("does not run for times before", func() {
		DescribeTable("its schedule was changed (#63371, #130838)",
			func(ctx context.Context, change func(*tutorialv1.CronJob)) {
				cj := hourly(ns)
				schedule := cj.Spec.Schedule
				cj.Spec.Schedule = "@yearly"
				change(cj)
				Expect(k8s.Create(ctx, cj)).To(Succeed())
				k.eventually(ctx, cj, "Available=True/Scheduled")
				backdate(ctx, cj, hoursBefore(101), ranLongAgo)
				k.eventually(ctx, cj, "Available=True/Scheduled")
				edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Spec.Schedule, cj.Spec.TimeZone = schedule, nil })
				expectNoRun(ctx, cj)
			},
			Entry("alone", func(*tutorialv1.CronJob) {}),
			Entry("with its zone", func(cj *tutorialv1.CronJob) { cj.Spec.TimeZone = ptr.To("Asia/Tokyo") }))

		It("it was resumed (#45825)", func(ctx context.Context) {
			cj := hourly(ns)
			cj.Spec.Suspend = ptr.To(true)
			Expect(k8s.Create(ctx, cj)).To(Succeed())
			k.eventually(ctx, cj, "Available=False/Suspended", "Degraded=False/AsExpected")
			Expect(cj.Status).To(And(HaveField("NextScheduleTime", BeNil()), HaveField("ScheduledSince", BeNil())))
			backdate(ctx, cj, time.Time{}, ranLongAgo)
			k.eventually(ctx, cj, "Available=False/Suspended")
			edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Spec.Suspend = ptr.To(false) })
			expectNoRun(ctx, cj)
		})
	})

	It("creates no Job while it is suspended, and continues when it is resumed with kubectl",
		func(ctx context.Context) {
			run := kubectlIn(ns)
			cj := often(ns)
			Expect(k8s.Create(ctx, cj)).To(Succeed())
			Eventually(ctx, jobNames).WithArguments(ns).ShouldNot(BeEmpty())
			run("patch", k.CRD(), "one", "--type=merge", "--patch", `{"spec":{"suspend":true}}`)
			k.eventually(ctx, cj, "Available=False/Suspended")
			before := jobNames(ctx, ns)
			time.Sleep(2 * time.Second)
			Expect(jobNames(ctx, ns)).To(Equal(before))

			run("patch", k.CRD(), "one", "--type=merge", "--patch", `{"spec":{"suspend":false}}`)
			k.eventually(ctx, cj, "Available=True/Scheduled")
			since := cj.Status.ScheduledSince.Time
			Eventually(ctx, func() int { return len(jobNames(ctx, ns)) }).Should(BeNumerically(">", len(before)))
			events, jobs := eventsAbout(ctx, cj), jobsIn(ctx, ns)
			for _, job := range jobs[len(before):] {
				Expect(tickOf(job.Name)).To(BeTemporally(">", since))
			}
			Expect(jobNames(ctx, ns)[:len(before)]).To(Equal(before))
			if skipped(cj.CreationTimestamp.Time, time.Second, jobs[:len(before)])+skipped(since, time.Second, jobs) == 0 {
				Expect(events).To(HaveEach(HavePrefix("Normal Synced")))
			}
		})

	It("warns of a batch/v1 CronJob with its name until that is deleted (#120181)", func(ctx context.Context) {
		theirs := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}, Spec: batchv1.CronJobSpec{
			Schedule: "@yearly", Suspend: ptr.To(true),
			JobTemplate: batchv1.JobTemplateSpec{Spec: testkinds.NewJob("", "").Spec}}}
		Expect(k8s.Create(ctx, theirs)).To(Succeed())
		cj := hourly(ns)
		Expect(k8s.Create(ctx, cj)).To(Succeed())
		k.eventually(ctx, cj, "Available=True/Scheduled", "Degraded=True/NameShared")
		Eventually(ctx, eventsAbout).WithArguments(cj).Should(ConsistOf(HavePrefix("Warning NameShared")))
		Expect(k8s.Delete(ctx, theirs)).To(Succeed())
		k.eventually(ctx, cj, "Degraded=False/AsExpected")
		theirs.ResourceVersion, theirs.UID = "", ""
		Expect(k8s.Create(ctx, theirs)).To(Succeed())
		k.eventually(ctx, cj, "Degraded=True/NameShared")
	})

	It("reports a failed Job until one succeeds", func(ctx context.Context) {
		cj := hourly(ns)
		cj.Spec.JobTemplate.Spec.Parallelism, cj.Spec.JobTemplate.Spec.Completions = nil, nil
		putSince(ctx, cj, 1)
		Eventually(ctx, eventsAbout).WithArguments(cj).Should(ConsistOf(HavePrefix("Normal Synced")))
		job := jobAt(cj, lastHour)
		edit(ctx, job, func(job *batchv1.Job) { job.Spec.ActiveDeadlineSeconds = ptr.To[int64](0) })
		k.eventually(ctx, cj, "Available=True/Scheduled", "Degraded=True/LastRunFailed")
		Expect(k.message(cj, "Degraded")).To(And(ContainSubstring("Job %s failed: DeadlineExceeded", job.Name),
			ContainSubstring("kubectl -n %s logs --selector=batch.kubernetes.io/job-name=%s", ns, job.Name)))
		Eventually(ctx, eventsAbout).WithArguments(cj).
			Should(ConsistOf(HavePrefix("Normal Synced"), HavePrefix("Warning LastRunFailed")))
		deleteJob(ctx, job)
		touch(ctx, cj)
		Expect(k.conditionsOf(cj)(ctx)).To(HaveKeyWithValue("Degraded", "True/LastRunFailed"))

		finish(ctx, adopt(ctx, cj, "one-by-hand"), batchv1.JobComplete)
		k.eventually(ctx, cj, "Degraded=False/AsExpected")
		Expect(cj.Status.LastSuccessfulTime).NotTo(BeNil())
	})

	It("creates no Job while the last run is in the future, and reports it", func(ctx context.Context) {
		cj := hourly(ns)
		Expect(k8s.Create(ctx, cj)).To(Succeed())
		k.eventually(ctx, cj, "Available=True/Scheduled")
		ahead := time.Now().Add(2 * time.Hour).Truncate(time.Second)
		backdate(ctx, cj, hoursBefore(1), func(status *tutorialv1.CronJobStatus) {
			status.LastScheduleTime = ptr.To(metav1.NewTime(ahead))
		})
		k.eventually(ctx, cj, "Degraded=True/ClockBehind")
		Eventually(ctx, eventsAbout).WithArguments(cj).Should(ContainElement(HavePrefix("Warning ClockBehind")))
		touch(ctx, cj)
		Expect(jobNames(ctx, ns)).To(BeEmpty())
		Expect(get(ctx, cj).Status.LastScheduleTime.Time).To(BeTemporally("==", ahead))
	})

	It("creates no Job in a namespace that is being deleted", func(ctx context.Context) {
		cj := often(ns)
		Expect(k8s.Create(ctx, cj)).To(Succeed())
		Eventually(ctx, jobNames).WithArguments(ns).ShouldNot(BeEmpty())
		allow := refuse(ctx, ns, admissionregistrationv1.Delete, tutorialv1.GroupVersion.Group, "cronjobs", "not yet",
			func() error { return k8s.Delete(ctx, cj, client.DryRunAll) })
		mark := cp.Audit.Now()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
		Expect(k8s.Delete(ctx, namespace)).To(Succeed())
		Eventually(ctx, jobNames).WithArguments(ns).Should(BeEmpty())
		Eventually(func() []testenv.Request { return requests(mark, ns, isForbidden) }).
			ShouldNot(BeEmpty(), "the operator has not tried")
		Eventually(func() bool { // the deletion of a Job may be observed late
			mark, before := cp.Audit.Now(), passes(k.Controller(), ns)
			time.Sleep(1500 * time.Millisecond) // in which another time comes
			return len(requests(mark, ns)) == 0 && passes(k.Controller(), ns) == before
		}).Should(BeTrue(), "it continues")
		Expect(k.conditionsOf(cj)(ctx)).To(HaveKeyWithValue("Degraded", "False/AsExpected"))

		allow(ctx)
		Eventually(ctx, func() error { // rather than wait for the namespace controller
			return client.IgnoreNotFound(k8s.Delete(ctx, cj))
		}).Should(Succeed())
		Eventually(ctx, isGone(cj)).Should(BeTrue())
	})

	It("keeps as many of the latest finished Jobs as the limits allow", func(ctx context.Context) {
		waitForHistory()
		ns := history.Namespace
		cj := get(ctx, &tutorialv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "some"}})
		before := jobsIn(ctx, ns)
		uids := map[string]string{}
		for _, job := range before {
			uids[job.Name] = string(job.UID)
		}
		leaving := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: jobName("some", hoursBefore(8))}}
		Expect(k8s.Delete(ctx, leaving, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		mark := cp.Audit.Now()
		limitHistory(ctx, cj, 2, 1)
		gone := []string{jobName("some", hoursBefore(10)), jobName("some", hoursBefore(9)), jobName("some", hoursBefore(5)),
			jobName("some", hoursBefore(4))}
		for _, name := range gone {
			Eventually(ctx, isGone(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})).
				Should(BeTrue(), name)
		}
		touch(ctx, cj)
		var deleted []string
		for _, request := range deletions(mark, ns) {
			deleted = append(deleted, request.Name)
			Expect(request.OnlyUID).To(Equal(uids[request.Name]))
		}
		Expect(deleted).To(Equal(gone), "the oldest first, each once, and not one that waits for a finalizer (#59676)")
		Expect(jobNames(ctx, ns)).
			To(ContainElements(leaving.Name, jobName("some", hoursBefore(7)), "some-by-hand", jobName("some", hoursBefore(3))))
		edit(ctx, get(ctx, leaving), func(job *batchv1.Job) { job.Finalizers = nil })
	})

	It("shows its columns", func(ctx context.Context) {
		cj := newCronJob(ns, "one", "@every 1h")
		cj.Spec.TimeZone = ptr.To("Europe/Berlin")
		cj.Spec.JobTemplate.Spec.Suspend = ptr.To(true)
		putSince(ctx, cj, 1)
		Eventually(ctx, active(ctx, cj)).Should(HaveLen(1))
		Expect(kubectlIn(ns)("get", k.CRD())).To(MatchRegexp(
			`^NAME +SCHEDULE +TIMEZONE +SUSPEND +ACTIVE +LAST SCHEDULE +AGE\none +@every 1h +Europe/Berlin +false +1 +\d+m(\d+s)? +\d+s$`))
	})
})

var _ = Describe("CronJob, with managers of its own", ownManager, SpecPriority(1), func() {
	k := kinds[2]
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	// The exception that doc.go of the controller names.
	It("runs a time again only if neither a status nor a Job records it", func(ctx context.Context) {
		environment := []string{"WATCH_NAMESPACE=" + ns}
		restart(ctx, environment)
		cj := hourly(ns)
		var allow func(context.Context)
		putSince(ctx, cj, 1, func() { allow = refuseStatus(ctx, kinds[2], cj) })
		job := jobAt(cj, lastHour)
		Eventually(ctx, func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(job), job) }).Should(Succeed())
		first := job.UID
		again := func() {
			GinkgoHelper()
			start(ctx, environment)
			Eventually(func() int { return passes(k.Controller(), ns) }).Should(BeNumerically(">", 1))
		}
		kill(ctx)
		again()
		Expect(get(ctx, job).UID).To(Equal(first), "the Job records it")
		Expect(jobNames(ctx, ns)).To(HaveLen(1))
		Expect(get(ctx, cj).Status.LastScheduleTime).To(BeNil())

		kill(ctx)
		deleteJob(ctx, job)
		again()
		Eventually(ctx, func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(job), job) }).Should(Succeed())
		Expect(job.UID).NotTo(Equal(first), "nothing records it")

		allow(ctx)
		Eventually(ctx, func() *metav1.Time { return get(ctx, cj).Status.LastSuccessfulTime }).ShouldNot(BeNil())
		kill(ctx)
		deleteJob(ctx, job)
		start(ctx, environment)
		touch(ctx, cj)
		Expect(jobNames(ctx, ns)).To(BeEmpty(), "the status records it")
	})

	It("creates one Job for each time, also with two managers at once that are killed in turn (#34447, #112275)",
		func(ctx context.Context) {
			environment := []string{"WATCH_NAMESPACE=" + ns}
			restart(ctx, environment, "--leader-elect=false")
			first := manager
			start(ctx, environment, "--leader-elect=false")
			mark := cp.Audit.Now()
			const count = 5
			for i := range count {
				cj := often(ns)
				cj.Name = fmt.Sprintf("n%d", i)
				Expect(k8s.Create(ctx, cj)).To(Succeed())
			}
			for range 4 {
				time.Sleep(1300 * time.Millisecond)
				first.Kill()
				first = manager
				start(ctx, environment, "--leader-elect=false")
			}
			Eventually(ctx, func() map[string]int {
				of := map[string]int{}
				for _, name := range jobNames(ctx, ns) {
					of[name[:2]]++
				}
				return of
			}).Should(And(HaveLen(count), HaveEach(BeNumerically(">=", 4))))
			first.Kill()
			suspendAll(ctx, ns)
			settledPasses(k.Controller(), ns)

			made, asked, tried := map[string]int{}, map[string]bool{}, 0
			for _, request := range requests(mark, ns) {
				if request.Verb == "create" && request.Resource == "jobs" {
					tried++
					asked[request.Name] = true
					if request.IsCreation() {
						made[request.Name]++
					}
				}
			}
			Expect(made).To(HaveEach(1))
			Expect(slices.Collect(maps.Keys(made))).To(HaveEach(MatchRegexp(`^n\d-(\d{8}|\d{10})$`)),
				"not named after their time")
			// The API server does not log the creation for a manager that was killed meanwhile.
			Expect(jobNames(ctx, ns)).
				To(And(ContainElements(slices.Collect(maps.Keys(made))), HaveEach(BeElementOf(slices.Collect(maps.Keys(asked))))))
			note("%5d                 requests for %d Jobs of two managers at once, which created none twice", tried, len(made))
		})
})

// hoursBefore returns one of the times of an hourly schedule.
func hoursBefore(hours int) time.Time { return lastHour.Add(-time.Duration(hours) * time.Hour) }

// hourly returns a CronJob whose last time is lastHour. Its Jobs complete without a pod.
func hourly(namespace string) *tutorialv1.CronJob {
	cj := newCronJob(namespace, "one", fmt.Sprintf("%d * * * *", lastHour.Minute()))
	cj.Spec.JobTemplate.Spec.Parallelism, cj.Spec.JobTemplate.Spec.Completions = ptr.To[int32](0), ptr.To[int32](0)
	return cj
}

// often returns a CronJob that is due every second, and keeps all its Jobs.
func often(namespace string) *tutorialv1.CronJob {
	cj := hourly(namespace)
	cj.Spec.Schedule, cj.Spec.SuccessfulJobsHistoryLimit = "@every 1s", ptr.To[int32](1000)
	return cj
}

// putSince creates a CronJob that is scheduled since so many hours before lastHour. Before is called between its
// creation and that.
func putSince(ctx context.Context, cj *tutorialv1.CronJob, hours int, before ...func()) {
	GinkgoHelper()
	k := kinds[2]
	k.due = func(ctx context.Context, object client.Object) {
		for _, before := range before {
			before()
		}
		backdate(ctx, object.(*tutorialv1.CronJob), hoursBefore(hours))
	}
	k.put(ctx, cj)
}

// touch triggers a pass of a CronJob and waits for it.
func touch(ctx context.Context, cj *tutorialv1.CronJob) {
	GinkgoHelper()
	controller := testkinds.CronJob.Controller()
	before := passes(controller, cj.Namespace)
	edit(ctx, cj, func(cj *tutorialv1.CronJob) { cj.Annotations = map[string]string{"touched": fmt.Sprint(before)} })
	Eventually(func() int { return passes(controller, cj.Namespace) }).Should(BeNumerically(">", before))
	time.Sleep(200 * time.Millisecond)
}

// active returns the names of the active Jobs in the status of a CronJob.
func active(ctx context.Context, cj *tutorialv1.CronJob) func() []string {
	return func() []string {
		var names []string
		for _, reference := range get(ctx, cj).Status.Active {
			names = append(names, reference.Name)
		}
		return names
	}
}

func controlledByCronJob(cj *tutorialv1.CronJob) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(cj, tutorialv1.GroupVersion.WithKind("CronJob"))}
}

// adopt creates a suspended Job that a CronJob controls, and waits until the operator has observed it.
func adopt(ctx context.Context, cj *tutorialv1.CronJob, name string, change ...func(*batchv1.Job)) *batchv1.Job {
	GinkgoHelper()
	job := testkinds.NewJob(cj.Namespace, name)
	job.OwnerReferences = controlledByCronJob(cj)
	for _, change := range change {
		change(job)
	}
	Expect(k8s.Create(ctx, job)).To(Succeed())
	if metav1.IsControlledBy(job, cj) {
		Eventually(ctx, active(ctx, cj)).Should(ContainElement(name))
	}
	return job
}

// deleteJob deletes a Job and its pods, and waits until it does not exist.
func deleteJob(ctx context.Context, job *batchv1.Job) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	Eventually(ctx, isGone(job)).Should(BeTrue())
}

func deletions(mark testenv.Mark, namespace string) []testenv.Request {
	return requests(mark, namespace, func(r testenv.Request) bool { return r.Verb == "delete" })
}

// refuseStatus makes the API server reject the operator's writes of statuses, with an existing object as a probe.
func refuseStatus(ctx context.Context, k kind, existing client.Object) (allow func(context.Context)) {
	GinkgoHelper()
	operator, err := cp.ClientAs(testenv.OperatorUser)
	Expect(err).NotTo(HaveOccurred())
	change := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":99}}`))
	return refuse(ctx, existing.GetNamespace(), admissionregistrationv1.Update, k.GroupVersion.Group, k.Resource+"/status",
		"no status on Fridays", func() error {
			return operator.Status().Patch(ctx, existing.DeepCopyObject().(client.Object), change, client.DryRunAll)
		},
		admissionregistrationv1.MatchCondition{Name: "operator",
			Expression: `request.userInfo.username == "` + testenv.OperatorUser + `"`})
}

// ranLongAgo changes a status: the last run of the CronJob was a hundred hours ago.
func ranLongAgo(status *tutorialv1.CronJobStatus) {
	status.LastScheduleTime = ptr.To(metav1.NewTime(hoursBefore(100)))
}

// expectNoRun expects that a CronJob which ran long ago does not run for the times since then.
func expectNoRun(ctx context.Context, cj *tutorialv1.CronJob) {
	GinkgoHelper()
	kinds[2].eventually(ctx, cj, "Available=True/Scheduled")
	Expect(cj.Status.ScheduledSince.After(lastHour)).To(BeTrue(), "since %s", cj.Status.ScheduledSince)
	Expect(cj.Status).
		To(And(HaveField("ObservedSchedule", cj.Spec.Schedule),
			HaveField("ObservedTimeZone", ptr.Deref(cj.Spec.TimeZone, "")),
			HaveField("LastScheduleTime.Time", BeTemporally("==", hoursBefore(100))), HaveField("LastMissedTime", BeNil())))
	Expect(cj.Status.NextScheduleTime.After(time.Now())).To(BeTrue(), "next at %s", cj.Status.NextScheduleTime)
	touch(ctx, cj)
	Expect(jobNames(ctx, cj.Namespace)).To(BeEmpty())
	Expect(eventsAbout(ctx, cj)).NotTo(ContainElement(HavePrefix("Warning")))
}

// jobName returns the name of the Job of a time.
func jobName(cronJob string, tick time.Time) string {
	if tick.Second() == 0 {
		return fmt.Sprintf("%s-%d", cronJob, tick.Unix()/60)
	}
	return fmt.Sprintf("%s-%d", cronJob, tick.Unix())
}

// jobAt returns the Job of a time, to be read.
func jobAt(object client.Object, tick time.Time) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(),
		Name: jobName(object.GetName(), tick)}}
}

// tickOf returns the time in the name of a Job, or the zero time.
func tickOf(job string) time.Time {
	digits := job[strings.LastIndexByte(job, '-')+1:]
	tick, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil:
		return time.Time{}
	case len(digits) <= 8: // a full minute
		tick *= 60
	}
	return time.Unix(tick, 0).UTC()
}

// skipped returns how many periodic times have no Job, up to the time of the last Job.
func skipped(since time.Time, every time.Duration, jobs []batchv1.Job) int {
	ran, last := 0, since
	for _, job := range jobs {
		if tick := tickOf(job.Name); tick.After(since) {
			ran, last = ran+1, tick
		}
	}
	return int(last.Sub(since)/every) - ran
}

// jobsIn returns the Jobs in a namespace, sorted by their times.
func jobsIn(ctx context.Context, namespace string) []batchv1.Job {
	GinkgoHelper()
	var jobs batchv1.JobList
	Expect(k8s.List(ctx, &jobs, client.InNamespace(namespace))).To(Succeed())
	slices.SortFunc(jobs.Items, func(a, b batchv1.Job) int {
		return cmp.Or(tickOf(a.Name).Compare(tickOf(b.Name)), strings.Compare(a.Name, b.Name))
	})
	return jobs.Items
}

func jobNames(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	var names []string
	for _, job := range jobsIn(ctx, namespace) {
		names = append(names, job.Name)
	}
	return names
}

// backdate sets the status that a CronJob would have if it had been scheduled since then, and no pass had been made.
func backdate(ctx context.Context, cj *tutorialv1.CronJob, since time.Time, change ...func(*tutorialv1.CronJobStatus)) {
	GinkgoHelper()
	if manager != nil {
		touch(ctx, cj) // the manager restores its last status until it has observed that
	}
	get(ctx, cj).Status = tutorialv1.CronJobStatus{
		ScheduledSince:   ptr.To(metav1.NewTime(since)),
		ObservedSchedule: cj.Spec.Schedule,
		ObservedTimeZone: ptr.Deref(cj.Spec.TimeZone, ""),
	}
	for _, change := range change {
		change(&cj.Status)
	}
	Expect(k8s.Status().Update(ctx, cj)).To(Succeed())
}

// finish finishes a suspended Job.
func finish(ctx context.Context, job *batchv1.Job, how batchv1.JobConditionType) {
	GinkgoHelper()
	Expect(jobstate.Finish(ctx, k8s, job, how)).To(Succeed())
}

// isGone returns a function that reports whether an object does not exist.
func isGone(object client.Object) func(context.Context) bool {
	return func(ctx context.Context) bool {
		return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(object), object))
	}
}

// history is the CronJob "none", created when the suite began, with finished Jobs. Another CronJob is named "some".
var history *tutorialv1.CronJob

// makeHistory creates finished Jobs, which have to be a minute old before the operator deletes them.
func makeHistory(ctx context.Context) {
	GinkgoHelper()
	ns := newNamespace(ctx)
	for name, jobs := range map[string]map[int]batchv1.JobConditionType{
		"some": {10: batchv1.JobComplete, 9: batchv1.JobComplete, 8: batchv1.JobComplete, 7: batchv1.JobComplete,
			5: batchv1.JobFailed, 4: batchv1.JobFailed, 3: batchv1.JobFailed},
		"none": {5: batchv1.JobComplete, 4: batchv1.JobFailed, 3: ""},
	} {
		cj := newCronJob(ns, name, "@yearly")
		cj.Spec.SuccessfulJobsHistoryLimit, cj.Spec.FailedJobsHistoryLimit = ptr.To[int32](100), ptr.To[int32](100)
		Expect(k8s.Create(ctx, cj)).To(Succeed())
		made := func(jobName string, end batchv1.JobConditionType, finalizers ...string) {
			job := testkinds.NewJob(ns, jobName)
			job.Finalizers = finalizers
			job.OwnerReferences = controlledByCronJob(cj)
			Expect(k8s.Create(ctx, job)).To(Succeed())
			if end != "" {
				finish(ctx, job, end)
			}
		}
		for hours, end := range jobs {
			var finalizers []string
			if hours == 8 {
				finalizers = []string{"example.com/hold"}
			}
			made(jobName(name, lastHour.Add(-time.Duration(hours)*time.Hour)), end, finalizers...)
		}
		if name == "some" {
			made("some-by-hand", batchv1.JobComplete)
		} else {
			history = cj
		}
	}
}

// waitForHistory waits until the Jobs in the history are old enough to be deleted: a minute.
func waitForHistory() {
	GinkgoHelper()
	Eventually(func() time.Duration { return time.Since(history.CreationTimestamp.Time) }).
		WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(BeNumerically(">", 65*time.Second))
}

// limitHistory sets how many finished Jobs a CronJob keeps.
func limitHistory(ctx context.Context, cj *tutorialv1.CronJob, succeeded, failed int32) {
	GinkgoHelper()
	edit(ctx, cj, func(cj *tutorialv1.CronJob) {
		cj.Spec.SuccessfulJobsHistoryLimit, cj.Spec.FailedJobsHistoryLimit = &succeeded, &failed
	})
}

// suspendAll suspends the CronJobs of a namespace that are due every few seconds. Their history stays as it is.
func suspendAll(ctx context.Context, namespace string) {
	GinkgoHelper()
	var all tutorialv1.CronJobList
	Expect(k8s.List(ctx, &all, client.InNamespace(namespace))).To(Succeed())
	for _, cj := range all.Items {
		if strings.HasSuffix(cj.Spec.Schedule, "s") {
			edit(ctx, &cj, func(cj *tutorialv1.CronJob) {
				cj.Spec.Suspend, cj.Spec.SuccessfulJobsHistoryLimit = ptr.To(true), ptr.To[int32](1000)
			})
			kinds[2].eventually(ctx, &cj, "Available=False/Suspended", "Progressing=False/Idle")
		}
	}
}
