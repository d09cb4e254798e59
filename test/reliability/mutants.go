package main

import (
	"context"
	_ "embed" // the seeded bugs
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
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
	FirstAttempt string   `json:"firstAttempt"`
	Edits        []edit   `json:"edits"`
	Killers      []string `json:"killers"` // see newKiller
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
	program, err = schema.Build(ctx, filepath.Join(dir, "manager-"+m.Name), "-overlay="+path)
	return program, nil, err
}

// killer is a part of the suites that is expected to find a bug. Mutation testing says that it kills the mutant.
type killer struct {
	suite    string // schema, scenario, plan or a campaign
	scenario string // a regular expression for scenarios; for suite schema, for kinds and fields
	fault    string // for suite plan
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
	suites := []string{"schema", "scenario", "plan", singlesCampaign, refusalsCampaign, "storms", leadersCampaign,
		outagesCampaign, rbacCampaign}
	if !slices.Contains(suites, suite) || name == "" ||
		(fault != "") != (suite == "plan") || errors.Join(patternErr, faultErr) != nil {
		return k, fmt.Errorf("%q is not a killer", text)
	}
	return k, nil
}

// covering returns the killer that has the scenario of a plan with one fault, with the faults that a whole run would
// choose: not this fault at this write, but one of its class; ok is false for other killers.
func (k killer) covering() (covering killer, ok bool) {
	faults, err := parseFaults(k.fault)
	if k.suite != "plan" || err != nil || len(faults.rules) != 1 {
		return killer{}, false
	}
	switch rule := faults.rules[0]; {
	case rule.For == refusedTime:
		return killer{suite: refusalsCampaign, scenario: k.scenario}, true
	case rule.Nth > 0 && slices.Contains(proxy.Faults, rule.Fault):
		return killer{suite: singlesCampaign, scenario: k.scenario}, true
	}
	return killer{}, false
}

// timeout returns how long the operator may take.
func (k killer) timeout() time.Duration {
	switch {
	case strings.Contains(k.scenario, "HistoryLimit"), k.isOutage():
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

	schema  sync.Mutex      // locks cluster, whose manager reconciles all namespaces
	cluster *schema.Cluster // runs transitions; nil until it is needed
}

// startLab starts the control plane; Program is the operator without bugs.
func startLab(ctx context.Context, dir, program string, hasOutages bool) (*lab, error) {
	env, err := runner.Start(ctx, program, parallelPlans, hasOutages)
	return &lab{dir: dir, env: env}, err
}

func (l *lab) stop() error {
	err := l.env.Stop()
	if l.cluster != nil {
		err = errors.Join(err, l.cluster.Stop())
	}
	return err
}

// ask runs a killer with a program, and with rules of the ClusterRole if they are not nil.
func (l *lab) ask(ctx context.Context, k killer, program string, rules []rbacv1.PolicyRule,
	isExhaustive bool) ([]oracle.Finding, error) {
	if k.suite == "schema" {
		return l.transitions(ctx, k, program)
	}
	// No campaign is named "scenario", so that killer runs only the references.
	s, err := newSuite(ctx, &options{manager: program, scenario: k.scenario, fault: k.fault, campaign: k.suite, times: 1,
		seed: mutantSeed, timeout: k.timeout(), stopsEarly: true, isExhaustive: isExhaustive})
	if err != nil {
		return nil, err
	}
	s.env, s.rules = l.env, rules
	if rules != nil && k.suite != rbacCampaign {
		s.account = s.accountOf("mutant", 0)
		if err := s.grant(ctx, rights{name: s.account, rules: rules}); err != nil {
			return nil, err
		}
	}
	err = s.conductAll(ctx)
	found := s.report.findings()
	if len(found) > 0 {
		return found, ctx.Err()
	}
	return nil, err
}

// transitions tests the transitions of matching fields.
func (l *lab) transitions(ctx context.Context, k killer, program string) (found []oracle.Finding, err error) {
	l.schema.Lock()
	defer l.schema.Unlock()
	if l.cluster == nil {
		if l.cluster, err = schema.Start(ctx); err != nil {
			return nil, err
		}
	}
	if err := l.cluster.Use(ctx, program); err != nil {
		return nil, err
	}
	report, err := l.cluster.Try(ctx, schema.Options{Only: regexp.MustCompile(k.scenario), Timeout: k.timeout(),
		StopsEarly: true})
	if err != nil {
		return nil, err
	}
	if report.Tried == 0 {
		return nil, fmt.Errorf("no field matches %q", k.scenario)
	}
	for _, violation := range report.Violations {
		found = append(found, oracle.Finding{Oracle: "transitions", Text: violation})
	}
	return found, l.cluster.Clear(ctx)
}

// mutantSeed is the seed of all random choices of killers. Those of transitions are not random.
const mutantSeed = 1

// hunt builds a mutant and runs its killers until one finds a violation. If that has one fault, it also runs the killer
// that covering returns.
func (l *lab) hunt(ctx context.Context, m mutant) outcome {
	begun := time.Now()
	result := outcome{name: m.Name, pattern: m.Pattern}
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
		result.findings, err = l.ask(ctx, k, program, rules, true)
		if covering, ok := k.covering(); ok && err == nil && len(result.findings) > 0 {
			var found []oracle.Finding
			if found, err = l.ask(ctx, covering, program, rules, false); err == nil {
				result.isCovered = ptr.To(len(found) > 0)
			}
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
	if err == nil {
		result.findings, result.err = l.ask(ctx, k, l.env.Program(), nil, true)
	}
	return result
}

// lanes is how many killers run at the same time, beside transitions.
const lanes = 2

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
	r := &mutantReport{begun: time.Now(), seeded: len(all), atFirst: map[string]int{}}
	for _, m := range all {
		r.atFirst[m.FirstAttempt]++
	}
	if r.operator, err = proof.Operator(testenv.Root()); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := o.manager
	if program == "" {
		if program, err = schema.Build(ctx, filepath.Join(dir, "manager")); err != nil {
			return false, err
		}
	}
	chosen := regexp.MustCompile(o.mutants)
	all = slices.DeleteFunc(all, func(m mutant) bool { return !chosen.MatchString(m.Name) })
	for _, isOutage := range []bool{false, true} { // outages need their own control plane
		some := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool {
			k, _ := newKiller(m.Killers[0])
			return k.isOutage() != isOutage
		})
		if len(some) == 0 {
			continue
		}
		if err := r.huntAll(ctx, some, dir, program, isOutage); err != nil {
			return true, err
		}
	}
	r.ended = time.Now()
	err = r.page().Print(os.Stdout)
	if o.proof != "" && err == nil {
		err = r.page().Write(o.proof)
	}
	return r.killed() < len(r.outcomes) || len(r.alarms()) > 0, err
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
		fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(r.begun).Seconds(), result)
	}
	isSchema := func(killer string) bool { return strings.HasPrefix(killer, "schema ") }
	var found []outcome
	each(some, func(m mutant) bool { return isSchema(m.Killers[0]) }, func(m mutant) { add(&found, l.hunt(ctx, m)) })
	r.outcomes = append(r.outcomes, found...)
	each(killersOf(found), isSchema, func(killer string) { add(&r.controls, l.control(ctx, killer)) })
	return ctx.Err()
}
