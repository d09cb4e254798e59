package proof

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Operator returns the revision of a repository that is tested, and whether files other than documents differ from it.
func Operator(root string) (string, error) {
	var results []string
	commands := [][]string{{"rev-parse", "--short=12", "HEAD"}, {"status", "--porcelain", "--", ".", ":!docs"}}
	for _, arguments := range commands {
		out, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(arguments, " "), err)
		}
		results = append(results, strings.TrimSpace(string(out)))
	}
	if results[1] != "" {
		return results[0] + ", with uncommitted changes", nil
	}
	return results[0], nil
}

// OperatorOf returns what [Operator] does if no program replaces the one built from the tree.
func OperatorOf(root, program string) (string, error) {
	if program != "" {
		return "another", nil
	}
	return Operator(root)
}

// RunSettings returns the settings of every page: the revision, as [Operator] returns it, the number of CPUs, and when
// it was measured.
func RunSettings(revision string, begun, ended time.Time) []Setting {
	return []Setting{{"revision", revision}, {"CPUs", fmt.Sprint(runtime.NumCPU())},
		{"begun", begun.UTC().Format("2006-01-02 15:04 MST")},
		{"minutes", fmt.Sprintf("%.0f", ended.Sub(begun).Minutes())}}
}
