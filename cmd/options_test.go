package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParseDefaults(t *testing.T) {
	o, err := parse(nil, func(string) string { return "" }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.controllers, []string{"foo", "memcached"}) || o.leaderElect || o.metricsAddress != ":8443" || o.pprofAddress != "0" ||
		len(o.watchNamespaces) != 0 || o.nginxImage != "nginx:latest" || o.memcachedImage != defaultMemcachedImage {
		t.Errorf("%+v", o)
	}
}

func TestParseEnvironment(t *testing.T) {
	environment := map[string]string{"WATCH_NAMESPACE": "a,b", "RELATED_IMAGE_NGINX": "n:1", "RELATED_IMAGE_MEMCACHED": "m:1"}
	o, err := parse([]string{"--controllers=memcached"}, func(name string) string { return environment[name] }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.watchNamespaces, []string{"a", "b"}) || o.nginxImage != "n:1" || o.memcachedImage != "m:1" || !slices.Equal(o.controllers, []string{"memcached"}) {
		t.Errorf("%+v", o)
	}
}

// The README tells of every flag and variable, with its default.
func TestHelpIsComplete(t *testing.T) {
	var help strings.Builder
	if _, err := parse([]string{"--help"}, func(string) string { return "" }, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	readme := readREADME(t)
	for line := range strings.Lines(help.String()) {
		name := strings.Fields(line + " -")[0]
		switch {
		case strings.HasPrefix(line, "  -"):
			if !strings.Contains(readme, "`-"+name+"`") {
				t.Errorf("README.md does not tell of `-%s`", name)
			}
		case strings.HasPrefix(line, "  ") && strings.ToUpper(name) == name:
			if !strings.Contains(readme, "`"+name+"`") {
				t.Errorf("README.md does not tell of `%s`", name)
			}
		}
	}
}

func readREADME(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
