package main

import (
	"context"
	_ "embed" // the mutants
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/example/memcached-operator/test/reliability/schema"
	"github.com/example/memcached-operator/test/testenv"
)

//go:embed mutants.yaml
var list []byte

// mutant is the operator with one bug.
type mutant struct {
	Name    string   `json:"name"`
	Pattern string   `json:"pattern"`
	Edits   []edit   `json:"edits"`
	Killers []string `json:"killers"` // a suite, a space, and which part of it
}

// edit replaces a text that is in a file once.
type edit struct {
	File string `json:"file"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// mutants reads the list.
func mutants() ([]mutant, error) {
	var all []mutant
	return all, yaml.UnmarshalStrict(list, &all)
}

// files returns what the files of a mutant say, by their path in the repository.
func (m mutant) files() (map[string]string, error) {
	files := map[string]string{}
	for _, edit := range m.Edits {
		content, ok := files[edit.File]
		if !ok {
			read, err := os.ReadFile(filepath.Join(testenv.Root(), edit.File))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			content = string(read)
		}
		if count := strings.Count(content, edit.Old); count != 1 {
			return nil, fmt.Errorf("mutant %s: %s has the old text %d times, not once: the operator has changed, so say the "+
				"bug anew:\n%s",
				m.Name, edit.File, count, edit.Old)
		}
		files[edit.File] = strings.Replace(content, edit.Old, edit.New, 1)
	}
	return files, nil
}

// build builds the manager with the bug into a directory, and returns the path of the program.
func (m mutant) build(ctx context.Context, dir string) (string, error) {
	files, err := m.files()
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, content := range files {
		if isConfig(file) {
			continue
		}
		replacement := filepath.Join(dir, m.Name+"-"+filepath.Base(filepath.Dir(file))+"-"+filepath.Base(file))
		if err := os.WriteFile(replacement, []byte(content), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(testenv.Root(), file)] = replacement
	}
	content, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, m.Name+".overlay.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", err
	}
	program, err := schema.Build(ctx, filepath.Join(dir, "manager-"+m.Name), "-overlay="+path)
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	return program, nil
}

// isConfig tells whether a file is not of the program, but of what is installed with it.
func isConfig(file string) bool { return strings.HasPrefix(file, configDir+"/") }

const configDir = "config"

// root returns the repository with what the mutant changes of config: one of links into the real one, with a config of
// its own, in a directory. It is the real one if the mutant changes nothing of it.
func (m mutant) root(dir string) (string, error) {
	files, err := m.files()
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(files, func(file, _ string) bool { return !isConfig(file) })
	if len(files) == 0 {
		return testenv.Root(), nil
	}
	root := filepath.Join(dir, "root-"+m.Name)
	if err := os.CopyFS(filepath.Join(root, configDir), os.DirFS(filepath.Join(testenv.Root(), configDir))); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(testenv.Root())
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		if entry.Name() == configDir {
			continue
		}
		if err := os.Symlink(filepath.Join(testenv.Root(), entry.Name()), filepath.Join(root, entry.Name())); err != nil {
			return "", err
		}
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	return root, nil
}
