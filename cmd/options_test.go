package main

import (
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestParseDefaults(t *testing.T) {
	o, err := parse(nil, func(string) string { return "" }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.controllers, []string{"foo", "memcached", "cronjob"}) || o.leaderElect ||
		o.metricsAddress != ":8443" || o.pprofAddress != "0" ||
		len(o.watchNamespaces) != 0 || o.nginxImage != "nginx:latest" || o.memcachedImage != defaultMemcachedImage ||
		o.agentImage != defaultAgentImage {
		t.Errorf("%+v", o)
	}
}

func TestParseEnvironment(t *testing.T) {
	environment := map[string]string{"WATCH_NAMESPACE": "a,b", "RELATED_IMAGE_NGINX": "n:1",
		"RELATED_IMAGE_MEMCACHED": "m:1", "RELATED_IMAGE_AGENT": "a:1", "IMAGE_TAGS": "m@sha256:1=m:1,a@sha256:2=a:1"}
	o, err := parse([]string{"--controllers=memcached"}, func(name string) string { return environment[name] }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.watchNamespaces, []string{"a", "b"}) || o.nginxImage != "n:1" || o.memcachedImage != "m:1" ||
		o.agentImage != "a:1" || !maps.Equal(o.imageTags, map[string]string{"m@sha256:1": "m:1", "a@sha256:2": "a:1"}) ||
		!slices.Equal(o.controllers, []string{"memcached"}) {
		t.Errorf("%+v", o)
	}
	environment["IMAGE_TAGS"] = "m:1"
	_, err = parse(nil, func(name string) string { return environment[name] }, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `IMAGE_TAGS contains "m:1": it must be a list of`) {
		t.Error(err)
	}
}

// The role of the leader election grants access to the Lease of every value of --controllers. A manager could create a
// Lease that is missing there, but neither read nor renew it.
func TestLeasesAreGranted(t *testing.T) {
	choices := []string{"*"}
	for _, kind := range kindNames() {
		for _, others := range choices[1:] {
			choices = append(choices, others+","+kind)
		}
		choices = append(choices, kind)
	}
	var want []string
	for _, choice := range choices {
		o, err := parse([]string{"--controllers=" + choice}, func(string) string { return "" }, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, o.lease)
	}
	var role rbacv1.Role
	if content, err := os.ReadFile("../config/rbac/leader_election_role.yaml"); err != nil ||
		yaml.UnmarshalStrict(content, &role) != nil {
		t.Fatalf("%v, %v", err, role)
	}
	granted := map[string][]string{}
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			if slices.Equal(rule.Resources, []string{"leases"}) {
				granted[verb] = append(granted[verb], rule.ResourceNames...)
			}
		}
	}
	slices.Sort(want)
	for _, verb := range []string{"get", "update"} {
		if slices.Sort(granted[verb]); !slices.Equal(granted[verb], want) {
			t.Errorf("config/rbac/leader_election_role.yaml allows %s of the leases %v; --controllers=%v need %v", verb,
				granted[verb], choices, want)
		}
	}
}

// docs/flags.md documents every flag and variable.
func TestHelpIsComplete(t *testing.T) {
	var help strings.Builder
	if _, err := parse([]string{"--help"}, func(string) string { return "" }, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	content, err := os.ReadFile("../docs/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	for line := range strings.Lines(help.String()) {
		name := strings.Fields(line + " -")[0]
		switch {
		case strings.HasPrefix(line, "  -"):
			if !strings.Contains(page, "`-"+name+"`") {
				t.Errorf("docs/flags.md does not document `-%s`", name)
			}
		case strings.HasPrefix(line, "  ") && strings.ToUpper(name) == name:
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/flags.md does not document `%s`", name)
			}
		}
	}
}
