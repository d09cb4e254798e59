package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
	"github.com/example/memcached-operator/test/testenv"
)

const (
	parallelPlans = 6   // the maximum number of plans that are active, not idle, at the same time
	progressEvery = 100 // the number of plans between two lines of progress
)

// suite is one run of the suite.
type suite struct {
	*options
	env       *runner.Environment
	scenarios []scenario.Scenario
	report    *report

	// These are set for a seeded bug in the operator's ClusterRole.
	rules   []rbacv1.PolicyRule // the rules of the operator; nil for those of config/rbac
	account string              // the service account with these rules; empty for the operator's own

	mu         sync.Mutex
	references map[string]*oracle.Reference // by scenario
	used       map[string][]string          // the scenarios that used a permission, by "verb group/resource"
}

// newSuite returns the suite that the options select, without an environment.
func newSuite(ctx context.Context, o *options) (*suite, error) {
	s := &suite{options: o, references: map[string]*oracle.Reference{}, used: map[string][]string{},
		report: newReport(o, proof.Begin(testenv.Root(), o.manager))}
	s.scenarios = slices.DeleteFunc(scenario.All(),
		func(played scenario.Scenario) bool { return !matches(o.scenario, played.Name) })
	if _, _, err := runner.LastRelease(ctx); err != nil {
		s.scenarios = slices.DeleteFunc(s.scenarios, func(s scenario.Scenario) bool { return s.Before != nil })
		s.report.notJudged = append(s.report.notJudged, fmt.Sprintf("upgrades: %v", err))
	}
	if len(s.scenarios) == 0 {
		return nil, fmt.Errorf("no scenario matches %q", o.scenario)
	}
	var err error
	if s.evidence == "" && !s.stopsEarly {
		s.evidence, err = os.MkdirTemp("", "reliability-evidence-")
	}
	return s, err
}

// conductAll conducts the campaigns until one fails with an error. What was found until then is reported. If references
// are known, they are not played again: none had findings.
func (s *suite) conductAll(ctx context.Context) error {
	for _, campaign := range s.campaigns() {
		if campaign.isReference && len(s.references) > 0 {
			continue
		}
		if err := s.conduct(ctx, campaign); err != nil {
			return fmt.Errorf("campaign %s: %w", campaign.name, err)
		}
	}
	return nil
}

// conduct plays the plans of a campaign.
func (s *suite) conduct(ctx context.Context, c campaign) error {
	r := s.report.begin(c.name, c.what)
	var err error
	if c.plans != nil {
		plans := c.plans()
		s.logf("%s: %d plans", c.name, len(plans))
		for _, plan := range plans {
			plan.HasRaceDetector = c.hasRaceDetector
		}
		err = s.playAll(ctx, r, plans, c.isReference)
	}
	if err == nil && c.other != nil {
		err = c.other(ctx, r)
	}
	r.seconds = time.Since(r.began).Seconds()
	fired, violations := r.counts()
	s.logf("%s: %d plans, %d with faults that occurred, %d with violations", c.name, len(r.plans), fired, violations)
	return errors.Join(err, s.recordViolations(r))
}

// recordViolations adds the violations of a campaign to all that were ever found.
func (s *suite) recordViolations(r *campaignReport) error {
	if s.stopsEarly { // there is a seeded bug
		return nil
	}
	var errs []error
	for _, plan := range r.plans {
		if len(plan.findings) > 0 {
			errs = append(errs, s.report.run.Record(plan.String(), strings.Join(textsOf(plan.findings), "; ")))
		}
	}
	return errors.Join(errs...)
}

// textsOf returns findings as texts.
func textsOf(findings []oracle.Finding) []string {
	texts := make([]string, 0, len(findings))
	for _, finding := range findings {
		texts = append(texts, finding.String())
	}
	return texts
}

// playAll plays plans in parallel: twice as many as may be active, because a plan is idle most of the time, and four
// times as many of those with a long rest. Plans that wait for a minute have a limit of their own. So have those that
// hide a scheduled time, a low one: they do not count as active then, and all go on at the same full minute.
func (s *suite) playAll(ctx context.Context, r *campaignReport, plans []*runner.Plan, isReference bool) error {
	group, ctx := errgroup.WithContext(ctx)
	others := semaphore.NewWeighted(4 * parallelPlans)
	waiting, hiding := semaphore.NewWeighted(4*parallelPlans), semaphore.NewWeighted(parallelPlans)
	for _, plan := range plans {
		limit, weight := others, int64(2)
		switch {
		case plan.Scenario.HidesTick():
			limit, weight = hiding, 1
		case plan.Scenario.Waits():
			limit, weight = waiting, 1
		case plan.Rest > 0:
			weight = 1
		}
		group.Go(func() error {
			if err := limit.Acquire(ctx, weight); err != nil {
				return err
			}
			defer limit.Release(weight)
			return s.play(ctx, r, plan, isReference)
		})
	}
	return group.Wait()
}

// errFound ends a suite that stops early.
var errFound = errors.New("there is a violation")

// play plays a plan and judges it.
func (s *suite) play(ctx context.Context, r *campaignReport, plan *runner.Plan, isReference bool) error {
	var reference *oracle.Reference
	if !isReference {
		reference = s.reference(plan.Scenario.Name)
	}
	run, runs, err := s.record(ctx, plan, reference)
	if err != nil {
		return err
	}
	findings := oracle.Judge(run, reference)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isReference {
		findings = append(findings, unexpected(plan, run)...)
	} else if run.Lacking == "" {
		findings = append(findings, s.refer(&plan.Scenario, run)...)
	}
	if plan.ServiceAccount == "" {
		requests := run.Requests
		if plan.Scenario.Before != nil { // the first requests are those of the last release
			requests = requests[run.Setup:]
		}
		s.use(plan.Scenario.Name, run, requests)
	}
	p := &planReport{scenario: plan.Scenario.Name, faults: plan.Faults(), runs: runs, fired: run.Fired,
		findings: findings}
	p.recovery, p.hasRecovery = oracle.Recovery(run, reference)
	p.recoveryBound = oracle.RecoveryBound(run)
	p.collected, p.hasCollected = oracle.Collected(run)
	r.plans = append(r.plans, p)
	if len(r.plans)%progressEvery == 0 {
		s.logf("%s: %d plans", r.name, len(r.plans))
	}
	switch {
	case len(findings) == 0:
		return nil
	case s.stopsEarly:
		return errFound
	}
	return s.keep(plan, r.name, run, findings)
}

// unexpected returns what a run of a plan without faults does that expected.yaml does not have, or the reverse.
func unexpected(plan *runner.Plan, run *oracle.Run) []oracle.Finding {
	if plan.Faults() != "" || run.Lacking != "" {
		return nil
	}
	return oracle.NewReference(run).Unexpected(&plan.Scenario)
}

// tries is how often a plan is played until its fault occurs. Some writes do not occur in every run: for example, a
// status may report two changes in one write or in two.
const tries = 8

// record plays a plan, again if its faults have not occurred, and returns the last run and how many there were. Storms
// and outages are not repeated.
func (s *suite) record(ctx context.Context, plan *runner.Plan, reference *oracle.Reference) (run *oracle.Run, runs int,
	err error) {
	if plan.ServiceAccount == "" {
		plan.ServiceAccount = s.account
	}
	if plan.Timeout == 0 && !plan.Scenario.Waits() {
		plan.Timeout = s.timeout
	}
	plan.Program = s.manager
	for runs < tries {
		if run, err = s.env.Play(ctx, plan, reference); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", plan, err)
		}
		runs++
		if run.Fired > 0 || len(plan.Rules) == 0 || plan.Outage != nil || len(oracle.Judge(run, reference)) > 0 {
			break
		}
	}
	return run, runs, ctx.Err()
}

// replay returns the command that plays a plan again.
func replay(plan *runner.Plan, campaign string, seed uint64) string {
	what := fmt.Sprintf("--fault='%s'", plan.Faults())
	if plan.Faults() == "" || plan.IsEverywhere {
		what = fmt.Sprintf("--campaign='%s'", campaign)
	}
	return fmt.Sprintf(`make reliability ARGS="--scenario=%s %s --seed=%d"`, plan.Scenario.Name, what, seed)
}

// keep writes the records of a failed plan, and the command that replays it, to a new directory.
func (s *suite) keep(plan *runner.Plan, campaign string, run *oracle.Run, findings []oracle.Finding) error {
	dir := filepath.Join(s.evidence, campaign, run.Namespace) // a campaign may have its own namespaces
	s.logf("VIOLATION %s\n%s\nreplay: %s\nrecords: %s", plan, findings[0], replay(plan, campaign, s.seed), dir)
	var requests, versions, text strings.Builder
	for _, request := range run.Requests {
		fmt.Fprintf(&requests, "%s %s\n", request.At.Format("15:04:05.000"), request.String())
	}
	for _, version := range run.Versions {
		object, err := json.Marshal(version.Object.Object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&versions, "%s %d %s deleted=%t %s\n", version.At.Format("15:04:05.000"), version.RV, version.Key,
			version.IsGone, object)
	}
	fmt.Fprintf(&text, "%s\n%s\n", plan, replay(plan, campaign, s.seed))
	for _, finding := range findings {
		fmt.Fprintln(&text, finding)
	}
	err := os.MkdirAll(dir, 0o755)
	for name, content := range map[string]string{"findings.txt": text.String(), "requests.txt": requests.String(),
		"versions.txt": versions.String(), "operator.log": run.Log} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	return err
}

func (s *suite) reference(name string) *oracle.Reference {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.references[name]
}

// refer adds a run without faults to the reference of its scenario. It returns findings if the run is not as expected
// or differs from earlier ones.
func (s *suite) refer(played *scenario.Scenario, run *oracle.Run) []oracle.Finding {
	is := oracle.NewReference(run)
	if played.IsSlow {
		clear(is.Writes)
		clear(is.Reads)
	}
	findings := is.Unexpected(played)
	if played.IsPassing { // all references may happen to report a moment that another run does not
		is.KeepFewestEventWrites(played.Expected.Events)
	}
	was := s.references[played.Name]
	if was == nil {
		s.references[played.Name] = is
		return findings
	}
	differs := func(text string) {
		findings = append(findings, oracle.Finding{Oracle: "same each time", Text: text})
	}
	if diff := history.Diff(was.State, is.State); diff != "" {
		differs("two runs without faults end differently:\n" + diff)
	}
	if !run.IsOpen && (!maps.Equal(was.Creates, is.Creates) || !maps.Equal(was.Deletes, is.Deletes)) {
		differs(fmt.Sprintf("one run without faults creates %v and deletes %v, another %v and %v",
			is.Creates, is.Deletes, was.Creates, was.Deletes))
	}
	// Progress reports depend on timing, so runs differ in their status writes. Faults are for writes of every run.
	for match, n := range was.Writes {
		was.Writes[match] = min(n, is.Writes[match])
	}
	for match, n := range was.Reads {
		was.Reads[match] = min(n, is.Reads[match])
	}
	for i, lasted := range is.Lasted {
		was.Lasted[i] = max(lasted, was.Lasted[i])
	}
	for function, n := range is.Goroutines {
		was.Goroutines[function] = max(n, was.Goroutines[function])
	}
	return findings
}

// use records the permissions that a scenario used, and requests that were rejected for the lack of one. It ignores
// rejections by an API server that has just started and has not loaded the roles or CustomResourceDefinitions.
func (s *suite) use(scenario string, run *oracle.Run, requests []proxy.Request) {
	for i := range requests {
		request := &requests[i]
		if request.Resource == "" || request.Status == 0 {
			continue
		}
		verbs := []string{request.Verb}
		if request.Verb == "patch" && request.IsCreation() {
			verbs = append(verbs, "create")
		}
		for _, verb := range verbs {
			if permission := verb + " " + request.Resource; !slices.Contains(s.used[permission], scenario) {
				s.used[permission] = append(s.used[permission], scenario)
			}
		}
		if request.Status == http.StatusForbidden && !run.IsAway(request.At) {
			s.report.refused = append(s.report.refused, request.String())
		}
	}
}
