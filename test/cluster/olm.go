//go:build linux

package main

import (
	"bytes"
	"context"
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
)

// installOLM installs Operator Lifecycle Manager from the chart in its own module, as its releases do.
func (c *cluster) installOLM(ctx context.Context) error {
	began := time.Now()
	definitions, err := filepath.Glob(filepath.Join(c.bin, "olm-chart", "crds", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		return fmt.Errorf("OLM's chart is not in %s: %w", c.bin, err)
	}
	// Client-side apply would not fit the definitions into its annotation.
	for _, file := range definitions {
		if _, err := c.kubectl(ctx, nil, "apply", "--server-side", "--force-conflicts", "--filename="+file); err != nil {
			return err
		}
	}
	if _, err := c.kubectl(ctx, nil,
		append([]string{"wait", "--for=condition=Established", "--timeout=60s", "--filename"},
			strings.Join(definitions, ","))...); err != nil {
		return err
	}
	manifests, err := c.renderOLM()
	if err != nil {
		return err
	}
	if _, err := c.kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "--filename=-"); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"rollout", "status", "--timeout=180s", "deployment/olm-operator", "deployment/catalog-operator"},
		{"wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=180s", "clusterserviceversion/packageserver"},
	} {
		if out, err := c.kubectl(ctx, nil, append([]string{"--namespace=olm"}, args...)...); err != nil {
			pods, _ := c.kubectl(ctx, nil, "--namespace=olm", "get", "pods,clusterserviceversions,events")
			return fmt.Errorf("OLM does not become ready: %w\n%s\n%s", err, out, pods)
		}
	}
	// What the API server has of an earlier life of OLM does not count: it must answer.
	patience, cancel := context.WithTimeout(ctx, startupTime)
	defer cancel()
	err = poll(patience, func() error {
		_, err := c.kubectl(patience, nil, "get", "--raw", "/apis/packages.operators.coreos.com/v1")
		return err
	})
	if err != nil {
		return fmt.Errorf("OLM does not answer: %w", err)
	}
	c.clock.Say("OLM %s is ready (%.1f s)", c.version("olm"), time.Since(began).Seconds())
	return nil
}

// renderOLM fills in the chart, with the values of OLM's own releases for clusters that are not OpenShift.
func (c *cluster) renderOLM() ([]byte, error) {
	dir := filepath.Join(c.bin, "olm-chart")
	chart, err := loader.Load(dir)
	if err != nil {
		return nil, err
	}
	chart.Metadata.Version = strings.TrimPrefix(c.version("olm"), "v")
	content, err := os.ReadFile(filepath.Join(dir, "upstream-values.yaml"))
	if err != nil {
		return nil, err
	}
	values, err := loader.LoadValues(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	image := map[string]any{"image": map[string]any{"ref": registry + "/olm:" + c.version("olm"),
		"pullPolicy": "IfNotPresent"}}
	values = loader.MergeMaps(values, map[string]any{
		"olm": image,
		"catalog": loader.MergeMaps(image, map[string]any{
			"opmImageArgs": "--opmImage=" + registry + "/opm:" + c.version("opm"),
			"commandArgs":  "--configmapServerImage=" + registry + "/opm:" + c.version("opm"),
		}),
		// One node, one server.
		"package": loader.MergeMaps(image, map[string]any{"replicaCount": 1}),
	})
	full, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "olm", Namespace: "olm"},
		common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(chart, full)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		// The community's catalog is out of reach, and nobody asked for it.
		if !strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, "catalogsource.yaml") {
			continue
		}
		fmt.Fprintf(&out, "---\n%s\n", rendered[name])
	}
	return out.Bytes(), nil
}
