// Package images builds container images from files, without a container engine, and pushes them.
//
// The same files give the same digest: times, owners and order are fixed.
package images

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nonroot is the default user of images, by number because the kubelet requires that.
const nonroot = "65532"

// Image describes an image. Entrypoint, Cmd, Labels and User are as in a Dockerfile.
type Image struct {
	// Name is the repository and tag within the registry, such as "opm:v1.73.0".
	Name string
	// Files maps paths in the image, without a leading slash, to the files or directories of this machine that they are
	// copies of. Links are followed.
	Files map[string]string
	// Links maps paths in the image, without a leading slash, to the targets of symbolic links.
	Links           map[string]string
	Entrypoint, Cmd []string
	User            string // by default one that is not root
	Labels          map[string]string
}

// Push builds the image, pushes it to the registry, a host with or without a path, and returns the digest. Layers that
// the registry has are not sent again.
func (i Image) Push(ctx context.Context, registry string, transport http.RoundTripper) (string, error) {
	ref, err := name.ParseReference(registry + "/" + i.Name)
	if err != nil {
		return "", err
	}
	image, err := i.build()
	if err != nil {
		return "", fmt.Errorf("building %s: %w", i.Name, err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if transport != nil {
		options = append(options, remote.WithTransport(transport))
	}
	if err := remote.Write(ref, image, options...); err != nil {
		return "", fmt.Errorf("pushing %s: %w", ref, err)
	}
	digest, err := image.Digest()
	return digest.String(), err
}

// Copy copies an image to another name.
func Copy(ctx context.Context, from, to string) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	source, err := name.ParseReference(from)
	if err != nil {
		return err
	}
	target, err := name.ParseReference(to)
	if err != nil {
		return err
	}
	image, err := remote.Image(source, options...)
	if err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	if err := remote.Write(target, image, options...); err != nil {
		return fmt.Errorf("pushing %s: %w", to, err)
	}
	return nil
}

func (i Image) build() (v1.Image, error) {
	layer, err := i.layer()
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = runtime.GOOS, runtime.GOARCH
	config.Config = v1.Config{
		Entrypoint: i.Entrypoint, Cmd: i.Cmd, User: cmp.Or(i.User, nonroot), Labels: i.Labels,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	return mutate.ConfigFile(image, config)
}

// layer returns a layer of the files and links, sorted by path, and of what every image needs.
func (i Image) layer() (v1.Layer, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	files, err := i.files()
	if err != nil {
		return nil, err
	}
	const passwd = "root:x:0:0:root:/:/\nnonroot:x:65532:65532:nonroot:/tmp:/\n"
	directories := map[string]int64{"tmp/": 0o1777, "etc/": 0o755}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(files)), slices.Collect(maps.Keys(i.Links))) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			directories[dir+"/"] = cmp.Or(directories[dir+"/"], 0o755)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(directories)) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: directories[name]}))
	}
	err = errors.Join(err, write(w, "etc/passwd", 0o644, []byte(passwd)))
	for _, in := range slices.Sorted(maps.Keys(files)) {
		info, statErr := os.Stat(files[in])
		content, readErr := os.ReadFile(files[in])
		if err := errors.Join(statErr, readErr); err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		err = errors.Join(err, write(w, in, mode, content))
	}
	for _, in := range slices.Sorted(maps.Keys(i.Links)) {
		err = errors.Join(err,
			w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: in, Linkname: i.Links[in], Mode: 0o777}))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	// The registry is near: a little compression is enough.
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil
	}, tarball.WithCompressionLevel(1))
}

func write(w *tar.Writer, name string, mode int64, content []byte) error {
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))})
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}

// files returns Files with the files of each directory in its place.
func (i Image) files() (map[string]string, error) {
	files := map[string]string{}
	for in, source := range i.Files {
		source, err := filepath.EvalSymlinks(source)
		if err != nil {
			return nil, err
		}
		err = filepath.WalkDir(source, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			rest, err := filepath.Rel(source, name)
			files[path.Join(in, rest)] = name
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// library matches lines of ldd about libraries, such as "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)", and
// about the loader, such as "/lib64/ld-linux-x86-64.so.2 (0x...)".
var library = regexp.MustCompile(`(?m)^\t(?:\S+ => )?(/\S+) \(0x`)

// Program returns a program of this machine and the shared libraries it loads, at their own paths.
func Program(program string) (map[string]string, error) {
	files := map[string]string{strings.TrimPrefix(program, "/"): program}
	file, err := elf.Open(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	defer func() { _ = file.Close() }()
	if file.Section(".interp") == nil { // it is static
		return files, nil
	}
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", program, err)
	}
	for _, match := range library.FindAllStringSubmatch(string(out), -1) {
		path := filepath.Clean(match[1])
		files[strings.TrimPrefix(path, "/")] = path
	}
	return files, nil
}
