// Package sequences plays things that happen to resources, chosen by chance, and compares what comes of them with
// resources that are made in their last state and have no past. A sequence that goes wrong is made as short as it can
// be.
package sequences

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/schema"
	"github.com/example/memcached-operator/test/testenv"
)

// places are the names that Foos and strangers contend for.
var places = []string{"web", "shop", "store"}

var kindOf = map[string]kinds.Kind{"one": kinds.Foo, "two": kinds.Foo, "cache": kinds.Memcached,
	"report": kinds.CronJob}

// draw draws what somebody wants of a resource.
func draw(t *rapid.T, name string) resource {
	r := resource{kind: kindOf[name], name: name}
	switch r.kind.Name {
	case kinds.Foo.Name:
		r.spec = map[string]any{"deploymentName": rapid.SampledFrom(places).Draw(t, "deploymentName")}
		if replicas := rapid.Int64Range(-1, 3).Draw(t, "replicas"); replicas >= 0 {
			r.spec["replicas"] = replicas
		}
	case kinds.Memcached.Name:
		r.spec = map[string]any{"size": rapid.Int64Range(0, 3).Draw(t, "size")}
	case kinds.CronJob.Name:
		r.spec = map[string]any{
			"schedule": rapid.SampledFrom([]string{"0 0 1 1 *", "@every 5h", "0 0 30 2 *"}).Draw(t, "schedule"),
			"timeZone": rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Mars/Base"}).Draw(t, "timeZone"),
			"suspend":  rapid.Bool().Draw(t, "suspend"),
			"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"restartPolicy": "Never", "containers": []any{map[string]any{"name": "it", "image": "it"}}}}}},
		}
	}
	return r
}

func TestSequences(t *testing.T) {
	ctx, world := open(t)
	defer func() { played.hasFailed = t.Failed() }()
	rapid.Check(t, func(t *rapid.T) {
		play(ctx, t, world)
	})
	t.Logf("played: %v", played.actions)
}

// What has once gone wrong, in as few steps as it takes.
func TestFound(t *testing.T) {
	ctx, world := open(t)
	foo := func(deployment string) resource {
		return resource{kind: kinds.Foo, name: "one",
			spec: map[string]any{"deploymentName": deployment, "replicas": int64(1)}}
	}
	for name, steps := range map[string]func(s *stage) []error{
		"a Deployment that has lost its owner when its Foo is renamed stays for ever": func(s *stage) []error {
			putErr := s.put(ctx, foo("web"))
			_, err := s.rest(ctx)
			s.kill()
			return []error{putErr, err, s.harm(ctx, 0, "disown"), s.put(ctx, foo("shop"))}
		},
		"a Deployment that has lost its owner while its Foo waits for another name stays for ever": func(s *stage) []error {
			putErr := s.put(ctx, foo("web"))
			_, err := s.rest(ctx)
			return []error{putErr, err, s.occupy(ctx, "shop"), s.put(ctx, foo("shop")), s.harm(ctx, 0, "disown"),
				s.end(ctx, "one")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			played.found++
			defer func() {
				if t.Failed() {
					played.foundAgain = append(played.foundAgain, name)
				}
			}()
			s := newStage(ctx, t, world)
			if err := errors.Join(append(steps(s), s.judge(ctx))...); err != nil {
				t.Error(err)
			}
		})
	}
}

// open makes a world with the manager that MANAGER names, or else that of this tree. In the end, the logs of all
// managers are looked through.
func open(t *testing.T) (context.Context, *schema.World) {
	t.Helper()
	log.SetLogger(logr.Discard())
	ctx := context.Background()
	manager, err := testenv.BuildManager(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	world, err := schema.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defects := world.Defects()
		for _, defect := range defects {
			t.Errorf("the log of a manager has: %s", defect)
		}
		played.managers += world.Managers()
		played.defects = append(played.defects, defects...)
		if err := world.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := world.Use(ctx, manager); err != nil {
		t.Fatal(err)
	}
	return ctx, world
}

// newStage makes a stage that nobody has played on.
func newStage(ctx context.Context, t interface{ Fatal(...any) }, world *schema.World) *stage {
	namespace, err := world.Namespace(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{world: world, namespace: namespace, wanted: map[string]resource{},
		foreign: map[string]*unstructured.Unstructured{}}
}

// play plays one sequence and judges its end.
func play(ctx context.Context, t *rapid.T, world *schema.World) {
	s := newStage(ctx, t, world)
	played.sequences++
	defer func() { _ = errors.Join(s.start(ctx), s.leave(ctx)) }()
	do := func(name string, err error) {
		played.actions[name]++
		if err != nil {
			t.Fatalf("%s: %v\nplayed: %s", name, err, strings.Join(s.played, "; "))
		}
	}
	names := slices.Sorted(maps.Keys(kindOf))
	t.Repeat(map[string]func(*rapid.T){
		"put": func(t *rapid.T) {
			do("put", s.put(ctx, draw(t, rapid.SampledFrom(names).Draw(t, "resource"))))
		},
		"change": func(t *rapid.T) {
			do("change", s.put(ctx, draw(t, one(t, s.wanted))))
		},
		"delete": func(t *rapid.T) {
			do("delete", s.end(ctx, one(t, s.wanted)))
		},
		"recreate": func(t *rapid.T) {
			name := one(t, s.wanted)
			again := draw(t, name)
			do("recreate", errors.Join(s.end(ctx, name), s.put(ctx, again)))
		},
		"harm": func(t *rapid.T) {
			do("harm", s.harm(ctx, rapid.IntRange(0, 9).Draw(t, "child"),
				rapid.SampledFrom([]string{"delete", "relabel", "respec", "disown"}).Draw(t, "how")))
		},
		"occupy": func(t *rapid.T) {
			do("occupy", s.occupy(ctx, rapid.SampledFrom(append(places, "cache")).Draw(t, "place")))
		},
		"free": func(t *rapid.T) {
			do("free", s.free(ctx, one(t, s.foreign)))
		},
		"kill": func(t *rapid.T) {
			if s.isDown || rapid.IntRange(0, 2).Draw(t, "rarely") > 0 {
				t.Skip()
			}
			s.kill()
			played.actions["kill"]++
		},
		"start": func(t *rapid.T) {
			if !s.isDown {
				t.Skip()
			}
			do("start", s.start(ctx))
		},
		"settle": func(t *rapid.T) {
			if s.isDown {
				t.Skip()
			}
			s.note("settle")
			played.actions["settle"]++
			_, _ = s.rest(ctx) // names that are taken may keep it from that
		},
	})
	if err := s.judge(ctx); err != nil {
		t.Fatalf("the end: %v\nplayed: %s", err, strings.Join(s.played, "; "))
	}
}

// one draws a name from those that are there, and skips the step if there is none.
func one[T any](t *rapid.T, from map[string]T) string {
	names := slices.Sorted(maps.Keys(from))
	if len(names) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(names).Draw(t, "name")
}

// restWindow is how long nothing may be written when all has come to rest.
const restWindow = time.Second

// judge takes away what keeps resources from what they want, and compares the namespace with one that has the same
// resources and no past. When it is like that one, nothing more may be written in it.
func (s *stage) judge(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.foreign)) {
		if err := s.free(ctx, name); err != nil {
			return err
		}
	}
	if first, second := s.wanted["one"], s.wanted["two"]; first.spec != nil && second.spec != nil &&
		first.spec["deploymentName"] == second.spec["deploymentName"] {
		second.spec = maps.Clone(second.spec)
		second.spec["deploymentName"] = "elsewhere"
		if err := s.put(ctx, second); err != nil {
			return err
		}
	}
	if _, err := s.rest(ctx); err != nil {
		return err
	}
	counts := map[string]*int32{}
	for _, r := range s.wanted {
		if r.kind.Name != kinds.Foo.Name || r.spec["replicas"] != nil {
			continue
		}
		name := fmt.Sprint(r.spec["deploymentName"])
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		if err := s.client().Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		counts[name] = deployment.Spec.Replicas
	}
	want, err := fresh(ctx, s.world, s.wanted, counts)
	if err != nil {
		return err
	}
	if err := s.becomes(ctx, want); err != nil {
		return err
	}
	if writes := s.world.SettledWrites(ctx, s.namespace, restWindow); len(writes) > 0 {
		return fmt.Errorf("all is at rest, and the operator writes: %s", strings.Join(writes, ", "))
	}
	return nil
}
