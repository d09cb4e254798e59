// Package scenario holds what users do to resources, and what is to come of it.
package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/history"
)

// Scenario is something that users do with one kind.
type Scenario struct {
	Name string
	// Prepare makes what is there before there is any manager; nil for nothing.
	Prepare func(context.Context, *Stage) error
	// Age is how old that has to be before there is one.
	Age time.Duration
	// IsOpen tells that it is a matter of time how much the operator does before its resource is deleted.
	IsOpen bool
	// IsPassing tells that a name is taken for a moment, by what the garbage collector is about to take away or another
	// resource to let go. If the moment is long, the operator tells of it, and that it is over.
	IsPassing bool
	// Before is what the environment of the last release's manager has besides, with which Setup is played before the one
	// under test takes its place; nil if Setup is played with that as well.
	Before []string
	// Setup are steps in which nothing goes wrong, to begin from.
	Setup []Step
	Steps []Step
	// Expected is what the operator does all in all, as expected.yaml says it.
	Expected Expected
}

// HasAbsence tells whether the operator is taken away in between, so that another one that stands by would take its
// place.
func (s *Scenario) HasAbsence() bool {
	return s.Before != nil || slices.ContainsFunc(s.Steps, func(step Step) bool { return step.IsUnseen })
}

// Step is one thing that users do.
type Step struct {
	Name string
	// IsUnseen tells that no operator runs while it is done.
	IsUnseen bool
	Do       func(context.Context, *Stage) error
	// Until returns what the world still lacks; nothing when the operator has done what it is to do.
	Until func(*Stage, history.World) string
}

// Stage is where a scenario is played.
type Stage struct {
	Client    client.Client // a user's
	Namespace string
	// Tick is the latest time of the schedules of CronJobs, which are due every hour. The next one is beyond the end.
	Tick time.Time
}

// Symbols are the times that mean something on a stage.
func (s *Stage) Symbols() history.Symbols {
	symbols := history.Symbols{"tick+1": s.Tick.Add(time.Hour), "tick": s.Tick}
	for before := 1; before <= 4; before++ {
		symbols[fmt.Sprintf("tick-%d", before)] = s.Tick.Add(-time.Duration(before) * time.Hour)
	}
	return symbols
}

// All are all scenarios.
func All() []Scenario {
	return expect(slices.Concat(foos(), memcacheds(), cronJobs()))
}

// make creates an object in the namespace of the stage.
func (s *Stage) make(ctx context.Context, object client.Object) error {
	object.SetNamespace(s.Namespace)
	return s.Client.Create(ctx, object)
}

// end deletes an object, with what belongs to it after it.
func (s *Stage) end(ctx context.Context, object client.Object) error {
	object = object.DeepCopyObject().(client.Object)
	object.SetNamespace(s.Namespace)
	return s.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// end deletes objects, one after the other.
func end(objects ...client.Object) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		for _, object := range objects {
			if err := s.end(ctx, object); err != nil {
				return err
			}
		}
		return nil
	}
}

// inTurn does one thing after the other.
func inTurn(all ...func(context.Context, *Stage) error) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		for _, do := range all {
			if err := do(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
}

// edit changes an object as somebody would who only cares for that change.
func edit[T client.Object](ctx context.Context, s *Stage, object T, change func(T)) error {
	object.SetNamespace(s.Namespace)
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	before := object.DeepCopyObject().(client.Object)
	change(object)
	return s.Client.Patch(ctx, object, client.MergeFrom(before))
}

// theirs is what somebody else writes over what the operator says.
const theirs = "theirs"

// relabel writes over all labels of some objects, and over the operator's annotations.
func relabel(objects ...client.Object) func(context.Context, *Stage) error {
	return func(ctx context.Context, s *Stage) error {
		for _, object := range objects {
			if err := edit(ctx, s, object.DeepCopyObject().(client.Object), func(object client.Object) {
				labels, annotations := object.GetLabels(), object.GetAnnotations()
				for name := range labels {
					labels[name] = theirs
				}
				for name := range annotations {
					if strings.HasPrefix(name, "memcached-operator.example.com/") {
						annotations[name] = theirs
					}
				}
				object.SetLabels(labels)
				object.SetAnnotations(annotations)
			}); err != nil {
				return err
			}
		}
		return nil
	}
}

// isRelabelled returns which object still has a label or annotation that somebody else has written over. What nobody
// but they have said is called theirs, and stays.
func isRelabelled(world history.World) string {
	for key, object := range world {
		for _, set := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
			for name, value := range set {
				if value == theirs && name != theirs {
					return fmt.Sprintf("%s has the %s of somebody else", key, name)
				}
			}
		}
	}
	return ""
}

// neighbour returns a UID that differs from another one in its last digit only.
func neighbour(uid types.UID) string {
	last := "0"
	if strings.HasSuffix(string(uid), last) {
		last = "1"
	}
	return string(uid[:len(uid)-1]) + last
}

// in returns an object of a world as its type; nil if there is none.
func in[T any](world history.World, resource, name string) *T {
	found, ok := world[history.Key{Resource: resource, Name: name}]
	if !ok {
		return nil
	}
	return history.As[T](found)
}

// says returns what is missing for a resource to say of itself what it is to say, such as "Available=True".
func says(world history.World, resource, name string, conditions ...string) string {
	found, ok := world[history.Key{Resource: resource, Name: name}]
	if !ok {
		return name + " is not there"
	}
	said := history.As[history.Reported](found)
	if said.Status.ObservedGeneration != said.Metadata.Generation {
		return fmt.Sprintf("%s is of generation %d, its status of %d", name, said.Metadata.Generation,
			said.Status.ObservedGeneration)
	}
	for _, wanted := range conditions {
		is := false
		for _, c := range said.Status.Conditions {
			is = is || wanted == fmt.Sprintf("%s=%s", c.Type, c.Status) ||
				wanted == fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason)
		}
		if !is {
			return fmt.Sprintf("%s does not say %s", name, wanted)
		}
	}
	return ""
}

// fine is what a resource says that has all that it wants.
var fine = []string{"Available=True", "Progressing=False", "Degraded=False"}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// gone returns what is left of some resources.
func gone(world history.World, resources ...string) string {
	for key := range world {
		for _, resource := range resources {
			if key.Resource == resource {
				return key.String() + " is still there"
			}
		}
	}
	return ""
}

// containers are such as namespaces that are restricted let in.
func containers() corev1.PodSpec {
	yes, no := true, false
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "it", Image: "it", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
	}
}
