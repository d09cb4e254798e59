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

// No wait is asserted.
const (
	settleTimeout = 100 * time.Second      // for the operator to match the spec; its longest backoff is a minute
	quiet         = 400 * time.Millisecond // between steps
	// after the last step: at rest, and while a new operator reconciles every object every second
	restQuiet  = 2 * time.Second
	startQuiet = 500 * time.Millisecond // of that, until it has started all goroutines
	thawQuiet  = 2 * time.Second        // after a frozen operator continues
	calmQuiet  = 6 * time.Second        // likewise, in references
)

// Plan is a scenario with faults.
type Plan struct {
	Scenario scenario.Scenario
	Rules    []proxy.Rule
	// Storm is for how long many requests fail, instead of Rules; 0 for none.
	Storm time.Duration
	// Seed chooses which, differently in each scenario.
	Seed uint64
	// Pair adds a second operator, which takes the lead when the first is frozen or cut off.
	Pair bool
	// Outage is that of the faults of Rules; nil for none.
	Outage *Outage
	// Program is the operator's; empty for that of the environment.
	Program string
	// ServiceAccount is the operator's; empty for the one that config/rbac gives it.
	ServiceAccount string
	// Environment is added to the operator's.
	Environment []string
	// Rest is how long the rest at the end is, and the one in which every object is reconciled every second; 0 for short.
	Rest time.Duration
	// Timeout is how long the operator may take to match the spec; 0 for long.
	Timeout time.Duration
}

// StormFault begins the name of a storm, which ends with its seed. FaultSeparator separates faults.
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

// stage is a plan that runs.
type stage struct {
	*scenario.Stage
	e         *Environment
	plan      *Plan
	proxy     *proxy.Proxy
	manager   *manager
	standby   *standby // nil for none
	reference *oracle.Reference
	arrive    func() // at the outage of the plan, or not any more; it has an effect once
	setup     int    // how many requests there were before faults
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
	s := &stage{e: e, plan: plan, Stage: &scenario.Stage{
		Client: e.ControlPlane.Client, Namespace: namespace.Name, Tick: lastTick(),
	}}
	if plan.Scenario.Prepare != nil {
		if err := plan.Scenario.Prepare(ctx, s.Stage); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", plan, err)
		}
	}
	pause(ctx, plan.Scenario.Age)
	return s, nil
}

// Play plays a plan and returns its records. With a reference it waits until the state equals that of the reference. A
// failure of the operator is no error. The objects stay: no operator watches them any more.
func (e *Environment) Play(ctx context.Context, plan *Plan, reference *oracle.Reference) (*oracle.Run, error) {
	s, err := e.prepare(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer e.Recorder.Forget(s.Namespace)
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

// program is the operator under test.
func (s *stage) program() string { return cmp.Or(s.plan.Program, s.e.program) }

// environment is the operator's.
func (s *stage) environment() []string {
	return append([]string{"WATCH_NAMESPACE=" + s.Namespace}, s.plan.Environment...)
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
		Rest:       len(s.requests()),
		IsDeprived: s.plan.ServiceAccount != "", IsOpen: s.plan.Scenario.IsOpen, IsPassing: s.plan.Scenario.IsPassing,
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
	// The operator acts at once on what a scenario has prepared, so faults begin with it.
	if len(s.plan.Scenario.Setup) == 0 {
		s.goWrong()
	}
	if err := s.manager.start(s.flags()...); err != nil || s.standby == nil {
		return err
	}
	if err := s.manager.works(ctx, 1); err != nil { // so that it leads, and not the other one
		return err
	}
	return s.standby.manager.start(s.flags()...)
}

// passes waits until faults that take longer than a step are over, and returns what is lacking then.
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

// fired returns how many of the rules of a plan have hit a request, and had the later effect that they are named after.
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
		case slices.Contains([]proxy.Kind{proxy.Age, proxy.AgeMore}, request.Fault.Kind):
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

// requests returns all of the operators.
func (s *stage) requests() []proxy.Request {
	requests := s.proxy.Requests()
	if s.standby != nil {
		requests = append(requests, s.standby.proxy.Requests()...)
		slices.SortStableFunc(requests, func(a, b proxy.Request) int { return a.At.Compare(b.At) })
	}
	return requests
}

// goWrong begins the faults.
func (s *stage) goWrong() {
	s.setup = len(s.proxy.Requests())
	s.proxy.Remember()
	s.proxy.SetRules(s.plan.Rules...)
	if s.plan.Storm > 0 {
		s.proxy.SetRules(proxy.Storm...)
		time.AfterFunc(s.plan.Storm, func() { s.proxy.SetRules() })
	}
}

// upgrade replaces the operator of the last release by the one under test, whose start begins the faults.
func (s *stage) upgrade() error {
	if err := s.manager.replace(s.program(), s.environment()); err != nil {
		return fmt.Errorf("%s: ending the operator of the last release: %w", s.plan, err)
	}
	s.goWrong()
	return s.manager.start(s.flags()...)
}

// steps plays the steps of a scenario, and returns what is lacking after one of them.
func (s *stage) steps(ctx context.Context) (lacking string, err error) {
	plan := &s.plan.Scenario
	for i, step := range append(plan.Setup[:len(plan.Setup):len(plan.Setup)], plan.Steps...) {
		switch {
		case i == len(plan.Setup) && plan.Before != nil:
			if err := s.upgrade(); err != nil {
				return "", err
			}
		case i == len(plan.Setup) && i > 0:
			s.goWrong()
		case i > 0:
			s.proxy.Remember()
		}
		if err := s.do(ctx, step); err != nil {
			return "", fmt.Errorf("%s, step %q: %w", s.plan, step.Name, err)
		}
		until := func() string { return step.Until(s.Stage, s.e.Recorder.State(s.Namespace)) }
		if lacking := s.settle(ctx, quiet, until); lacking != "" {
			return fmt.Sprintf("after step %q: %s", step.Name, lacking), nil
		}
	}
	if s.reference == nil {
		return "", nil
	}
	return s.settle(ctx, quiet, s.differs), ctx.Err()
}

// do does what the user does in a step.
func (s *stage) do(ctx context.Context, step scenario.Step) error {
	if step.Do == nil {
		return nil
	}
	if outage := s.plan.Outage; outage != nil {
		outage.acts.RLock()
		defer outage.acts.RUnlock()
	}
	if !step.IsUnseen {
		return step.Do(ctx, s.Stage)
	}
	_ = s.manager.stop(syscall.SIGKILL)
	return errors.Join(step.Do(ctx, s.Stage), s.manager.start(s.flags()...))
}

// differs returns how the state differs from that of the reference.
func (s *stage) differs() string {
	state, versions := s.e.Recorder.State(s.Namespace), s.e.Recorder.Versions(s.Namespace)
	if diff := history.Diff(s.reference.State, history.Normalize(s.Namespace, state, versions, s.Symbols())); diff != "" {
		return "the state does not become that without faults (-expected +actual):\n" + diff
	}
	return ""
}

// settle waits until nothing is lacking and nothing has happened for a while, and returns what is lacking after the
// plan's timeout.
func (s *stage) settle(ctx context.Context, quiet time.Duration, lacking func() string) string {
	began, since, happened := time.Now(), time.Now(), -1
	timeout := cmp.Or(s.plan.Timeout, settleTimeout)
	for ctx.Err() == nil {
		if now := s.happened(); now != happened || !s.proxy.IsCalm() {
			happened, since = now, time.Now()
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

// happened returns a count of all changes of objects, and of all writes of the operators.
func (s *stage) happened() int {
	count := s.e.Recorder.Count(s.Namespace) + s.proxy.Writes()
	if s.standby != nil {
		count += s.standby.proxy.Writes()
	}
	return count
}

// rest waits, replaces the operator by a new one that reconciles every object every second, and waits again. Neither
// must have an effect.
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
		// After a kill, the next process has to work first: one that starts ends with an error.
		if err := s.manager.works(ctx, controllers); err != nil {
			run.Ends = append(run.Ends, err.Error())
			return nil
		}
		run.Goroutines = s.goroutines(ctx, run)
	}
	// an operator that has lost the lead ends with an error
	if err := s.manager.stop(syscall.SIGTERM); err != nil && s.standby == nil {
		run.Ends = append(run.Ends, fmt.Sprintf("it was stopped, and ended with: %v", err))
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
		run.Ends = append(run.Ends, fmt.Sprintf("it was stopped, and ended with: %v", err))
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

// idle waits, and lets another plan run meanwhile.
func (e *Environment) idle(ctx context.Context, d time.Duration) {
	<-e.active
	pause(ctx, d)
	e.active <- struct{}{}
}

// pause waits for some time, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
