package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/reliability/history"
)

// Result is the result of the trial of one field.
type Result struct {
	Field       string   // its kind and path
	Classes     []string // the accepted classes
	Transitions int      // the number of transitions between accepted classes
	Rejections  int      // the number of transitions from an accepted class to a rejected one
	Ends        int      // the number of different cluster states that the classes lead to
	Violations  []string `json:",omitempty"`
}

// trial tests one field.
type trial struct {
	special
	options  Options
	cluster  *Cluster
	kind     *kind
	field    field
	accepted []class // classes that the API server accepts
	rejected []class // classes that the API server rejects
	result   Result

	mu       sync.Mutex
	ends     map[string]history.Normal // the settled state of a fresh resource, by class and carried value
	subjects []*subject                // all resources that were created
}

// shortClasses is the number of accepted classes of each field that a short run tests.
const shortClasses = 3

func newTrial(cluster *Cluster, options Options, k *kind, f field) *trial {
	t := &trial{special: specialOf(k, f), options: options, cluster: cluster, kind: k, field: f,
		ends: map[string]history.Normal{}, result: Result{Field: k.Name + " " + f.Path}}
	t.field.isRequired = f.isRequired || t.isNeeded
	for _, c := range t.field.classes(t.values) {
		switch {
		case c.outcome == rejected:
			t.rejected = append(t.rejected, c)
		case !t.isSkipped(c):
			t.accepted = append(t.accepted, c)
		}
	}
	if options.Short {
		newMaker(options.Seed, f.Path).Shuffle(len(t.accepted), func(i, j int) {
			t.accepted[i], t.accepted[j] = t.accepted[j], t.accepted[i]
		})
		t.accepted = t.accepted[:min(shortClasses, len(t.accepted))]
	}
	for _, c := range t.accepted {
		t.result.Classes = append(t.result.Classes, c.name)
	}
	for _, c := range t.onlyNew {
		t.result.Classes = append(t.result.Classes, c.name+" (new resources only)")
	}
	t.rejected = append(t.rejected, t.onlyNew...)
	return t
}

// isLarge reports whether a class needs more pods than the quota allows. It takes long until that is reported.
func (t *trial) isLarge(c class) bool {
	count, isCount := c.value.(int64)
	return isCount && t.pods > 0 && count > int64(t.pods)
}

func (t *trial) isSkipped(c class) bool {
	return t.isLarge(c) && (t.options.Short || t.options.StopsEarly && t.field.Path == "spec.replicas")
}

func (t *trial) violated(format string, args ...any) {
	t.result.Violations = append(t.result.Violations, fmt.Sprintf(format, args...))
}

// run tests the field.
func (t *trial) run(ctx context.Context) {
	test := t.walk
	switch {
	case t.field.Path == templatePath:
		test = t.roundTrip
	case t.limits != "":
		test = t.tryLimit
	}
	if err := test(ctx); err != nil {
		t.violated("%v", err)
	}
	ends := map[string]bool{}
	for _, end := range t.ends {
		ends[t.withoutSpec(end)] = true
	}
	t.result.Ends = len(ends)
}

// walk tests the field on one resource: all transitions from an accepted class to every other accepted class and to
// every rejected one. A short run tests each class once, and the rejected ones only after the first. Each class that
// only a new resource may have gets a resource of its own.
func (t *trial) walk(ctx context.Context) error {
	order := tour(len(t.accepted))
	if t.options.Short {
		order = nil
		for i := range len(t.accepted) + 1 {
			order = append(order, i%len(t.accepted))
		}
	}
	from := t.accepted[order[0]]
	carried := t.carriedBy(from, nil)
	s, err := t.fresh(ctx, from, carried)
	if err != nil {
		return fmt.Errorf("%s: %w", from.name, err)
	}
	t.reject(ctx, s, from, t.rejected)
	wasRejected := map[string]bool{from.name: true}
	for _, next := range order[1:] {
		to := t.accepted[next]
		carried = t.carriedBy(to, carried)
		if err := t.step(ctx, s, to, carried); err != nil {
			return fmt.Errorf("%s -> %s: %w", from.name, to.name, err)
		}
		t.result.Transitions++
		if from = to; !wasRejected[from.name] && !t.options.Short {
			wasRejected[from.name] = true
			t.reject(ctx, s, from, t.rejected)
		}
	}
	for _, c := range t.onlyNew {
		s, err := t.fresh(ctx, c, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		others := slices.Clone(t.accepted)
		for i := range others {
			others[i].words = c.words
		}
		t.reject(ctx, s, c, others)
	}
	return nil
}

// carriedBy returns the value that stays in effect when the field is removed after a class.
func (t *trial) carriedBy(c class, before any) any {
	switch {
	case t.carry == nil:
		return nil
	case c.isMissing():
		return before
	}
	return c.value
}

func (t *trial) create(ctx context.Context, spec map[string]any) (*subject, error) {
	s, err := t.cluster.create(ctx, t.kind, spec, t.pods)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.subjects = append(t.subjects, s)
	}
	return s, err
}

// fresh creates a resource of a class, waits until it has settled, and records its state.
func (t *trial) fresh(ctx context.Context, c class, carried any) (*subject, error) {
	spec := t.field.in(t.base, c.value)
	first := spec
	if t.isLate {
		first = t.field.in(t.base, absent)
	}
	s, err := t.create(ctx, first)
	if err != nil {
		return nil, err
	}
	if t.isLate {
		_, settleErr := s.settle(ctx)
		err = errors.Join(settleErr, s.change(ctx, spec))
	}
	for _, do := range []func(context.Context, *subject) error{t.prepare, t.provoke} {
		if do != nil {
			err = errors.Join(err, do(ctx, s))
		}
	}
	if c.isMissing() && carried != nil {
		_, settleErr := s.settle(ctx)
		err = errors.Join(err, settleErr, t.carry(ctx, s, carried))
	}
	if err != nil {
		return nil, err
	}
	end, err := s.settle(ctx)
	if err != nil {
		return nil, err
	}
	if c.isMissing() && carried != nil {
		c.value = carried
	}
	if err := t.isReported(s, c); err != nil {
		return nil, err
	}
	t.ends[c.name+fmt.Sprint(carried)] = end
	if t.expect == nil {
		return s, nil
	}
	if err := t.expect(c, objectsOf(end, t.kind.resource)[0], end); err != nil {
		return nil, fmt.Errorf("%w; it is %s", err, end)
	}
	return s, nil
}

// step changes the resource to a class, and waits until its state equals that of a fresh resource of that class.
func (t *trial) step(ctx context.Context, s *subject, c class, carried any) error {
	key := c.name + fmt.Sprint(carried)
	if _, ok := t.ends[key]; !ok {
		if _, err := t.fresh(ctx, c, carried); err != nil {
			return fmt.Errorf("fresh: %w", err)
		}
	}
	if t.unsettle != nil {
		if err := t.unsettle(ctx, s); err != nil {
			return err
		}
	}
	if err := s.change(ctx, t.field.in(t.base, c.value)); err != nil {
		return err
	}
	if t.provoke != nil {
		if err := t.provoke(ctx, s); err != nil {
			return err
		}
	}
	return s.Becomes(ctx, t.ends[key], s.isAnswered)
}

// isReported checks that the condition Degraded of a fresh resource names the field if the operator cannot use the
// value, and is False otherwise.
func (t *trial) isReported(s *subject, c class) error {
	object, _, err := s.answered()
	if err != nil {
		return err
	}
	isDegraded, reason, message := conditionOf(object, "Degraded")
	if c.outcome == degraded && (isDegraded != "True" || !strings.Contains(message, t.field.Path)) {
		return fmt.Errorf("the condition Degraded (%s, %s) does not name %s: %s", isDegraded, reason, t.field.Path, message)
	}
	// A rollout beyond the quota for pods is stuck.
	isStuck := t.isLarge(c) && reason == samplev1alpha1.ReasonRolloutStuck
	if c.outcome == legal && isDegraded == "True" && !isStuck {
		return fmt.Errorf("it is degraded: %s: %s", reason, message)
	}
	return nil
}

// reject changes a resource to classes that the API server rejects, and checks that nothing changes.
func (t *trial) reject(ctx context.Context, s *subject, from class, classes []class) {
	for _, c := range classes {
		before, version := s.State(), s.version
		err := s.change(ctx, t.field.in(t.base, c.value))
		if err := checkRejection(err, append(t.names(c), c.words...)); err != nil {
			t.violated("%s -> %s: %v", from.name, c.name, err)
		}
		if after := s.State(); !maps.Equal(before, after) || s.version != version {
			t.violated("%s -> %s: something has changed: %s", from.name, c.name, history.Diff(before, after))
		}
		t.result.Rejections++
	}
}

// names returns what the rejection of a class names: the field, or its parent, whose rule mentions the field.
func (t *trial) names(c class) []string {
	if last := strings.LastIndex(t.field.Path, "."); t.isNeeded && c.isMissing() {
		return []string{t.field.Path[:last], t.field.Path[last+1:]}
	}
	return []string{t.field.Path}
}

// checkRejection fails unless err is a rejection that contains all words.
func checkRejection(err error, words []string) error {
	if err == nil {
		return errors.New("the API server accepts it")
	}
	for _, word := range words {
		if !isRejection(err) || !strings.Contains(err.Error(), word) {
			return fmt.Errorf("the rejection does not name %s: %w", word, err)
		}
	}
	return nil
}

func isRejection(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }

// withoutSpec returns a normal form without the spec of the resource itself, as text.
func (t *trial) withoutSpec(state history.Normal) string {
	state = maps.Clone(state)
	own := history.Key{Resource: t.kind.resource, Name: objectName}.String()
	if text, ok := state[own]; ok {
		resource := decodeObject(text)
		delete(resource, "spec")
		state[own] = fmt.Sprint(resource)
	}
	return fmt.Sprint(state)
}
