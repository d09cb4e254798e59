package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	loadFoos     = 50
	loadInterval = 50 * time.Millisecond // between two scalings
	loadTimeout  = 2 * time.Minute       // for the final state to match the specs
	loadRest     = 5 * time.Second       // after that, without writes
)

// load is an operator without a proxy, whose Foos are scaled continuously.
type load struct {
	client    client.Client
	recorder  *history.Recorder
	namespace string
	began     time.Time
	manager   *testenv.Manager
	cancel    context.CancelFunc
	ended     chan struct{}
	changes   int
}

func startLoad(ctx context.Context, env *runner.Environment) (*load, error) {
	l := &load{client: env.ControlPlane.Client, recorder: env.Recorder, began: time.Now(),
		ended: make(chan struct{})}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "load-"}}
	if err := l.client.Create(ctx, namespace); err != nil {
		return nil, err
	}
	l.namespace = namespace.Name
	for i := range loadFoos {
		foo := l.foo(i)
		foo.Spec = samplev1alpha1.FooSpec{DeploymentName: foo.Name, Replicas: ptr.To[int32](1)}
		if err := l.client.Create(ctx, foo); err != nil {
			return nil, err
		}
	}
	var err error
	l.manager, err = env.ControlPlane.StartManager(ctx, env.Program(), []string{"WATCH_NAMESPACE=" + l.namespace},
		"--leader-elect=false")
	if err != nil {
		return nil, err
	}
	ctx, l.cancel = context.WithCancel(ctx)
	go l.scale(ctx)
	return l, nil
}

func (l *load) foo(number int) *samplev1alpha1.Foo {
	return &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: fmt.Sprintf("foo-%d", number)}}
}

// scale scales one Foo after the other, until the context is canceled. It does not repeat requests that fail in an
// outage.
func (l *load) scale(ctx context.Context) {
	defer close(l.ended)
	for ctx.Err() == nil {
		replicas := 1 + l.changes/loadFoos%2
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
		if l.client.Patch(ctx, l.foo(l.changes%loadFoos), patch) == nil {
			l.changes++
		}
		time.Sleep(loadInterval)
	}
}

// settle stops scaling, waits until all Foos match their specs, and returns the violations.
func (l *load) settle() []oracle.Finding {
	l.cancel()
	<-l.ended
	lacking := "nothing was observed"
	for begun := time.Now(); lacking != "" && time.Since(begun) < loadTimeout; time.Sleep(200 * time.Millisecond) {
		lacking = l.lacking()
	}
	away := time.Now()
	logged, happened := len(l.manager.Logs()), l.recorder.Count(l.namespace)
	time.Sleep(loadRest)
	findings := l.judge(lacking, l.recorder.Count(l.namespace)-happened)
	log := l.manager.Logs()
	run := &oracle.Run{Log: log, RestLog: log[logged:], AwayFrom: l.began, AwayTo: away}
	if err := l.manager.Stop(); err != nil {
		run.Ends = []string{fmt.Sprintf("stopped by SIGTERM, it exited with an error: %v", err)}
	}
	return append(findings, oracle.Judge(run, &oracle.Reference{})...)
}

// judge returns the violations: what is missing in the end, writes after everything has settled, and a wrong number of
// Deployments ever created.
func (l *load) judge(lacking string, written int) []oracle.Finding {
	deployments := map[types.UID]bool{}
	for _, version := range l.recorder.Versions(l.namespace) {
		if version.Resource == history.Deployments {
			deployments[version.Object.GetUID()] = true
		}
	}
	return judgeLoad(l.changes, lacking, written, len(deployments))
}

func judgeLoad(changes int, lacking string, written, deployments int) []oracle.Finding {
	var findings []oracle.Finding
	for _, f := range []struct {
		isWrong      bool
		oracle, text string
	}{
		{lacking != "", "end state", lacking},
		{lacking == "" && written > 0, "rest", fmt.Sprintf("%d objects changed after everything had settled", written)},
		{changes == 0, "end state", "there was no load: no Foo could be scaled"},
		{deployments != loadFoos, "counts",
			fmt.Sprintf("%d Deployments were created for %d Foos", deployments, loadFoos)},
	} {
		if f.isWrong {
			findings = append(findings, oracle.Finding{Oracle: f.oracle,
				Text: fmt.Sprintf("after %d changes: %s", changes, f.text)})
		}
	}
	return findings
}

// lacking describes a Foo that does not match its spec; empty if all do.
func (l *load) lacking() string {
	state := l.recorder.State(l.namespace)
	for _, object := range state.Of(history.Foos) {
		foo := history.As[samplev1alpha1.Foo](object)
		runs := scenario.FooRuns(foo.Name, foo.Spec.DeploymentName, ptr.Deref(foo.Spec.Replicas, 1))
		if lacking := runs(nil, state); lacking != "" {
			return lacking
		}
	}
	if deployments := len(state.Of(history.Deployments)); deployments != loadFoos {
		return fmt.Sprintf("there are %d Deployments, not %d", deployments, loadFoos)
	}
	return ""
}

// stop stops the load if settle was not called.
func (l *load) stop() {
	l.cancel()
	l.manager.Kill()
}
