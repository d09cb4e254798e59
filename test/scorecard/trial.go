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
	"k8s.io/apimachinery/pkg/api/equality"
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
	// How often a check is repeated.
	interval = 250 * time.Millisecond
	// How long deleting what a test has created may take, beyond the time of the test.
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
	cfg.QPS, cfg.Burst = 100, 200 // all kinds share them; with the defaults, a test would wait for its own requests
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
	created     []client.Object
}

// open reads the bundle and connects to the cluster, for a test in a namespace.
func (s settings) open() (*bundle.Contents, client.Client, error) {
	if s.namespace == "" {
		return nil, nil, errors.New("SCORECARD_NAMESPACE is not set: name the namespace to test in")
	}
	contents, err := bundle.Read(s.bundle)
	if err != nil {
		return nil, nil, err
	}
	k8s, err := connect()
	return contents, k8s, err
}

// forEachKind makes a test of all kinds from the test of one. The kinds are tried at the same time.
func forEachKind(test func(ctx context.Context, t *trial)) func(ctx context.Context, s settings) ([]finding, error) {
	return forKinds(allKinds, test)
}

// forKinds is forEachKind for some kinds.
func forKinds(those []kind,
	test func(ctx context.Context, t *trial)) func(ctx context.Context, s settings) ([]finding, error) {
	return func(ctx context.Context, s settings) ([]finding, error) {
		contents, k8s, err := s.open()
		if err != nil {
			return nil, err
		}
		findings := make([]finding, len(those))
		var all sync.WaitGroup
		for i, k := range those {
			t := &trial{Client: k8s, kind: k, namespace: s.namespace, bundle: contents, begin: time.Now()}
			all.Go(func() {
				var err error
				if t.sample, err = sample(contents, k); err == nil {
					err = errors.Join(t.outcome(ctx, test), t.cleanUp(context.WithoutCancel(ctx)))
				}
				findings[i] = finding{subject: k.Title(), err: err, suggestions: t.suggestions, log: t.log.String()}
			})
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

// aborted is what [trial.must] panics with.
type aborted struct{ error }

// outcome runs a test and returns the error with which it failed.
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

// logf logs an event of the test.
func (t *trial) logf(format string, args ...any) {
	fmt.Fprintf(&t.log, "%6.2fs %s\n", time.Since(t.begin).Seconds(), fmt.Sprintf(format, args...))
}

// copyOfSample returns the sample under an unused name.
func (t *trial) copyOfSample() client.Object {
	object := t.sample.DeepCopyObject().(client.Object)
	object.SetNamespace(t.namespace)
	object.SetName(fmt.Sprintf("%s-%s", object.GetName(), rand.String(5)))
	return object
}

// newObject returns the sample under an unused name, prepared for the tests.
func (t *trial) newObject() client.Object {
	object := t.copyOfSample()
	if t.prepare != nil {
		t.prepare(object)
	}
	return object
}

// create creates an object that is deleted after the test, and reports whether it did. An error that a filter accepts
// does not end the test.
func (t *trial) create(ctx context.Context, object client.Object, accepted ...func(error) bool) bool {
	if err := t.Create(ctx, object); err != nil {
		if slices.ContainsFunc(accepted, func(accepts func(error) bool) bool { return accepts(err) }) {
			t.logf("not created %s: %v", t.called(object), err)
			return false
		}
		t.must(refusal("creating "+t.called(object), err))
	}
	t.created = append(t.created, object)
	t.logf("created %s", t.called(object))
	return true
}

// createSample creates a new object from the sample and waits until it is reconciled, as far as that needs no ready
// pods.
func (t *trial) createSample(ctx context.Context) client.Object {
	object := t.newObject()
	t.create(ctx, object)
	t.reconciled(ctx, object)
	return object
}

// change patches an object.
func (t *trial) change(ctx context.Context, object client.Object, change func(client.Object)) {
	before := object.DeepCopyObject().(client.Object)
	change(object)
	t.patch(ctx, object, client.MergeFrom(before))
}

func (t *trial) patch(ctx context.Context, object client.Object, patch client.Patch) {
	t.must(refusal("changing "+t.called(object), t.Patch(ctx, object, patch)))
	t.logf("changed %s", t.called(object))
}

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

// refusal returns an error, which is a failure if the API server rejects what users may write.
func refusal(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return failed("%s: %w; look at the CustomResourceDefinition, and at config/samples", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// cleanUp deletes what was created, the last first, and waits until these objects are gone. Their children are deleted
// by the garbage collector, later: on a busy node, pods take longer to start and to end than a test may wait.
func (t *trial) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	var errs []error
	for _, object := range slices.Backward(t.created) {
		errs = append(errs,
			client.IgnoreNotFound(t.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	for _, object := range t.created {
		errs = append(errs,
			t.await(ctx, t.called(object)+" is deleted", "what has set its finalizers", t.deleted(object)))
	}
	return errors.Join(errs...)
}

// A check reads the cluster and returns what is wrong, or nothing.
type check func(ctx context.Context) (wrong string, err error)

// differs returns what is wrong if a value is not the expected one.
func differs[T any](what string, got, want T) (wrong string) {
	if equality.Semantic.DeepEqual(got, want) {
		return ""
	}
	return fmt.Sprintf("%s is %v, not %v", what, got, want)
}

// until waits until no check finds anything wrong.
func (t *trial) until(ctx context.Context, what, look string, checks ...check) {
	t.must(t.await(ctx, what, look, checks...))
}

// await waits until no check finds anything wrong. After a timeout, the error names what was awaited, what was observed
// last, and where to look.
func (t *trial) await(ctx context.Context, what, look string, checks ...check) error {
	last := "nothing"
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		var wrong string
		var err error
		for i := 0; i < len(checks) && wrong == "" && err == nil; i++ {
			wrong, err = checks[i](ctx)
		}
		if ctx.Err() != nil {
			return false, ctx.Err() // the observation before is the last one
		}
		if err != nil && strings.Contains(err.Error(), "would exceed context deadline") {
			return false, context.DeadlineExceeded // client-go did not even send the request
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return false, err // trying again does not help
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
		return failed("waited until %s; observed last: %s; look at %s", what, last, look)
	}
	return fmt.Errorf("waiting until %s: %w", what, err)
}

// deleted is a check that an object does not exist any more.
func (t *trial) deleted(object client.Object) check {
	uid := object.GetUID()
	return func(ctx context.Context) (string, error) {
		current := object.DeepCopyObject().(client.Object)
		err := t.Get(ctx, client.ObjectKeyFromObject(object), current)
		if apierrors.IsNotFound(err) || err == nil && uid != "" && current.GetUID() != uid {
			return "", nil
		}
		return fmt.Sprintf("%s still exists, with the finalizers %v", t.called(object), current.GetFinalizers()), err
	}
}

const managerLog = "the log of the operator, and the status and events of the resource"

// reconciled waits until [trial.isReconciled] and other checks find nothing wrong.
func (t *trial) reconciled(ctx context.Context, object client.Object, others ...check) {
	t.until(ctx, t.called(object)+" is reconciled", managerLog, slices.Insert(others, 0, t.isReconciled(object))...)
}

// isReconciled is a check that the children of an object match its spec, and that its status is of that spec.
func (t *trial) isReconciled(object client.Object) check {
	return func(ctx context.Context) (string, error) {
		if err := t.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		if wrong := differs("status.observedGeneration of "+t.called(object), t.kind.Status(object).ObservedGeneration,
			object.GetGeneration()); wrong != "" {
			return wrong, nil
		}
		for _, child := range t.ChildrenOf(object) {
			if wrong, err := t.isControlled(ctx, object, child); wrong != "" || err != nil {
				return wrong, err
			}
		}
		return t.contradiction(ctx, object)
	}
}

// isControlled reads a child and returns what is wrong if the object does not control it.
func (t *trial) isControlled(ctx context.Context, object, child client.Object) (wrong string, err error) {
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

// called returns the kind and name of an object, such as "Foo web".
func (t *trial) called(object client.Object) string {
	gvk, err := t.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Sprintf("%T %s", object, object.GetName())
	}
	return gvk.Kind + " " + object.GetName()
}
