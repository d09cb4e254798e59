package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/reliability/history"
)

// Result is what the trial of one field has found.
type Result struct {
	Kind        string
	Path        string
	Classes     []string
	Transitions int      // between classes that the API server accepts
	Rejections  int      // of a class that it rejects, after one that it accepts
	Ends        int      // how many different cluster states the classes lead to
	RestWindows int      `json:",omitempty"` // in which a settled resource was watched
	RestWrites  []string `json:",omitempty"` // of the operator in those
	Violations  []string `json:",omitempty"`
}

// name returns the kind and the path of the field.
func (r *Result) name() string { return r.Kind + " " + r.Path }

// trial tests one field.
type trial struct {
	special
	world    *World
	kind     *Kind
	field    Field
	accepted []Class // by the API server
	rejected []Class
	ends     map[string]history.Normal // what a fresh resource becomes, by class and what is carried
	result   Result
}

func newTrial(w *World, kind *Kind, field Field) *trial {
	t := &trial{special: specialOf(kind, field), world: w, kind: kind, field: field, ends: map[string]history.Normal{},
		result: Result{Kind: kind.Name, Path: field.Path}}
	for _, class := range field.classes(t.values) {
		// There is no room for the pods of the highest count, and reporting that takes the operator long.
		isLarge := class.Name == "max" && t.pods > 0
		switch {
		case isLarge && (w.options.Short || w.options.IsHasty && field.Path == "spec.replicas"):
		case class.outcome == rejected:
			t.rejected = append(t.rejected, class)
		default:
			t.accepted = append(t.accepted, class)
		}
	}
	if w.options.Short {
		newMaker(w.options.Seed, field.Path).Shuffle(len(t.accepted), func(i, j int) {
			t.accepted[i], t.accepted[j] = t.accepted[j], t.accepted[i]
		})
		t.accepted = t.accepted[:min(shortClasses, len(t.accepted))]
	}
	for _, classes := range [][]Class{t.accepted, t.rejected} {
		for _, class := range classes {
			t.result.Classes = append(t.result.Classes, class.Name)
		}
	}
	return t
}

func (t *trial) violated(format string, args ...any) {
	t.result.Violations = append(t.result.Violations, fmt.Sprintf(format, args...))
}

// try tests all ordered pairs of classes on one resource: from each class that the API server accepts to each other
// one, and to each that it rejects.
func (t *trial) try(ctx context.Context) Result {
	if err := t.walk(ctx); err != nil {
		t.violated("%v", err)
	}
	return t.result
}

func (t *trial) walk(ctx context.Context) (err error) {
	tour := circuit(len(t.accepted))
	from := t.accepted[tour[0]]
	s, carried, err := t.fresh(ctx, from)
	if err != nil {
		return fmt.Errorf("%s: %w", from.Name, err)
	}
	defer func() { err = errors.Join(err, s.delete(ctx)) }()
	t.reject(ctx, s, from)
	wasRejected, watched := map[string]bool{from.Name: true}, t.watchedClass()
	for _, next := range tour[1:] {
		to := t.accepted[next]
		if t.carried != nil {
			carried = t.carried(carried, to)
		}
		if err := t.step(ctx, s, to, carried); err != nil {
			return fmt.Errorf("%s -> %s: %w", from.Name, to.Name, err)
		}
		t.result.Transitions++
		if next == watched {
			watched = -1 // once
			if err := t.watchRest(ctx, s); err != nil {
				return err
			}
		}
		if from = to; !wasRejected[from.Name] {
			wasRejected[from.Name] = true
			t.reject(ctx, s, from)
		}
	}
	ends := map[string]bool{}
	for _, end := range t.ends {
		ends[t.withoutSpec(end)] = true
	}
	t.result.Ends = len(ends)
	return nil
}

// fresh creates a resource of a class, waits until it has settled, and records what it is then.
func (t *trial) fresh(ctx context.Context, class Class) (s *subject, carried string, err error) {
	if s, err = t.world.create(ctx, t.kind, t.kind.apply(t.base, t.field, class), t.pods); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.delete(ctx))
		}
	}()
	for _, do := range []func(context.Context, *subject) error{t.prepare, t.provoke} {
		if do == nil {
			continue
		}
		if err := do(ctx, s); err != nil {
			return s, "", err
		}
	}
	if t.carried != nil {
		carried = t.carried(`{"replicas":1}`, class)
	}
	end, err := s.rest(ctx)
	if err != nil {
		return s, "", err
	}
	if err := t.isReported(s, class); err != nil {
		return s, "", err
	}
	if t.expect != nil {
		if err := t.expect(class, objectsOf(end, t.kind.Resource)[0], end); err != nil {
			return s, "", fmt.Errorf("%w; it is %s", err, end)
		}
	}
	t.ends[class.Name+carried] = end
	return s, carried, nil
}

// step changes the resource to a class, and waits until it is what a fresh one of that class is.
func (t *trial) step(ctx context.Context, s *subject, class Class, carried string) error {
	want, err := t.wanted(ctx, class, carried)
	if err != nil {
		return err
	}
	if t.unsettle != nil {
		if err := t.unsettle(ctx, s); err != nil {
			return err
		}
	}
	if err := s.change(ctx, t.kind.apply(t.base, t.field, class)); err != nil {
		return err
	}
	if t.provoke != nil {
		if err := t.provoke(ctx, s); err != nil {
			return err
		}
	}
	return s.becomes(ctx, want)
}

// wanted returns what a fresh resource of a class becomes, once it is given what is carried.
func (t *trial) wanted(ctx context.Context, class Class, carried string) (history.Normal, error) {
	if end, ok := t.ends[class.Name+carried]; ok {
		return end, nil
	}
	fresh, own, err := t.fresh(ctx, class)
	if err != nil {
		return nil, fmt.Errorf("fresh: %w", err)
	}
	if own != carried {
		if err := t.carry(ctx, fresh, carried); err != nil {
			return nil, err
		}
		end, err := fresh.rest(ctx)
		if err != nil {
			return nil, err
		}
		if !isCarried(carried, end) {
			return nil, fmt.Errorf("what another client has set does not stay: %s is not in %s", carried, end)
		}
		t.ends[class.Name+carried] = end
	}
	return t.ends[class.Name+carried], fresh.delete(ctx)
}

// isReported checks the condition Degraded of a fresh resource: it names the field if the operator cannot use the
// value, and is False otherwise.
func (t *trial) isReported(s *subject, class Class) error {
	object, _, err := s.answered()
	if err != nil {
		return err
	}
	isDegraded, reason, message := conditionOf(object, "Degraded")
	if class.outcome == degraded && (isDegraded != "True" || !strings.Contains(message, t.field.Path)) {
		return fmt.Errorf("the condition Degraded (%s, %s) does not name %s: %s", isDegraded, reason, t.field.Path, message)
	}
	// A rollout is stuck where there is no room for more pods.
	if class.outcome == legal && isDegraded == "True" && reason != samplev1alpha1.ReasonRolloutStuck {
		return fmt.Errorf("it is degraded: %s: %s", reason, message)
	}
	return nil
}

// reject tries all classes that the API server rejects, on a resource of a class, and checks that nothing changes.
func (t *trial) reject(ctx context.Context, s *subject, from Class) {
	for _, class := range t.rejected {
		before, beforeErr := s.state()
		version := s.version
		err := s.change(ctx, t.kind.apply(t.base, t.field, class))
		switch {
		case err == nil:
			t.violated("%s -> %s: the API server accepts it", from.Name, class.Name)
		case !isRejection(err) || !strings.Contains(err.Error(), t.field.Path):
			t.violated("%s -> %s: the rejection does not name %s: %v", from.Name, class.Name, t.field.Path, err)
		}
		after, afterErr := s.state()
		if errors.Join(beforeErr, afterErr) == nil && (!maps.Equal(before, after) || s.version != version) {
			t.violated("%s -> %s: something has changed: %s", from.Name, class.Name, history.Diff(before, after))
		}
		t.result.Rejections++
	}
}

func isRejection(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }

// withoutSpec returns a normal form without the spec of the resource itself, as text.
func (t *trial) withoutSpec(state history.Normal) string {
	own := history.Key{Resource: t.kind.Resource, Name: objectName}.String()
	resource := decodeObject(state[own])
	delete(resource, "spec")
	state = maps.Clone(state)
	state[own] = indented(resource)
	return fmt.Sprint(state)
}
