package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// otherKinds is how many Memcacheds, and how many CronJobs, there are beside the Foos that are at rest.
const otherKinds = 100

// populateOthers has the operator make Memcacheds of one node each, and CronJobs that are due in half a year, and stops it when it is at rest.
func (p *plane) populateOthers(ctx context.Context) error {
	p.bench.say("%s makes %d Memcacheds and %[2]d CronJobs", ours.name, otherKinds)
	namespace, err := p.namespace(ctx)
	if err != nil {
		return err
	}
	c, err := p.startReady(ctx, ours, []string{"WATCH_NAMESPACE=" + namespace})
	if err != nil {
		return err
	}
	defer c.Stop()
	template := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "job", Image: "busybox"}},
	}}}}
	schedule := fmt.Sprintf("0 0 1 %d *", time.Now().AddDate(0, 6, 0).Month())
	numbers := make(chan int)
	wait := work(numbers, func(number int) error {
		name := fmt.Sprintf("other-%05d", number)
		return errors.Join(
			p.making.Create(ctx, &tutorialv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec: tutorialv1.CronJobSpec{Schedule: schedule, JobTemplate: template}}),
			p.making.Create(ctx, &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: cachev1alpha1.MemcachedSpec{Size: 1}}),
			p.bringUp(ctx, namespace, name, 0))
	})
	for number := range otherKinds {
		numbers <- number
	}
	if err := wait(); err != nil {
		return err
	}
	if err := p.rest(ctx, ours); err != nil {
		return err
	}
	return p.areWell(ctx, namespace)
}

// areWell returns an error unless all Memcacheds and CronJobs of a namespace say that they are as they should be.
func (p *plane) areWell(ctx context.Context, namespace string) error {
	var memcacheds cachev1alpha1.MemcachedList
	var cronJobs tutorialv1.CronJobList
	if err := errors.Join(p.making.List(ctx, &memcacheds, client.InNamespace(namespace)), p.making.List(ctx, &cronJobs, client.InNamespace(namespace))); err != nil {
		return err
	}
	well := 0
	for i := range memcacheds.Items {
		if isWell(memcacheds.Items[i].Status.Conditions) {
			well++
		}
	}
	for i := range cronJobs.Items {
		if isWell(cronJobs.Items[i].Status.Conditions) {
			well++
		}
	}
	if well != 2*otherKinds {
		return fmt.Errorf("%d of %d Memcacheds and CronJobs are as they should be", well, 2*otherKinds)
	}
	return nil
}

func isWell(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, "Available") && meta.IsStatusConditionFalse(conditions, "Degraded")
}
