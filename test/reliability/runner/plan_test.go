package runner

import (
	"net/http"
	"testing"

	"github.com/example/memcached-operator/test/reliability/proxy"
)

// A fault has occurred when what it is named after has: to be killed alone is another one.
func TestFired(t *testing.T) {
	by := func(rule int, kind proxy.Kind) proxy.Request {
		return proxy.Request{Verb: "patch", Rule: rule, Fault: &proxy.Fault{Kind: kind}}
	}
	old := proxy.Request{Verb: "list", Status: http.StatusOK, Fault: &proxy.Fault{Kind: proxy.Age}}
	gone := proxy.Request{Verb: "watch", Status: http.StatusGone}
	for name, test := range map[string]struct {
		requests []proxy.Request
		want     int
	}{
		"none":                       {[]proxy.Request{{Verb: "patch"}, old}, 0},
		"a conflict":                 {[]proxy.Request{by(1, proxy.Refuse)}, 1},
		"one of two":                 {[]proxy.Request{by(2, proxy.Refuse), by(2, proxy.Refuse)}, 1},
		"two":                        {[]proxy.Request{by(1, proxy.KillAfter), by(2, proxy.Refuse)}, 2},
		"killed":                     {[]proxy.Request{by(1, proxy.Age), {Verb: "list"}}, 0},
		"killed, and shown the past": {[]proxy.Request{by(1, proxy.AgeMore), old}, 1},
		"watches that end": {[]proxy.Request{by(1, proxy.ExpireWatches), {Verb: "watch", Status: http.StatusOK}},
			0},
		"watches that end, and a 410": {[]proxy.Request{by(1, proxy.ExpireWatches), gone}, 1},
	} {
		if got := fired(test.requests); got != test.want {
			t.Errorf("%s: %d faults, not %d", name, got, test.want)
		}
	}
}

// One storm hits other requests in each scenario, and the next one others again.
func TestSeedOfAPlan(t *testing.T) {
	seeds := map[uint64]bool{}
	for _, name := range []string{"foo-create", "foo-scale"} {
		for seed := range uint64(2) {
			plan := &Plan{Seed: seed}
			plan.Scenario.Name = name
			seeds[plan.seed()] = true
		}
	}
	if len(seeds) != 4 {
		t.Errorf("%d seeds of 4 plans", len(seeds))
	}
}
