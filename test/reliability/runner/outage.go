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

const (
	mostWait = 15 * time.Second // from the first plan that waits for the outage, until it starts without the others
	timeAway = time.Second      // how long the killed part is down
)

// Outage kills a part of the control plane for many plans at the same time. It starts when each plan has reached the
// request at which its fault occurs, or its end.
type Outage struct {
	// Err is an error of the outage itself. Read it after all plans.
	Err error

	part  *part
	ready func() error // waits until the part is ready again
	after func() error // runs once the part is ready again
	// acts is read-locked while a step acts as a user: users wait until an outage is over.
	acts sync.RWMutex

	mu       sync.Mutex
	coming   int       // plans that have reached neither their request nor their end
	isWanted bool      // a plan has reached its request
	from, to time.Time // when the part was down; zero before
	once     sync.Once
	begun    chan struct{} // closed when the part is down
	over     chan struct{} // closed when it is ready again
}

// NewOutage returns an outage of the part that a fault kills, for a number of plans.
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

// admits waits until the API server admits children of the operator's kinds. For some seconds after it is ready it may
// not have loaded the CustomResourceDefinitions, and rejects owner references that block the owner's deletion.
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

// endPods deletes pods whose deletion an outage interrupted between its two writes. In a cluster, the pod garbage
// collector does that; it does not run here.
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

// wait calls arrive and waits until the part is down. It returns false if the outage has already happened.
func (o *Outage) wait(arrive func()) bool {
	if o.HasHappened() {
		return false
	}
	o.mu.Lock()
	if !o.isWanted {
		time.AfterFunc(mostWait, func() { o.once.Do(o.happen) })
	}
	o.isWanted = true
	o.mu.Unlock()
	arrive()
	<-o.begun
	return true
}

// arrive notes that a plan has reached its request or its end.
func (o *Outage) arrive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.coming--
	if o.coming <= 0 && o.isWanted {
		go o.once.Do(o.happen)
	}
}

// passes waits until the outage is over, or all plans have ended without reaching their request.
func (o *Outage) passes(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		select {
		case <-o.over:
			return true, nil
		default:
			return o.coming <= 0 && !o.isWanted, nil
		}
	})
}

// when returns the time from the kill until the part was ready again; zero if there was no outage.
func (o *Outage) when() (from, to time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.from, o.to
}

// HasHappened reports whether the part was killed.
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
