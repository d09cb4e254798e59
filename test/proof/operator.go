package proof

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// operatorParts are what the operator is made of, below the repository's root: its code, and what it is deployed with.
var operatorParts = []string{"api", "cmd", "internal", "config/crd", "config/manager", "config/rbac", "go.mod",
	"go.sum"}

// Operator returns 12 hexadecimal digits that stand for the operator in the tree below a root: for its sources, without
// tests and texts. They stay the same until something of the operator changes, whatever else of the repository does. So
// they say what was measured.
func Operator(root string) (string, error) {
	return fingerprint(root, operatorParts)
}

// fingerprint returns 12 hexadecimal digits that stand for the sources in some parts of the tree below a root, which
// are files and directories: without tests, texts and testdata. A part that is not there is an error.
func fingerprint(root string, parts []string) (string, error) {
	sum := sha256.New()
	for _, part := range parts {
		err := filepath.WalkDir(filepath.Join(root, part), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err == nil && entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case err != nil || entry.IsDir() || !isSource(entry.Name()):
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			_, _ = fmt.Fprintf(sum, "%s %d\n%s", filepath.ToSlash(name), len(content), content)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:12], nil
}

// OperatorOf returns what [Operator] does for a program that was built of the tree; for a program of somebody's that
// cannot be told.
func OperatorOf(root, program string) (string, error) {
	if program != "" {
		return "another", nil
	}
	return Operator(root)
}

// OperatorSetting returns the setting that says which operator was measured, of what [Operator] returns.
func OperatorSetting(operator string) Setting {
	return Setting{Name: "operator, by a hash of its sources", Value: operator}
}

// isSource tells whether a file says what a program does.
func isSource(name string) bool {
	switch filepath.Ext(name) {
	case ".go":
		return !strings.HasSuffix(name, "_test.go")
	case ".yaml", ".mod", ".sum":
		return true
	}
	return false
}
