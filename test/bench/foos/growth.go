package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// ramp is how long all pods of a Memcached take to come, one after the other.
const ramp = 10 * time.Second

// growth is what a Memcached takes until all its nodes are there.
type growth struct {
	Nodes   int     `json:"nodes"`
	Seconds float64 `json:"seconds"` // until all its pods were ready
	// StatusWrites are those of the Memcached, Requests all that were made for it.
	StatusWrites int            `json:"statusWrites"`
	Requests     map[string]int `json:"requests"`
	// Last is how many seconds after the last pod's readiness and the Deployment's status the Memcached's status told of all nodes.
	Last float64 `json:"last"`
}

// measureGrowths counts the status writes of Memcacheds whose pods come one after the other.
func measureGrowths(ctx context.Context, p *plane, f *found) error {
	f.Growths = nil
	c, err := p.startReady(ctx, ours, nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	for _, nodes := range f.Scale.Nodes {
		p.bench.say("a Memcached with %d nodes", nodes)
		g, err := p.measureGrowth(ctx, int32(nodes))
		if err != nil {
			return fmt.Errorf("a Memcached with %d nodes: %w", nodes, err)
		}
		f.Growths = append(f.Growths, g)
		p.bench.say("  %d writes of its status in %.1f s", g.StatusWrites, g.Seconds)
	}
	return c.Alive()
}

func (p *plane) measureGrowth(ctx context.Context, nodes int32) (*growth, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	namespace, err := p.namespace(ctx)
	if err != nil {
		return nil, err
	}
	told := make(chan time.Time, 1)
	go measure.Follow(ctx, p.watching, &cachev1alpha1.MemcachedList{}, func(_ watch.EventType, object client.Object) {
		if mc := object.(*cachev1alpha1.Memcached); mc.Status.ReadyNodes == nodes && len(mc.Status.Nodes) == int(nodes) {
			select {
			case told <- time.Now():
			default:
			}
		}
	}, client.InNamespace(namespace))

	mark, begun := p.Audit.Now(), time.Now()
	mc := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "grows"}, Spec: cachev1alpha1.MemcachedSpec{Size: nodes}}
	if err := p.making.Create(ctx, mc); err != nil {
		return nil, err
	}
	if err := p.bringUp(ctx, namespace, mc.Name, ramp); err != nil {
		return nil, err
	}
	ready := time.Now()
	g := &growth{Nodes: int(nodes), Seconds: ready.Sub(begun).Seconds()}
	select {
	case at := <-told:
		g.Last = max(0, at.Sub(ready).Seconds())
	case <-ctx.Done():
		return nil, fmt.Errorf("its status does not tell of all nodes: %w", context.Cause(ctx))
	}
	if err := p.rest(ctx, ours); err != nil {
		return nil, err
	}
	requests := p.Audit.Since(mark, by(ours), testenv.In(namespace))
	g.Requests = measure.Counted(requests)
	for _, request := range requests {
		if request.Resource == "memcacheds/status" {
			g.StatusWrites++
		}
	}
	return g, nil
}

// bringUp plays the Deployment controller, the ReplicaSet controller and the kubelet for a Deployment that is about to be made: pod after
// pod appears and is ready, all of them in a time, and the Deployment counts them.
func (p *plane) bringUp(ctx context.Context, namespace, name string, inAll time.Duration) error {
	d := &appsv1.Deployment{}
	for p.playing.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d) != nil {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-1", Labels: d.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
		Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
	if err := p.playing.Create(ctx, set); err != nil {
		return err
	}
	nodes := *d.Spec.Replicas
	begun := time.Now()
	for i := range nodes {
		if err := p.bringUpPod(ctx, set, i); err != nil {
			return err
		}
		if err := pause(ctx, time.Until(begun.Add(inAll*time.Duration(i+1)/time.Duration(nodes)))); err != nil {
			return err
		}
		// The Deployment controller counts many pods at once, too.
		if i+1 < nodes && (i+1)%max(1, nodes/20) == 0 {
			if err := p.count(ctx, d, i+1); err != nil {
				return err
			}
		}
	}
	return p.count(ctx, d, nodes)
}

// bringUpPod makes a pod of a ReplicaSet that is ready.
func (p *plane) bringUpPod(ctx context.Context, set *appsv1.ReplicaSet, number int32) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%05d", set.Name, number), Labels: set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}},
		Spec: set.Spec.Template.Spec,
	}
	if err := p.playing.Create(ctx, pod); err != nil {
		return err
	}
	return p.SetPodReady(ctx, pod)
}

// count writes how many pods of a Deployment serve. While they come, those that are to come are not there yet.
func (p *plane) count(ctx context.Context, d *appsv1.Deployment, pods int32) error {
	if err := p.playing.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
		return err
	}
	d.Status = statusWith(d, pods)
	return p.playing.Status().Update(ctx, d)
}
