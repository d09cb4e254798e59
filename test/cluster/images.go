//go:build linux

package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	imageregistry "github.com/google/go-containerregistry/pkg/registry"

	"github.com/example/memcached-operator/test/cluster/images"
	"github.com/example/memcached-operator/test/cluster/progress"
)

// pushImages builds and pushes the images of the cluster, OLM, operator-sdk and the operands.
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
	progress.Printf("%d images are in the registry %s (%.1f s)", len(list), registry, time.Since(began).Seconds())
	if err := c.writeTrust(); err != nil {
		return err
	}
	return c.writeSettings(list)
}

// serveRegistry serves the image registry. Layers are stored on disk, but manifests in memory: after a restart images
// have to be pushed again, which sends no layer twice.
func (c *cluster) serveRegistry(ctx context.Context) error {
	blobs := c.path("registry")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	server := &http.Server{
		Addr: registry,
		Handler: imageregistry.New(
			imageregistry.WithBlobHandler(imageregistry.NewDiskBlobHandler(blobs)),
			imageregistry.Logger(log.New(os.Stderr, "", log.LstdFlags))),
		ReadHeaderTimeout: 10 * time.Second,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return server.ListenAndServeTLS(c.cert("registry"), c.key("registry"))
}

// writeSettings writes the environment variables of the cluster's clients, for make and for shells.
func (c *cluster) writeSettings(list []images.Image) error {
	var settings strings.Builder
	fmt.Fprintf(&settings,
		"export TEST_CLUSTER=dedicated\nexport KUBECONFIG=%s\nexport TEST_REGISTRY=%s/example\nexport TEST_MIRROR=%[2]s\n"+
			"export SSL_CERT_FILE=%s\n", c.path("kubeconfig"), registry, c.path("trust.crt"))
	fmt.Fprintf(&settings, "export TEST_RESTART_NODE='%s/cluster --bin=%[1]s --dir=%s restart-node'\n", c.bin, c.dir)
	fmt.Fprintf(&settings, "export NO_PROXY=\"${NO_PROXY:+$NO_PROXY,}%s\"\n", noProxy)
	for _, image := range list {
		name, _, _ := strings.Cut(image.Name, ":")
		variable := variables[name]
		if name == "memcached" && c.newerMemcached() != "" && image.Name != c.newerMemcached() {
			variable = "MEMCACHED_OLD_IMAGE"
		}
		if variable != "" {
			fmt.Fprintf(&settings, "export %s=%s/%s\n", variable, registry, image.Name)
		}
	}
	return writeFile(c.path("env"), []byte(settings.String()), 0o644)
}

// variables maps images to the environment variables that name them.
var variables = map[string]string{
	"memcached":      "RELATED_IMAGE_MEMCACHED",
	"nginx":          "RELATED_IMAGE_NGINX",
	"opm":            "OPM_IMAGE",
	"busybox":        "BUSYBOX_IMAGE",
	"scorecard-test": "SCORECARD_TEST_IMAGE",
}

// writeTrust writes the certificate authorities of the machine and the cluster to one file, for SSL_CERT_FILE.
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

// images returns the images that pushImages builds.
func (c *cluster) images(ctx context.Context) ([]images.Image, error) {
	paths, files, tags := map[string]string{}, map[string]map[string]string{}, map[string]string{}
	for _, name := range []string{"busybox", "memcached", "nginx"} {
		path, err := lookup(name)
		if err != nil {
			return nil, err
		}
		if files[name], err = images.Program(path); err != nil {
			return nil, err
		}
		paths[name], tags[name] = path, name+":"+debianVersion(ctx, needed[name])
	}
	applets, err := command(ctx, paths["busybox"], "--list")
	if err != nil {
		return nil, err
	}
	links := map[string]string{}
	for _, applet := range strings.Fields(applets) {
		links["bin/"+applet] = "busybox"
	}
	delete(links, "bin/busybox")
	// It is a dynamic program, with libraries, in one of Debian's packages.
	shell := files["busybox"]
	delete(shell, strings.TrimPrefix(paths["busybox"], "/"))
	shell["bin/busybox"] = paths["busybox"]
	with := func(files map[string]string, programs ...string) map[string]string {
		all := maps.Clone(files)
		for _, name := range programs {
			all["bin/"+filepath.Base(name)] = filepath.Join(c.bin, name)
		}
		return all
	}
	none := map[string]string{}
	opm := with(shell, "opm")
	opm["configs/empty.json"] = os.DevNull
	nginx := files["nginx"]
	nginx["etc/nginx/nginx.conf"] = c.path("nginx.conf")
	nginx["usr/share/nginx/html/index.html"] = "/usr/share/nginx/html/index.html"

	list := []images.Image{
		{Name: "pause:1", Files: with(none, "pause"), Entrypoint: []string{"/bin/pause"}},
		// OLM unpacks bundles with cp.
		{Name: "olm:" + c.version(c.olm), Files: with(shell, programsOfOLM(c.olm)...),
			Links: links, Entrypoint: []string{"/bin/olm"}},
		// "operator-sdk run bundle" requires the label and a file.
		{
			Name: "opm:" + c.version("opm"), Files: opm, Links: links,
			Labels:     map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
			Entrypoint: []string{"/bin/opm"}, Cmd: []string{"serve", "/configs", "--cache-dir=/tmp/cache"},
		},
		// Without an entrypoint: operator-sdk sets only the arguments of the container.
		{Name: tags["busybox"], Files: shell, Links: links},
		{Name: "scorecard-test:" + c.version("operator-sdk"), Files: with(none, "scorecard-test")},
		{Name: tags["memcached"], Files: files["memcached"], Cmd: []string{"memcached"}},
		// As root in its container, like Docker Hub's nginx, because it listens on port 80.
		{Name: tags["nginx"], Files: nginx, Cmd: []string{"nginx", "-g", "daemon off;"}, User: "0"},
	}
	if newer := c.newerMemcached(); newer != "" && newer != tags["memcached"] {
		list = append(list, images.Image{Name: newer, Cmd: []string{"memcached"},
			Files: map[string]string{"lib64": c.newerMemcachedFile("lib64"), "usr": c.newerMemcachedFile("usr")}})
	}
	return list, nil
}

// programsOfOLM returns the programs of a set of build.sh, relative to the directory of all programs.
func programsOfOLM(set string) []string {
	programs := []string{"olm", "catalog", "package-server", "copy-content", "cpb"}
	if set != defaultOLM {
		for i := range programs {
			programs[i] = filepath.Join(set, programs[i])
		}
	}
	return programs
}

// newerMemcached returns the name of the image of the memcached that memcached.sh has fetched; "" if it has not.
func (c *cluster) newerMemcached() string {
	version, err := os.ReadFile(c.newerMemcachedFile("version"))
	if err != nil {
		return ""
	}
	return "memcached:" + strings.TrimSpace(string(version)) + "-debian"
}

func (c *cluster) newerMemcachedFile(path string) string {
	return filepath.Join(c.bin, "memcached", path)
}

// version returns the version that one of the programs was built from, which build.sh has written.
func (c *cluster) version(program string) string {
	content, err := os.ReadFile(filepath.Join(c.bin, "."+program+".version"))
	if err != nil {
		return "devel"
	}
	return strings.TrimSpace(string(content))
}

// upstream matches the upstream part of the version of a Debian package, as in "1:1.37.0-6+b8".
var upstream = regexp.MustCompile(`^(?:\d+:)?([\w.]+)`)

// debianVersion returns the version of a Debian package without Debian's part: "1.6.18-debian".
func debianVersion(ctx context.Context, name string) string {
	out, err := command(ctx, "dpkg-query", "--show", "--showformat=${Version}", name)
	if version := upstream.FindStringSubmatch(out); err == nil && version != nil {
		return version[1] + "-debian"
	}
	return "system" // not Debian, or another package contains the program
}
