//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/example/memcached-operator/test/cluster/progress"
)

// installOLM installs Operator Lifecycle Manager from the chart in its module, as its releases do.
func (c *cluster) installOLM(ctx context.Context) error {
	began := time.Now()
	if err := c.expectOLM(); err != nil {
		return err
	}
	manifests, err := c.renderOLM()
	if err != nil {
		return err
	}
	// Server-side apply, because the definitions are too large for the annotation of client-side apply.
	apply := []string{"apply", "--server-side", "--force-conflicts", "--filename"}
	definitions := filepath.Join(c.bin, c.olm+"-chart", "crds")
	for _, args := range [][]string{
		append(apply, definitions),
		{"wait", "--for=condition=Established", "--timeout=60s", "--filename", definitions},
		append(apply, "-"),
		{"rollout", "status", "--namespace=olm", "--timeout=180s", "deployment/olm-operator", "deployment/catalog-operator"},
		{"wait", "--namespace=olm", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=180s",
			"clusterserviceversion/packageserver"},
	} {
		if out, err := c.kubectl(ctx, manifests, args...); err != nil {
			pods, _ := c.kubectl(ctx, nil, "--namespace=olm", "get", "pods,clusterserviceversions,events")
			return fmt.Errorf("OLM does not become ready: %w\n%s\n%s", err, out, pods)
		}
	}
	// The states may be those of before a restart of the cluster, so OLM must answer as well.
	limited, cancel := context.WithTimeout(ctx, startupTime)
	defer cancel()
	err = poll(limited, func() error {
		_, err := c.kubectl(limited, nil, "get", "--raw", "/apis/packages.operators.coreos.com/v1")
		return err
	})
	if err != nil {
		return fmt.Errorf("OLM does not answer: %w", err)
	}
	progress.Printf("OLM %s is ready (%.1f s)", c.version(c.olm), time.Since(began).Seconds())
	return nil
}

// expectOLM returns an error if the cluster has another version of OLM, which cannot be replaced.
func (c *cluster) expectOLM() error {
	path := c.path("olm")
	installed, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return writeFile(path, []byte(c.olm), 0o644)
	}
	if err == nil && string(installed) != c.olm {
		err = fmt.Errorf("the cluster has OLM %s, not %s: 'make cluster-down' first", c.version(string(installed)),
			c.version(c.olm))
	}
	return err
}

// renderOLM renders the chart with the values of OLM's releases for clusters other than OpenShift.
func (c *cluster) renderOLM() ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(c.bin, c.olm+"-chart", "upstream-values.yaml"))
	if err != nil {
		return nil, err
	}
	values, err := loader.LoadValues(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	image := map[string]any{"image": map[string]any{"ref": registry + "/olm:" + c.version(c.olm),
		"pullPolicy": "IfNotPresent"}}
	values = loader.MergeMaps(values, map[string]any{
		"olm": image,
		"catalog": loader.MergeMaps(image, map[string]any{
			"opmImageArgs": "--opmImage=" + registry + "/opm:" + c.version("opm"),
			"commandArgs":  "--configmapServerImage=" + registry + "/opm:" + c.version("opm"),
		}),
		"package": loader.MergeMaps(image, map[string]any{"replicaCount": 1}), // there is one node
	})
	// Without the catalog of OperatorHub.io, which is not reachable.
	return c.renderChart(c.olm, values, "catalogsource.yaml")
}

// renderChart renders the chart that build.sh has copied for one of its sets of programs, without the templates whose
// names contain one of some words.
func (c *cluster) renderChart(set string, values map[string]any, without ...string) ([]byte, error) {
	chart, err := loader.Load(filepath.Join(c.bin, set+"-chart"))
	if err != nil {
		return nil, err
	}
	chart.Metadata.Version = strings.TrimPrefix(c.version(set), "v")
	full, err := util.ToRenderValues(chart, values, common.ReleaseOptions{}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(chart, full)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		isUnwanted := slices.ContainsFunc(without, func(word string) bool { return strings.Contains(name, word) })
		if extension := filepath.Ext(name); isUnwanted || extension != ".yaml" && extension != ".yml" {
			continue
		}
		fmt.Fprintf(&out, "---\n%s\n", rendered[name])
	}
	return out.Bytes(), nil
}
