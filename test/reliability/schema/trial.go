package schema

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/example/memcached-operator/test/reliability/history"
)

// Result is what has become of one leaf.
type Result struct {
	Kind        string
	Path        string
	Classes     []string
	Transitions int      // between classes that the API server takes
	Refusals    int      // of a class that it does not take, from one that it does
	Ends        int      // how many different worlds the classes have made
	Effect      string   // in what the leaf shows; empty if in nothing
	IsGated     bool     `json:",omitempty"` // it shows only where more feature gates are open
	RestWindows int      `json:",omitempty"` // over which a resource was watched that had come to rest
	RestWrites  []string `json:",omitempty"` // of the operator in those
	Violations  []string `json:",omitempty"`
}

// trial is the trying of one leaf.
type trial struct {
	world  *World
	kind   *Kind
	leaf   Leaf
	plan   plan
	taken  []Class // by the API server
	others []Class
	ends   map[string]history.Normal // what there is of a fresh resource, by class and what is carried
	handed map[string]bool           // what Jobs by hand have from the templates
	asked  map[string]bool           // what Jobs by hand that are refused would have had from them

	mu     sync.Mutex // for those that have several resources at the same time
	result Result
}

// try tries all ordered pairs of the classes of a leaf on one resource: from each class that the API server takes to each other one, and
// to each that it refuses.
func try(ctx context.Context, w *World, kind *Kind, leaf Leaf) Result {
	t := newTrial(w, kind, leaf)
	if leaf.inTemplate() {
		t.sort(ctx)
	}
	if err := t.walk(ctx); err != nil {
		t.violated("%v", err)
	}
	return t.result
}

func newTrial(w *World, kind *Kind, leaf Leaf) *trial {
	t := &trial{world: w, kind: kind, leaf: leaf, plan: planOf(kind, leaf), ends: map[string]history.Normal{}, handed: map[string]bool{},
		asked: map[string]bool{}, result: Result{Kind: kind.Name, Path: leaf.Path}}
	for _, class := range leaf.Classes() {
		isLarge := class.Name == "max" && t.plan.pods > 0 // there is no room for its pods, and to tell of that takes long
		switch {
		case isLarge && (w.options.Short || w.options.IsHasty && leaf.Path == "spec.replicas"):
		case class.fate == refused:
			t.others = append(t.others, class)
		default:
			t.taken = append(t.taken, class)
		}
	}
	if w.options.Short {
		t.taken = some(t.taken, w.options.Seed, leaf.Path)
	}
	for _, class := range append(t.taken[:len(t.taken):len(t.taken)], t.others...) {
		t.result.Classes = append(t.result.Classes, class.Name)
	}
	return t
}

// some returns some classes of a leaf, as a seed chooses.
func some(classes []Class, seed uint64, path string) []Class {
	randomOf(seed, path).Shuffle(len(classes), func(i, j int) { classes[i], classes[j] = classes[j], classes[i] })
	return classes[:min(shortClasses, len(classes))]
}

// randomOf returns the random numbers of a leaf, which are always the same for a seed.
func randomOf(seed uint64, path string) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(path))
	return rand.New(rand.NewPCG(seed, hash.Sum64()))
}

func (t *trial) violated(format string, args ...any) {
	t.result.Violations = append(t.result.Violations, fmt.Sprintf(format, args...))
}

func (t *trial) walk(ctx context.Context) (err error) {
	tour := circuit(len(t.taken))
	at := t.taken[tour[0]]
	s, carried, err := t.fresh(ctx, at)
	if err != nil {
		return fmt.Errorf("%s: %w", at.Name, err)
	}
	defer func() { err = errors.Join(err, s.delete(ctx)) }()
	tried, watched := map[string]bool{}, t.watchedClass()
	for _, next := range append(tour[1:], -1) {
		if !tried[at.Name] {
			tried[at.Name] = true
			t.refuse(ctx, s, at)
		}
		if next < 0 {
			break
		}
		class := t.taken[next]
		if t.plan.carried != nil {
			carried = t.plan.carried(carried, class)
		}
		if err := t.step(ctx, s, class, carried); err != nil {
			return fmt.Errorf("%s -> %s: %w", at.Name, class.Name, err)
		}
		t.result.Transitions++
		at = class
		if next == watched {
			watched = -1 // once
			if err := t.watchRest(ctx, s); err != nil {
				return err
			}
		}
	}
	t.judge()
	return nil
}

// fresh makes a resource of a class, lets it come to rest, and notes what it is then.
func (t *trial) fresh(ctx context.Context, class Class) (s *subject, carried string, err error) {
	if s, err = t.world.create(ctx, t.kind, t.kind.apply(t.plan.base, t.leaf, class), t.plan.pods); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.delete(ctx))
		}
	}()
	for _, do := range []func(context.Context, *subject) error{t.plan.prepare, t.plan.provoke} {
		if do == nil {
			continue
		}
		if err := do(ctx, s); err != nil {
			return s, "", err
		}
	}
	if t.plan.carried != nil {
		carried = t.plan.carried(`{"replicas":1}`, class)
	}
	end, err := s.rest(ctx)
	if err != nil {
		return s, "", err
	}
	if err := t.isHonest(ctx, s, class); err != nil {
		return s, "", err
	}
	if err := t.expected(class, end); err != nil {
		return s, "", err
	}
	t.ends[class.Name+carried] = end
	return s, carried, nil
}

// step changes the resource to a class, and waits until it is what a fresh one of that class is.
func (t *trial) step(ctx context.Context, s *subject, class Class, carried string) error {
	want, ok := t.ends[class.Name+carried]
	if !ok {
		fresh, own, err := t.fresh(ctx, class)
		if err != nil {
			return fmt.Errorf("fresh: %w", err)
		}
		if own != carried {
			if err := t.plan.carry(ctx, fresh, carried); err != nil {
				return err
			}
			if t.ends[class.Name+carried], err = fresh.rest(ctx); err != nil {
				return err
			}
			if !isCarried(carried, t.ends[class.Name+carried]) {
				return fmt.Errorf("what somebody else has set does not stay: %s is not in %s", carried, t.ends[class.Name+carried])
			}
		}
		want = t.ends[class.Name+carried]
		if err := fresh.delete(ctx); err != nil {
			return err
		}
	}
	if t.plan.unsettle != nil {
		if err := t.plan.unsettle(ctx, s); err != nil {
			return err
		}
	}
	if err := s.change(ctx, t.kind.apply(t.plan.base, t.leaf, class)); err != nil {
		return err
	}
	if t.plan.provoke != nil {
		if err := t.plan.provoke(ctx, s); err != nil {
			return err
		}
	}
	return s.becomes(ctx, want)
}

// isHonest checks what a fresh resource of a class says of itself: that of a class which is told names the field, and no other one is
// told. What of a template is refused is compared with the API server's own words elsewhere.
func (t *trial) isHonest(ctx context.Context, s *subject, class Class) error {
	object, _, err := s.answered()
	if err != nil {
		return err
	}
	isDegraded, reason, message := says(object, "Degraded")
	if t.leaf.inTemplate() {
		return t.isHandedOn(ctx, s, class, message)
	}
	if class.fate == told && (isDegraded != "True" || !strings.Contains(message, t.leaf.Path)) {
		return fmt.Errorf("the condition Degraded (%s, %s) does not name %s: %s", isDegraded, reason, t.leaf.Path, message)
	}
	if class.fate == legal && isDegraded == "True" && reason != "RolloutStuck" { // which is how there is no room for more pods
		return fmt.Errorf("it is degraded: %s: %s", reason, message)
	}
	return nil
}

// refuse tries all classes that the API server refuses, on a resource of a class, and sees that nothing is lost by it.
func (t *trial) refuse(ctx context.Context, s *subject, from Class) {
	for _, class := range t.others {
		before, beforeErr := s.state()
		version := s.version
		err := s.change(ctx, t.kind.apply(t.plan.base, t.leaf, class))
		path := strings.ReplaceAll(t.leaf.Path, "[]", "[0]")
		if t.isLeftOut() && class.Name != "wrong type" {
			path = templatePath
		}
		switch {
		case err == nil:
			t.violated("%s -> %s: the API server takes it", from.Name, class.Name)
		case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) || !names(err, path):
			t.violated("%s -> %s: the refusal does not name %s: %v", from.Name, class.Name, path, err)
		}
		after, afterErr := s.state()
		if errors.Join(beforeErr, afterErr) == nil && (!maps.Equal(before, after) || s.version != version) {
			t.violated("%s -> %s: something has changed: %s", from.Name, class.Name, history.Diff(before, after))
		}
		t.result.Refusals++
	}
}

// names tells whether a refusal names a field. A rule of a CustomResourceDefinition cannot name an element of a list; saying its name costs more
// than the API server allows a rule, as nothing limits how long the list is. So it is enough that the list and the field are named.
func names(refusal error, path string) bool {
	list, field, inList := strings.Cut(path, "[0].")
	return strings.Contains(refusal.Error(), path) ||
		inList && strings.Contains(refusal.Error(), list+": ") && slices.Contains(strings.Fields(refusal.Error()), field)
}

// judge tells whether the classes have made any difference beyond the resource's own spec.
func (t *trial) judge() {
	ends := map[string]bool{}
	for _, end := range t.ends {
		ends[t.withoutSpec(end)] = true
	}
	t.result.Ends = len(ends)
	switch {
	case t.result.Effect != "":
	case len(t.handed) > 1, len(ends) > 1 && len(t.asked) == 0:
		t.result.Effect = differ
	case len(ends) > 1:
		t.result.Effect = someRefused
	case len(t.asked) > 1:
		t.result.Effect = allRefused
	case t.hasOnlyValue():
		t.result.Effect = only
	case len(t.byHand()) == 1:
		t.result.Effect = unknown
	case t.world.options.Short:
		t.result.Effect = untold
	}
}

// What a leaf may show in.
const (
	differ      = "the worlds differ"
	someRefused = "refused by Kubernetes, and told"
	allRefused  = "refused by Kubernetes whatever the value, and the Jobs that the operator asks for differ"
	forbidden   = "must be left out, and the API server says so"
	only        = "none: Kubernetes takes one value, and sets it by itself"
	unknown     = "none: this API server leaves it out of a Job by hand too"
	untold      = "none of the few that were tried"
)

// byHand returns what all Jobs by hand have from the templates, or would have had if they had not been refused.
func (t *trial) byHand() []string {
	return append(slices.Collect(maps.Keys(t.handed)), slices.Collect(maps.Keys(t.asked))...)
}

// hasOnlyValue tells whether all Jobs by hand have the leaf with the one value that is legal: by default, where the template says nothing.
func (t *trial) hasOnlyValue() bool {
	two, all := twoOf(t.leaf.Path, t.leaf.schema), t.byHand()
	if len(all) != 1 || !reflect.DeepEqual(two[0], two[1]) {
		return false
	}
	said := fmt.Sprintf("%q: %q", t.leaf.Path[strings.LastIndexByte(t.leaf.Path, '.')+1:], two[0])
	return strings.Contains(all[0], said)
}

// withoutSpec returns a normal form without the spec of the resource itself, as text.
func (t *trial) withoutSpec(state history.Normal) string {
	own := history.Key{Resource: t.kind.Resource, Name: objectName}.String()
	resource := decodeObject(state[own])
	delete(resource, "spec")
	state = maps.Clone(state)
	state[own] = indented(resource)
	return fmt.Sprint(state)
}
