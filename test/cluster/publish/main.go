// Command publish builds the images of this repository without a container engine and pushes them to a registry: those
// of the tree and those of each release, which are built from its commit.
//
//	REGISTRY/memcached-operator:vVERSION             the manager
//	REGISTRY/memcached-operator-bundle:vVERSION      its bundle
//	REGISTRY/memcached-operator-catalog:released     the catalog of all releases
//	REGISTRY/memcached-operator-catalog:tree         the same and the tree, which upgrades the last release
//	REGISTRY/memcached-operator-catalog:next         the same and a bundle that could follow the tree: see next.go
//	REGISTRY/memcached-operator-catalog:steps        as tree, but each release is only offered the next one
//	REGISTRY/memcached-operator-catalog:broken       as tree, with images of the bundles that do not exist
//	REGISTRY/memcached-operator-catalog:mirrored     as tree, with images of a registry that does not exist, by digest:
//	                                                 the nodes need a mirror
//	REGISTRY/memcached-operator-scorecard:vVERSION   the scorecard tests of the tree
//	REGISTRY/memcached-operator-probe:vVERSION       the client that the end-to-end tests run in pods
//	REGISTRY/memcached-operator-agent:vVERSION       the agent of the tree; it has a version of its own
//	REGISTRY/memcached-operator-prometheus:vVERSION  Prometheus, if it is built, for the end-to-end tests
//	MIRROR/library/IMAGE:TAG                         an operand's image on docker.io that a bundle names: a copy of the
//	                                                 image that the environment variable RELATED_IMAGE_... names
//
// The images are for the architecture of this machine. Credentials are those of docker login; SSL_CERT_FILE names the
// trusted certificates.
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
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/cluster/images"
	"github.com/example/memcached-operator/test/cluster/progress"
)

func main() {
	p := publisher{}
	flag.StringVar(&p.registry, "registry", "", "where to push to, a host with or without a path")
	flag.StringVar(&p.mirror, "mirror", os.Getenv("TEST_MIRROR"), "the host of a registry that mirrors docker.io, if any")
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

type publisher struct{ registry, mirror, repository, bin, work string }

func (p *publisher) publish(ctx context.Context) error {
	if p.registry == "" || p.bin == "" || p.work == "" {
		return errors.New("--registry, --bin and --work are required")
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
	if err != nil || len(releases) == 0 {
		return errors.New("no release (config/catalog/released) to upgrade from: 'make release' first")
	}
	for _, file := range releases {
		if err := p.release(ctx, filepath.Base(filepath.Dir(file)), file); err != nil {
			return err
		}
	}
	if err := p.tree(ctx); err != nil {
		return err
	}
	if err := p.render(ctx, p.released(), p.registry); err != nil {
		return err
	}
	if err := p.mirrorOperands(ctx); err != nil {
		return err
	}
	return p.catalogs(ctx)
}

// project is the registry in the names of this project's images.
const project = "ghcr.io/example"

// csvPath is the path of the ClusterServiceVersion in a bundle.
const csvPath = "manifests/memcached-operator.clusterserviceversion.yaml"

// operand matches an operand's image on docker.io and the variable that names it, in a ClusterServiceVersion.
var operand = regexp.MustCompile(`- name: (RELATED_IMAGE_\w+)\n\s+value: docker\.io/(\S+)\n`)

// released is the directory of the catalog of all releases, and of their bundles with tags of images.
func (p *publisher) released() string { return filepath.Join(p.work, "released") }

// mirrorOperands publishes the operands' images that the bundles of the tree and of the releases name.
func (p *publisher) mirrorOperands(ctx context.Context) error {
	if p.mirror == "" {
		return nil
	}
	paths, err := filepath.Glob(filepath.Join(p.released(), "bundle-*", csvPath))
	if err != nil {
		return err
	}
	mirrored := map[string]bool{}
	if other := os.Getenv("MEMCACHED_OLD_IMAGE"); other != "" {
		if err := images.Copy(ctx, other, p.mirror+strings.TrimPrefix(nextImage, "docker.io")); err != nil {
			return err
		}
	}
	for _, path := range append(paths, filepath.Join(p.repository, "bundle", csvPath)) {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range operand.FindAllSubmatch(content, -1) {
			source, image := os.Getenv(string(match[1])), string(match[2])
			if source == "" || mirrored[image] {
				continue
			}
			mirrored[image] = true
			if err := images.Copy(ctx, source, p.mirror+"/"+image); err != nil {
				return err
			}
			progress.Printf("%s/%s (a copy of %s)", p.mirror, image, source)
		}
	}
	return nil
}

// release publishes the manager of a release, built from its commit.
func (p *publisher) release(ctx context.Context, version, commitFile string) error {
	content, err := os.ReadFile(commitFile)
	if err != nil {
		return err
	}
	commit := strings.TrimSpace(string(content))
	if _, err := p.run(ctx, p.repository, "git", "cat-file", "-e", commit+"^{commit}"); err != nil {
		return fmt.Errorf("the commit of release %s is not in this clone; 'git fetch --unshallow' gets the whole history: %w",
			version, err)
	}
	source := filepath.Join(p.work, "source-"+version)
	if err := errors.Join(os.RemoveAll(source), os.MkdirAll(source, 0o755)); err != nil {
		return err
	}
	if _, err := p.run(ctx, p.repository, "sh", "-ec", `git archive "$0" | tar --extract --directory="$1"`, commit,
		source); err != nil {
		return err
	}
	return p.manager(ctx, source, version, commit)
}

// version returns the version of the tree.
func (p *publisher) version() (string, error) {
	var csv struct {
		Spec struct{ Version string }
	}
	err := readYAML(filepath.Join(p.repository, "bundle", csvPath), &csv)
	return csv.Spec.Version, err
}

// tree publishes the programs of the tree.
func (p *publisher) tree(ctx context.Context) error {
	version, err := p.version()
	if err != nil {
		return err
	}
	commit, err := p.run(ctx, p.repository, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if err := p.manager(ctx, p.repository, version, strings.TrimSpace(commit)); err != nil {
		return err
	}
	scorecard, err := p.build(ctx, p.repository, "memcached-operator-scorecard", "./test/scorecard", "")
	if err != nil {
		return err
	}
	probe, err := p.build(ctx, p.repository, "probe", "./test/e2e/probe", "")
	if err != nil {
		return err
	}
	agent, err := p.agent(ctx)
	if err != nil {
		return err
	}
	if prometheus := filepath.Join(p.bin, "prometheus"); exists(prometheus) {
		if err := p.push(ctx, images.Image{Name: "memcached-operator-prometheus:v" + version,
			Files: map[string]string{"prometheus": prometheus}, Entrypoint: []string{"/prometheus"}}); err != nil {
			return err
		}
	}
	return p.push(ctx, agent,
		images.Image{
			Name: "memcached-operator-scorecard:v" + version,
			Files: map[string]string{
				"usr/local/bin/memcached-operator-scorecard": scorecard,
				"released": filepath.Join(p.repository, "config/catalog/released"),
			},
		},
		images.Image{
			Name: "memcached-operator-probe:v" + version, Files: map[string]string{"probe": probe},
			Entrypoint: []string{"/probe"},
		})
}

// agent builds the image of the agent, like that of its Dockerfile.
func (p *publisher) agent(ctx context.Context) (images.Image, error) {
	source := filepath.Join(p.repository, "cmd/agent")
	content, err := os.ReadFile(filepath.Join(source, "VERSION"))
	if err != nil {
		return images.Image{}, err
	}
	version := "v" + strings.TrimSpace(string(content))
	program, err := p.build(ctx, source, "agent", ".", "-X main.version="+version)
	return images.Image{
		Name:       "memcached-operator-agent:" + version,
		Files:      map[string]string{"agent": program, "licenses/LICENSE": filepath.Join(p.repository, "LICENSE")},
		Entrypoint: []string{"/agent"},
		Labels: map[string]string{
			"org.opencontainers.image.title":   "memcached-operator-agent",
			"org.opencontainers.image.version": version,
		},
	}, err
}

// catalogs publishes the catalogs and all bundles. That of the tree names images by digest, as releases do.
func (p *publisher) catalogs(ctx context.Context) error {
	last, err := p.version()
	if err != nil {
		return err
	}
	addTree := []string{"--tree"}
	if p.mirror != "" { // otherwise the operands' images may be elsewhere
		digests, err := p.digests(ctx, p.registry)
		if err != nil {
			return err
		}
		addTree = append(addTree, "--digests", digests)
	}
	tree, next := filepath.Join(p.work, "tree"), filepath.Join(p.work, "next")
	following := filepath.Join(p.work, "bundle-next")
	if err := p.render(ctx, tree, p.registry, addTree...); err != nil {
		return err
	}
	if err := writeNext(filepath.Join(tree, "bundle-"+last), following); err != nil {
		return err
	}
	if err := p.render(ctx, next, p.registry, append(addTree, "--next", following)...); err != nil {
		return err
	}
	bundles, err := filepath.Glob(filepath.Join(next, "bundle-*"))
	if err != nil {
		return err
	}
	for _, bundle := range bundles {
		if _, err := p.bundle(ctx, bundle, strings.TrimPrefix(filepath.Base(bundle), "bundle-")); err != nil {
			return err
		}
	}
	if err := p.mirrored(ctx, last); err != nil {
		return err
	}
	steps, err := p.variant(tree, "steps", `(?m)^\s*skipRange: .*\n`, "")
	if err != nil {
		return err
	}
	broken, err := p.variant(tree, "broken", `memcached-operator-bundle:`, "memcached-operator-missing:")
	if err != nil {
		return err
	}
	return p.push(ctx, p.catalog("tree", tree), p.catalog("released", p.released()), p.catalog("next", next),
		p.catalog("steps", steps), p.catalog("broken", broken))
}

// catalogPath is the path of a catalog in the directory that it was rendered into.
const catalogPath = "catalog/memcached-operator/catalog.yaml"

// variant writes a catalog as another one, with each match of a pattern replaced.
func (p *publisher) variant(catalog, name, pattern, replacement string) (string, error) {
	dir := filepath.Join(p.work, name)
	content, err := os.ReadFile(filepath.Join(catalog, catalogPath))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, catalogPath)), 0o755); err != nil {
		return "", err
	}
	content = regexp.MustCompile(pattern).ReplaceAll(content, []byte(replacement))
	return dir, os.WriteFile(filepath.Join(dir, catalogPath), content, 0o600)
}

// digestRegistry is the registry of the bundle for a mirror of digests: that of test/cluster, with a path.
const digestRegistry = "digests.invalid/example"

// mirrored publishes the bundle of the tree for a mirror of digests, and a catalog that names it by its digest.
func (p *publisher) mirrored(ctx context.Context, version string) error {
	if p.mirror == "" || p.registry != p.mirror+"/example" {
		return nil
	}
	digests, err := p.digests(ctx, digestRegistry)
	if err != nil {
		return err
	}
	dir := filepath.Join(p.work, "mirrored")
	if err := p.render(ctx, dir, digestRegistry, "--tree", "--digests", digests); err != nil {
		return err
	}
	digest, err := p.bundle(ctx, filepath.Join(dir, "bundle-"+version), version+"-mirrored")
	if err != nil {
		return err
	}
	const name = digestRegistry + "/memcached-operator-bundle"
	dir, err = p.variant(dir, "mirrored", `(?m)`+name+":v"+regexp.QuoteMeta(version)+"$", name+"@"+digest)
	if err != nil {
		return err
	}
	return p.push(ctx, p.catalog("mirrored", dir))
}

// digests writes a file with the digests of the images that the bundle of the tree names, with this project's images
// named as in a registry.
func (p *publisher) digests(ctx context.Context, registry string) (string, error) {
	path := filepath.Join(p.work, "digests-"+strings.ReplaceAll(registry, "/", "-"))
	var lines strings.Builder
	var csv struct {
		Spec struct{ RelatedImages []struct{ Image string } }
	}
	if err := readYAML(filepath.Join(p.repository, "bundle", csvPath), &csv); err != nil {
		return "", err
	}
	for _, related := range csv.Spec.RelatedImages {
		pushed := strings.Replace(related.Image, project, p.registry, 1)
		pushed = strings.Replace(pushed, "docker.io", p.mirror, 1)
		digest, err := images.Digest(ctx, pushed)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&lines, strings.Replace(related.Image, project, registry, 1), digest)
	}
	return path, os.WriteFile(path, []byte(lines.String()), 0o600)
}

// render renders a catalog and its bundles.
func (p *publisher) render(ctx context.Context, out, registry string, args ...string) error {
	command := slices.Concat([]string{"OPM=" + filepath.Join(p.bin, "opm"), "config/catalog/render.sh"}, args)
	_, err := p.run(ctx, p.repository, "env", append(command, out, registry)...)
	return err
}

// bundle publishes the image of a bundle and returns its digest.
func (p *publisher) bundle(ctx context.Context, dir, version string) (string, error) {
	var metadata struct{ Annotations map[string]string }
	if err := readYAML(filepath.Join(dir, "metadata/annotations.yaml"), &metadata); err != nil {
		return "", err
	}
	image := images.Image{
		Name:   "memcached-operator-bundle:v" + version,
		Files:  map[string]string{"manifests": dir + "/manifests", "metadata": dir + "/metadata", "tests": dir + "/tests"},
		Labels: metadata.Annotations,
	}
	return p.pushOne(ctx, image)
}

func (p *publisher) catalog(tag, dir string) images.Image {
	return images.Image{
		Name: "memcached-operator-catalog:" + tag,
		Files: map[string]string{
			"bin/opm":               filepath.Join(p.bin, "opm"),
			"bin/grpc_health_probe": filepath.Join(p.bin, "grpc-health-probe"), // called by OLM's probes
			"configs":               dir + "/catalog",
		},
		Labels:     map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
		Entrypoint: []string{"/bin/opm"},
		// The catalog is small, so its cache is built when it starts.
		Cmd: []string{"serve", "/configs", "--cache-dir=/tmp/cache", "--cache-enforce-integrity=false"},
	}
}

// manager publishes the image of a manager, like that of the Dockerfile.
func (p *publisher) manager(ctx context.Context, source, version, commit string) error {
	program, err := p.build(ctx, source, "manager-"+version, "./cmd",
		fmt.Sprintf("-X main.version=v%s -X main.commit=%.12s", version, commit))
	if err != nil {
		return err
	}
	return p.push(ctx, images.Image{
		Name:       "memcached-operator:v" + version,
		Files:      map[string]string{"manager": program, "licenses/LICENSE": filepath.Join(source, "LICENSE")},
		Entrypoint: []string{"/manager"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "memcached-operator",
			"org.opencontainers.image.version":  "v" + version,
			"org.opencontainers.image.revision": commit,
		},
	})
}

func (p *publisher) push(ctx context.Context, list ...images.Image) error {
	for _, image := range list {
		if _, err := p.pushOne(ctx, image); err != nil {
			return err
		}
	}
	return nil
}

// pushOne publishes an image and returns its digest.
func (p *publisher) pushOne(ctx context.Context, image images.Image) (string, error) {
	began := time.Now()
	digest, err := image.Push(ctx, p.registry, nil)
	if err != nil {
		return "", err
	}
	progress.Printf("%s/%s %.19s (%.1f s)", p.registry, image.Name, digest, time.Since(began).Seconds())
	return digest, nil
}

// build builds a static program and returns its path.
func (p *publisher) build(ctx context.Context, source, name, pkg, ldflags string) (string, error) {
	progress.Printf("Building %s.", name)
	program := filepath.Join(p.work, name)
	_, err := p.run(ctx, source, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w "+ldflags, "-o", program, pkg)
	return program, err
}

func (p *publisher) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out), err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readYAML(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
