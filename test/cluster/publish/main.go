// Command publish builds every image of this repository without a container engine and pushes it to a registry: of the
// tree and of each release, which is built from the commit that its bundle was made of.
//
//	REGISTRY/memcached-operator:vVERSION             the manager
//	REGISTRY/memcached-operator-bundle:vVERSION      its bundle
//	REGISTRY/memcached-operator-catalog:released     the catalog of all releases
//	REGISTRY/memcached-operator-catalog:tree         the same with the tree, which upgrades the last of them
//	REGISTRY/memcached-operator-scorecard:vVERSION   the scorecard's tests, of the tree
//	REGISTRY/memcached-operator-probe:vVERSION       what the end-to-end tests ask operands with, of the tree
//
// The images are for the architecture of this machine. Credentials are those of docker login; certificates are
// trusted as SSL_CERT_FILE says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/cluster/images"
	"github.com/example/memcached-operator/test/cluster/progress"
)

func main() {
	p := publisher{clock: progress.Start()}
	flag.StringVar(&p.registry, "registry", "", "where to push to, a host with or without a path")
	flag.StringVar(&p.repository, "repository", ".", "the repository, a git work tree")
	flag.StringVar(&p.bin, "bin", "", "the directory of the programs, as test/cluster/build.sh fills it")
	flag.StringVar(&p.work, "work", "", "a directory for what is built")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := p.publish(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

type publisher struct {
	registry, repository, bin, work string
	clock                           progress.Clock
}

func (p *publisher) publish(ctx context.Context) error {
	if p.registry == "" || p.bin == "" || p.work == "" {
		return errors.New("--registry, --bin and --work are needed")
	}
	for _, path := range []*string{&p.repository, &p.bin, &p.work} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	if err := os.MkdirAll(p.work, 0o755); err != nil {
		return err
	}
	releases, err := filepath.Glob(filepath.Join(p.repository, "config/catalog/released/*/commit"))
	if err != nil {
		return err
	}
	if len(releases) == 0 {
		return errors.New("nothing is released yet (config/catalog/released), so there is nothing to upgrade from: 'make " +
			"release' first")
	}
	for _, file := range releases {
		if err := p.release(ctx, filepath.Base(filepath.Dir(file)), file); err != nil {
			return err
		}
	}
	if err := p.tree(ctx); err != nil {
		return err
	}
	return p.catalogs(ctx)
}

// release publishes the manager of a release, built from its commit.
func (p *publisher) release(ctx context.Context, version, commitFile string) error {
	content, err := os.ReadFile(commitFile)
	if err != nil {
		return err
	}
	commit := strings.TrimSpace(string(content))
	source := filepath.Join(p.work, "source-"+version)
	if err := p.checkOut(ctx, commit, source); err != nil {
		return fmt.Errorf("the source of release %s: %w", version, err)
	}
	manager, err := p.manager(ctx, source, version, commit)
	if err != nil {
		return err
	}
	return p.push(ctx, manager)
}

// tree publishes the programs of the tree.
func (p *publisher) tree(ctx context.Context) error {
	version, err := bundleVersion(filepath.Join(p.repository, "bundle"))
	if err != nil {
		return err
	}
	commit, err := p.run(ctx, p.repository, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	manager, err := p.manager(ctx, p.repository, version, strings.TrimSpace(commit))
	if err != nil {
		return err
	}
	scorecard, probe := filepath.Join(p.work, "memcached-operator-scorecard"), filepath.Join(p.work, "probe")
	for program, pkg := range map[string]string{scorecard: "./test/scorecard", probe: "./test/e2e/probe"} {
		if err := p.build(ctx, p.repository, program, pkg, ""); err != nil {
			return err
		}
	}
	return p.push(ctx,
		manager,
		images.Image{
			Name: "memcached-operator-scorecard:v" + version,
			Files: map[string]string{
				"usr/local/bin/memcached-operator-scorecard": scorecard,
				"released": filepath.Join(p.repository, "config/catalog/released"),
			},
		},
		images.Image{Name: "memcached-operator-probe:v" + version, Files: map[string]string{"probe": probe},
			Entrypoint: []string{"/probe"}})
}

// catalogs publishes the catalogs and all bundles.
func (p *publisher) catalogs(ctx context.Context) error {
	tree := filepath.Join(p.work, "tree")
	if err := p.render(ctx, "--tree", tree); err != nil {
		return err
	}
	bundles, err := filepath.Glob(filepath.Join(tree, "bundle-*"))
	if err != nil {
		return err
	}
	for _, bundle := range bundles {
		labels, err := bundleLabels(bundle)
		if err != nil {
			return err
		}
		version := strings.TrimPrefix(filepath.Base(bundle), "bundle-")
		err = p.push(ctx, images.Image{
			Name: "memcached-operator-bundle:v" + version,
			Files: map[string]string{"manifests": bundle + "/manifests", "metadata": bundle + "/metadata",
				"tests": bundle + "/tests"},
			Labels: labels,
		})
		if err != nil {
			return err
		}
	}
	released := filepath.Join(p.work, "released")
	if err := p.render(ctx, released); err != nil {
		return err
	}
	return p.push(ctx, p.catalog("tree", tree), p.catalog("released", released))
}

// render has the catalog and its bundles written, with the images where this registry has them.
func (p *publisher) render(ctx context.Context, args ...string) error {
	_, err := p.run(ctx, p.repository, "env",
		append([]string{"OPM=" + filepath.Join(p.bin, "opm"), "config/catalog/render.sh"}, append(args, p.registry)...)...)
	return err
}

func (p *publisher) catalog(tag, dir string) images.Image {
	return images.Image{
		Name: "memcached-operator-catalog:" + tag,
		Files: map[string]string{
			"bin/opm": filepath.Join(p.bin, "opm"),
			// What OLM asks whether the catalog is served.
			"bin/grpc_health_probe": filepath.Join(p.bin, "grpc-health-probe"),
			"configs":               dir + "/catalog",
		},
		Labels:     map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
		Entrypoint: []string{"/bin/opm"},
		// The index is made when the catalog starts: it is small.
		Cmd: []string{"serve", "/configs", "--cache-dir=/tmp/cache", "--cache-enforce-integrity=false"},
	}
}

// manager is the image of a manager, as the Dockerfile makes it.
func (p *publisher) manager(ctx context.Context, source, version, commit string) (images.Image, error) {
	p.clock.Say("Building the manager v%s.", version)
	program := filepath.Join(p.work, "manager-"+version)
	err := p.build(ctx, source, program, "./cmd", fmt.Sprintf("-X main.version=v%s -X main.commit=%.12s", version, commit))
	return images.Image{
		Name:       "memcached-operator:v" + version,
		Files:      map[string]string{"manager": program, "licenses/LICENSE": filepath.Join(source, "LICENSE")},
		Entrypoint: []string{"/manager"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "memcached-operator",
			"org.opencontainers.image.version":  "v" + version,
			"org.opencontainers.image.revision": commit,
		},
	}, err
}

func (p *publisher) push(ctx context.Context, list ...images.Image) error {
	for _, image := range list {
		began := time.Now()
		digest, err := image.Push(ctx, p.registry, nil)
		if err != nil {
			return err
		}
		p.clock.Say("%s/%s %.19s (%.1f s)", p.registry, image.Name, digest, time.Since(began).Seconds())
	}
	return nil
}

// checkOut writes the files of a commit into a directory.
func (p *publisher) checkOut(ctx context.Context, commit, dir string) error {
	if _, err := p.run(ctx, p.repository, "git", "cat-file", "-e", commit+"^{commit}"); err != nil {
		return fmt.Errorf("commit %s is not in this clone; 'git fetch --unshallow' gets the whole history: %w", commit, err)
	}
	archive := dir + ".tar"
	defer func() { _ = os.Remove(archive) }()
	if _, err := p.run(ctx, p.repository, "git", "archive", "--format=tar", "--output="+archive, commit); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	_, err := p.run(ctx, dir, "tar", "--extract", "--file="+archive)
	return err
}

// build builds a static program, with more to say to the linker if given.
func (p *publisher) build(ctx context.Context, source, program, pkg, ldflags string) error {
	_, err := p.run(ctx, source, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w "+ldflags, "-o", program, pkg)
	return err
}

func (p *publisher) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// bundleVersion is the version that the bundle in a directory has.
func bundleVersion(dir string) (string, error) {
	var csv struct {
		Spec struct{ Version string }
	}
	path := filepath.Join(dir, "manifests/memcached-operator.clusterserviceversion.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if err := yaml.Unmarshal(content, &csv); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return csv.Spec.Version, nil
}

// bundleLabels are the labels of a bundle's image, which are also its annotations.
func bundleLabels(dir string) (map[string]string, error) {
	var metadata struct {
		Annotations map[string]string
	}
	content, err := os.ReadFile(filepath.Join(dir, "metadata/annotations.yaml"))
	if err != nil {
		return nil, err
	}
	err = yaml.Unmarshal(content, &metadata)
	return metadata.Annotations, err
}
