// Package scenario defines what users do with each kind, and the cluster state that must follow.
package scenario

import (
	"context"
	_ "embed" // expected.yaml
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/reliability/history"
)

// Action is an action of a user.
type Action func(context.Context, *Stage) error

// Check returns what is missing in the cluster state; an empty string if nothing is.
type Check func(*Stage, history.State) string

// Scenario is a sequence of steps with one kind.
type Scenario struct {
	Name string
	// Prepare creates the objects that exist before the first manager starts; nil for none. Age is the minimum age of
	// these objects at that time.
	Prepare Action
	Age     time.Duration
	// IsBehind is set if the first manager is not served the children that Prepare created for a while.
	IsBehind bool
	// IsOpen is set if timing decides which children are created before the resource is deleted.
	IsOpen bool
	// IsPassing is set if a name is taken only until the garbage collector or another resource releases it. The operator
	// may report NameTaken in the meantime.
	IsPassing bool
	// IsSlow is set if it takes half a minute or more. No fault is injected at a single write of it.
	IsSlow bool
	// FreezesAtEvent is set if leaders are frozen at the first event only, because a new Job is deleted: a request for it
	// that a frozen leader has sent before arrives after that and creates it again, which no operator can exclude.
	FreezesAtEvent bool
	// Before has additional environment variables of the last release's manager. If it is not nil, that manager runs
	// during Setup, and then the manager under test replaces it.
	Before []string
	// Setup are steps without faults, which come first.
	Setup    []Step
	Steps    []Step
	Expected Expected
}

// isChild reports whether a resource is none of the operator's own kinds.
func isChild(resource string) bool { return !history.IsOwnKind(resource) }

// HasAbsence reports whether a step stops the operator; a standby would take over then.
func (s *Scenario) HasAbsence() bool {
	return s.Before != nil || slices.ContainsFunc(s.Steps, func(step Step) bool { return step.IsUnseen })
}

// Hides reports whether the operator does not observe what happens during a step.
func (s *Scenario) Hides() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Hidden != nil })
}

// WatchesTwo reports whether the operator watches two namespaces, with caches of their own: in about half of all
// scenarios; which ones does not matter.
func (s *Scenario) WatchesTwo() bool { return len(s.Name)%2 == 0 }

// Waits reports whether it waits for about a minute, for the age of objects or a scheduled time, or for half of one.
func (s *Scenario) Waits() bool { return s.Age > 0 || s.IsTimed() || s.IsSlow }

// IsTimed reports whether a scheduled time is ahead, and the operator has to wait for it.
func (s *Scenario) IsTimed() bool {
	return slices.ContainsFunc(s.AllSteps(), func(step Step) bool { return step.BeforeTick })
}

// HidesTick reports whether one of its steps does.
func (s *Scenario) HidesTick() bool { return slices.ContainsFunc(s.AllSteps(), Step.HidesTick) }

// AllSteps returns the steps of Setup and the others.
func (s *Scenario) AllSteps() []Step { return slices.Concat(s.Setup, s.Steps) }

// Step is one action and its result.
type Step struct {
	Name     string
	IsUnseen bool // no operator runs during the action
	// Hidden are resources whose changes during the action the operator does not observe: it lists them after it. It is
	// nil for none.
	Hidden func(resource string) bool
	// BeforeTick is set if it begins 15 to 40 s before a scheduled time, which becomes that of the stage, and AtTick if it
	// begins at the scheduled time, or AfterTick later, or with Hidden a few seconds before.
	BeforeTick, AtTick bool
	AfterTick          time.Duration
	Do                 Action
	Until              Check
}

// HidesTick reports whether the step hides what happens at a scheduled time.
func (s Step) HidesTick() bool { return s.AtTick && s.Hidden != nil }

// Stage is the namespace in which a scenario is played.
type Stage struct {
	Client    client.Client // acts as a user
	Namespace string
	// AwaitOperator waits until the operator's controllers have started, or for longestWait.
	AwaitOperator func(context.Context)
	// Tick is the latest scheduled time of CronJobs, which are due every hour, or from a step with BeforeTick the next
	// one. The one after that is after the scenario's end.
	Tick time.Time
}

// Symbols returns names for the scheduled times that occur in scenarios.
func (s *Stage) Symbols() history.Symbols {
	symbols := history.Symbols{"tick+1": s.Tick.Add(time.Hour), "tick": s.Tick}
	for before := 1; before <= 4; before++ {
		symbols[fmt.Sprintf("tick-%d", before)] = s.before(before)
	}
	return symbols
}

func (s *Stage) before(hours int) time.Time { return s.Tick.Add(-time.Duration(hours) * time.Hour) }

// Expected is what the operator must do in a run without faults. Comparing runs with each other does not find a bug
// that they all have.
type Expected struct {
	// Creates and Deletes are the numbers of creations and deletions by object, named as "group/resource name".
	Creates map[string]int `json:"creates"`
	Deletes map[string]int `json:"deletes"`
	// Events are the minimum and maximum number of events by reason.
	Events map[string][2]int `json:"events"`
}

//go:embed expected.yaml
var expectedYAML []byte

// All returns all scenarios. It panics unless expected.yaml has an entry for each of them, and no others.
func All() []Scenario {
	var expected map[string]Expected
	if err := yaml.UnmarshalStrict(expectedYAML, &expected); err != nil {
		panic(err)
	}
	all := slices.Concat(foos(), memcacheds(), cronJobs())
	for i := range all {
		entry, ok := expected[all[i].Name]
		if !ok || len(expected) != len(all) {
			panic(fmt.Sprintf("expected.yaml has %d entries for %d scenarios: is %s missing?", len(expected), len(all),
				all[i].Name))
		}
		all[i].Expected = entry
	}
	return all
}

// localCopy copies an object into the stage's namespace. Plans that run at the same time share the scenarios' objects.
func localCopy[T client.Object](s *Stage, object T) T {
	object = object.DeepCopyObject().(T)
	object.SetNamespace(s.Namespace)
	return object
}

func create(object client.Object) Action {
	return func(ctx context.Context, s *Stage) error { return s.Client.Create(ctx, localCopy(s, object)) }
}

// remove deletes objects; the garbage collector deletes their dependents.
func remove(objects ...client.Object) Action {
	return forEach(objects, func(ctx context.Context, s *Stage, object client.Object) error {
		return s.Client.Delete(ctx, localCopy(s, object), client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
}

// orphan deletes objects, and leaves their dependents without an owner.
func orphan(objects ...client.Object) Action {
	return forEach(objects, func(ctx context.Context, s *Stage, object client.Object) error {
		return s.Client.Delete(ctx, localCopy(s, object), client.PropagationPolicy(metav1.DeletePropagationOrphan))
	})
}

// longestWait is how long an action waits for what the operator or Kubernetes does. After that it goes on: the check of
// the step reports what is missing.
const longestWait = time.Minute

// await waits until an object exists, then for half a second, in which the operator may act or be killed, and then
// until its controllers run. So it observes the object, even if its request had no answer.
func await(object client.Object) Action {
	return awaitThat(object, func(found client.Object) bool { return found != nil })
}

// awaitGone waits as await does, until an object does not exist.
func awaitGone(object client.Object) Action {
	return awaitThat(object, func(found client.Object) bool { return found == nil })
}

// awaitThat waits as await does, until an object, which is nil while it does not exist, has a property.
func awaitThat(named client.Object, is func(found client.Object) bool) Action {
	return func(ctx context.Context, s *Stage) error {
		object := localCopy(s, named)
		err := poll(ctx, func(ctx context.Context) (bool, error) {
			err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
			if apierrors.IsNotFound(err) {
				return is(nil), nil
			}
			return err == nil && is(object), err
		})
		if err == nil {
			err = measure.Pause(ctx, 500*time.Millisecond)
		}
		if err == nil {
			s.AwaitOperator(ctx)
			err = ctx.Err()
		}
		return err
	}
}

// poll waits until a condition is true, for longestWait at most.
func poll(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, longestWait, true, condition)
	if wait.Interrupted(err) {
		return ctx.Err()
	}
	return err
}

// edit reads the object with the type and name of named, and patches only the fields that change sets.
func edit[T client.Object](named T, change func(T)) Action {
	return func(ctx context.Context, s *Stage) error {
		object := reflect.New(reflect.TypeOf(named).Elem()).Interface().(T)
		if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: named.GetName()}, object); err != nil {
			return err
		}
		before := object.DeepCopyObject().(client.Object)
		change(object)
		return s.Client.Patch(ctx, object, client.MergeFrom(before))
	}
}

func inTurn(actions ...Action) Action {
	return forEach(actions, func(ctx context.Context, s *Stage, do Action) error { return do(ctx, s) })
}

func forEach[T any](all []T, do func(context.Context, *Stage, T) error) Action {
	return func(ctx context.Context, s *Stage) error {
		for _, each := range all {
			if err := do(ctx, s, each); err != nil {
				return err
			}
		}
		return nil
	}
}

// unmanaged is a value that another client writes in place of the operator's value.
const unmanaged = "unmanaged"

// relabel replaces all labels of some objects, and the operator's annotations.
func relabel(objects ...client.Object) Action {
	change := func(object client.Object) {
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		for name := range labels {
			labels[name] = unmanaged
		}
		for name := range annotations {
			if strings.HasPrefix(name, "memcached-operator.example.com/") {
				annotations[name] = unmanaged
			}
		}
		object.SetLabels(labels)
		object.SetAnnotations(annotations)
	}
	return forEach(objects, func(ctx context.Context, s *Stage, object client.Object) error {
		return edit(object, change)(ctx, s)
	})
}

// createNeighbor creates an object with an owner annotation that differs only in its last digit from a resource's UID.
func createNeighbor(resource, object client.Object) Action {
	return func(ctx context.Context, s *Stage) error {
		owner, neighbor := localCopy(s, resource), localCopy(s, object)
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
			return err
		}
		uid, last := []byte(owner.GetUID()), byte('0')
		if uid[len(uid)-1] == last {
			last = '1'
		}
		uid[len(uid)-1] = last
		neighbor.SetAnnotations(map[string]string{child.OwnerAnnotation: string(uid)})
		return s.Client.Create(ctx, neighbor)
	}
}

// all combines checks: it returns the result of the first one that fails.
func all(checks ...Check) Check {
	return func(s *Stage, state history.State) string {
		for _, check := range checks {
			if lacking := check(s, state); lacking != "" {
				return lacking
			}
		}
		return ""
	}
}

// holds checks that an object exists and has a property.
func holds[T any](resource, name, what string, is func(*T) bool) Check {
	key := history.Key{Resource: resource, Name: name}
	return func(_ *Stage, state history.State) string {
		if object, ok := state[key]; !ok || !is(history.As[T](object)) {
			return fmt.Sprintf("%s does not have %s", key, what)
		}
		return ""
	}
}

func exists(resource, name string) Check {
	return holds(resource, name, "been created", func(*metav1.PartialObjectMetadata) bool { return true })
}

func isGone(resource, name string) Check {
	return func(s *Stage, state history.State) string {
		if exists(resource, name)(s, state) == "" {
			return fmt.Sprintf("%s/%s still exists", resource, name)
		}
		return ""
	}
}

// isEmpty checks that everything has been deleted.
func isEmpty(_ *Stage, state history.State) string {
	for key := range state {
		return key.String() + " still exists"
	}
	return ""
}

// controlledBy checks that an object exists and is controlled by owner.
func controlledBy(owner history.Key) func(resource, name string) Check {
	return func(resource, name string) Check {
		return func(_ *Stage, state history.State) string {
			object := state[history.Key{Resource: resource, Name: name}]
			if state[owner] == nil || object == nil || !metav1.IsControlledBy(object, state[owner]) {
				return fmt.Sprintf("%s does not control %s/%s", owner, resource, name)
			}
			return ""
		}
	}
}

// runs checks that a resource controls a Deployment whose rollout is complete with this number of pods.
func runs(owner history.Key, name string, pods int32) Check {
	return all(controlledBy(owner)(history.Deployments, name),
		holds(history.Deployments, name, fmt.Sprintf("%d available pods", pods), func(d *appsv1.Deployment) bool {
			return d.DeletionTimestamp == nil && history.IsRolledOut(d, pods)
		}))
}

// reports checks that the status of a resource is current and has these conditions, each as "Available=True" or, with
// its reason, as "Degraded=True/NameTaken".
func reports(key history.Key, conditions ...string) Check {
	return func(_ *Stage, state history.State) string {
		object, ok := state[key]
		if !ok {
			return key.String() + " does not exist"
		}
		reported := history.As[history.Reported](object)
		if observed, current := reported.Status.ObservedGeneration, reported.Metadata.Generation; observed != current {
			return fmt.Sprintf("%s has generation %d, its status %d", key, current, observed)
		}
		for _, expected := range conditions {
			kind, _, _ := strings.Cut(expected, "=")
			c := reported.Condition(kind)
			if status := fmt.Sprintf("%s=%s", kind, c.Status); expected != status && expected != status+"/"+c.Reason {
				return fmt.Sprintf("%s does not report %s", key, expected)
			}
		}
		return ""
	}
}

// fine are the conditions of a resource that is reconciled without problems.
var fine = []string{"Available=True", "Progressing=False", "Degraded=False"}
