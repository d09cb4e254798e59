package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/example/memcached-operator/test/testenv"
)

// At rest, every write of the operator counts, in the namespace that is asked for, and nothing else does.
func TestRestWrites(t *testing.T) {
	request := func(user, verb, group, resource, namespace string) testenv.Request {
		return testenv.Request{User: user, Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: "it", Code: 200}
	}
	requests := []testenv.Request{
		request(testenv.OperatorUser, "get", "apps", "deployments", "a"),
		request(testenv.OperatorUser, "update", "coordination.k8s.io", "leases", testenv.OperatorNamespace),
		request(testenv.OperatorUser, "patch", "events.k8s.io", "events", "a"),
		request("admin", "patch", "apps", "deployments", "a"),
	}
	if writes := restWrites(requests, ""); len(writes) > 0 {
		t.Errorf("nothing was written: %q", writes)
	}
	for _, verb := range []string{"create", "update", "patch", "delete"} {
		written := append(slices.Clone(requests), request(testenv.OperatorUser, verb, "cache.example.com", "memcacheds/status", "a"))
		for namespace, want := range map[string]int{"": 1, "a": 1, "b": 0} {
			if writes := restWrites(written, namespace); len(writes) != want || want > 0 && !strings.HasPrefix(writes[0], verb+" memcacheds/status a/it") {
				t.Errorf("%s in %q: %q", verb, namespace, writes)
			}
		}
	}
}

// Every leaf of ours is watched at rest, and some of those of the template, but nothing that has to be quick.
func TestWatched(t *testing.T) {
	ours, template, watched := 0, 0, 0
	for _, kind := range read(t) {
		for _, leaf := range kind.Leaves {
			of := func(options Options) bool { return (&trial{world: &World{options: options}, leaf: leaf}).isWatched() }
			switch {
			case of(Options{Seed: 1, IsHasty: true}):
				t.Errorf("%s is watched in haste", leaf.Path)
			case !leaf.inTemplate() && !of(Options{Seed: 1}):
				t.Errorf("%s is not watched", leaf.Path)
			case !leaf.inTemplate():
				ours++
			case of(Options{Seed: 1}):
				watched++
			}
			if leaf.inTemplate() {
				template++
			}
			for _, options := range []Options{{Seed: 1}, {Seed: 1, IsHasty: true}} {
				trial := newTrial(&World{options: options}, &kind, leaf)
				class := trial.watchedClass()
				if isWatched := trial.isWatched() && len(trial.taken) > 1; isWatched != (class > 0) || class >= len(trial.taken) || class == 0 {
					t.Errorf("%s is watched with class %d of %d", leaf.Path, class, len(trial.taken))
				}
			}
		}
	}
	if ours < 10 || watched < template/(2*restShare) || watched > 2*template/restShare {
		t.Errorf("%d leaves of ours, and %d of %d of the template", ours, watched, template)
	}
}

// logs is a manager that has logged something.
type logs struct {
	text   string
	killed *[]string
}

func (l logs) Kill()        { *l.killed = append(*l.killed, l.text) }
func (l logs) Logs() string { return l.text }

// What any manager has logged counts, not only what the last one has.
func TestDefectsOfAllManagers(t *testing.T) {
	var killed []string
	w := &World{managers: []manager{logs{"panic: first\n", &killed}, logs{"well\n", &killed}, logs{"panic: last\n", &killed}}}
	if found := w.Defects(); !slices.Equal(found, []string{"panic: first", "panic: last"}) || w.Managers() != 3 {
		t.Errorf("%q of %d managers", found, w.Managers())
	}
	if w.Kill(); !slices.Equal(killed, []string{"panic: last\n"}) {
		t.Errorf("killed %q", killed)
	}
}
