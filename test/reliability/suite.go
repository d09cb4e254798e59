package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
	"github.com/example/memcached-operator/test/testenv"
)

// progressEvery is after how many plans progress is told of.
const progressEvery = 100

// suite is all that is done in one run.
type suite struct {
	*options
	begun     time.Time
	env       *runner.Environment
	scenarios []scenario.Scenario

	mu         sync.Mutex
	references map[string]*oracle.Reference // by scenario
	used       map[string][]string          // in which scenarios, by permission, as "verb group/resource"
	report     *report
}

// run runs the suite and tells whether it has found something.
func run(ctx context.Context) (failed bool, err error) {
	s, err := newSuite(ctx)
	if err != nil {
		return false, err
	}
	if s.env, err = runner.Start(ctx, s.manager, s.parallel, s.hasOutages()); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.env.Stop()) }()
	s.say("the control plane is up")
	interrupted := s.conductAll(ctx)
	if s.proof != "" && interrupted == nil { // a part of what was asked for proves nothing
		if err := s.report.page().Write(s.proof); err != nil {
			return true, err
		}
	}
	return s.report.Violations > 0, errors.Join(interrupted, s.report.print(os.Stdout))
}

// newSuite returns what the flags ask for.
func newSuite(ctx context.Context) (*suite, error) {
	o, err := parse()
	if err != nil {
		return nil, err
	}
	operator, err := proof.OperatorOf(testenv.Root(), o.manager)
	if err != nil {
		return nil, err
	}
	s := &suite{options: o, begun: time.Now(), references: map[string]*oracle.Reference{}, used: map[string][]string{},
		report: newReport(o, operator)}
	if s.report.Suite, err = proof.Suite(testenv.Root()); err != nil {
		return nil, err
	}
	if s.scenarios, err = chosen(o.scenario); err != nil {
		return nil, err
	}
	if _, _, err := runner.LastRelease(ctx); err != nil {
		s.scenarios = slices.DeleteFunc(s.scenarios, func(s scenario.Scenario) bool { return s.Before != nil })
		s.report.NotJudged = append(s.report.NotJudged, fmt.Sprintf("upgrades: %v", err))
	} else {
		s.report.NotJudged = append(s.report.NotJudged, "upgrades with CronJobs: the last release has none")
	}
	if s.evidence == "" {
		s.evidence, err = os.MkdirTemp("", "reliability-evidence-")
	}
	return s, err
}

// conductAll conducts the campaigns until one cannot go on. What has been found until then counts.
func (s *suite) conductAll(ctx context.Context) error {
	for _, campaign := range s.campaigns() {
		err := s.conduct(ctx, campaign)
		if err = errors.Join(err, s.save()); err != nil {
			return fmt.Errorf("campaign %s: %w", campaign.name, err)
		}
	}
	return nil
}

// chosen returns the scenarios whose whole name an expression matches.
func chosen(expression string) ([]scenario.Scenario, error) {
	all := scenario.All()
	if expression == "" {
		return all, nil
	}
	pattern, err := regexp.Compile("^(" + expression + ")$")
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s scenario.Scenario) bool { return !pattern.MatchString(s.Name) })
	if len(all) == 0 {
		return nil, fmt.Errorf("no scenario is named %s", expression)
	}
	return all, nil
}

// campaign is a set of plans with something in common.
type campaign struct {
	name string
	what string // it shows
	// plans returns the plans; it may need the references. It is nil for none.
	plans func() []*runner.Plan
	// isReference tells that what comes of the plans is what others are compared with.
	isReference bool
	// other does what is not a plan; nil for nothing.
	other func(context.Context, *campaignReport) error
}

// conduct plays the plans of a campaign.
func (s *suite) conduct(ctx context.Context, c campaign) error {
	r := s.report.begin(c.name, c.what)
	var plans []*runner.Plan
	if c.plans != nil {
		plans = c.plans()
	}
	for _, plan := range plans {
		plan.Patience = s.patience
	}
	s.say("%s: %d plans", c.name, len(plans))
	err := s.playAll(ctx, r, plans, c.isReference)
	if err == nil && c.other != nil {
		err = c.other(ctx, r)
	}
	r.Seconds = time.Since(r.began).Seconds()
	s.say("%s: %s", c.name, r.summary())
	return err
}

// playAll plays plans, as many at a time as was asked for, and as many again in which nothing happens any more: that is
// most of the time of a plan, and takes no more than an operator that waits. Those that wait at first, as something has
// to be old, begin at once.
func (s *suite) playAll(ctx context.Context, r *campaignReport, plans []*runner.Plan, isReference bool) error {
	group, ctx := errgroup.WithContext(ctx)
	free := make(chan struct{}, 2*s.parallel)
	slices.SortStableFunc(plans, func(a, b *runner.Plan) int { return cmp.Compare(b.Scenario.Age, a.Scenario.Age) })
	for _, plan := range plans {
		if plan.Scenario.Age > 0 {
			group.Go(func() error { return s.play(ctx, r, plan, isReference) })
			continue
		}
		select {
		case free <- struct{}{}:
			group.Go(func() error {
				defer func() { <-free }()
				return s.play(ctx, r, plan, isReference)
			})
		case <-ctx.Done():
			return errors.Join(group.Wait(), ctx.Err())
		}
	}
	return group.Wait()
}

// play plays a plan and judges it.
func (s *suite) play(ctx context.Context, r *campaignReport, plan *runner.Plan, isReference bool) error {
	var reference *oracle.Reference
	if !isReference {
		reference = s.reference(plan.Scenario.Name)
	}
	began := time.Now()
	run, err := s.record(ctx, plan, reference)
	if err != nil {
		return err
	}
	findings := oracle.Judge(run, reference)
	s.mu.Lock()
	defer s.mu.Unlock()
	if isReference && run.Lacking == "" {
		findings = append(findings, s.refer(&plan.Scenario, run)...)
	}
	if plan.ServiceAccount == "" {
		requests := run.Requests
		if plan.Scenario.Before != nil { // the last release has made the first
			requests = requests[run.Setup:]
		}
		s.use(plan.Scenario.Name, run, requests)
	}
	result := &planReport{
		Scenario: plan.Scenario.Name, Faults: plan.Faults(), Fired: run.Fired, Requests: len(run.Requests),
		Seconds: time.Since(began).Seconds(), Findings: findings,
	}
	r.add(result)
	if len(r.Plans)%progressEvery == 0 {
		s.say("%s: %d plans played", r.Name, len(r.Plans))
	}
	if len(findings) == 0 {
		return nil
	}
	again := replay(plan, r.Name)
	s.say("VIOLATION %s\n%s\nreplay: %s", plan, findings[0], again)
	if err := s.keep(plan, again, run, findings); err != nil || !s.hasty {
		return err
	}
	return errors.New("something was found, which is enough")
}

// tries is how often a plan is played until its fault occurs: a write may be made in some runs only, as a status that
// tells of two changes at once or of one after the other.
const tries = 8

// record plays a plan, and again while nothing has gone wrong that should have. What a storm comes to is left to
// chance.
func (s *suite) record(ctx context.Context, plan *runner.Plan, reference *oracle.Reference) (run *oracle.Run,
	err error) {
	for range tries {
		if run, err = s.env.Play(ctx, plan, reference); err != nil {
			return nil, fmt.Errorf("%s: %w", plan, err)
		}
		if run.Fired > 0 || len(plan.Rules) == 0 || plan.Outage != nil ||
			len(oracle.Judge(run, reference)) > 0 {
			break
		}
	}
	return run, ctx.Err()
}

// replay returns the command that plays a plan of a campaign alone, or among few.
func replay(plan *runner.Plan, campaign string) string {
	what := fmt.Sprintf("--fault='%s'", plan.Faults())
	if plan.Faults() == "" {
		what = fmt.Sprintf("--campaign='%s'", campaign)
	}
	return fmt.Sprintf(`make reliability ARGS="--scenario=%s %s"`, plan.Scenario.Name, what)
}

// keep writes what was recorded of a plan, and how to play it again, to a directory of its own.
func (s *suite) keep(plan *runner.Plan, again string, run *oracle.Run, findings []oracle.Finding) error {
	dir := filepath.Join(s.evidence, run.Namespace)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	s.say("what was recorded of it: %s", dir)
	var requests, versions strings.Builder
	for _, request := range run.Requests {
		fmt.Fprintf(&requests, "%s %s\n", request.At.Format("15:04:05.000"), request.String())
	}
	for _, version := range run.Versions {
		text, err := json.Marshal(version.Object.Object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&versions, "%s %d %s gone=%t %s\n", version.At.Format("15:04:05.000"), version.RV, version.Key,
			version.IsGone, text)
	}
	told := fmt.Sprintf("%s\n%s\n", plan, again)
	for _, finding := range findings {
		told += finding.String() + "\n"
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "findings.txt"), []byte(told), 0o644),
		os.WriteFile(filepath.Join(dir, "requests.txt"), []byte(requests.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "versions.txt"), []byte(versions.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "operator.log"), []byte(run.Log), 0o644))
}

// save sums up what was found until the end of a campaign, and writes it if that is asked for.
func (s *suite) save() error {
	s.report.finish(s)
	if s.output == "" {
		return nil
	}
	return proof.Keep(s.output, s.report)
}

func (s *suite) reference(name string) *oracle.Reference {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.references[name]
}

// refer takes a run in which nothing went wrong into the reference of its scenario, and finds what is not expected of
// it, or differs from the runs before.
func (s *suite) refer(played *scenario.Scenario, run *oracle.Run) []oracle.Finding {
	is := oracle.NewReference(run)
	findings := is.Unexpected(played)
	was := s.references[played.Name]
	if was == nil {
		s.references[played.Name] = is
		return findings
	}
	if diff := history.Diff(was.World, is.World); diff != "" {
		findings = append(findings, oracle.Finding{Oracle: "same each time",
			Text: "without faults, the world is not the same each time:\n" + diff})
	}
	if !run.IsOpen && (!maps.Equal(was.Creates, is.Creates) || !maps.Equal(was.Deletes, is.Deletes)) {
		findings = append(findings, oracle.Finding{Oracle: "same each time",
			Text: fmt.Sprintf("without faults, %v was created and %v deleted, and before %v and %v",
				is.Creates, is.Deletes, was.Creates, was.Deletes)})
	}
	// Progress is told of as time passes, so there may be one status more or less: what is sure to be written is a
	// position.
	for match, n := range was.Writes {
		was.Writes[match] = min(n, is.Writes[match])
	}
	for reason, n := range is.Events {
		was.Events[reason] = max(n, was.Events[reason])
	}
	for reason, n := range was.FewestEvents {
		was.FewestEvents[reason] = min(n, is.Events[reason])
	}
	for function, n := range is.Goroutines {
		was.Goroutines[function] = max(n, was.Goroutines[function])
	}
	return findings
}

// use notes the permissions that were used in a scenario, and requests that were refused for the lack of one: apart
// those of an API server that has just been started.
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
		switch {
		case request.Status != http.StatusForbidden:
		case run.IsAway(request.At):
			s.report.Starting[request.Verb+" "+request.Resource]++
		default:
			s.report.Refused = append(s.report.Refused, request.String())
		}
	}
}
