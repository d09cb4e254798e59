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

// Of the load: how many Foos there are, how long after the other they are scaled, how long they may take to come to
// rest, and for how long nothing may be written then.
const (
	loadFoos     = 50
	loadEvery    = 50 * time.Millisecond
	loadPatience = 2 * time.Minute
	loadRest     = 5 * time.Second
)

// load is an operator that has nothing between it and the API server, and whose Foos are scaled all the time.
type load struct {
	client    client.Client
	recorder  *history.Recorder
	namespace string
	began     time.Time
	manager   *testenv.Manager
	cancel    context.CancelFunc
	ended     chan struct{}
	changes   int // that were made
}

func startLoad(ctx context.Context, env *runner.Environment) (*load, error) {
	l := &load{client: env.ControlPlane.Client, recorder: env.Recorder, namespace: "load", began: time.Now(),
		ended: make(chan struct{})}
	if err := l.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}}); err != nil {
		return nil, err
	}
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

// scale scales one Foo after the other, until the context ends. What fails while the API server is away is not tried
// again.
func (l *load) scale(ctx context.Context) {
	defer close(l.ended)
	for ctx.Err() == nil {
		replicas := 1 + l.changes/loadFoos%2
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
		if l.client.Patch(ctx, l.foo(l.changes%loadFoos), patch) == nil {
			l.changes++
		}
		time.Sleep(loadEvery)
	}
}

// settle scales no more, and returns what is not as it should be when all has had time to come to rest.
func (l *load) settle() []oracle.Finding {
	l.cancel()
	<-l.ended
	lacking := "nothing was looked at"
	for begun := time.Now(); lacking != "" && time.Since(begun) < loadPatience; time.Sleep(200 * time.Millisecond) {
		lacking = l.lacking()
	}
	away := time.Now()
	logged, happened := len(l.manager.Logs()), l.recorder.Count(l.namespace)
	time.Sleep(loadRest)
	findings := l.judge(lacking, l.recorder.Count(l.namespace)-happened)
	log := l.manager.Logs()
	run := &oracle.Run{Log: log, RestLog: log[logged:], AwayFrom: l.began, AwayTo: away}
	if err := l.manager.Stop(); err != nil {
		run.Ends = []string{fmt.Sprintf("it was told to end, and did so with: %v", err)}
	}
	return append(findings, oracle.Judge(run, &oracle.Reference{})...)
}

// judge returns what must not be: of what is lacking in the end, of how much has happened at rest, and of how many
// Deployments there ever were.
func (l *load) judge(lacking string, happened int) []oracle.Finding {
	deployments := map[types.UID]bool{}
	for _, version := range l.recorder.Versions(l.namespace) {
		if version.Resource == history.Deployments {
			deployments[version.Object.GetUID()] = true
		}
	}
	return judgeLoad(l.changes, lacking, happened, len(deployments))
}

// judgeLoad returns what must not be of a load with so many changes and Deployments.
func judgeLoad(changes int, lacking string, happened, deployments int) []oracle.Finding {
	var findings []oracle.Finding
	add := func(oracleName, text string, args ...any) {
		findings = append(findings, oracle.Finding{Oracle: oracleName, Text: fmt.Sprintf(text, args...)})
	}
	if lacking != "" {
		add("end state", "after %d changes, %s", changes, lacking)
	}
	if lacking == "" && happened > 0 {
		add("rest", "there was nothing to write, and %d objects have changed", happened)
	}
	if changes == 0 {
		add("end state", "there was no load: nothing could be changed")
	}
	if deployments != loadFoos {
		add("counts", "%d Deployments were created for %d Foos", deployments, loadFoos)
	}
	return findings
}

// lacking returns what is not as it should be.
func (l *load) lacking() string {
	world := l.recorder.World(l.namespace)
	for _, object := range world.Of(history.Foos) {
		foo := history.As[samplev1alpha1.Foo](object)
		runs := scenario.FooRuns(foo.Name, foo.Spec.DeploymentName, ptr.Deref(foo.Spec.Replicas, 1))
		if lacking := runs(nil, world); lacking != "" {
			return lacking
		}
	}
	if deployments := len(world.Of(history.Deployments)); deployments != loadFoos {
		return fmt.Sprintf("there are %d Deployments, and not %d", deployments, loadFoos)
	}
	return ""
}

// stop ends it, if settle has not.
func (l *load) stop() {
	l.cancel()
	l.manager.Kill()
}
