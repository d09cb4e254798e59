package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/example/memcached-operator/test/bundle"
	"github.com/example/memcached-operator/test/kinds"
)

const (
	// How often the cluster is asked whether something has happened.
	interval = 250 * time.Millisecond
	// How long what a test has made may take to go. It is beyond the time of the test, which may be over.
	cleanupTimeout = time.Minute
)

// connect returns a client for the cluster that KUBECONFIG names, or else the one that this pod runs in.
func connect() (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme),
		kinds.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	cfg, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	k8s, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return k8s, nil
}

// trial is a test of one kind on the cluster.
type trial struct {
	client.Client
	kind
	namespace string
	bundle    *bundle.Contents
	sample    client.Object

	begin       time.Time
	log         strings.Builder
	suggestions []string
	made        []client.Object
}

// forEachKind makes a test of all kinds from the test of one. The kinds are tried at the same time.
func forEachKind(test func(ctx context.Context, t *trial)) func(ctx context.Context,
	s settings) ([]finding, error) {
	return func(ctx context.Context, s settings) ([]finding, error) {
		if s.namespace == "" {
			return nil, errors.New("SCORECARD_NAMESPACE is not set: name the namespace to test in")
		}
		contents, err := bundle.Read(s.bundle)
		if err != nil {
			return nil, err
		}
		k8s, err := connect()
		if err != nil {
			return nil, err
		}
		findings := make([]finding, len(allKinds))
		var all sync.WaitGroup
		for i, k := range allKinds {
			all.Go(func() { findings[i] = try(ctx, k8s, s.namespace, k, contents, test) })
		}
		all.Wait()
		return findings, nil
	}
}

// either makes one test of one for kinds that repair their children, and one for those that create them by a schedule.
func either(repairs, schedules func(ctx context.Context, t *trial)) func(ctx context.Context, t *trial) {
	return func(ctx context.Context, t *trial) {
		if t.Deploys {
			repairs(ctx, t)
			return
		}
		schedules(ctx, t)
	}
}

// try runs a test of one kind and deletes what it has created, whatever the outcome.
func try(ctx context.Context, k8s client.Client, namespace string, k kind, contents *bundle.Contents,
	test func(ctx context.Context, t *trial)) finding {
	t := &trial{Client: k8s, kind: k, namespace: namespace, bundle: contents, begin: time.Now()}
	var err error
	if t.sample, err = sample(contents, k); err == nil {
		err = errors.Join(t.outcome(ctx, test), t.cleanUp(context.WithoutCancel(ctx)))
	}
	return finding{subject: k.Name, err: err, suggestions: t.suggestions, log: t.log.String()}
}

// aborted is what [trial.must] panics with.
type aborted struct{ error }

// outcome runs a test and returns the error that has ended it.
func (t *trial) outcome(ctx context.Context, test func(ctx context.Context, t *trial)) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case aborted:
			err = cause.error
		default:
			panic(cause)
		}
	}()
	test(ctx, t)
	return nil
}

// must ends the test if there is an error, as Fatal of a testing.T does. So do the methods that return no error.
func (t *trial) must(err error) {
	if err != nil {
		panic(aborted{err})
	}
}

// logf notes what happens, for whoever wants to know why the test has failed.
func (t *trial) logf(format string, args ...any) {
	fmt.Fprintf(&t.log, "%6.2fs %s\n", time.Since(t.begin).Seconds(), fmt.Sprintf(format, args...))
}

// newObject returns the sample under a name that nobody else has.
func (t *trial) newObject() client.Object {
	object := t.sample.DeepCopyObject().(client.Object)
	object.SetNamespace(t.namespace)
	object.SetName(fmt.Sprintf("%s-%s", object.GetName(), rand.String(5)))
	if t.prepare != nil {
		t.prepare(object)
	}
	return object
}

// create creates an object that is deleted when the test is over, and reports whether it has. An error that a filter
// accepts does not end the test.
func (t *trial) create(ctx context.Context, object client.Object, accepted ...func(error) bool) bool {
	if err := t.Create(ctx, object); err != nil {
		if slices.ContainsFunc(accepted, func(accepts func(error) bool) bool { return accepts(err) }) {
			t.logf("not created %s: %v", t.called(object), err)
			return false
		}
		t.must(refusal(fmt.Errorf("creating %s: %w", t.called(object), err)))
	}
	t.made = append(t.made, object)
	t.logf("created %s", t.called(object))
	return true
}

// createSample creates a new object from the sample and waits until the operator has carried it out, as far as that
// needs no pods to become ready.
func (t *trial) createSample(ctx context.Context) client.Object {
	object := t.newObject()
	t.create(ctx, object)
	t.carriedOut(ctx, object)
	return object
}

// change patches an object as a user would who only cares for that change.
func (t *trial) change(ctx context.Context, object client.Object, change func(client.Object)) {
	before := object.DeepCopyObject().(client.Object)
	change(object)
	if err := t.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		t.must(refusal(fmt.Errorf("changing %s: %w", t.called(object), err)))
	}
	t.logf("changed %s", t.called(object))
}

// delete deletes an object.
func (t *trial) delete(ctx context.Context, object client.Object) {
	if err := t.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.must(fmt.Errorf("deleting %s: %w", t.called(object), err))
	}
	t.logf("deleted %s", t.called(object))
}

// get reads objects.
func (t *trial) get(ctx context.Context, objects ...client.Object) {
	for _, object := range objects {
		t.must(t.Get(ctx, client.ObjectKeyFromObject(object), object))
	}
}

// refusal makes a failure of an error that says that the API server does not take what users may well write.
func refusal(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return failed("%w; look at the CustomResourceDefinition, and at config/samples", err)
	}
	return err
}

// cleanUp removes what was made, the last first, and with each object what it owns.
func (t *trial) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	var errs []error
	for i := len(t.made) - 1; i >= 0; i-- {
		errs = append(errs,
			client.IgnoreNotFound(t.Delete(ctx, t.made[i], client.PropagationPolicy(metav1.DeletePropagationForeground))))
	}
	for _, object := range t.made {
		errs = append(errs,
			t.await(ctx, t.called(object)+" is gone", "its finalizers, and the objects that it owns", t.gone(object)))
	}
	return errors.Join(errs...)
}

// A check looks at the cluster and returns what is wrong, or nothing.
type check func(ctx context.Context) (wrong string, err error)

// all is a check that several checks find nothing wrong.
func all(checks ...check) check {
	return func(ctx context.Context) (string, error) {
		for _, check := range checks {
			if wrong, err := check(ctx); wrong != "" || err != nil {
				return wrong, err
			}
		}
		return "", nil
	}
}

// until waits until nothing is wrong.
func (t *trial) until(ctx context.Context, what, look string, checks ...check) {
	t.must(t.await(ctx, what, look, checks...))
}

// await waits until nothing is wrong. After a timeout, the error names what was awaited, what was observed last, and
// where to look.
func (t *trial) await(ctx context.Context, what, look string, checks ...check) error {
	last := "nothing yet"
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		wrong, err := all(checks...)(ctx)
		if ctx.Err() != nil {
			return false, ctx.Err() // and what was seen before is what was seen last
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return false, err // it will be the same next time
		}
		if err != nil {
			wrong = err.Error()
		}
		if wrong != "" && wrong != last {
			t.logf("%s", wrong)
		}
		last = wrong
		return wrong == "", nil
	})
	switch {
	case err == nil:
		t.logf("%s", what)
		return nil
	case wait.Interrupted(err):
		return failed("waited until %s; seen last: %s; look at %s", what, last, look)
	}
	return fmt.Errorf("waiting until %s: %w", what, err)
}

// gone is a check that an object does not exist any more.
func (t *trial) gone(object client.Object) check {
	uid := object.GetUID()
	return func(ctx context.Context) (string, error) {
		now := object.DeepCopyObject().(client.Object)
		err := t.Get(ctx, client.ObjectKeyFromObject(object), now)
		if apierrors.IsNotFound(err) || err == nil && uid != "" && now.GetUID() != uid {
			return "", nil
		}
		return t.called(object) + " still exists", err
	}
}

const managerLog = "the log of the operator, and the status and events of the resource"

// carriedOut waits until [trial.isCarriedOut] and other checks find nothing wrong.
func (t *trial) carriedOut(ctx context.Context, object client.Object, others ...check) {
	t.until(ctx, t.called(object)+" is carried out", managerLog, t.isCarriedOut(object), all(others...))
}

// isCarriedOut is a check that the children of an object match its spec, and that its status is of that spec.
func (t *trial) isCarriedOut(object client.Object) check {
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		if observed := t.kind.Status(object).ObservedGeneration; observed != object.GetGeneration() {
			return fmt.Sprintf("status.observedGeneration of %s is %d, its generation is %d", t.called(object), observed,
				object.GetGeneration()), nil
		}
		for _, child := range t.ChildrenOf(object) {
			if wrong, err := t.isOwn(ctx, object, child); wrong != "" || err != nil {
				return wrong, err
			}
		}
		return t.contradiction(ctx, object)
	}
}

// isOwn reads a child and tells what keeps it from being one.
func (t *trial) isOwn(ctx context.Context, object, child client.Object) (wrong string, err error) {
	err = t.Get(ctx, client.ObjectKeyFromObject(child), child)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s has no %s", t.called(object), t.called(child)), nil
	case err != nil:
		return "", err
	case !metav1.IsControlledBy(child, object):
		return fmt.Sprintf("%s is not controlled by %s", t.called(child), t.called(object)), nil
	}
	return "", nil
}

// called returns what users call an object, such as "Foo web".
func (t *trial) called(object client.Object) string {
	gvk, err := t.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Sprintf("%T %s", object, object.GetName())
	}
	return gvk.Kind + " " + object.GetName()
}
