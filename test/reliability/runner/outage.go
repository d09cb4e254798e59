package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/testenv"
)

// Of an outage.
const (
	mostWait = 15 * time.Second // from the first plan that is where it is to happen, until it happens without the others
	timeAway = time.Second      // how long a part stays away
)

// Outage is one of a part of the control plane, which many plans are played through at the same time: it happens when
// each has come to the request that it is to happen at, or to its end.
type Outage struct {
	// Err is what has gone wrong with the outage itself. It is for after all plans.
	Err error

	part  *part
	ready func() error // waits until what has been away is back
	after func() error // is done then
	// acts is held by users while they do something: they wait until an outage is over.
	acts sync.RWMutex

	mu      sync.Mutex
	coming  int       // plans that are still to come to it
	from    time.Time // when it went away; zero before
	to      time.Time // when it was ready again; zero before
	waiting int
	once    sync.Once
	begun   chan struct{} // closed when the part is away
	over    chan struct{} // closed when it is back
}

// NewOutage returns one that so many plans come to, of the part that a fault needs to be away.
func (e *Environment) NewOutage(ctx context.Context, kind proxy.Kind, plans int) *Outage {
	o := &Outage{part: e.apiServer, coming: plans, begun: make(chan struct{}), over: make(chan struct{})}
	if kind == proxy.EtcdAway {
		o.part = e.etcd
	}
	o.ready = func() error {
		err := errors.Join(isReady(ctx, e.ControlPlane.Config), isReady(ctx, e.recorderConfig), e.admits(ctx))
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, o.part.logs.Last())
		}
		return err
	}
	o.after = func() error { return errors.Join(e.endPods(ctx), e.ControlPlane.RestartControllerManager()) }
	return o
}

// admits waits until the API server admits what belongs to our kinds. Seconds after it says that it is ready it may
// still look for them where it has found none, and refuses their children until then, whatever the operator may do.
func (e *Environment) admits(ctx context.Context) error {
	operator, err := e.ControlPlane.ClientAs(testenv.OperatorUser)
	if err != nil {
		return err
	}
	child := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault,
		Name: "probe"}}
	for _, kind := range kinds.All {
		child.OwnerReferences = append(child.OwnerReferences, metav1.OwnerReference{
			APIVersion: kind.APIVersion(), Kind: kind.Name, Name: "probe", UID: "probe", BlockOwnerDeletion: ptr.To(true)})
	}
	var refused error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			refused = operator.Create(ctx, child.DeepCopy(), client.DryRunAll)
			return refused == nil, nil
		})
	return errors.Join(err, refused)
}

// endPods ends the pods that an outage has left between the two writes by which the API server ends a pod that no
// machine has, as the garbage collector of pods would, which does not run here.
func (e *Environment) endPods(ctx context.Context) error {
	var pods corev1.PodList
	err := e.ControlPlane.Client.List(ctx, &pods)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 && len(pod.Finalizers) == 0 {
			err = errors.Join(err, client.IgnoreNotFound(e.ControlPlane.Client.Delete(ctx, pod, client.GracePeriodSeconds(0))))
		}
	}
	return err
}

// wait waits until the part is away. It is false if that was over already.
func (o *Outage) wait() bool {
	if o.HasHappened() {
		return false
	}
	o.mu.Lock()
	o.coming--
	o.waiting++
	isAll, isFirst := o.coming <= 0, o.waiting == 1
	o.mu.Unlock()
	switch {
	case isAll:
		go o.once.Do(o.happen)
	case isFirst:
		time.AfterFunc(mostWait, func() { o.once.Do(o.happen) })
	}
	<-o.begun
	return true
}

// leave notes that a plan is not to come any more, or that it is through it.
func (o *Outage) leave(hasWaited bool) {
	o.mu.Lock()
	if !hasWaited {
		o.coming--
	}
	isAll := o.coming <= 0 && o.waiting > 0
	o.mu.Unlock()
	if isAll {
		o.once.Do(o.happen)
	}
}

// passes waits until it is over, or nobody comes to it.
func (o *Outage) passes(ctx context.Context) {
	for ctx.Err() == nil {
		o.mu.Lock()
		isNever := o.coming <= 0 && o.waiting == 0
		o.mu.Unlock()
		if isNever {
			return
		}
		select {
		case <-o.over:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// when returns from when to when the part was away, or not ready yet; zero for what has not been.
func (o *Outage) when() (from, to time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.from, o.to
}

// HasHappened tells whether the part has gone away.
func (o *Outage) HasHappened() bool {
	select {
	case <-o.begun:
		return true
	default:
		return false
	}
}

func (o *Outage) happen() {
	o.acts.Lock()
	defer o.acts.Unlock()
	o.note(&o.from)
	o.Err = o.part.kill()
	close(o.begun)
	time.Sleep(timeAway)
	o.Err = errors.Join(o.Err, o.part.start(), o.ready())
	o.note(&o.to)
	o.Err = errors.Join(o.Err, o.after())
	close(o.over)
}

func (o *Outage) note(at *time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*at = time.Now()
}
