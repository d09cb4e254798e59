package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/proof"
)

// Options select what is tested.
type Options struct {
	// Only restricts the test to fields whose kind and path match; nil is all.
	Only *regexp.Regexp
	// Short tests a sample of the classes of each field and of the fields of the template, chosen by Seed. It skips
	// history limits, which take more than a minute, and replica counts beyond the quota.
	Short bool
	Seed  uint64
	// Timeout is how long anything may take before it counts as a violation. A history limit takes a minute.
	Timeout time.Duration
	// StopsEarly skips slow tests, and ends after the fields if there is a violation.
	StopsEarly bool
}

func (o Options) isQuick() bool { return o.Short || o.StopsEarly }

// workers is how many fields are tested at the same time.
const workers = 16

// restWindow is how long the operator must write nothing when all resources are settled, and after all are deleted.
const restWindow = 10 * time.Second

// retried are reasons of Degraded with which the operator keeps writing, at growing intervals: retries or updates.
var retried = []string{tutorialv1.ReasonRefused, samplev1alpha1.ReasonRolloutStuck}

// Report is the result of a run.
type Report struct {
	Seed                    uint64
	IsShort                 bool
	Fields, Tried           int // declared fields, and tested fields
	Transitions, Rejections int
	Resting                 int // settled resources that were watched
	Results                 []Result
	Violations              []string
}

func (r *Report) add(words string, texts ...string) {
	for _, text := range texts {
		r.Violations = append(r.Violations, words+text)
	}
}

// Try tests fields with the running manager.
func (c *Cluster) Try(ctx context.Context, options Options) (*Report, error) {
	c.Timeout = options.Timeout
	report := &Report{Seed: options.Seed, IsShort: options.Short}
	trials, err := c.trials(options, report)
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.SetLimit(workers)
	for _, t := range trials {
		group.Go(func() error {
			t.run(ctx)
			return nil
		})
	}
	_ = group.Wait()
	for _, t := range trials {
		report.sum(t)
	}
	if options.StopsEarly && len(report.Violations) > 0 {
		return report, nil
	}
	if !options.StopsEarly {
		report.watch(ctx, c, trials)
	}
	for _, t := range trials {
		for _, s := range t.subjects {
			err = errors.Join(err, s.delete(ctx))
		}
	}
	report.add("remains although its owner is deleted: ", c.left(ctx)...)
	report.add("the operator writes although everything is deleted: ", c.SettledWrites(ctx, restWindow)...)
	report.add("the manager's log contains: ", c.Defects()...)
	return report, errors.Join(err, ctx.Err())
}

// trials returns a trial for each chosen field, the slow ones first.
func (c *Cluster) trials(options Options, report *Report) (trials []*trial, err error) {
	all, err := readKinds()
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		report.Fields += len(k.fields)
		for _, f := range k.fields {
			t := newTrial(c, options, k, f)
			isChosen := options.Only == nil || options.Only.MatchString(t.result.Field)
			if isChosen && (t.limits == "" || !options.Short) {
				trials = append(trials, t)
			}
		}
	}
	report.Tried = len(trials)
	slices.SortStableFunc(trials, func(a, b *trial) int { return cmp.Compare(b.limits, a.limits) })
	return trials, nil
}

// sum adds the results of a trial.
func (r *Report) sum(t *trial) {
	result := &t.result
	// The classes that a short run chooses may all have the same effect.
	if result.Ends < 2 && len(result.Violations) == 0 && !r.IsShort {
		r.add("it has no effect: ", result.Field)
	}
	r.add(result.Field+": ", result.Violations...)
	r.Transitions += result.Transitions
	r.Rejections += result.Rejections
	r.Results = append(r.Results, *result)
}

// watch adds the operator's writes for settled resources of trials without violations.
func (r *Report) watch(ctx context.Context, c *Cluster, trials []*trial) {
	var namespaces []string
	for _, t := range trials {
		for _, s := range t.subjects {
			object, _, err := s.answered()
			if err != nil || len(t.result.Violations) > 0 {
				continue
			}
			if _, reason, _ := conditionOf(object, "Degraded"); !slices.Contains(retried, reason) {
				namespaces = append(namespaces, s.Name)
			}
		}
	}
	if r.Resting = len(namespaces); r.Resting > 0 {
		writes := c.SettledWrites(ctx, restWindow, namespaces...)
		r.add("the operator writes although everything is settled: ", writes...)
	}
}

// Page returns the report of a run as a page.
func (r *Report) Page(run *proof.Run) *proof.Page {
	table := proof.Table{Columns: []string{"field", "classes of values", "transitions", "rejected", "different ends"}}
	for _, result := range r.Results {
		table.Rows = append(table.Rows, []string{result.Field, strings.Join(result.Classes, ", "),
			fmt.Sprint(result.Transitions), fmt.Sprint(result.Rejections), fmt.Sprint(result.Ends)})
	}
	return &proof.Page{
		Name:  "transitions",
		Title: "Every field, from every class of values to every other",
		Text: []string{
			"Each field that a CustomResourceDefinition declares has classes of values. The table names those that the " +
				"API server accepts: absent, null, the bounds and the values next to them, each word of an enum. One resource " +
				"is changed from each class to each other one, and compared with a resource that is created with the second " +
				"value. For the limits of the history, each change has a resource of its own, and the Jobs that are kept are " +
				"compared with the limit. spec.workloadType cannot be changed, so a StatefulSet is tried on a new resource; " +
				"spec.paused is set on one that has settled. Values beyond the bounds or of a wrong form or type are rejected " +
				"by the name of the field, or of its parent if a rule of that needs the field, and change nothing. In the " +
				"end, the operator must write nothing for any of the resources for a while.",
			"What is below spec.jobTemplate is copied to Jobs. A template with random values of all its fields is put into " +
				"a CronJob. Kubernetes refuses its Job, so the Job that the operator requested is compared with the template, " +
				"and the refusal must be reported in the same words. A template of what Kubernetes accepts follows, and the Job " +
				"is compared with what the API server makes of the same template by hand. `make reliability` writes this page; " +
				"test/reliability/README.md describes it.",
		},
		Settings: append(run.Settings(),
			proof.Setting{Name: "seed", Value: fmt.Sprint(r.Seed)},
			proof.Setting{Name: "form", Value: map[bool]string{true: "short", false: "full"}[r.IsShort]}),
		Claims:   append(r.claims(), run.Claim()),
		Sections: []proof.Section{{Title: "Fields", Tables: []proof.Table{table}}},
	}
}

func (r *Report) claims() []proof.Claim {
	fields := proof.Claim{What: "fields tested", Bar: "100 %", Found: fmt.Sprintf("%d of %d", r.Tried, r.Fields),
		Verdict: proof.Judge(r.Tried == r.Fields)}
	if r.IsShort {
		fields.Verdict, fields.Note = proof.NotJudged, "a sample"
	}
	return []proof.Claim{fields, {
		What: "changes that end otherwise than a fresh resource, wrong rejections, fields without effect, writes for " +
			"settled or deleted resources, children left of deleted resources, panics and data races",
		Bar:     "0",
		Found:   fmt.Sprintf("%d in %d changes and rejections", len(r.Violations), r.Transitions+r.Rejections),
		Verdict: proof.Judge(len(r.Violations) == 0), Note: strings.Join(r.Violations, "; "),
	}}
}
