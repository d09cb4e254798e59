package main

import (
	"context"
	_ "embed" // the seeded bugs
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
	"github.com/example/memcached-operator/test/reliability/schema"
	"github.com/example/memcached-operator/test/testenv"
)

//go:embed mutants/mutants.yaml
var mutantsYAML []byte

// mutant is the operator with one seeded bug.
type mutant struct {
	Name    string `json:"name"`
	Pattern string `json:"pattern"`
	// FirstAttempt is one of firstAttempts, for a bug that was written by an author who had not read the oracles.
	FirstAttempt string `json:"firstAttempt"`
	// Only is the oracle that finds the bug, if no other does in the plan that ends the search.
	Only    string   `json:"only"`
	Edits   []edit   `json:"edits"`
	Killers []string `json:"killers"` // see newKiller
}

// edit replaces a text that occurs once in a file.
type edit struct {
	File string `json:"file"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

func mutants() ([]mutant, error) {
	var all []mutant
	return all, yaml.UnmarshalStrict(mutantsYAML, &all)
}

// files returns the content of the changed files, by their path in the repository.
func (m mutant) files() (map[string]string, error) {
	files := map[string]string{}
	for _, edit := range m.Edits {
		content, ok := files[edit.File]
		if !ok {
			read, err := os.ReadFile(filepath.Join(testenv.Root(), edit.File))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			content = string(read)
		}
		if count := strings.Count(content, edit.Old); count != 1 {
			return nil, fmt.Errorf("mutant %s: %s contains the old text %d times, not once; update mutants.yaml:\n%s",
				m.Name, edit.File, count, edit.Old)
		}
		files[edit.File] = strings.Replace(content, edit.Old, edit.New, 1)
	}
	return files, nil
}

// roleFile is the ClusterRole of the operator.
const roleFile = "config/rbac/role.yaml"

// build builds the manager with the bug and returns its path, or the rules of the ClusterRole if the bug is in these.
func (m mutant) build(ctx context.Context, dir string) (program string, rules []rbacv1.PolicyRule, err error) {
	files, err := m.files()
	if err != nil {
		return "", nil, err
	}
	if role, ok := files[roleFile]; ok {
		var clusterRole rbacv1.ClusterRole
		err := yaml.Unmarshal([]byte(role), &clusterRole)
		return "", clusterRole.Rules, err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, content := range files {
		replacement := filepath.Join(dir, m.Name+"-"+strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(replacement, []byte(content), 0o600); err != nil {
			return "", nil, err
		}
		overlay.Replace[filepath.Join(testenv.Root(), file)] = replacement
	}
	content, err := json.Marshal(overlay)
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, m.Name+".json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", nil, err
	}
	program, err = testenv.Build(ctx, filepath.Join(dir, "manager-"+m.Name), "-overlay="+path)
	return program, nil, err
}

// killer is a part of the suites that is expected to find a bug. Mutation testing says that it kills the mutant.
type killer struct {
	suite    string // schema, scenario, plan or a campaign
	scenario string // a regular expression for scenarios; for suite schema, for kinds and fields
	fault    string // for suite plan
	// isOfWholeRun has a campaign choose faults as in a whole run. Otherwise it tries every fault at every write.
	isOfWholeRun bool
}

// newKiller parses a killer:
//   - "schema EXPRESSION": the transitions of matching fields.
//   - "scenario EXPRESSION": matching scenarios without faults.
//   - "plan SCENARIO / FAULT": one plan, as named in a report.
//   - "CAMPAIGN EXPRESSION": a campaign with matching scenarios.
func newKiller(text string) (killer, error) {
	suite, part, _ := strings.Cut(text, " ")
	name, fault, _ := strings.Cut(part, " / ")
	k := killer{suite: suite, scenario: name, fault: fault}
	_, patternErr := regexp.Compile(name)
	_, faultErr := parseFaults(fault)
	suites := []string{"schema", "scenario", "plan", singlesCampaign, refusalsCampaign, readsCampaign, stormsCampaign,
		leadersCampaign, outagesCampaign, rbacCampaign}
	if !slices.Contains(suites, suite) || name == "" ||
		(fault != "") != (suite == "plan") || errors.Join(patternErr, faultErr) != nil {
		return k, fmt.Errorf("%q is not a killer", text)
	}
	return k, nil
}

// covering returns the killer that has the same scenarios, with the faults of a whole run; ok is false for killers
// without a fault, and for those whose faults a whole run chooses among several scenarios, or not at all.
func (k killer) covering() (covering killer, ok bool) {
	covering = killer{suite: k.suite, scenario: k.scenario, isOfWholeRun: true}
	if k.suite != "plan" {
		return covering, slices.Contains([]string{singlesCampaign, refusalsCampaign, readsCampaign, stormsCampaign}, k.suite)
	}
	faults, err := parseFaults(k.fault)
	switch {
	case err != nil:
		return killer{}, false
	case faults.storm != nil:
		covering.suite = stormsCampaign
		return covering, true
	case len(faults.rules) != 1:
		return killer{}, false
	}
	switch rule := faults.rules[0]; {
	case rule.For == refusedTime:
		covering.suite = refusalsCampaign
		return covering, true
	case rule.Match.Verb == proxy.LiveRead:
		covering.suite = readsCampaign
		return covering, true
	case rule.Nth > 0 && slices.Contains(proxy.Faults, rule.Fault):
		covering.suite = singlesCampaign
		return covering, true
	}
	return killer{}, false
}

// others returns the killer with the other scenarios of the same kinds; ok is false if there are none.
func (k killer) others() (others killer, ok bool) {
	all := scenario.All()
	isChosen := func(played scenario.Scenario) bool { return matches(k.scenario, played.Name) }
	var names []string
	for _, other := range all {
		isOfKind := func(played scenario.Scenario) bool { return kindOf(played) == kindOf(other) && isChosen(played) }
		if !isChosen(other) && slices.ContainsFunc(all, isOfKind) {
			names = append(names, other.Name)
		}
	}
	k.scenario = strings.Join(names, "|")
	return k, len(names) > 0
}

// timeout returns how long the operator may take: longer than the bound of its recovery, so that a longer timeout would
// find the same.
func (k killer) timeout() time.Duration {
	switch {
	case strings.Contains(k.scenario, "HistoryLimit"), k.isOutage(), k.suite == leadersCampaign:
		return 90 * time.Second
	case k.suite == "schema":
		return 15 * time.Second
	}
	return 40 * time.Second
}

// isOutage reports whether the killer kills parts of the control plane, which others use too.
func (k killer) isOutage() bool {
	return k.suite == outagesCampaign || strings.Contains(k.fault, awayFault)
}

// lab runs mutants: on one control plane for plans, and on another one for transitions.
type lab struct {
	dir string
	env *runner.Environment

	mu         sync.Mutex
	references map[string]*oracle.Reference // of the operator without bugs, by scenario

	schema  sync.Mutex      // locks cluster, whose manager reconciles all namespaces
	cluster *schema.Cluster // runs transitions; nil until it is needed
}

// startLab starts the control plane; Program is the operator without bugs.
func startLab(ctx context.Context, dir, program string, hasOutages bool) (*lab, error) {
	env, err := runner.Start(ctx, program, parallelPlans, hasOutages)
	return &lab{dir: dir, env: env, references: map[string]*oracle.Reference{}}, err
}

func (l *lab) stop() error {
	err := l.env.Stop()
	if l.cluster != nil {
		err = errors.Join(err, l.cluster.Stop())
	}
	return err
}

// answer is what a killer has found.
type answer struct {
	findings   []oracle.Finding
	needsFault bool // the same scenarios without faults have no findings
	runs       int  // runs of plans, or transitions; repetitions count
}

// ask runs a killer with a program, and with rules of the ClusterRole if they are not nil. It returns the references of
// its scenarios, too. If all of them are known, and none had findings, they are not played again.
func (l *lab) ask(ctx context.Context, k killer, program string, rules []rbacv1.PolicyRule,
	known map[string]*oracle.Reference) (answer, map[string]*oracle.Reference, error) {
	if k.suite == "schema" {
		found, err := l.transitions(ctx, k, program)
		return found, nil, err
	}
	// No campaign is named "scenario", so that killer runs only the references.
	s, err := newSuite(ctx, &options{manager: program, scenario: k.scenario, fault: k.fault, campaign: k.suite, times: 1,
		seed: mutantSeed, timeout: k.timeout(), stopsEarly: true, isExhaustive: !k.isOfWholeRun})
	if err != nil {
		return answer{}, nil, err
	}
	s.env, s.rules = l.env, rules
	isUnknown := func(played scenario.Scenario) bool { return known[played.Name] == nil }
	if !slices.ContainsFunc(s.scenarios, isUnknown) {
		s.references = maps.Clone(known)
	}
	if rules != nil && k.suite != rbacCampaign {
		s.account = s.accountOf("mutant", 0)
		if err := s.grant(ctx, rights{name: s.account, rules: rules}); err != nil {
			return answer{}, nil, err
		}
	}
	err = s.conductAll(ctx)
	found := answer{findings: s.report.findings()}
	for _, plan := range s.report.plans() {
		found.runs += plan.runs
	}
	if len(found.findings) > 0 {
		found.needsFault = !s.report.fails(referenceCampaign) && k.suite != rbacCampaign
		return found, s.references, ctx.Err()
	}
	return found, s.references, err
}

// transitions tests the transitions of matching fields.
func (l *lab) transitions(ctx context.Context, k killer, program string) (found answer, err error) {
	l.schema.Lock()
	defer l.schema.Unlock()
	if l.cluster == nil {
		if l.cluster, err = schema.Start(ctx); err != nil {
			return answer{}, err
		}
	}
	if err := l.cluster.Use(ctx, program); err != nil {
		return answer{}, err
	}
	report, err := l.cluster.Try(ctx, schema.Options{Only: regexp.MustCompile(k.scenario), Timeout: k.timeout(),
		StopsEarly: true})
	if err != nil {
		return answer{}, err
	}
	if report.Tried == 0 {
		return answer{}, fmt.Errorf("no field matches %q", k.scenario)
	}
	for _, violation := range report.Violations {
		found.findings = append(found.findings, oracle.Finding{Oracle: "transitions", Text: violation})
	}
	found.runs = report.Transitions + report.Rejections
	return found, l.cluster.Clear(ctx)
}

// mutantSeed is the seed of all random choices of killers. Those of transitions are not random.
const mutantSeed = 1

// coverage is what the plans of a whole run have found of a bug that needs a fault.
type coverage struct {
	answer           // of the last killer, with the runs of all
	isElsewhere bool // other scenarios of the kind were tried, since those of the bug had found nothing
	err         error
}

func (c *coverage) isFound() bool { return c != nil && c.err == nil && len(c.findings) > 0 }

// cover tries the plans of a whole run: those of the scenarios that found the bug and, if these find nothing, those of
// others of the kind, if a fault is needed in these, too.
func (l *lab) cover(ctx context.Context, covering killer, program string, rules []rbacv1.PolicyRule,
	references map[string]*oracle.Reference) *coverage {
	c := &coverage{}
	c.answer, _, c.err = l.ask(ctx, covering, program, rules, references)
	others, ok := covering.others()
	if c.err != nil || len(c.findings) > 0 || !ok {
		return c
	}
	runs := c.runs
	c.isElsewhere = true
	c.answer, _, c.err = l.ask(ctx, others, program, rules, nil)
	c.runs += runs
	if !c.needsFault {
		c.findings = nil
	}
	return c
}

// hunt builds a mutant and runs its killers until one finds a violation. If that needs a fault, it then tries the
// plans of a whole run.
func (l *lab) hunt(ctx context.Context, m mutant) outcome {
	begun := time.Now()
	result := outcome{name: m.Name, pattern: m.Pattern, only: m.Only}
	program, rules, err := m.build(ctx, l.dir)
	if program != "" {
		defer func() { _ = os.Remove(program) }()
	} else {
		program = l.env.Program()
	}
	for _, text := range m.Killers {
		if err != nil || len(result.findings) > 0 {
			break
		}
		var k killer
		if k, err = newKiller(text); err != nil {
			break
		}
		result.attempts = append(result.attempts, text)
		runs := result.runs
		var references map[string]*oracle.Reference
		result.answer, references, err = l.ask(ctx, k, program, rules, nil)
		result.runs += runs
		if covering, ok := k.covering(); ok && err == nil && result.needsFault && len(result.findings) > 0 {
			result.covered = l.cover(ctx, covering, program, rules, references)
		}
	}
	result.err = err
	result.seconds = time.Since(begun).Seconds()
	return result
}

// control runs a killer with the operator without bugs.
func (l *lab) control(ctx context.Context, text string) outcome {
	k, err := newKiller(text)
	result := outcome{attempts: []string{text}, err: err}
	if err != nil {
		return result
	}
	var known, references map[string]*oracle.Reference
	if k.suite != "scenario" && k.suite != rbacCampaign { // these judge the references themselves
		l.mu.Lock()
		known = maps.Clone(l.references)
		l.mu.Unlock()
	}
	result.answer, references, result.err = l.ask(ctx, k, l.env.Program(), nil, known)
	if len(result.findings) == 0 && result.err == nil {
		l.mu.Lock()
		maps.Copy(l.references, references)
		l.mu.Unlock()
	}
	return result
}

// lanes is how many killers run at the same time, beside transitions.
const lanes = 3

// each calls a function for each item. Items of transitions run one at a time, in parallel with the others.
func each[T any](items []T, isSchema func(T) bool, f func(T)) {
	var all, others errgroup.Group
	others.SetLimit(lanes)
	all.Go(func() error {
		for _, item := range items {
			if isSchema(item) {
				f(item)
			}
		}
		return nil
	})
	for _, item := range items {
		if !isSchema(item) {
			others.Go(func() error { f(item); return nil })
		}
	}
	_, _ = others.Wait(), all.Wait() // f returns nothing
}

// huntMutants tests the suites with the bugs that the options select, and reports whether the suites have failed.
func huntMutants(ctx context.Context, o *options) (failed bool, err error) {
	all, err := mutants()
	if err != nil {
		return false, err
	}
	r := &mutantReport{run: proof.Begin(testenv.Root(), o.manager), seeded: len(all), atFirst: map[string]int{}}
	for _, m := range all {
		r.atFirst[m.FirstAttempt]++
	}
	chosen := regexp.MustCompile(o.mutants)
	all = slices.DeleteFunc(all, func(m mutant) bool { return !chosen.MatchString(m.Name) })
	if o.proof != "" && len(all) < r.seeded {
		return false, errors.New("--proof needs all seeded bugs: do not select some with --mutants")
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := o.manager
	if program == "" {
		if program, err = testenv.Build(ctx, filepath.Join(dir, "manager")); err != nil {
			return false, err
		}
	}
	for _, isOutage := range []bool{false, true} { // outages need their own control plane
		some := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool {
			k, _ := newKiller(m.Killers[0])
			return k.isOutage() != isOutage
		})
		if len(some) == 0 {
			continue
		}
		err := r.huntAll(ctx, some, dir, program, isOutage)
		if err = errors.Join(err, r.recordAlarms(ctx.Err() == nil)); err != nil {
			return true, err
		}
	}
	r.run.End()
	err = errors.Join(r.page().Print(os.Stdout), r.run.Write(r.page(), o.proof))
	return r.killed() < len(r.outcomes) || len(r.alarms()) > 0, err
}

// recordAlarms adds to all violations ever found what the controls have found in the operator without bugs and, unless
// the search was interrupted, the errors of controls that failed.
func (r *mutantReport) recordAlarms(isComplete bool) error {
	var errs []error
	for _, o := range r.controls {
		found := textsOf(o.findings)
		if o.err != nil && isComplete {
			found = append(found, o.err.Error())
		}
		if len(found) > 0 {
			errs = append(errs, r.run.Record("without bugs, "+o.killer(), strings.Join(found, "; ")))
		}
	}
	return errors.Join(errs...)
}

// huntAll hunts mutants on one control plane. Then it runs the killers that found one with the operator without bugs.
func (r *mutantReport) huntAll(ctx context.Context, some []mutant, dir, program string, isOutage bool) (err error) {
	l, err := startLab(ctx, dir, program, isOutage)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	var mu sync.Mutex
	add := func(to *[]outcome, result outcome) {
		mu.Lock()
		defer mu.Unlock()
		*to = append(*to, result)
		fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(r.run.Begun).Seconds(), result)
	}
	isSchema := func(killer string) bool { return strings.HasPrefix(killer, "schema ") }
	var found []outcome
	each(some, func(m mutant) bool { return isSchema(m.Killers[0]) }, func(m mutant) { add(&found, l.hunt(ctx, m)) })
	r.outcomes = append(r.outcomes, found...)
	each(killersOf(found), isSchema, func(killer string) { add(&r.controls, l.control(ctx, killer)) })
	return ctx.Err()
}
