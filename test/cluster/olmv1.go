//go:build linux

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"time"

	"github.com/example/memcached-operator/test/cluster/images"
	"github.com/example/memcached-operator/test/cluster/progress"
)

const olmv1Namespace = "olmv1-system"

// installOLMv1 installs the next generation of OLM beside OLM, from the chart in its module. Where its releases need
// cert-manager, the cluster's authority issues the certificates.
func (c *cluster) installOLMv1(ctx context.Context, owned bool) error {
	if !owned {
		return fmt.Errorf("there is no cluster; 'make cluster' brings one up")
	}
	began := time.Now()
	if err := c.connect(); err != nil {
		return err
	}
	version := c.version("olmv1")
	for _, name := range []string{"catalogd", "operator-controller"} {
		image := images.Image{Name: name + ":" + version, Entrypoint: []string{"/" + name},
			Files: map[string]string{name: c.bin + "/" + name}}
		if _, err := image.Push(ctx, registry, c.http.Transport); err != nil {
			return err
		}
	}
	manifests, err := c.renderOLMv1(version)
	if err != nil {
		return err
	}
	secrets, err := c.secretsOfOLMv1()
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(c.cert("ca"))
	if err != nil {
		return err
	}
	trust := fmt.Sprintf(`[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": %q}]`,
		base64.StdEncoding.EncodeToString(authority))
	apply := []string{"apply", "--server-side", "--force-conflicts", "--filename=-"}
	for _, step := range []struct {
		input []byte
		args  []string
	}{
		{[]byte("{apiVersion: v1, kind: Namespace, metadata: {name: " + olmv1Namespace + "}}"), apply},
		{secrets, apply},
		{manifests, apply},
		{nil, []string{"patch", "mutatingwebhookconfiguration", "catalogd-mutating-webhook-configuration", "--type=json",
			"--patch=" + trust}},
		{nil, []string{"rollout", "status", "--namespace=" + olmv1Namespace, "--timeout=180s",
			"deployment/catalogd-controller-manager", "deployment/operator-controller-controller-manager"}},
	} {
		if out, err := c.kubectl(ctx, step.input, step.args...); err != nil {
			pods, _ := c.kubectl(ctx, nil, "--namespace="+olmv1Namespace, "get", "pods,events")
			return fmt.Errorf("OLM v1 does not become ready: %w\n%s\n%s", err, out, pods)
		}
	}
	progress.Printf("OLM %s is ready (%.1f s)", version, time.Since(began).Seconds())
	return nil
}

// renderOLMv1 renders the chart like the manifests of OLM v1's releases.
func (c *cluster) renderOLMv1(version string) ([]byte, error) {
	deployment := func(name string) map[string]any {
		return map[string]any{"deployment": map[string]any{"image": registry + "/" + name + ":" + version}}
	}
	return c.renderChart("olmv1", map[string]any{
		"options": map[string]any{
			"catalogd":           deployment("catalogd"),
			"operatorController": deployment("operator-controller"),
			"certManager":        map[string]any{"enabled": true}, // for the volumes of the certificates
		},
		"deployments": map[string]any{"templateSpec": map[string]any{
			// The node has no roles.
			"nodeSelector": map[string]any{"node-role.kubernetes.io/control-plane": nil},
		}},
	}, "/cert-manager/")
}

// secretsOfOLMv1 returns the Secrets that cert-manager would create.
func (c *cluster) secretsOfOLMv1() ([]byte, error) {
	var all []byte
	for _, secret := range []struct{ name, certificate string }{
		{"catalogd-service-cert-git-version", "catalogd"},
		{"operator-controller-cert", "operator-controller"},
	} {
		text := "---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata:\n  name: " + secret.name +
			"\n  namespace: " + olmv1Namespace + "\ndata:\n"
		for _, file := range []struct{ key, path string }{
			{"ca.crt", c.cert("ca")}, {"tls.crt", c.cert(secret.certificate)}, {"tls.key", c.key(secret.certificate)},
		} {
			content, err := os.ReadFile(file.path)
			if err != nil {
				return nil, err
			}
			text += "  " + file.key + ": " + base64.StdEncoding.EncodeToString(content) + "\n"
		}
		all = append(all, text...)
	}
	return all, nil
}
