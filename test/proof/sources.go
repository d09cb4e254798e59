package proof

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Operator returns a hash of the operator's sources in a repository: its code, and what it is deployed with. It says
// what was measured.
func Operator(root string) (string, error) {
	return hash(root, []string{"api", "cmd", "internal", "config/crd", "config/manager", "config/rbac", "go.mod", "go.sum"})
}

// OperatorOf returns what [Operator] does if no program replaces the one built from the tree.
func OperatorOf(root, program string) (string, error) {
	if program != "" {
		return "another", nil
	}
	return Operator(root)
}

// Suite returns a hash of the sources of the reliability suite, and of others.
func Suite(root string, others ...string) (string, error) {
	return hash(root, slices.Concat([]string{"test/kinds", "test/reliability", "test/testenv"}, others))
}

// OperatorSetting returns the setting for the result of [Operator].
func OperatorSetting(operator string) Setting {
	return Setting{Name: "operator, by a hash of its sources", Value: operator}
}

// SuiteSetting returns the setting for the result of [Suite].
func SuiteSetting(suite string) Setting {
	return Setting{Name: "suite, by a hash of its sources", Value: suite}
}

// hash returns 12 hexadecimal digits for the sources in some files and directories, without tests, documents and
// testdata. A missing file is an error.
func hash(root string, paths []string) (string, error) {
	sum := sha256.New()
	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join(root, path), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err == nil && entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case err != nil || entry.IsDir() || !isSource(entry.Name()):
				return err
			}
			name, nameErr := filepath.Rel(root, path)
			content, err := os.ReadFile(path)
			_, _ = fmt.Fprintf(sum, "%s %d\n%s", filepath.ToSlash(name), len(content), content)
			return errors.Join(nameErr, err)
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:12], nil
}

// isSource returns whether a file affects what a program does.
func isSource(name string) bool {
	return slices.Contains([]string{".go", ".yaml", ".mod", ".sum"}, filepath.Ext(name)) &&
		!strings.HasSuffix(name, "_test.go")
}
