package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// otherKinds is how many Memcacheds, and how many CronJobs, exist beside the Foos.
const otherKinds = 100

// idleness is what a program does while nothing happens.
type idleness struct {
	Program  string         `json:"program"`
	Foos     int            `json:"foos"`
	Seconds  float64        `json:"seconds"`
	Requests map[string]int `json:"requests"`
	Writes   int            `json:"writes"`
	// Resyncs is how many times all objects of every kind were reconciled; 0 if that is unknown.
	Resyncs int `json:"resyncs"`
	measure.Cost
}

// measureIdle measures what is requested while nothing happens but resyncs.
func measureIdle(ctx context.Context, p *plane, f *found) error {
	if _, err := p.populate(ctx, f.Scale.Idle); err != nil {
		return err
	}
	if err := p.populateOthers(ctx); err != nil {
		return err
	}
	for _, a := range p.bench.compared() {
		length, flags := f.Scale.IdleOthers, []string{}
		if a.isOperator { // three resyncs, none of them at the end
			length = f.Scale.IdleTime
			flags = append(flags, "--sync-period="+(length*3/10).String())
		}
		measure.Log("%s: idle with %d Foos for %s", a.name, f.Scale.Idle, length)
		i, err := p.measureIdleness(ctx, a, flags, length, f.Scale.Idle)
		if err != nil {
			return err
		}
		f.Idle = append(f.Idle, i)
	}
	return nil
}

func (p *plane) measureIdleness(ctx context.Context, a program, flags []string, length time.Duration,
	foos int) (*idleness, error) {
	c, err := p.startReady(ctx, a, nil, flags...)
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	if c.metrics != nil {
		if err := p.passed(ctx, c, foos); err != nil {
			return nil, err
		}
	}
	if err := p.rest(ctx, a); err != nil {
		return nil, err
	}
	kinds := map[string]int{"foo": foos, "memcached": otherKinds, "cronjob": otherKinds}
	before, err := p.passesOf(c, kinds)
	if err != nil {
		return nil, err
	}
	mark, cpu := p.Audit.Now(), p.cpu(c)
	if err := measure.Pause(ctx, length); err != nil {
		return nil, err
	}
	requests := p.Audit.Since(mark, by(a))
	result := &idleness{Program: a.name, Foos: foos, Seconds: length.Seconds(), Requests: measure.Counted(requests),
		Writes: writesAmong(requests)}
	if result.Cost, err = cpu.Until(p.cpu(c)); err != nil {
		return nil, err
	}
	after, err := p.passesOf(c, kinds)
	if err != nil {
		return nil, err
	}
	for kind, passes := range after {
		resyncs := (passes - before[kind]) / kinds[kind]
		if resyncs == 0 {
			return nil, fmt.Errorf("not all objects of the kind %s were reconciled again: there was no resync", kind)
		}
		if result.Resyncs == 0 || resyncs < result.Resyncs {
			result.Resyncs = resyncs
		}
	}
	return result, c.Alive()
}

// writesAmong counts the requests that change something.
func writesAmong(requests []testenv.Request) int {
	return len(slices.DeleteFunc(slices.Clone(requests), func(r testenv.Request) bool { return !r.IsWrite() }))
}

// passesOf returns how many passes a controller has made for each kind; nothing for one without metrics.
func (p *plane) passesOf(c *controller, kinds map[string]int) (map[string]int, error) {
	passes := map[string]int{}
	if c.metrics == nil {
		return passes, nil
	}
	for kind := range kinds {
		var err error
		if passes[kind], err = c.metrics.Passes(p.token, kind); err != nil {
			return nil, err
		}
	}
	return passes, nil
}

// populateOthers has the operator create the children of Memcacheds of one node, and of CronJobs that are due in half a
// year.
func (p *plane) populateOthers(ctx context.Context) error {
	measure.Log("%s reconciles %d Memcacheds and %[2]d CronJobs", operator.name, otherKinds)
	namespace, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	c, err := p.startReady(ctx, operator, []string{"WATCH_NAMESPACE=" + namespace})
	if err != nil {
		return err
	}
	defer c.Stop()
	template := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "job", Image: "busybox"}},
	}}}}
	schedule := fmt.Sprintf("0 0 1 %d *", time.Now().AddDate(0, 6, 0).Month())
	var making errgroup.Group
	making.SetLimit(makers)
	for number := range otherKinds {
		making.Go(func() error {
			metadata := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("other-%05d", number)}
			return errors.Join(
				p.making.Create(ctx, &tutorialv1.CronJob{ObjectMeta: metadata,
					Spec: tutorialv1.CronJobSpec{Schedule: schedule, JobTemplate: template}}),
				p.making.Create(ctx, &cachev1alpha1.Memcached{ObjectMeta: metadata,
					Spec: cachev1alpha1.MemcachedSpec{Size: 1}}),
				p.bringUp(ctx, namespace, metadata.Name, 0))
		})
	}
	err = making.Wait()
	return errors.Join(err, p.rest(ctx, operator), p.areAvailable(ctx, namespace))
}

// areAvailable returns an error unless all Memcacheds and CronJobs of a namespace are available and not degraded.
func (p *plane) areAvailable(ctx context.Context, namespace string) error {
	var memcacheds cachev1alpha1.MemcachedList
	var cronJobs tutorialv1.CronJobList
	err := errors.Join(p.making.List(ctx, &memcacheds, client.InNamespace(namespace)),
		p.making.List(ctx, &cronJobs, client.InNamespace(namespace)))
	available := 0
	for _, conditions := range slices.Concat(
		each(memcacheds.Items, func(m cachev1alpha1.Memcached) []metav1.Condition { return m.Status.Conditions }),
		each(cronJobs.Items, func(c tutorialv1.CronJob) []metav1.Condition { return c.Status.Conditions })) {
		if meta.IsStatusConditionTrue(conditions, "Available") && meta.IsStatusConditionFalse(conditions, "Degraded") {
			available++
		}
	}
	if err == nil && available != 2*otherKinds {
		err = fmt.Errorf("%d of %d Memcacheds and CronJobs are available", available, 2*otherKinds)
	}
	return err
}
