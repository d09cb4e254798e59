package images

import (
	"archive/tar"
	"errors"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestPush pushes an image twice, with other modification times the second time, and reads it back.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")

	dir := t.TempDir()
	program, data := filepath.Join(dir, "program"), filepath.Join(dir, "data")
	for file, mode := range map[string]os.FileMode{program: 0o700, filepath.Join(data, "a/b"): 0o600} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(file), mode)); err != nil {
			t.Fatal(err)
		}
	}
	image := Image{
		Name:       "some/image:v1",
		Files:      map[string]string{"bin/program": program, "data": data},
		Links:      map[string]string{"bin/other": "program"},
		Entrypoint: []string{"/bin/program"},
		Labels:     map[string]string{"key": "value"},
	}
	first, err := image.Push(t.Context(), host, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(program, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if second, err := image.Push(t.Context(), host, nil); err != nil || second != first {
		t.Errorf("the same files gave %s and %s (%v)", first, second, err)
	}

	reference, err := name.ParseReference(host + "/some/image:v1")
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	config, err := pushed.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != nonroot || config.Config.Labels["key"] != "value" ||
		!slices.Equal(config.Config.Entrypoint, image.Entrypoint) {
		t.Errorf("the configuration is %+v", config.Config)
	}
	got := map[string]int64{}
	content := tar.NewReader(mutate.Extract(pushed))
	for {
		header, err := content.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[path.Clean(header.Name)] = header.Mode
	}
	want := map[string]int64{"tmp": 0o1777, "etc": 0o755, "etc/passwd": 0o644, "bin": 0o755, "bin/program": 0o755,
		"bin/other": 0o777, "data": 0o755, "data/a": 0o755, "data/a/b": 0o644}
	if !maps.Equal(got, want) {
		t.Errorf("the modes are %v, want %v", got, want)
	}
}

func TestProgramIncludesLibraries(t *testing.T) {
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	files, err := Program(shell)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for in, source := range files {
		found = found || strings.Contains(in, "libc.so")
		if "/"+in != source {
			t.Errorf("%s is at /%s", source, in)
		}
	}
	if !found {
		t.Errorf("the C library is not among %v", files)
	}
}
