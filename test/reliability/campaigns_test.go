package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/scenario"
)

// What has found a bug once does not rot: it names a scenario and a fault that there are.
func TestOnceFound(t *testing.T) {
	for _, text := range onceFound {
		name, fault, _ := strings.Cut(text, " / ")
		if !slices.ContainsFunc(scenario.All(), func(s scenario.Scenario) bool { return s.Name == name }) {
			t.Errorf("%s: there is no such scenario", text)
		}
		if _, err := proxy.ParseRule(fault); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
