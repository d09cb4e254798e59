// Package extremes runs the operator, as users run it, with sizes that no scenario has: a CronJob with 10,000 Jobs, and
// resources of almost the size that etcd accepts.
package extremes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	manyJobs  = 10_000
	namespace = "default"
	rest      = 5 * time.Second
	timeout   = 10 * time.Minute
	writers   = 16 // the number of concurrent requests of the test
)

// Result is a number with its bound.
type Result struct {
	What         string
	Found, Bound int
	// Unjudged is why Found is not compared with Bound; empty if it is.
	Unjudged string
}

// IsViolated reports whether the number exceeds its bound.
func (r Result) IsViolated() bool { return r.Found > r.Bound && r.Unjudged == "" }

// stage is the operator on a control plane of its own.
type stage struct {
	*testenv.ControlPlane
	operator *testenv.Manager
	log      func(format string, values ...any)
	results  []Result
}

// Run runs a program of the operator and returns what it has counted. It returns an error if a step fails or times out.
func Run(ctx context.Context, program string, log func(format string, values ...any)) (_ []Result, err error) {
	limit, err := memoryLimit()
	if err != nil {
		return nil, err
	}
	cp, err := testenv.Start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	if err := cp.Install(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go cp.Kubelet(ctx)
	s := &stage{ControlPlane: cp, log: log}
	s.operator, err = cp.StartManager(ctx, program, []string{fmt.Sprintf("GOMEMLIMIT=%d", limit),
		"KUBE_CACHE_MUTATION_DETECTOR=false"}) // it keeps a copy of every cached object
	if err != nil {
		return nil, err
	}
	remove := confine(s.operator.PID(), limit)
	unjudged := ""
	if remove == nil {
		remove, unjudged = func() error { return nil }, "the kernel cannot enforce the limit here"
	}
	defer func() {
		s.operator.Kill()
		err = errors.Join(err, remove())
	}()
	err = errors.Join(s.manyJobs(ctx), s.largestAnnotations(ctx), s.largestJobs(ctx))
	_, most, memoryErr := measure.Memory(s.operator.PID())
	s.count("most memory of the operator, MiB; the bound is its limit", int(most>>20), int(limit>>20))
	s.results[len(s.results)-1].Unjudged = unjudged
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.operator.Logs())
	}
	return s.results, errors.Join(err, memoryErr)
}

// memoryLimit returns the limit of the operator's container, in bytes.
func memoryLimit() (int64, error) {
	content, err := os.ReadFile(filepath.Join(testenv.Root(), "config/manager/manager.yaml"))
	if err != nil {
		return 0, err
	}
	_, text, _ := strings.Cut(string(content), "\n---\n") // the first document is the namespace
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal([]byte(text), &deployment); err != nil {
		return 0, err
	}
	return deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value(), nil
}

func (s *stage) count(what string, found, bound int) {
	s.results = append(s.results, Result{What: what, Found: found, Bound: bound})
	s.log("%s: %d, at most %d", what, found, bound)
}

// manyJobs gives a CronJob Jobs that run, and lets all of them complete, so that the history keeps one.
func (s *stage) manyJobs(ctx context.Context) error {
	cj := kinds.CronJob.Make(namespace, "many", 1).(*tutorialv1.CronJob)
	cj.Spec.Schedule, cj.Spec.SuccessfulJobsHistoryLimit = "0 0 1 1 *", ptr.To[int32](1)
	if err := s.Client.Create(ctx, cj); err != nil {
		return err
	}
	latest := time.Now().UTC().Truncate(time.Hour)
	mark := s.Audit.Now()
	jobs := make([]*batchv1.Job, manyJobs)
	for i := range jobs {
		jobs[i] = kinds.NewJob(namespace, cj.Name+"-"+history.JobSuffix(latest.Add(-time.Duration(i)*time.Hour)))
		jobs[i].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cj,
			tutorialv1.GroupVersion.WithKind("CronJob"))}
	}
	if err := each(jobs, func(job *batchv1.Job) error { return s.Client.Create(ctx, job) }); err != nil {
		return err
	}
	err := s.await(ctx, cj, "the status counts all Jobs", func() bool { return cj.Status.ActiveJobs == manyJobs })
	if err != nil {
		return err
	}
	s.count(fmt.Sprintf("writes of the status while %d Jobs are created", manyJobs), len(s.writes(mark)), manyJobs/10)
	if err := s.atRest(ctx, "with that many Jobs"); err != nil {
		return err
	}

	youngest := slices.MaxFunc(jobs, func(a, b *batchv1.Job) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	// younger ones are not deleted
	if err := measure.Pause(ctx, time.Until(youngest.CreationTimestamp.Add(time.Minute))); err != nil {
		return err
	}
	mark = s.Audit.Now()
	if err := each(jobs, func(job *batchv1.Job) error {
		return jobstate.Finish(ctx, s.Client, job, batchv1.JobComplete)
	}); err != nil {
		return err
	}
	err = s.await(ctx, cj, "the history keeps one Job", func() bool {
		var left batchv1.JobList
		if err := s.Client.List(ctx, &left, client.InNamespace(namespace)); err != nil {
			return false
		}
		return len(left.Items) == 1 && cj.Status.ActiveJobs == 0 &&
			meta.IsStatusConditionFalse(cj.Status.Conditions, tutorialv1.ConditionDegraded)
	})
	if err != nil {
		return err
	}
	s.count("deletions that are more than one for each Job", len(s.deletions(mark))-(manyJobs-1), 0)
	s.count("errors in the log by then", strings.Count(s.operator.Logs(), `"level":"ERROR"`), 0)
	return errors.Join(s.atRest(ctx, "with one Job left"), s.Client.Delete(ctx, cj))
}

// largestAnnotations creates resources with annotations of almost the size that the API server accepts.
func (s *stage) largestAnnotations(ctx context.Context) error {
	for _, k := range kinds.WithVariants {
		object := k.Make(namespace, k.ObjectName()+"-large", 1)
		object.SetAnnotations(map[string]string{"example.com/large": strings.Repeat("x", annotationsThatWorks)})
		if err := s.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating a large %s: %w", k.Title(), err)
		}
		if err := s.await(ctx, object, "a "+k.Title()+" has the largest annotations and works", func() bool {
			status := k.Status(object)
			return status.ObservedGeneration == object.GetGeneration() &&
				meta.IsStatusConditionFalse(status.Conditions, "Degraded")
		}); err != nil {
			return err
		}
	}
	return nil
}

// etcd's limit for a request is 1.5 MiB. With an environment variable of the first size, a CronJob and its Jobs are
// below it; with the second one, the CronJob is below it without its status only.
const (
	sizeThatWorks        = 1_500_000
	sizeWithoutStatus    = 1_571_500
	annotationsThatWorks = 256<<10 - 100 // the API server's limit is 256 KiB
)

// largestJobs creates CronJobs that are almost as large as etcd accepts. One has room for its Jobs, and runs; the other
// has none for its status, which an event reports.
func (s *stage) largestJobs(ctx context.Context) error {
	works, fails := largeCronJob("works", sizeThatWorks), largeCronJob("fails", sizeWithoutStatus)
	if err := errors.Join(s.Client.Create(ctx, works), s.Client.Create(ctx, fails)); err != nil {
		return err
	}
	var events eventsv1.EventList
	return errors.Join(
		s.await(ctx, works, "a large CronJob has run", func() bool { return works.Status.ActiveJobs > 0 }),
		s.await(ctx, fails, "an event reports that a CronJob has no room for its status", func() bool {
			return s.Client.List(ctx, &events, client.InNamespace(namespace)) == nil &&
				slices.ContainsFunc(events.Items, func(event eventsv1.Event) bool {
					return event.Regarding.Name == fails.Name && event.Reason == tutorialv1.EventStatusNotWritten
				})
		}))
}

func largeCronJob(name string, size int) *tutorialv1.CronJob {
	cj := kinds.CronJob.Make(namespace, name, 1).(*tutorialv1.CronJob)
	cj.Spec.Schedule = "* * * * *"
	cj.Spec.JobTemplate.Spec = kinds.NewJob("", "").Spec
	cj.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LARGE",
		Value: strings.Repeat("x", size)}}
	return cj
}

// await reads a resource until done reports true.
func (s *stage) await(ctx context.Context, object client.Object, what string, done func() bool) error {
	began := time.Now()
	err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, func(ctx context.Context) (bool, error) {
		return s.Client.Get(ctx, client.ObjectKeyFromObject(object), object) == nil && done(), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	s.log("%s after %.0f s", what, time.Since(began).Seconds())
	return nil
}

// atRest counts the operator's writes while nothing changes.
func (s *stage) atRest(ctx context.Context, when string) error {
	mark := s.Audit.Now()
	if err := measure.Pause(ctx, rest); err != nil {
		return err
	}
	s.count("writes at rest "+when, len(s.writes(mark)), 0)
	return nil
}

func (s *stage) writes(mark testenv.Mark) []testenv.Request {
	return s.Audit.Since(mark, testenv.ByOperator, testenv.In(namespace), testenv.Request.IsWrite)
}

func (s *stage) deletions(mark testenv.Mark) []testenv.Request {
	return s.Audit.Since(mark, testenv.ByOperator, testenv.In(namespace),
		func(r testenv.Request) bool { return r.Verb == "delete" })
}

// each calls a function for each Job, for some at the same time.
func each(jobs []*batchv1.Job, do func(*batchv1.Job) error) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for _, job := range jobs {
		group.Go(func() error { return do(job) })
	}
	return group.Wait()
}
