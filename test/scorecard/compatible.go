package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/bundle"
)

// noDanglingVolumes shows that the pods of the operator need nothing that OLM does not provide.
func noDanglingVolumes(_ context.Context, s settings) ([]finding, error) {
	current, err := bundle.Read(s.bundle)
	if err != nil {
		return nil, err
	}
	f := finding{log: "read " + current.CSV.Name + "\n"}
	if found := bundle.Dangling(current.CSV); len(found) > 0 {
		f.err = failed("%s", strings.Join(found, "\n"))
	}
	return []finding{f}, nil
}

// crdsAreCompatible shows that users can still write everything that they could write in the last release, by the
// definitions in the bundle and by those in the cluster.
func crdsAreCompatible(ctx context.Context, s settings) ([]finding, error) {
	current, err := bundle.Read(s.bundle)
	if err != nil {
		return nil, err
	}
	last, err := lastRelease(s.released, current.CSV.Spec.Version.Version)
	if err != nil {
		return nil, fmt.Errorf("reading the last release: %w", err)
	}
	if last == nil {
		return []finding{{suggestions: []string{fmt.Sprintf("there is no release before %s in %s to compare with: nothing "+
			"to do for the first one", current.CSV.Spec.Version, s.released)}}}, nil
	}
	k8s, err := connect()
	if err != nil {
		return nil, err
	}
	findings := make([]finding, 0, len(last.CRDs))
	for _, name := range slices.Sorted(maps.Keys(last.CRDs)) {
		f := finding{subject: name, log: fmt.Sprintf("compared with %s\n", last.CSV.Name)}
		f.err = compatible(ctx, k8s, last.CSV.Name, last.CRDs[name], current.CRDs[name])
		findings = append(findings, f)
	}
	return findings, nil
}

// compatible compares a released definition with those of the bundle, which may be nil, and of the cluster.
func compatible(ctx context.Context, k8s client.Client, release string,
	released, bundled *apiextensionsv1.CustomResourceDefinition) error {
	if bundled == nil {
		return failed("%s has %s, and the bundle has not: definitions are never removed, put it back", release, released.Name)
	}
	installed := &apiextensionsv1.CustomResourceDefinition{}
	err := k8s.Get(ctx, client.ObjectKeyFromObject(released), installed)
	if apierrors.IsNotFound(err) {
		return failed("%s has to be on the cluster, and is not; look at the operator's ClusterServiceVersion and InstallPlan",
			released.Name)
	}
	if err != nil {
		return fmt.Errorf("reading %s from the cluster: %w", released.Name, err)
	}
	where := "bundle"
	found := bundle.Tightened(released, bundled)
	if len(found) == 0 {
		where, found = "cluster", bundle.Tightened(released, installed)
	}
	if len(found) > 0 {
		return failed("the definition of the %s has to accept all that the one of %s does\n%s", where, release,
			strings.Join(found, "\n"))
	}
	return nil
}
