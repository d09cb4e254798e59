package schema

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/example/memcached-operator/test/testenv"
)

// Options say what is tested.
type Options struct {
	// Program is the manager; empty for that of this tree.
	Program string
	// Only restricts the test to fields whose kind and path match; nil is all.
	Only *regexp.Regexp
	// Short tests some classes of each field and some fields of the template, as Seed chooses. It leaves out limits of the
	// history, which take more than a minute, and counts that there is no room for.
	Short bool
	Seed  uint64
	// Patience is how long anything may take before that counts as a violation. A limit of the history takes a minute.
	Patience time.Duration
	// IsHasty leaves out what takes long, and everything after the first violation.
	IsHasty bool
}

// A short run tests so many fields of the template, and of each other field so many classes that the API server
// accepts.
const (
	shortFields  = 2 * fieldsPerTemplate
	shortClasses = 3
)

// workers is how many fields are tested at the same time.
const workers = 16

// Report is what has been found.
type Report struct {
	Seed                    uint64
	IsShort                 bool
	Fields                  int // that are declared, but for those of the template
	Tried                   int // those of them that were tested, and the fields of the template that were
	Transitions, Rejections int
	Dead                    []string // fields without effect
	Wrong                   []string // changes that ended otherwise than a fresh resource, and wrong rejections
	RestWindows             int      // in which a settled resource was watched
	RestWrites              []string // of the operator in those
	EndWrites               []string // of the operator when everything was deleted
	Left                    []string // children of deleted resources
	Defects                 []string // what the log of the manager must not have
	Seconds                 float64
	Results                 []Result
	RoundTrip               RoundTrip
	Violations              []string // all of the above
}

// Run tests the fields of all kinds, on a control plane of its own.
func Run(ctx context.Context, options Options) (_ *Report, err error) {
	if options.Program == "" {
		dir, err := os.MkdirTemp("", "schema-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if options.Program, err = testenv.BuildManager(dir); err != nil {
			return nil, err
		}
	}
	w, err := Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Use(ctx, options.Program); err != nil {
		return nil, err
	}
	return w.Try(ctx, options)
}

// Try tests fields with the manager that is in use.
func (w *World) Try(ctx context.Context, options Options) (*Report, error) {
	begun := time.Now()
	kinds, err := Kinds()
	if err != nil {
		return nil, err
	}
	w.options = options
	report := &Report{Seed: options.Seed, IsShort: options.Short}
	for i := range kinds {
		report.Fields += len(kinds[i].Fields)
	}
	trials, templates := w.choose(kinds)
	var group sync.WaitGroup
	for _, t := range templates {
		group.Go(func() { report.RoundTrip = w.tryTemplates(ctx, t.kind, t.fields) })
	}
	report.Results = w.tryAll(ctx, trials)
	group.Wait()
	report.sum()
	if options.IsHasty && len(report.Violations) > 0 {
		return report, nil
	}
	report.Left = w.left(ctx)
	report.EndWrites = w.SettledWrites(ctx, "", restWindow)
	report.Defects = w.Defects()
	report.sum()
	report.Seconds = time.Since(begun).Seconds()
	return report, ctx.Err()
}

// templates are the fields of a kind's template that are tested.
type templates struct {
	kind   *Kind
	fields []Field
}

// choose returns what is tested, the fields in random order.
func (w *World) choose(kinds []Kind) (trials []*trial, all []templates) {
	isChosen := func(kind *Kind, field Field) bool {
		return w.options.Only == nil || w.options.Only.MatchString(kind.Name+" "+field.Path)
	}
	m := newMaker(w.options.Seed, templatePath)
	for i := range kinds {
		kind, fields := &kinds[i], []Field{}
		for _, field := range kind.Fields {
			isLong := specialOf(kind, field).limits != ""
			if isChosen(kind, field) && (!w.options.Short || !isLong) {
				trials = append(trials, newTrial(w, kind, field))
			}
		}
		for _, field := range kind.Template {
			if isChosen(kind, field) {
				fields = append(fields, field)
			}
		}
		m.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		if w.options.Short {
			fields = fields[:min(shortFields, len(fields))]
		}
		if len(fields) > 0 {
			all = append(all, templates{kind, fields})
		}
	}
	return trials, all
}

// tryAll runs trials, several at the same time.
func (w *World) tryAll(ctx context.Context, trials []*trial) []Result {
	results := make([]Result, len(trials))
	var group sync.WaitGroup
	free := make(chan struct{}, workers)
	for i, t := range trials {
		if t.limits != "" { // it waits most of the time
			group.Go(func() { results[i] = t.tryLimit(ctx) })
			continue
		}
		free <- struct{}{}
		group.Go(func() {
			results[i] = t.try(ctx)
			<-free
		})
	}
	group.Wait()
	return results
}

// sum adds up the results, and sorts them.
func (r *Report) sum() {
	slices.SortFunc(r.Results, func(a, b Result) int { return cmp.Compare(a.name(), b.name()) })
	trip := r.RoundTrip
	r.Tried, r.Transitions, r.Rejections = trip.Fields, 0, trip.Rejections
	r.RestWindows, r.RestWrites = trip.RestWindows, each("CronJob "+templatePath+": ", trip.RestWrites)
	r.Dead, r.Wrong = nil, each("CronJob "+templatePath+": ", trip.Violations)
	for _, result := range r.Results {
		if result.Transitions+result.Rejections > 0 || len(result.Violations) > 0 {
			r.Tried++
		}
		if result.Ends < 2 && len(result.Violations) == 0 && !r.IsShort { // a short run may choose classes that are alike
			r.Dead = append(r.Dead, result.name())
		}
		r.Transitions += result.Transitions
		r.Rejections += result.Rejections
		r.RestWindows += result.RestWindows
		r.RestWrites = append(r.RestWrites, each(result.name()+": ", result.RestWrites)...)
		r.Wrong = append(r.Wrong, each(result.name()+": ", result.Violations)...)
	}
	r.Violations = slices.Concat(r.Wrong,
		each("it has no effect: ", r.Dead),
		each("everything has settled, and the operator writes: ", r.RestWrites),
		each("everything is deleted, and the operator writes: ", r.EndWrites),
		each("its owner is deleted, and it is left: ", r.Left),
		each("the log of the manager has: ", r.Defects))
}

// each returns texts with the same words before each.
func each(words string, texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = words + text
	}
	return all
}
