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

// ramp is the time in which the pods of a Memcached become ready, one after the other.
const ramp = 10 * time.Second

// growth is what a new Memcached costs until all its nodes are ready.
type growth struct {
	Nodes   int     `json:"nodes"`
	Seconds float64 `json:"seconds"` // until all its pods were ready
	// StatusWrites are the writes of the Memcached's status, Requests all requests for it.
	StatusWrites int            `json:"statusWrites"`
	Requests     map[string]int `json:"requests"`
	// Last is how many seconds after the Deployment's status the Memcached's status reported all nodes.
	Last float64 `json:"last"`
}

// measureGrowths counts the status writes of Memcacheds whose pods become ready one after the other.
func measureGrowths(ctx context.Context, p *plane, f *found) error {
	c, err := p.startReady(ctx, operator, nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	for _, nodes := range f.Scale.Nodes {
		measure.Log("a Memcached with %d nodes", nodes)
		g, err := p.measureGrowth(ctx, int32(nodes))
		if err != nil {
			return fmt.Errorf("a Memcached with %d nodes: %w", nodes, err)
		}
		f.Growths = append(f.Growths, g)
		measure.Log("  %d writes of its status in %.1f s", g.StatusWrites, g.Seconds)
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
	reported := make(chan time.Time, 1)
	go measure.Follow(ctx, p.watching, &cachev1alpha1.MemcachedList{}, func(_ watch.EventType, object client.Object) {
		if mc := object.(*cachev1alpha1.Memcached); mc.Status.ReadyNodes == nodes && len(mc.Status.Nodes) == int(nodes) {
			select {
			case reported <- time.Now():
			default:
			}
		}
	}, client.InNamespace(namespace))

	mark, begun := p.Audit.Now(), time.Now()
	mc := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "grows"},
		Spec: cachev1alpha1.MemcachedSpec{Size: nodes}}
	if err := p.making.Create(ctx, mc); err != nil {
		return nil, err
	}
	if err := p.bringUp(ctx, namespace, mc.Name, ramp); err != nil {
		return nil, err
	}
	ready := time.Now()
	g := &growth{Nodes: int(nodes), Seconds: ready.Sub(begun).Seconds()}
	select {
	case at := <-reported:
		g.Last = max(0, at.Sub(ready).Seconds())
	case <-ctx.Done():
		return nil, fmt.Errorf("its status does not report all nodes: %w", context.Cause(ctx))
	}
	if err := p.rest(ctx, operator); err != nil {
		return nil, err
	}
	requests := p.Audit.Since(mark, by(operator), testenv.In(namespace))
	g.Requests = measure.Counted(requests)
	for _, request := range requests {
		if request.Resource == "memcacheds/status" {
			g.StatusWrites++
		}
	}
	return g, nil
}

// bringUp simulates the Deployment controller, the ReplicaSet controller and the kubelet for a Deployment that is about
// to be created: pod after pod becomes ready, all of them in a time, and the Deployment counts them.
func (p *plane) bringUp(ctx context.Context, namespace, name string, inAll time.Duration) error {
	d := &appsv1.Deployment{}
	for p.simulating.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d) != nil {
		if err := measure.Pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-1", Labels: d.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d,
				appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
		Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
	if err := p.simulating.Create(ctx, set); err != nil {
		return err
	}
	nodes := *d.Spec.Replicas
	begun := time.Now()
	for i := range nodes {
		if err := p.bringUpPod(ctx, set, i); err != nil {
			return err
		}
		if err := measure.Pause(ctx, time.Until(begun.Add(inAll*time.Duration(i+1)/time.Duration(nodes)))); err != nil {
			return err
		}
		// The Deployment controller, too, counts many pods at once.
		if i+1 < nodes && (i+1)%max(1, nodes/20) == 0 {
			if err := p.count(ctx, d, i+1); err != nil {
				return err
			}
		}
	}
	return p.count(ctx, d, nodes)
}

// bringUpPod creates a pod of a ReplicaSet and makes it ready.
func (p *plane) bringUpPod(ctx context.Context, set *appsv1.ReplicaSet, number int32) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%05d", set.Name, number),
			Labels: set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set,
				appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}},
		Spec: set.Spec.Template.Spec,
	}
	if err := p.simulating.Create(ctx, pod); err != nil {
		return err
	}
	return p.SetPodReady(ctx, pod)
}

// count writes how many pods of a Deployment there are, all of them available.
func (p *plane) count(ctx context.Context, d *appsv1.Deployment, pods int32) error {
	if err := p.simulating.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
		return err
	}
	d.Status = statusWith(d, pods)
	return p.simulating.Status().Update(ctx, d)
}
