package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/example/memcached-operator/test/testenv"
)

// Options are what is to be tried.
type Options struct {
	// Program is the manager; empty for that of this tree.
	Program string
	// Only is for leaves whose path matches; nil is for all.
	Only *regexp.Regexp
	// Short tries some classes of our own leaves and some leaves of the template, as Seed chooses. It leaves out histories, which take more
	// than a minute, and what nobody has room for.
	Short bool
	Seed  uint64
	// Workers is how many leaves are tried at the same time.
	Workers int
	// Patience is how long anything may take to become as it should be, before that counts as a violation. A history takes a minute.
	Patience time.Duration
	// Progress is called after each leaf, if it is not nil.
	Progress func(tried, of int)
	// IsHasty leaves out what takes long, and the rest when something is found.
	IsHasty bool
}

// In short, so many leaves of the template are tried, and of each leaf so many classes that the API server takes.
const (
	shortLeaves  = 16
	shortClasses = 3
)

// Report is what has been found.
type Report struct {
	Leaves                int // that are declared
	Tried                 int // those of them that were, and are neither unknown nor single
	Transitions, Refusals int
	Opaque                []string // fields that declare no fields of their own
	Unknown, Single, Dead []string // leaves that this API server knows nothing of, that have one legal value, and that show in nothing
	Wrong                 []string // changes that have ended otherwise than a fresh resource, or were not refused as they should be
	RestWindows           int      // over which a resource was watched that had come to rest
	RestWrites            []string // of the operator in those
	EndWrites             []string // of the operator when all was deleted
	Left                  []string // children of resources that are gone
	Defects               []string // what the log of the manager must not have
	Seconds               float64
	Results               []Result
	Violations            []string // all that must not be, whatever it is
}

// gated is an API server that has the gates open behind which there are fields of Jobs.
var gated = testenv.Settings{APIServer: map[string]string{
	"runtime-config": "api/all=true",
	"feature-gates": "ClusterTrustBundle=true,ClusterTrustBundleProjection=true,PodCertificateRequest=true,GenericWorkload=true,WorkloadWithJob=true," +
		"GangScheduling=true,TopologyAwareWorkloadScheduling=true,DRAWorkloadResourceClaims=true",
}}

// Run tries the leaves of all kinds, in a world of its own. Those that its API server knows nothing of are tried once more, unless in short,
// on one that has more gates open.
func Run(ctx context.Context, options Options) (*Report, error) {
	if options.Program == "" {
		dir, err := os.MkdirTemp("", "schema-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if options.Program, err = Build(ctx, filepath.Join(dir, "manager"), "-race"); err != nil {
			return nil, err
		}
	}
	report, err := runWith(ctx, testenv.Settings{}, options)
	if err != nil || options.Short || len(report.Unknown) == 0 {
		return report, err
	}
	var unknown []string
	for _, path := range report.Unknown {
		unknown = append(unknown, regexp.QuoteMeta(path))
	}
	options.Only = regexp.MustCompile("^(" + strings.Join(unknown, "|") + ")$")
	again, err := runWith(ctx, gated, options)
	if again != nil {
		report.add(again)
	}
	return report, err
}

// runWith tries leaves on a control plane with settings.
func runWith(ctx context.Context, settings testenv.Settings, options Options) (report *Report, err error) {
	w, err := startWith(ctx, settings)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Use(ctx, options.Program); err != nil {
		return nil, err
	}
	return w.Try(ctx, options)
}

// Try tries leaves with the manager that is in use.
func (w *World) Try(ctx context.Context, options Options) (*Report, error) {
	begun := time.Now()
	kinds, err := Kinds()
	if err != nil {
		return nil, err
	}
	w.options = options
	report := &Report{}
	for i := range kinds {
		report.Leaves += len(kinds[i].Leaves)
		for _, path := range kinds[i].Opaque {
			report.Opaque = append(report.Opaque, kinds[i].Name+" "+path)
		}
	}
	report.Results = w.tryAll(ctx, choose(kinds, options), options)
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

// task is a leaf that is to be tried.
type task struct {
	kind *Kind
	leaf Leaf
}

// choose returns the leaves that are to be tried, what takes longest first.
func choose(kinds []Kind, options Options) []task {
	var tasks []task
	for i := range kinds {
		for _, leaf := range kinds[i].Leaves {
			if options.Only == nil || options.Only.MatchString(kinds[i].Name+" "+leaf.Path) {
				tasks = append(tasks, task{&kinds[i], leaf})
			}
		}
	}
	if options.Short {
		random, chosen := rand.New(rand.NewPCG(options.Seed, 0)), 0
		random.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
		tasks = slices.DeleteFunc(tasks, func(task task) bool {
			_, isHistory := histories[task.leaf.Path]
			if task.leaf.inTemplate() {
				chosen++
			}
			return isHistory || task.leaf.inTemplate() && chosen > shortLeaves
		})
	}
	slices.SortStableFunc(tasks, func(a, b task) int {
		return cmp.Or(len(a.leaf.Path)-len(b.leaf.Path), cmp.Compare(a.leaf.Path, b.leaf.Path))
	})
	return tasks
}

// tryAll tries leaves, several at the same time.
func (w *World) tryAll(ctx context.Context, tasks []task, options Options) []Result {
	results := make([]Result, len(tasks))
	var group sync.WaitGroup
	var tried atomic.Int64
	note := func(i int, result Result) {
		results[i] = result
		if n := tried.Add(1); options.Progress != nil {
			options.Progress(int(n), len(tasks))
		}
	}
	free := make(chan struct{}, options.Workers)
	for i, task := range tasks {
		if _, ok := histories[task.leaf.Path]; ok { // which waits most of the time
			group.Go(func() { note(i, tryHistory(ctx, w, task.kind, task.leaf)) })
			continue
		}
		free <- struct{}{}
		group.Go(func() {
			note(i, try(ctx, w, task.kind, task.leaf))
			<-free
		})
	}
	group.Wait()
	return results
}

// sum adds up the results, and sorts them.
func (r *Report) sum() {
	slices.SortFunc(r.Results, func(a, b Result) int { return cmp.Compare(a.name(), b.name()) })
	r.Tried, r.Transitions, r.Refusals, r.RestWindows = 0, 0, 0, 0
	r.Unknown, r.Single, r.Dead, r.RestWrites, r.Wrong = nil, nil, nil, nil, nil
	for _, result := range r.Results {
		switch {
		case result.Effect == unknown:
			r.Unknown = append(r.Unknown, result.name())
		case result.Effect == only:
			r.Single = append(r.Single, result.name())
		case result.Transitions+result.Refusals > 0 || len(result.Violations) > 0:
			r.Tried++
		}
		if result.isDead() {
			r.Dead = append(r.Dead, result.name())
		}
		r.Transitions += result.Transitions
		r.Refusals += result.Refusals
		r.RestWindows += result.RestWindows
		r.RestWrites = append(r.RestWrites, each(result.name()+": ", result.RestWrites)...)
		r.Wrong = append(r.Wrong, each(result.name()+": ", result.Violations)...)
	}
	r.Violations = slices.Concat(r.Wrong,
		each("it shows in nothing: ", r.Dead),
		each("all is at rest, and the operator writes: ", r.RestWrites),
		each("all is deleted, and the operator writes: ", r.EndWrites),
		each("what it belonged to is gone, and it is left: ", r.Left),
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

// isDead tells whether a leaf shows in nothing although nothing has gone wrong with it.
func (r *Result) isDead() bool { return r.Effect == "" && len(r.Violations) == 0 }

// add adds what has been found of leaves that were tried again.
func (r *Report) add(again *Report) {
	for _, result := range again.Results {
		before := &r.Results[slices.IndexFunc(r.Results, func(before Result) bool { return before.name() == result.name() })]
		result.IsGated = result.Effect != unknown
		result.Transitions += before.Transitions
		result.Refusals += before.Refusals
		result.RestWindows += before.RestWindows
		result.RestWrites = append(before.RestWrites, result.RestWrites...)
		result.Violations = append(before.Violations, result.Violations...)
		*before = result
	}
	r.EndWrites = append(r.EndWrites, again.EndWrites...)
	r.Left = append(r.Left, again.Left...)
	r.Defects = append(r.Defects, again.Defects...)
	r.Seconds += again.Seconds
	r.sum()
}

// left returns which children are left of resources that are gone.
func (w *World) left(ctx context.Context) []string {
	var left []string
	err := w.until(ctx, func() error {
		found, err := w.tried(ctx, childResources)
		left = make([]string, 0, len(found))
		for i := range found {
			left = append(left, fmt.Sprintf("%s %s/%s", found[i].GetKind(), found[i].GetNamespace(), found[i].GetName()))
		}
		if len(left) > 0 {
			return errors.New("there are children left")
		}
		return err
	})
	if err != nil && len(left) == 0 {
		return []string{err.Error()}
	}
	return left[:min(len(left), 20)]
}
