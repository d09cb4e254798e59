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
	Leaves, Tried, Opaque int
	Transitions, Refusals int
	Unknown, Single, Dead []string // leaves that this API server knows nothing of, that have one legal value, and that show in nothing
	IdleWrites            int      // of the operator when all was done
	Seconds               float64
	Results               []Result
	Violations            []string
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
		var flags []string
		if options.Short {
			flags = []string{"-race"} // as for all other tests, so that little is left to build
		}
		if options.Program, err = Build(ctx, filepath.Join(dir, "manager"), flags...); err != nil {
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
		report.Opaque += len(kinds[i].Opaque)
	}
	report.Results = w.tryAll(ctx, choose(kinds, options), options)
	report.sum()
	if options.IsHasty && len(report.Violations) > 0 {
		return report, nil
	}
	report.Violations = append(report.Violations, w.left(ctx)...)
	report.IdleWrites = w.idleWrites()
	if report.IdleWrites > 0 {
		report.Violations = append(report.Violations, fmt.Sprintf("the operator has written %d times in 3 s in which nothing happened", report.IdleWrites))
	}
	for _, word := range []string{"panic", "DATA RACE"} {
		if strings.Contains(w.Manager.Logs(), word) {
			report.Violations = append(report.Violations, "the log of the manager says "+word)
		}
	}
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

// sum adds up the results.
func (r *Report) sum() {
	for _, result := range r.Results {
		r.Tried++
		r.Transitions += result.Transitions
		r.Refusals += result.Refusals
		path := result.Kind + " " + result.Path
		switch {
		case result.Effect == unknown:
			r.Unknown = append(r.Unknown, path)
		case result.Effect == only:
			r.Single = append(r.Single, path)
		case result.Effect == "" && len(result.Violations) == 0:
			r.Dead = append(r.Dead, path)
			r.Violations = append(r.Violations, path+": it shows in nothing")
		}
		for _, violation := range result.Violations {
			r.Violations = append(r.Violations, path+": "+violation)
		}
	}
}

// add adds what has been found of leaves that were tried again.
func (r *Report) add(again *Report) {
	for _, result := range again.Results {
		i := slices.IndexFunc(r.Results, func(before Result) bool { return before.Kind == result.Kind && before.Path == result.Path })
		if result.Effect != unknown {
			result.Effect += ", with its feature gate open"
		}
		result.Transitions += r.Results[i].Transitions
		result.Refusals += r.Results[i].Refusals
		r.Results[i] = result
	}
	r.Transitions += again.Transitions
	r.Refusals += again.Refusals
	r.Unknown = again.Unknown
	r.Single = append(r.Single, again.Single...)
	r.Dead = append(r.Dead, again.Dead...)
	r.Violations = append(r.Violations, again.Violations...)
	r.IdleWrites += again.IdleWrites
	r.Seconds += again.Seconds
}

// idleWrites returns how many writes the operator makes in a window in which nothing happens. It takes the first that is without, of
// several: the last deletions may still be on their way.
func (w *World) idleWrites() (writes int) {
	const window, windows = 3 * time.Second, 5
	for range windows {
		mark := w.ControlPlane.Audit.Now()
		time.Sleep(window)
		writes = len(w.ControlPlane.Audit.Since(mark, testenv.ByOperator, testenv.Request.IsWrite))
		if writes == 0 {
			break
		}
	}
	return writes
}

// left returns which children are left of resources that are gone.
func (w *World) left(ctx context.Context) []string {
	var left []string
	_ = w.until(ctx, func() error {
		found, err := w.tried(ctx, childResources)
		left = make([]string, 0, len(found))
		for i := range found {
			left = append(left, fmt.Sprintf("%s %s/%s is left, and what it belonged to is gone", found[i].GetKind(), found[i].GetNamespace(), found[i].GetName()))
		}
		if len(left) > 0 {
			return errors.New("there are children left")
		}
		return err
	})
	return left[:min(len(left), 20)]
}
