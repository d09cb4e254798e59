//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/cluster/images"
)

// pushImages builds the images that the cluster, OLM and operator-sdk need, and those of the operands, and pushes them.
func (c *cluster) pushImages(ctx context.Context) error {
	list, err := c.images(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, image := range list {
		if _, err := image.Push(ctx, registry, c.http.Transport); err != nil {
			return err
		}
	}
	c.clock.Say("%d images are in the registry %s (%.1f s)", len(list), registry, time.Since(began).Seconds())
	if err := c.writeTrust(); err != nil {
		return err
	}
	return c.writeSettings(list)
}

// writeSettings writes what others have to know to use the cluster, for make and for shells.
func (c *cluster) writeSettings(list []images.Image) error {
	var settings strings.Builder
	fmt.Fprintf(&settings,
		"export TEST_CLUSTER=ours\nexport KUBECONFIG=%s\nexport TEST_REGISTRY=%s\nexport SSL_CERT_FILE=%s\n",
		c.path("kubeconfig"), registry, c.path("trust.crt"))
	fmt.Fprintf(&settings, "export NO_PROXY=\"${NO_PROXY:+$NO_PROXY,}%s\"\n", noProxy)
	for _, image := range list {
		name, _, _ := strings.Cut(image.Name, ":")
		if variable := variables[name]; variable != "" {
			fmt.Fprintf(&settings, "export %s=%s/%s\n", variable, registry, image.Name)
		}
	}
	return writeFile(c.path("env"), []byte(settings.String()), 0o644)
}

// variables are the settings that tell others which image to use.
var variables = map[string]string{
	"memcached":      "RELATED_IMAGE_MEMCACHED",
	"nginx":          "RELATED_IMAGE_NGINX",
	"opm":            "OPM_IMAGE",
	"busybox":        "BUSYBOX_IMAGE",
	"scorecard-test": "SCORECARD_TEST_IMAGE",
}

// writeTrust writes the machine's certificate authorities together with the cluster's, for SSL_CERT_FILE.
func (c *cluster) writeTrust() error {
	system, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		return err
	}
	own, err := os.ReadFile(c.cert("ca"))
	if err != nil {
		return err
	}
	return writeFile(c.path("trust.crt"), append(system, own...), 0o644)
}

// images are what pushImages builds.
func (c *cluster) images(ctx context.Context) ([]images.Image, error) {
	shell := map[string]string{}
	paths := map[string]string{}
	for _, name := range []string{"busybox", "memcached", "nginx"} {
		path, err := lookup(name)
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	applets, err := command(ctx, paths["busybox"], "--list")
	if err != nil {
		return nil, err
	}
	for _, applet := range strings.Fields(applets) {
		shell["bin/"+applet] = "busybox"
	}
	delete(shell, "bin/busybox")
	// Debian has it with and without libraries.
	busybox, err := images.Program(paths["busybox"])
	if err != nil {
		return nil, err
	}
	delete(busybox, strings.TrimPrefix(paths["busybox"], "/"))
	busybox["bin/busybox"] = paths["busybox"]
	with := func(files map[string]string, more map[string]string) map[string]string {
		all := maps.Clone(files)
		maps.Copy(all, more)
		return all
	}
	bin := func(names ...string) map[string]string {
		files := map[string]string{}
		for _, name := range names {
			files["bin/"+name] = filepath.Join(c.bin, name)
		}
		return files
	}
	memcached, err := images.Program(paths["memcached"])
	if err != nil {
		return nil, err
	}
	nginx, err := images.Program(paths["nginx"])
	if err != nil {
		return nil, err
	}
	if err := writeFile(c.path("tmp", "nginx.conf"), []byte(nginxConfig), 0o644); err != nil {
		return nil, err
	}
	if err := writeFile(c.path("tmp", "empty.json"), nil, 0o644); err != nil {
		return nil, err
	}
	nginx["etc/nginx/nginx.conf"] = c.path("tmp", "nginx.conf")
	nginx["usr/share/nginx/html/index.html"] = "/usr/share/nginx/html/index.html"

	return []images.Image{
		{Name: "pause:1", Files: bin("pause"), Entrypoint: []string{"/bin/pause"}},
		// Bundles are unpacked with its cp.
		{Name: "olm:" + c.version("olm"),
			Files: with(bin("olm", "catalog", "package-server", "copy-content", "cpb"), busybox), Links: shell,
			Entrypoint: []string{"/bin/olm"}},
		// The label and a first file are what operator-sdk's "run bundle" looks for.
		{
			Name:       "opm:" + c.version("opm"),
			Files:      with(with(bin("opm"), busybox), map[string]string{"configs/empty.json": c.path("tmp", "empty.json")}),
			Links:      shell,
			Labels:     map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
			Entrypoint: []string{"/bin/opm"}, Cmd: []string{"serve", "/configs", "--cache-dir=/tmp/cache"},
		},
		// Without an entrypoint: operator-sdk names programs only.
		{Name: "busybox:" + debianVersion(ctx, paths["busybox"]), Files: busybox, Links: shell},
		{Name: "scorecard-test:" + c.version("operator-sdk"), Files: bin("scorecard-test")},
		{Name: "memcached:" + debianVersion(ctx, paths["memcached"]), Files: memcached, Cmd: []string{"memcached"}},
		// As root within its container, as the image of that name at Docker Hub: it listens on port 80.
		{Name: "nginx:" + debianVersion(ctx, paths["nginx"]), Files: nginx, Cmd: []string{"nginx", "-g", "daemon off;"},
			User: "0"},
	}, nil
}

// version is the version that one of the programs was built from, as build.sh has noted it.
func (c *cluster) version(program string) string {
	content, err := os.ReadFile(filepath.Join(c.bin, "."+program+".version"))
	if err != nil {
		return "devel"
	}
	return strings.TrimSpace(string(content))
}

// debianVersion is the version of the Debian package that has a file, without Debian's own numbering: "1.6.18-debian".
func debianVersion(ctx context.Context, path string) string {
	const unknown = "system" // not Debian; what the machine has
	owner, err := exec.CommandContext(ctx, "dpkg-query", "--search", path).Output()
	if err != nil {
		// Merged directories have files under two paths, and dpkg knows one.
		if owner, err = exec.CommandContext(ctx, "dpkg-query", "--search",
			strings.TrimPrefix(path, "/usr")).Output(); err != nil {
			return unknown
		}
	}
	name, _, _ := strings.Cut(string(owner), ":")
	out, err := exec.CommandContext(ctx, "dpkg-query", "--show", "--showformat=${Version}", name).Output()
	if err != nil {
		return unknown
	}
	version := string(out)
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	version, _, _ = strings.Cut(version, "-")
	version, _, _ = strings.Cut(version, "+")
	return version + "-debian"
}

const nginxConfig = `# Debian's nginx with nothing but a page to serve, in a container that has one writable directory.
worker_processes 1;
pid /tmp/nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path /tmp/body;
	proxy_temp_path /tmp/proxy;
	fastcgi_temp_path /tmp/fastcgi;
	uwsgi_temp_path /tmp/uwsgi;
	scgi_temp_path /tmp/scgi;
	server {
		listen 80;
		root /usr/share/nginx/html;
	}
}
`
