package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/example/memcached-operator/test/cluster/images"
)

func TestRun(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	const commit = "0123456789abcdef"
	digest, err := images.Image{Name: "some/manager:v1",
		Labels: map[string]string{"org.opencontainers.image.revision": commit[:12]}}.Push(t.Context(), host, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (images.Image{Name: "some/other:v1"}).Push(t.Context(), host, nil); err != nil {
		t.Fatal(err)
	}
	manager, other := host+"/some/manager:v1", host+"/some/other:v1"
	for _, test := range []struct{ name, revision, images, want, problem string }{
		{"of the commit", commit, manager, manager + " " + digest + "\n", ""},
		{"of another commit", "fedcba9876543210", manager, "", `was built from "0123456789ab", not from fedcba9876543210`},
		{"without a label", commit, other, "", `was built from "", not from 0123456789abcdef`},
		{"without a commit", "", manager, manager + " " + digest + "\n", ""},
		{"missing", commit, manager + " " + host + "/some/missing:v1", "", "some/missing:v1: "},
		{"none", commit, "", "", "name an image"},
	} {
		var out strings.Builder
		err := run(t.Context(), &out, test.revision, strings.Fields(test.images))
		switch {
		case test.problem == "" && (err != nil || out.String() != test.want):
			t.Errorf("%s: %q, %v; want %q", test.name, out.String(), err, test.want)
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%s: %v; want %q", test.name, err, test.problem)
		}
	}
}
