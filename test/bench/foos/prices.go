package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/internal/status"
	"github.com/example/memcached-operator/test/bench/foos/least"
)

// How many writes of a sort are measured, and how often.
const (
	priced       = 1000
	pricedRounds = 3
)

// price is what a write takes of a machine, whoever makes it.
type price struct {
	Write string `json:"write"`
	// OfFloor and OfOurs tell whether a Foo of that arm takes such a write.
	OfFloor bool `json:"ofFloor"`
	OfOurs  bool `json:"ofOurs"`
	// Instead is what the operator does, where this is what it could do instead.
	Instead string `json:"instead,omitempty"`
	// CPU are milliseconds of CPU time of the API server and etcd, in each round.
	CPU []float64 `json:"cpuMilliseconds"`
	// Others are the shares of the machine's CPU time that went to other processes, in each round.
	Others []float64 `json:"others"`
}

// written is what the operator has written for a Foo.
type written struct {
	foo        *samplev1alpha1.Foo
	deployment *appsv1ac.DeploymentApplyConfiguration
	event      *eventsv1.Event
}

// goods are objects that writes are measured with, made anew in each round.
type goods struct {
	p         *plane
	namespace string
	sample    *written
	// foos and deployments are as the floor makes them, ourFoos and ourDeployments as this operator does.
	foos, ourFoos               []*samplev1alpha1.Foo
	deployments, ourDeployments []*appsv1.Deployment
}

// measurePrices measures what each write takes that the floor or the operator makes for a Foo: it says how much of the floor's rate is to
// be had by who writes what the operator writes.
func measurePrices(ctx context.Context, p *plane, f *found) error {
	f.Prices = nil
	sample, err := p.sample(ctx)
	if err != nil {
		return err
	}
	for round := range pricedRounds {
		p.bench.say("prices, round %d", round+1)
		namespace, err := p.namespace(ctx)
		if err != nil {
			return err
		}
		g := &goods{p: p, namespace: namespace, sample: sample,
			foos: make([]*samplev1alpha1.Foo, priced), ourFoos: make([]*samplev1alpha1.Foo, priced),
			deployments: make([]*appsv1.Deployment, priced), ourDeployments: make([]*appsv1.Deployment, priced)}
		for i, w := range g.writes(ctx) {
			spent, err := p.priceOf(w.do)
			if err != nil {
				return fmt.Errorf("%s: %w", w.what, err)
			}
			if round == 0 {
				f.Prices = append(f.Prices, &price{Write: w.what, OfFloor: w.ofFloor, OfOurs: w.ofOurs, Instead: w.instead})
			}
			f.Prices[i].add(spent)
		}
	}
	return nil
}

// sample has the operator make one Foo true, and returns what it has written.
func (p *plane) sample(ctx context.Context) (*written, error) {
	stop := p.play(ctx)
	defer stop()
	namespace, err := p.populate(ctx, ours, 1)
	if err != nil {
		return nil, err
	}
	var foos samplev1alpha1.FooList
	var deployments appsv1.DeploymentList
	var events eventsv1.EventList
	if err := errors.Join(p.making.List(ctx, &foos, client.InNamespace(namespace)), p.making.List(ctx, &deployments, client.InNamespace(namespace)),
		p.making.List(ctx, &events, client.InNamespace(namespace))); err != nil {
		return nil, err
	}
	if len(foos.Items) != 1 || len(deployments.Items) != 1 || len(events.Items) == 0 {
		return nil, fmt.Errorf("of one Foo there are %d Deployments and %d events", len(deployments.Items), len(events.Items))
	}
	deployment, err := appsv1ac.ExtractDeployment(&deployments.Items[0], string(child.FieldOwner))
	return &written{&foos.Items[0], deployment, &events.Items[0]}, err
}

// write is a sort of write.
type write struct {
	what            string
	ofFloor, ofOurs bool
	do              func(number int) error
	instead         string // what the operator does instead of it
}

const (
	applying = "apply the Deployment"
	telling  = "status of the Foo, with conditions"
)

// writes returns all sorts of writes, in an order in which each finds what it needs.
func (g *goods) writes(ctx context.Context) []write {
	making, teller := g.p.making, status.Of[samplev1alpha1.Foo](g.p.making, clock.RealClock{})
	return []write{
		{what: "create the Foo", ofFloor: true, ofOurs: true, do: func(i int) error {
			g.foos[i] = g.foo("floor", i)
			return making.Create(ctx, g.foos[i])
		}},
		{what: "create the Deployment, the least", ofFloor: true, do: func(i int) error {
			g.deployments[i] = least.Deployment(g.foos[i])
			return making.Create(ctx, g.deployments[i])
		}},
		{what: "status of that Deployment", ofFloor: true, do: func(i int) error { return g.available(ctx, g.deployments[i]) }},
		{what: "status of the Foo, the least", ofFloor: true, do: func(i int) error { return making.Status().Patch(ctx, g.foos[i], least.Status(1)) }},
		{what: "create another Foo", do: func(i int) error {
			g.ourFoos[i] = g.foo("ours", i)
			return making.Create(ctx, g.ourFoos[i])
		}},
		{what: applying, ofOurs: true, do: func(i int) error { return g.apply(ctx, i) }},
		{what: "status of that Deployment, too", ofOurs: true, do: func(i int) error { return g.available(ctx, g.ourDeployments[i]) }},
		{what: telling, ofOurs: true, do: func(i int) error {
			after := g.ourFoos[i].DeepCopy()
			after.Status = g.sample.foo.Status
			_, _, err := teller.Patch(ctx, g.ourFoos[i], after, true)
			return err
		}},
		{what: "event", ofOurs: true, do: func(i int) error {
			event := g.sample.event.DeepCopy()
			event.ObjectMeta = metav1.ObjectMeta{Namespace: g.namespace, Name: g.ourFoos[i].Name}
			event.Regarding.Namespace, event.Regarding.Name, event.Regarding.UID = g.namespace, g.ourFoos[i].Name, g.ourFoos[i].UID
			return making.Create(ctx, event)
		}},
		{what: "create the same Deployment", instead: applying, do: func(i int) error {
			d := g.ourDeployments[i]
			return making.Create(ctx, &appsv1.Deployment{Spec: d.Spec, ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: "created-" + d.Name,
				Labels: d.Labels, Annotations: d.Annotations, OwnerReferences: d.OwnerReferences}})
		}},
		{what: "update the status of the floor's Foo with the same", instead: telling, do: func(i int) error {
			g.foos[i].Status = g.sample.foo.Status
			return making.Status().Update(ctx, g.foos[i])
		}},
	}
}

func (g *goods) foo(prefix string, number int) *samplev1alpha1.Foo {
	name := fmt.Sprintf("%s-%05d", prefix, number)
	return &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: name},
		Spec: samplev1alpha1.FooSpec{DeploymentName: name, Replicas: ptr.To[int32](1)}}
}

// apply applies the Deployment of a Foo as the operator does.
func (g *goods) apply(ctx context.Context, number int) error {
	want := *g.sample.deployment
	metadata := *want.ObjectMetaApplyConfiguration
	metadata.Namespace, metadata.Name = &g.namespace, &g.ourFoos[number].Name
	want.ObjectMetaApplyConfiguration = &metadata
	content, err := json.Marshal(want)
	if err != nil {
		return err
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: g.ourFoos[number].Name}}
	g.ourDeployments[number] = d
	return g.p.making.Patch(ctx, d, client.RawPatch(types.ApplyPatchType, content), child.FieldOwner)
}

// available writes the status of a Deployment whose pods are all there, as the simulator does.
func (g *goods) available(ctx context.Context, d *appsv1.Deployment) error {
	d.Status = statusWith(d, *d.Spec.Replicas)
	return g.p.making.Status().Update(ctx, d)
}

// priceOf returns what is taken for what is done many times.
func (p *plane) priceOf(do func(number int) error) (cost, error) {
	before, numbers := p.cpu(nil), make(chan int)
	wait := work(numbers, do)
	for number := range priced {
		numbers <- number
	}
	doErr := wait()
	spent, err := before.until(p.cpu(nil))
	return spent, errors.Join(doErr, err)
}

// add adds what a round has taken.
func (p *price) add(spent cost) {
	p.CPU = append(p.CPU, (spent.CPU[apiServer]+spent.CPU[etcd])*1000/priced)
	p.Others = append(p.Others, spent.Others)
}
