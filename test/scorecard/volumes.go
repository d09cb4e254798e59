package main

import (
	"context"
	"strings"

	"github.com/example/memcached-operator/test/bundle"
)

// noDanglingVolumes shows that the pods of the operator lean on nothing that is not there under OLM.
func noDanglingVolumes(_ context.Context, s settings) ([]finding, error) {
	now, err := bundle.Read(s.bundle)
	if err != nil {
		return nil, err
	}
	f := finding{log: "read " + now.CSV.Name + "\n"}
	if found := bundle.Dangling(now.CSV); len(found) > 0 {
		f.err = failed("%s", strings.Join(found, "\n"))
	}
	return []finding{f}, nil
}
