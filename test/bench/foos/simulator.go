package main

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/bench/measure"
)

// players is how many Deployments are played at the same time.
const players = 16

// play plays the Deployment controller until the context ends: what a Deployment wants is there at once, by one write of its status.
// The Deployments of Memcacheds are left to who measures those.
func (p *plane) play(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	work := make(chan *appsv1.Deployment, 200_000) // more than there are: the watch must not wait
	var playing sync.WaitGroup
	for range players {
		playing.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case d := <-work:
					p.finish(ctx, d)
				}
			}
		})
	}
	playing.Go(func() {
		measure.Follow(ctx, p.playing, &appsv1.DeploymentList{}, func(event watch.EventType, object client.Object) {
			d := object.(*appsv1.Deployment)
			if event != watch.Deleted && d.Status.ObservedGeneration < d.Generation && d.Labels["app"] != "memcached" {
				work <- d
			}
		})
	})
	return func() {
		cancel()
		playing.Wait()
	}
}

// finish writes the status of a Deployment whose pods are all there, and tries again until it is written or the Deployment is gone.
func (p *plane) finish(ctx context.Context, d *appsv1.Deployment) {
	for ctx.Err() == nil {
		d.Status = statusWith(d, *d.Spec.Replicas)
		err := p.playing.Status().Update(ctx, d)
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		if !apierrors.IsConflict(err) {
			time.Sleep(100 * time.Millisecond)
		}
		if apierrors.IsNotFound(p.playing.Get(ctx, client.ObjectKeyFromObject(d), d)) {
			return
		}
	}
}

// statusWith returns the status of a Deployment with so many pods that serve.
func statusWith(d *appsv1.Deployment, pods int32) appsv1.DeploymentStatus {
	now := metav1.Now()
	return appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation,
		Replicas:           pods,
		UpdatedReplicas:    pods,
		ReadyReplicas:      pods,
		AvailableReplicas:  pods,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", LastUpdateTime: now, LastTransitionTime: now},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", LastUpdateTime: now, LastTransitionTime: now},
		},
	}
}
