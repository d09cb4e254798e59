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

	"github.com/example/memcached-operator/test/cluster/progress"
)

// installOLM installs Operator Lifecycle Manager from the chart in its module, as its releases do.
func (c *cluster) installOLM(ctx context.Context) error {
	began := time.Now()
	manifests, err := c.renderOLM()
	if err != nil {
		return err
	}
	// Server-side apply, because the definitions are too large for the annotation of client-side apply.
	apply := []string{"apply", "--server-side", "--force-conflicts", "--filename"}
	definitions := filepath.Join(c.bin, "olm-chart", "crds")
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
	progress.Printf("OLM %s is ready (%.1f s)", c.version("olm"), time.Since(began).Seconds())
	return nil
}

// renderOLM renders the chart with the values of OLM's releases for clusters other than OpenShift.
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
		"package": loader.MergeMaps(image, map[string]any{"replicaCount": 1}), // there is one node
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
		// Without the catalog of OperatorHub.io, which is not reachable.
		if !strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, "catalogsource.yaml") {
			continue
		}
		fmt.Fprintf(&out, "---\n%s\n", rendered[name])
	}
	return out.Bytes(), nil
}
