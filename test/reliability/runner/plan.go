package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/scenario"
	"github.com/example/memcached-operator/test/testenv"
)

// These times only bound how long a plan waits. No test asserts them.
const (
	settleTimeout = 100 * time.Second      // until the state matches the spec; the operator's longest backoff is a minute
	quiet         = 400 * time.Millisecond // without changes, after each step
	// after the last step: first with the settled operator, then with a new one that reconciles every object every second
	restQuiet  = 2 * time.Second
	startQuiet = 500 * time.Millisecond // the part of restQuiet until the new operator has started all goroutines
	thawQuiet  = 2 * time.Second        // without changes, after a frozen operator is resumed or an outage is over
	calmQuiet  = 6 * time.Second        // instead of restQuiet in runs without faults, which become references
)

// Plan is a scenario with faults.
type Plan struct {
	Scenario scenario.Scenario
	Rules    []proxy.Rule
	// Storm is how long many requests fail, in place of Rules; 0 for no storm.
	Storm time.Duration
	// Seed selects the requests that fail in a storm, differently in each scenario.
	Seed uint64
	// Pair adds a second operator, which acquires the lease when the first is frozen or cut off.
	Pair bool
	// Outage is the outage that Rules trigger; nil for none.
	Outage *Outage
	// Program is the path of the operator; empty for that of the environment.
	Program string
	// HasRaceDetector selects the operator with the race detector, if the environment builds its own and Program is empty.
	HasRaceDetector bool
	// ServiceAccount is that of the operator; empty for the one in config/rbac.
	ServiceAccount string
	// IsEverywhere has the operator watch all namespaces. An environment may play only such plans, one at a time; each
	// deletes its objects.
	IsEverywhere bool
	// Environment has additional environment variables of the operator.
	Environment []string
	// Rest is the length of each of the two quiet periods at the end, see rest; 0 for restQuiet.
	Rest time.Duration
	// Timeout is how long the operator may take until the state matches the spec; 0 for settleTimeout.
	Timeout time.Duration
}

// StormFault is the prefix of the name of a storm; its seed follows. FaultSeparator separates faults.
const (
	StormFault     = "storm "
	FaultSeparator = "; "
)

// Faults returns the faults as text.
func (p *Plan) Faults() string {
	if p.Storm > 0 {
		return StormFault + strconv.FormatUint(p.Seed, 10)
	}
	texts := make([]string, len(p.Rules))
	for i, rule := range p.Rules {
		texts[i] = rule.String()
	}
	return strings.Join(texts, FaultSeparator)
}

// seed returns the seed of the plan in its scenario.
func (p *Plan) seed() uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(p.Scenario.Name))
	return sum.Sum64() + p.Seed
}

func (p *Plan) String() string {
	return strings.TrimSuffix(p.Scenario.Name+" / "+p.Faults(), " / ")
}

// stage is a running plan.
type stage struct {
	*scenario.Stage
	e         *Environment
	plan      *Plan
	proxy     *proxy.Proxy
	manager   *manager
	standby   *standby // nil for none
	reference *oracle.Reference
	empty     string // a resource version before the objects of the plan were created
	arrive    func() // reports to the outage that the plan has reached its request or its end; only the first call counts
	setup     int    // the number of requests before the faults
	times     []oracle.Step
	changed   time.Time // the last change that settle has seen
	isIdle    bool      // see leave
}

// prepare creates the namespace of a plan and the objects that are older than the operator.
func (e *Environment) prepare(ctx context.Context, plan *Plan) (*stage, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:   fmt.Sprintf("plan-%d", e.plans.Add(1)),
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := e.ControlPlane.Client.Create(ctx, namespace); err != nil {
		return nil, err
	}
	s := &stage{e: e, plan: plan, empty: e.Recorder.Latest(), Stage: &scenario.Stage{
		Client: e.ControlPlane.Client, Namespace: namespace.Name, Tick: lastTick(),
	}}
	// Whether it does is for the oracles to judge.
	s.AwaitOperator = func(ctx context.Context) { _ = s.manager.works(ctx, controllers) }
	if plan.Scenario.Prepare != nil {
		if err := plan.Scenario.Prepare(ctx, s.Stage); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", plan, err)
		}
	}
	pause(ctx, plan.Scenario.Age)
	return s, nil
}

// Play plays a plan and returns its records. With a reference, it waits until the state equals that of the reference. A
// failure of the operator is not an error. The objects are not deleted, as no operator watches them any more, unless it
// is one of all namespaces.
func (e *Environment) Play(ctx context.Context, plan *Plan, reference *oracle.Reference) (_ *oracle.Run, err error) {
	if plan.HasRaceDetector && plan.Program == "" {
		if plan.Program, err = e.raced(); err != nil {
			return nil, err
		}
	}
	s, err := e.prepare(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer e.Recorder.Forget(s.Namespace)
	if plan.IsEverywhere {
		defer func() { err = errors.Join(err, e.clear(ctx, s.Namespace)) }()
	}
	s.reference = reference
	e.active <- struct{}{}
	defer func() { <-e.active }()
	if s.proxy, s.manager, err = s.operator(ctx); err != nil {
		return nil, err
	}
	defer s.proxy.Stop()
	if s.plan.Outage != nil {
		defer s.arrive()
	}
	if s.plan.Pair {
		if err := s.addStandby(ctx); err != nil {
			return nil, err
		}
		defer s.standby.end()
	}
	return s.play(ctx)
}

// operator returns an operator that is not started yet, and its proxy.
func (s *stage) operator(ctx context.Context) (*proxy.Proxy, *manager, error) {
	m := &manager{program: s.program(), environment: s.environment(), isTolerant: s.plan.Storm > 0 || s.plan.Pair ||
		s.plan.Outage != nil}
	if before := s.plan.Scenario.Before; before != nil {
		released, err := s.e.release()
		if err != nil {
			return nil, nil, err
		}
		m.program, m.environment = released, append(before[:len(before):len(before)], m.environment...)
	}
	p, err := s.newProxy(m)
	if err != nil {
		return nil, nil, err
	}
	kubeconfig, err := s.e.kubeconfig(ctx, p, cmp.Or(s.plan.ServiceAccount, testenv.OperatorServiceAccount))
	if err != nil {
		p.Stop()
		return nil, nil, err
	}
	m.flags = []string{"--kubeconfig=" + kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--pprof-bind-address=127.0.0.1:0", "--image-delay=0s"}
	return p, m, nil
}

// newProxy starts a proxy between an operator and the API server.
func (s *stage) newProxy(m *manager) (*proxy.Proxy, error) {
	options := proxy.Options{
		Server: s.e.ControlPlane.Config.Host, TLS: s.e.tls, Seed: s.plan.seed(), Version: s.e.Recorder.Latest,
		IsOwn: history.IsOwnKind,
		Kill:  m.kill, Freeze: func() { m.process().Send(syscall.SIGSTOP) },
	}
	if s.plan.Outage != nil {
		s.arrive = sync.OnceFunc(s.plan.Outage.arrive)
		options.Await = func() bool { return s.plan.Outage.wait(s.arrive) }
	}
	return proxy.Start(options)
}

// program returns the path of the operator under test.
func (s *stage) program() string { return cmp.Or(s.plan.Program, s.e.program) }

// environment returns the environment variables of the operator.
func (s *stage) environment() []string {
	watched := s.Namespace
	switch {
	case s.plan.IsEverywhere:
		watched = ""
	case s.plan.Scenario.WatchesTwo():
		watched += ",default"
	}
	return append([]string{"WATCH_NAMESPACE=" + watched}, s.plan.Environment...)
}

func (s *stage) play(ctx context.Context) (*oracle.Run, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = s.manager.stop(syscall.SIGKILL) }()
	lacking, err := s.steps(ctx)
	if err != nil {
		return nil, err
	}
	s.proxy.SetRules()
	lacking = cmp.Or(lacking, s.passes(ctx))
	run := &oracle.Run{
		Namespace: s.Namespace, Symbols: s.Symbols(), Lacking: lacking, Fired: fired(s.requests()), Setup: s.setup,
		Rest: len(s.requests()), Steps: s.times,
		HasOtherImages: len(s.plan.Scenario.Before) > 0,
		IsDeprived:     s.plan.ServiceAccount != "", IsOpen: s.plan.Scenario.IsOpen, IsPassing: s.plan.Scenario.IsPassing,
	}
	run.Anew = run.Rest
	if lacking == "" {
		if err := s.rest(ctx, run); err != nil {
			return nil, err
		}
	}
	run.Ends = append(run.Ends, s.manager.ends()...)
	for _, m := range s.managers() {
		run.Log += m.log()
	}
	run.Requests = s.requests()
	if s.plan.Outage != nil {
		run.AwayFrom, run.AwayTo = s.plan.Outage.when()
	}
	if s.standby != nil {
		run.Standby = s.standby.proxy.Requests()
	}
	run.State, run.Versions = s.e.Recorder.State(s.Namespace), s.e.Recorder.Versions(s.Namespace)
	return run, nil
}

// begin starts the operators.
func (s *stage) begin(ctx context.Context) error {
	s.awaitTick(ctx, s.plan.Scenario.AllSteps()[0])
	// Without Setup, the operator acts at once on the objects that Prepare created, so the faults begin before it starts.
	if len(s.plan.Scenario.Setup) == 0 {
		s.beginFaults()
	}
	if s.plan.Scenario.IsBehind {
		s.proxy.ServeOld(s.empty)
	}
	if err := s.manager.start(s.flags()...); err != nil || s.standby == nil {
		return err
	}
	if err := s.manager.works(ctx, 1); err != nil { // so that the first one has the lease, and not the standby
		return err
	}
	return s.standby.manager.start(s.flags()...)
}

// passes waits until faults that last longer than a step are over, and returns what is missing after that.
func (s *stage) passes(ctx context.Context) string {
	switch {
	case s.plan.Outage != nil:
		s.arrive()
		s.plan.Outage.passes(ctx)
		return s.settle(ctx, thawQuiet, s.differs)
	case s.standby != nil:
		return s.thaw(ctx)
	}
	return ""
}

// fired returns how many rules of a plan hit a request. A rule whose fault affects later requests counts only if that
// happened: an old list was served, or a watch expired.
func fired(requests []proxy.Request) int {
	rules, isOld, isGone := map[int]bool{}, false, false
	for i := range requests {
		isOld = isOld || requests[i].IsOld()
		isGone = isGone || requests[i].Verb == "watch" && requests[i].Status == http.StatusGone
	}
	for i := range requests {
		request := &requests[i]
		switch {
		case request.Rule == 0:
		case slices.Contains([]proxy.Kind{proxy.Age, proxy.AgeMore, proxy.AgeChildren}, request.Fault.Kind):
			rules[request.Rule] = isOld
		case request.Fault.Kind == proxy.ExpireWatches:
			rules[request.Rule] = isGone
		default:
			rules[request.Rule] = true
		}
	}
	maps.DeleteFunc(rules, func(_ int, hasOccurred bool) bool { return !hasOccurred })
	return len(rules)
}

// managers returns the operators.
func (s *stage) managers() []*manager {
	if s.standby == nil {
		return []*manager{s.manager}
	}
	return []*manager{s.manager, s.standby.manager}
}

// requests returns the requests of all operators, in order.
func (s *stage) requests() []proxy.Request {
	requests := s.proxy.Requests()
	if s.standby != nil {
		requests = append(requests, s.standby.proxy.Requests()...)
		slices.SortStableFunc(requests, func(a, b proxy.Request) int { return a.At.Compare(b.At) })
	}
	return requests
}

// beginFaults begins the faults.
func (s *stage) beginFaults() {
	s.setup = len(s.proxy.Requests())
	s.proxy.Remember()
	s.proxy.SetRules(s.plan.Rules...)
	if s.plan.Storm > 0 {
		s.proxy.SetRules(proxy.Storm...)
		time.AfterFunc(s.plan.Storm, func() { s.proxy.SetRules() })
	}
}

// upgrade replaces the operator of the last release with the one under test. The faults begin with its start.
func (s *stage) upgrade() error {
	if err := s.manager.replace(s.program(), s.environment()); err != nil {
		return fmt.Errorf("%s: ending the operator of the last release: %w", s.plan, err)
	}
	s.beginFaults()
	return s.manager.start(s.flags()...)
}

// steps plays the steps of a scenario. It stops at the first step that is not carried out, and returns what is missing.
func (s *stage) steps(ctx context.Context) (lacking string, err error) {
	plan := &s.plan.Scenario
	defer s.join()
	for i, step := range plan.AllSteps() {
		s.join()
		if i > 0 { // for the first step, begin has done so
			s.awaitTick(ctx, step)
		}
		switch {
		case i == len(plan.Setup) && plan.Before != nil:
			if err := s.upgrade(); err != nil {
				return "", err
			}
		case i == len(plan.Setup) && i > 0:
			s.beginFaults()
		case i > 0:
			s.proxy.Remember()
		}
		began := time.Now()
		if err := s.do(ctx, step); err != nil {
			return "", fmt.Errorf("%s, step %q: %w", s.plan, step.Name, err)
		}
		until := func() string { return step.Until(s.Stage, s.e.Recorder.State(s.Namespace)) }
		if lacking := s.settle(ctx, quiet, until); lacking != "" {
			return fmt.Sprintf("after step %q: %s", step.Name, lacking), nil
		}
		s.times = append(s.times, oracle.Step{Began: began, Settled: s.changed})
	}
	if s.reference == nil {
		return "", nil
	}
	lacking = s.settle(ctx, quiet, s.differs)
	s.times[len(s.times)-1].Settled = s.changed
	return lacking, ctx.Err()
}

// awaitTick waits for the time at which a step begins. If it hides what happens at a scheduled time, the plan stays
// idle during the step: otherwise it might become active again too late.
func (s *stage) awaitTick(ctx context.Context, step scenario.Step) {
	switch {
	case step.BeforeTick:
		s.Tick = s.e.nextTick(ctx)
	case step.HidesTick():
		s.leave()
		pause(ctx, time.Until(s.Tick)-hiddenBefore)
	case step.AtTick:
		s.e.idle(ctx, time.Until(s.Tick.Add(step.AfterTick)))
	}
}

// hiddenBefore is how long before a scheduled time watches are paused: enough for a request of the user.
const hiddenBefore = 3 * time.Second

// do performs the user's action of a step.
func (s *stage) do(ctx context.Context, step scenario.Step) error {
	if step.Do == nil {
		return nil
	}
	if outage := s.plan.Outage; outage != nil {
		outage.acts.RLock()
		defer outage.acts.RUnlock()
	}
	switch {
	case step.Hidden != nil:
		s.proxy.Hide(step.Hidden)
		defer s.proxy.Miss(ctx)
		return step.Do(ctx, s.Stage)
	case !step.IsUnseen:
		return step.Do(ctx, s.Stage)
	}
	_ = s.manager.stop(syscall.SIGKILL)
	return errors.Join(step.Do(ctx, s.Stage), s.manager.start(s.flags()...))
}

// differs returns the difference between the state and that of the reference.
func (s *stage) differs() string {
	state, versions := s.e.Recorder.State(s.Namespace), s.e.Recorder.Versions(s.Namespace)
	if diff := history.Diff(s.reference.State, history.Normalize(s.Namespace, state, versions, s.Symbols())); diff != "" {
		return "the state differs from the one without faults (-expected +actual):\n" + diff
	}
	return ""
}

// settle waits until nothing is missing and nothing has changed for some time. At the plan's timeout it returns what is
// missing.
func (s *stage) settle(ctx context.Context, quiet time.Duration, lacking func() string) string {
	began, since, happened := time.Now(), time.Now(), -1
	timeout := cmp.Or(s.plan.Timeout, settleTimeout)
	for ctx.Err() == nil {
		if now := s.happened(); now != happened || !s.proxy.IsCalm() {
			happened, since = now, time.Now()
			s.changed = since
		}
		if time.Since(since) >= quiet {
			missing := lacking()
			if missing == "" {
				return ""
			}
			if time.Since(began) > timeout || s.manager.isGivenUp() {
				return missing
			}
			pause(ctx, 50*time.Millisecond)
		}
		if time.Since(began) > 2*timeout {
			return "it does not settle"
		}
		pause(ctx, 20*time.Millisecond)
	}
	return "interrupted"
}

// happened counts the changes of objects and the writes of the operators.
func (s *stage) happened() int {
	count := s.e.Recorder.Count(s.Namespace) + s.proxy.Writes()
	if s.standby != nil {
		count += s.standby.proxy.Writes()
	}
	return count
}

// rest waits, replaces the operator with a new one that reconciles every object every second, and waits again. In
// neither period may an operator write. The oracles check what rest records.
func (s *stage) rest(ctx context.Context, run *oracle.Run) error {
	long := cmp.Or(s.plan.Rest, restQuiet)
	if s.reference == nil {
		long = calmQuiet
	}
	managers := s.managers()
	logged := make([]func() string, len(managers))
	for i, m := range managers {
		logged[i] = m.rest()
	}
	s.e.idle(ctx, long)
	for _, log := range logged {
		run.RestLog += log()
	}
	if s.standby != nil {
		_ = s.standby.manager.stop(syscall.SIGTERM)
	} else {
		// After a kill, wait until the next process has started its controllers: if stopped earlier, it exits with an error.
		if err := s.manager.works(ctx, controllers); err != nil {
			run.Ends = append(run.Ends, err.Error())
			return nil
		}
		run.Goroutines = s.goroutines(ctx, run)
	}
	// an operator that has lost its lease exits with an error
	if err := s.manager.stop(syscall.SIGTERM); err != nil && s.standby == nil {
		run.Ends = append(run.Ends, fmt.Sprintf("stopped by SIGTERM, it exited with an error: %v", err))
	}
	run.Anew = len(s.requests())
	if err := s.manager.start("--sync-period=1s"); err != nil {
		return err
	}
	if err := s.manager.works(ctx, controllers); err != nil {
		run.Ends = append(run.Ends, err.Error())
		return nil
	}
	pause(ctx, startQuiet)
	run.StartGoroutines = s.goroutines(ctx, run)
	s.e.idle(ctx, long-startQuiet)
	run.RestGoroutines = s.goroutines(ctx, run)
	if err := s.manager.stop(syscall.SIGTERM); err != nil {
		run.Ends = append(run.Ends, fmt.Sprintf("stopped by SIGTERM, it exited with an error: %v", err))
	}
	run.RestLog += s.manager.current()
	return ctx.Err()
}

func (s *stage) goroutines(ctx context.Context, run *oracle.Run) map[string]int {
	counts, err := s.manager.goroutines(ctx)
	if err != nil {
		run.Ends = append(run.Ends, fmt.Sprintf("its goroutines cannot be read: %v", err))
	}
	return counts
}

// idle waits, and lets another plan run in the meantime.
func (e *Environment) idle(ctx context.Context, d time.Duration) {
	<-e.active
	pause(ctx, d)
	e.active <- struct{}{}
}

// leave makes the plan idle until join, which waits until fewer plans than the maximum are active.
func (s *stage) leave() {
	<-s.e.active
	s.isIdle = true
}

func (s *stage) join() {
	if s.isIdle {
		s.e.active <- struct{}{}
		s.isIdle = false
	}
}

// pause waits for some time, or until the context is canceled.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
