// Package images builds container images from files, without a container engine, and pushes them.
//
// The same files give the same digest: times, owners and order are fixed.
package images

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
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

// nonroot is the user that images run as unless they say otherwise, by number as the kubelet wants it.
const nonroot = "65532"

// Image is what an image is made of.
type Image struct {
	// Name is the repository and tag within the registry, "opm:v1.73.0".
	Name string
	// Files are the paths in the image, without a leading slash, and the files on this machine that they are copies of.
	// A directory is copied with all that is in it. Links are followed.
	Files map[string]string
	// Links are the paths in the image, without a leading slash, that are symbolic links, and what they point at.
	Links map[string]string
	// Entrypoint and Cmd are as in a Dockerfile.
	Entrypoint, Cmd []string
	// User is as in a Dockerfile; empty is a user that is not root.
	User string
	// Labels are as in a Dockerfile.
	Labels map[string]string
}

// Push builds the image and pushes it to the registry, a host with or without a path. Layers that are there already are
// not sent again. It returns the digest.
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

func (i Image) build() (v1.Image, error) {
	base, err := layer(func(w *tar.Writer) error {
		if err := directories(w, map[string]int64{"tmp/": 0o1777, "etc/": 0o755}); err != nil {
			return err
		}
		return file(w, "etc/passwd", 0o644, []byte("root:x:0:0:root:/:/\nnonroot:x:65532:65532:nonroot:/tmp:/\n"))
	})
	if err != nil {
		return nil, err
	}
	content, err := layer(i.write)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, base, content)
	if err != nil {
		return nil, err
	}
	user := i.User
	if user == "" {
		user = nonroot
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = runtime.GOOS, runtime.GOARCH
	config.Config = v1.Config{
		Entrypoint: i.Entrypoint, Cmd: i.Cmd, User: user, Labels: i.Labels,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	return mutate.ConfigFile(image, config)
}

// write writes the image's own files, sorted, each after the directories it is in.
func (i Image) write(w *tar.Writer) error {
	files, err := i.files()
	if err != nil {
		return err
	}
	parents := map[string]int64{}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(files)), slices.Collect(maps.Keys(i.Links))) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			parents[dir+"/"] = 0o755
		}
	}
	// The layer below has them.
	delete(parents, "etc/")
	delete(parents, "tmp/")
	if err := directories(w, parents); err != nil {
		return err
	}
	for _, in := range slices.Sorted(maps.Keys(files)) {
		info, err := os.Stat(files[in])
		if err != nil {
			return err
		}
		content, err := os.ReadFile(files[in])
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		if err := file(w, in, mode, content); err != nil {
			return err
		}
	}
	for _, in := range slices.Sorted(maps.Keys(i.Links)) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: in, Linkname: i.Links[in],
			Mode: 0o777}); err != nil {
			return err
		}
	}
	return nil
}

// files are the image's own files, with those of directories each by itself.
func (i Image) files() (map[string]string, error) {
	files := map[string]string{}
	for in, on := range i.Files {
		on, err := filepath.EvalSymlinks(on)
		if err != nil {
			return nil, err
		}
		err = filepath.WalkDir(on, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			rest, err := filepath.Rel(on, name)
			files[path.Join(in, filepath.ToSlash(rest))] = name
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func directories(w *tar.Writer, modes map[string]int64) error {
	for _, name := range slices.Sorted(maps.Keys(modes)) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: modes[name]}); err != nil {
			return err
		}
	}
	return nil
}

func file(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode,
		Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func layer(write func(*tar.Writer) error) (v1.Layer, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := write(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil
		// The registry is near: a little compression is enough.
	}, tarball.WithCompressionLevel(1))
}

// Program is the files of a program of this machine's system and of the libraries it loads, at their own paths.
func Program(paths ...string) (map[string]string, error) {
	files := map[string]string{}
	for _, program := range paths {
		files[strings.TrimPrefix(program, "/")] = program
		libraries, err := libraries(program)
		if err != nil {
			return nil, err
		}
		for _, library := range libraries {
			files[strings.TrimPrefix(library, "/")] = library
		}
	}
	return files, nil
}
