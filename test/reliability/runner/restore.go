package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/test/jobstate"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

// restoreTimeout is how long each step of Restore may take. Kubernetes' garbage collector and the watches need time.
const restoreTimeout = 3 * time.Minute

// restored is a control plane whose etcd can be restored, with one resource of each kind.
type restored struct {
	*testenv.ControlPlane
	apiServer, etcd  *part
	program          string // the operator's path
	restartsOperator bool   // after the restore
	operator         *testenv.Manager
	logs             string               // of operators that were stopped
	objects          []client.Object      // of kinds.WithVariants
	ran              map[string]types.UID // the Jobs that were observed, by their scheduled times
}

// Restore restores etcd to an older state under a running operator, as an administrator does: the API server and etcd
// are stopped, etcd's data is replaced, and both are started again, and Kubernetes' controllers too. Versions of
// objects and generations occur a second time then, with another content. If restartsOperator, the operator is
// restarted after that, as docs/troubleshooting.md says. It returns an error unless the operator carries out what
// changes then. Program is its path; it is built in the directory work if the path is empty.
func Restore(ctx context.Context, program, work string, restartsOperator bool,
	log func(format string, values ...any)) (err error) {
	if program == "" {
		if program, err = testenv.Build(ctx, filepath.Join(work, "manager")); err != nil {
			return err
		}
	}
	r, err := startRestored()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go r.Kubelet(ctx)
	r.program, r.restartsOperator = program, restartsOperator
	if r.operator, err = r.StartManager(ctx, program, nil); err != nil {
		return err
	}
	defer func() { r.operator.Kill() }()
	err = r.play(ctx, filepath.Join(work, "etcd"), log)
	logs := r.logs + r.operator.Logs()
	if bug := regexp.MustCompile(`DATA RACE|panic: .*`).FindString(logs); bug != "" {
		err = errors.Join(err, fmt.Errorf("the operator's log has %q", bug))
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, logs)
	}
	return nil
}

// restartOperator stops the operator and starts it again.
func (r *restored) restartOperator(ctx context.Context) error {
	err := r.operator.Stop()
	r.logs += r.operator.Logs()
	if err != nil && !mayEnd(r.operator.Logs()) {
		return err
	}
	operator, err := r.StartManager(ctx, r.program, nil)
	if err == nil {
		r.operator = operator
	}
	return err
}

// startRestored starts the control plane.
func startRestored() (r *restored, err error) {
	cp, err := testenv.Start()
	if err != nil {
		return nil, err
	}
	r = &restored{ControlPlane: cp, ran: map[string]types.UID{}}
	r.apiServer, err = runningPart("kube-apiserver")
	if err == nil {
		r.etcd, err = runningPart("etcd")
	}
	if err == nil {
		err = cp.Install()
	}
	if err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

// play creates resources, and restores etcd after a change of them. The directory is for a copy of etcd's data.
func (r *restored) play(ctx context.Context, backup string, log func(format string, values ...any)) error {
	data, copied := r.etcd.value("--data-dir"), map[string]types.UID{}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"create", func() error { return r.create(ctx) }},
		{"run Jobs", func() error { return r.runJobs(ctx) }},
		{"copy etcd's data", func() error {
			copied = maps.Clone(r.ran)
			return r.restart(ctx, func() error { return replaceDir(backup, data) })
		}},
		{"write what is lost", func() error { return r.write(ctx) }},
		{"resize to 3", func() error { return r.resize(ctx, 3) }},
		{"run Jobs, which is lost", func() error { return r.runJobs(ctx) }},
		{"restore etcd's data", func() error {
			r.ran = copied // what ran since then is forgotten
			err := r.restart(ctx, func() error { return replaceDir(data, backup) })
			if err != nil || !r.restartsOperator {
				return err
			}
			return r.restartOperator(ctx)
		}},
		{"resize to 2", func() error { return r.resize(ctx, 2) }},
		{"resize to 3 again", func() error { return r.resize(ctx, 3) }},
		{"run Jobs again", func() error { return r.runJobs(ctx) }},
	} {
		began := time.Now()
		err := step.do()
		if err == nil {
			err = r.settle(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		log("%s: settled after %.1f s", step.name, time.Since(began).Seconds())
	}
	return r.delete(ctx)
}

// create creates a resource of each kind and variant.
func (r *restored) create(ctx context.Context) error {
	for _, k := range kinds.WithVariants {
		object := k.Make("default", k.ObjectName(), 1)
		r.objects = append(r.objects, object)
		if err := r.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// stop stops all processes.
func (r *restored) stop() error {
	return errors.Join(killStarted(r.apiServer, r.etcd), r.Stop())
}

// restart stops the API server and etcd, calls a function, and starts them and Kubernetes' controllers again.
func (r *restored) restart(ctx context.Context, meanwhile func() error) error {
	return errors.Join(r.apiServer.kill(), r.etcd.kill(), meanwhile(), r.etcd.start(), r.apiServer.start(),
		isReady(ctx, r.Config), r.RestartControllerManager())
}

// replaceDir replaces a directory by a copy of another one.
func replaceDir(to, from string) error {
	return errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from)))
}

// lostWrites are enough that versions after the restore are older for a long time than those before.
const lostWrites = 1000

// write creates objects that no controller watches.
func (r *restored) write(ctx context.Context) error {
	for n := range lostWrites {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("lost-%d", n)}}
		if err := r.Client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// resize changes the number of pods of all resources that have one. It retries while the API server starts.
func (r *restored) resize(ctx context.Context, pods int32) error {
	for i, k := range kinds.WithVariants {
		if !k.Deploys {
			continue
		}
		err := until(ctx, func(ctx context.Context) error {
			object := r.objects[i]
			if err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			before := object.DeepCopyObject().(client.Object)
			k.Resize(object, pods)
			return r.Client.Patch(ctx, object, client.MergeFrom(before))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runJobs has the CronJob create Jobs, one for each scheduled time, and deletes them.
func (r *restored) runJobs(ctx context.Context) error {
	if err := r.schedule(ctx, "@every 3s"); err != nil {
		return err
	}
	wanted, repeated := len(r.ran)+2, ""
	err := until(ctx, func(ctx context.Context) error {
		var jobs batchv1.JobList
		if err := r.Client.List(ctx, &jobs, client.InNamespace("default")); err != nil {
			return err
		}
		for _, job := range jobs.Items {
			at := jobstate.ScheduledAt(&job)
			if uid, isKnown := r.ran[at]; isKnown && uid != job.UID {
				repeated = at
			}
			r.ran[at] = job.UID
		}
		if len(r.ran) < wanted {
			return fmt.Errorf("the CronJob has run %d times, not %d", len(r.ran), wanted)
		}
		return nil
	})
	if repeated != "" {
		err = errors.Join(err, fmt.Errorf("the CronJob has run twice for %s", repeated))
	}
	return errors.Join(err, r.schedule(ctx, "@every 1h"),
		r.Client.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace("default"),
			client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// schedule sets the schedule of the CronJob, and waits until the operator has observed it. It retries while the API
// server starts.
func (r *restored) schedule(ctx context.Context, schedule string) error {
	cj := &tutorialv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cronjob"}}
	return until(ctx, func(ctx context.Context) error {
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(cj), cj); err != nil {
			return err
		}
		if cj.Spec.Schedule == schedule {
			if cj.Status.ObservedGeneration != cj.Generation {
				return errors.New("the operator has not observed the schedule")
			}
			return nil
		}
		before := cj.DeepCopy()
		cj.Spec.Schedule = schedule
		return errors.Join(r.Client.Patch(ctx, cj, client.MergeFrom(before)), errors.New("the schedule has just changed"))
	})
}

// settle waits until the status of each resource is of its spec, and its workload has the number of pods.
func (r *restored) settle(ctx context.Context) error {
	for i, k := range kinds.WithVariants {
		object := r.objects[i]
		err := until(ctx, func(ctx context.Context) error {
			if err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			status := k.Status(object)
			if status.ObservedGeneration != object.GetGeneration() || !meta.IsStatusConditionFalse(status.Conditions,
				"Progressing") || !meta.IsStatusConditionFalse(status.Conditions, "Degraded") {
				return fmt.Errorf("generation %d of %s has the status %+v", object.GetGeneration(), k.Title(), status)
			}
			if !k.Deploys {
				return nil
			}
			workload := k.ChildrenOf(object)[0]
			if err := r.Client.Get(ctx, client.ObjectKeyFromObject(workload), workload); err != nil {
				return err
			}
			replicas, _ := kinds.Workload(workload)
			if ptr.Deref(*replicas, 0) != k.Pods(object) || kinds.AvailableReplicas(workload) != k.Pods(object) {
				return fmt.Errorf("%s has %d replicas, of which %d are available", k.Title(), ptr.Deref(*replicas, 0),
					kinds.AvailableReplicas(workload))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// delete deletes all resources, and waits until their children are gone.
func (r *restored) delete(ctx context.Context) error {
	for i, k := range kinds.WithVariants {
		children := k.ChildrenOf(r.objects[i])
		if err := r.Client.Delete(ctx, r.objects[i]); err != nil {
			return err
		}
		for _, child := range children {
			err := until(ctx, func(ctx context.Context) error {
				err := r.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
				if err == nil {
					return fmt.Errorf("%T %s exists", child, child.GetName())
				}
				if apierrors.IsNotFound(err) {
					return nil
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// until retries a function until it succeeds; the last error is that at the timeout.
func until(ctx context.Context, try func(context.Context) error) (last error) {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, restoreTimeout, true,
		func(ctx context.Context) (bool, error) {
			last = try(ctx)
			return last == nil, nil
		})
	if err == nil {
		return nil
	}
	return errors.Join(last, err)
}
