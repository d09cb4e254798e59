// Package sequences makes random changes to resources, and compares the final state with that of resources newly
// created with the final specs. A failing sequence is shrunk to a minimal one.
package sequences

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/schema"
	"github.com/example/memcached-operator/test/testenv"
)

// restWindow is how long the operator must write nothing once everything has settled.
const restWindow = time.Second

// deploymentNames are the names that Foos and other clients contend for.
var deploymentNames = []string{"web", "shop", "store"}

var kindOf = map[string]kinds.Kind{"one": kinds.Foo, "two": kinds.Foo, "cache": kinds.Memcached,
	"ring": kinds.MemcachedSet, "report": kinds.CronJob}

// draw draws the spec of a resource.
func draw(t *rapid.T, name string) resource {
	r := resource{kind: kindOf[name], name: name}
	switch r.kind.Name {
	case kinds.Foo.Name:
		r.spec = map[string]any{"deploymentName": rapid.SampledFrom(deploymentNames).Draw(t, "deploymentName")}
		if replicas := rapid.Int64Range(-1, 3).Draw(t, "replicas"); replicas >= 0 {
			r.spec["replicas"] = replicas
		}
	case kinds.Memcached.Name:
		r.spec = map[string]any{"size": rapid.Int64Range(0, 3).Draw(t, "size"), "config": map[string]any{},
			"containerPort": rapid.SampledFrom([]int64{11211, 11311}).Draw(t, "containerPort")}
		if threads := rapid.Int64Range(0, 3).Draw(t, "threads"); threads > 0 {
			r.spec["config"] = map[string]any{"threads": threads}
		}
		if rapid.Bool().Draw(t, "tls") {
			r.spec["tls"] = map[string]any{"secretName": "web",
				"plaintext": rapid.SampledFrom([]string{"Disabled", "Enabled"}).Draw(t, "plaintext")}
		}
		if r.kind.Variant != "" {
			r.spec["workloadType"] = r.kind.Variant
		}
	case kinds.CronJob.Name:
		r.spec = kinds.Spec(kinds.CronJob.Make("", name, 1))
		r.spec["schedule"] = rapid.SampledFrom([]string{"0 0 1 1 *", "@every 5h", "0 0 30 2 *"}).Draw(t, "schedule")
		r.spec["timeZone"] = rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Mars/Base"}).Draw(t, "timeZone")
		r.spec["suspend"] = rapid.Bool().Draw(t, "suspend")
	}
	return r
}

func TestSequences(t *testing.T) {
	ctx, cluster := open(t)
	defer func() { fail(t, "a sequence: "+cmp.Or(tally.failure, "it did not begin")) }()
	rapid.Check(t, func(t *rapid.T) { run(ctx, t, cluster) })
}

// TestFound repeats minimal sequences that failed once.
func TestFound(t *testing.T) {
	ctx, cluster := open(t)
	foo := func(deployment string) resource {
		return resource{kind: kinds.Foo, name: "one",
			spec: map[string]any{"deploymentName": deployment, "replicas": int64(1)}}
	}
	for name, steps := range map[string]func(s *stage) []error{
		"a Deployment that has lost its owner when its Foo is renamed stays for ever": func(s *stage) []error {
			putErr := s.put(ctx, foo("web"))
			_, err := s.settle(ctx)
			s.kill()
			return []error{putErr, err, s.damage(ctx, 0, "disown"), s.put(ctx, foo("shop"))}
		},
		"a Deployment that has lost its owner while its Foo waits for another name stays for ever": func(s *stage) []error {
			putErr := s.put(ctx, foo("web"))
			_, err := s.settle(ctx)
			return []error{putErr, err, s.occupy(ctx, "shop"), s.put(ctx, foo("shop")), s.damage(ctx, 0, "disown"),
				s.remove(ctx, "one")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer fail(t, name)
			tally.found++
			s, err := newStage(ctx, cluster)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(append(steps(s), s.check(ctx))...); err != nil {
				t.Error(err)
			}
		})
	}
}

// open starts a control plane with the manager that MANAGER names, or else that of this tree. In the end, the logs of
// all managers are checked.
func open(t *testing.T) (context.Context, *schema.Cluster) {
	t.Helper()
	log.SetLogger(logr.Discard())
	ctx := context.Background()
	manager, err := testenv.BuildManager(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := schema.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, defect := range cluster.Defects() {
			t.Errorf("the log of a manager has: %s", defect)
			tally.failed = append(tally.failed, defect)
		}
		tally.managers += cluster.Managers()
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := cluster.Use(ctx, manager); err != nil {
		t.Fatal(err)
	}
	return ctx, cluster
}

// run runs one sequence and checks its end.
func run(ctx context.Context, t *rapid.T, cluster *schema.Cluster) {
	s, err := newStage(ctx, cluster)
	if err != nil {
		t.Fatal(err)
	}
	tally.sequences++
	defer func() { _ = errors.Join(s.start(ctx), s.removeAll(ctx)) }()
	must := func(name string, err error) {
		if err != nil {
			tally.failure = fmt.Sprintf("%s: %v; actions: %s", name, err, strings.Join(s.actions, "; "))
			t.Fatal(tally.failure)
		}
	}
	do := func(name string, err error) {
		tally.actions[name]++
		must(name, err)
	}
	names := slices.Sorted(maps.Keys(kindOf))
	t.Repeat(map[string]func(*rapid.T){
		"put":    func(t *rapid.T) { do("put", s.put(ctx, draw(t, rapid.SampledFrom(names).Draw(t, "resource")))) },
		"change": func(t *rapid.T) { do("change", s.put(ctx, draw(t, one(t, s.desired)))) },
		"delete": func(t *rapid.T) { do("delete", s.remove(ctx, one(t, s.desired))) },
		"recreate": func(t *rapid.T) {
			name := one(t, s.desired)
			again := draw(t, name)
			do("recreate", errors.Join(s.remove(ctx, name), s.put(ctx, again)))
		},
		"damage": func(t *rapid.T) {
			do("damage", s.damage(ctx, rapid.IntRange(0, 9).Draw(t, "child"),
				rapid.SampledFrom([]string{"delete", "relabel", "respec", "disown"}).Draw(t, "how")))
		},
		"occupy": func(t *rapid.T) {
			do("occupy", s.occupy(ctx, rapid.SampledFrom(append(deploymentNames, "cache")).Draw(t, "name")))
		},
		"free": func(t *rapid.T) { do("free", s.free(ctx, one(t, s.unmanaged))) },
		"kill": func(t *rapid.T) {
			if s.isDown || rapid.IntRange(0, 2).Draw(t, "rarely") > 0 {
				t.Skip()
			}
			s.kill()
			do("kill", nil)
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
			s.log("settle")
			_, _ = s.settle(ctx) // a name that is taken may prevent it
			do("settle", nil)
		},
	})
	must("the end", s.check(ctx))
}

// one draws the name of something that exists, and skips the step if there is nothing.
func one[T any](t *rapid.T, from map[string]T) string {
	names := slices.Sorted(maps.Keys(from))
	if len(names) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(names).Draw(t, "name")
}
